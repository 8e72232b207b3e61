/* The GPUs that are there, and the identity of one. */
#ifndef DAEMON_IDENTITY_H
#define DAEMON_IDENTITY_H

#include <cuda_runtime.h>

#include "daemon/device/device.h"

/* Fills in name, memory and identity. cudaErrorNotSupported: it cannot use the host's addresses as they are. */
cudaError_t cuda_identify(int index, struct device_info *info);
/* -EIO, and *error says why that device does not start. */
int cuda_refuse_start(int index, cudaError_t e, struct error *error);
/* -ENODEV, and *error says which there are instead of that one. */
int cuda_refuse_index(int index, struct error *error);

#endif
