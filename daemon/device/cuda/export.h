/*
 * Device memory of a CUDA device that is exported to other processes, or another process's that is opened here. By
 * CUDA's IPC handles, for memory of cudaMalloc, or by descriptors, for memory of cuMemCreate; the latter is of the
 * driver's interface, whose functions are found at run time. Any thread, with the device current.
 */
#ifndef DAEMON_EXPORT_H
#define DAEMON_EXPORT_H

#include <cuda_runtime.h>

#include "daemon/device/device.h"

/* Finds the driver's functions; where it has none of them, descriptors are cudaErrorNotSupported. Before all others. */
void cuda_export_init(void);

/* Zeroed memory of device `index`, a multiple of LIMIT_SHARED_UNIT_BYTES. cuda_export_close frees it. */
cudaError_t cuda_export_create(int index, uint64_t size_bytes, enum scand_sharing sharing,
                               struct exported_memory **out);
/* cudaErrorInvalidDevice: it is another device's memory; of other failures *error says what is wrong with the ticket.
 */
cudaError_t cuda_export_open(int index, const struct export_ticket *ticket, uint64_t offset, uint64_t size_bytes,
                             struct exported_memory **out, struct error *error);
cudaError_t cuda_export_ticket(const struct exported_memory *memory, struct export_ticket *out);
cudaError_t cuda_export_close(struct exported_memory *memory);
/* Bytes that cuda_export_create took for it; 0: it is another process's. */
uint64_t cuda_export_own_bytes(const struct exported_memory *memory);

#endif
