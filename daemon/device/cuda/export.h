/*
 * Device memory that processes share, on a CUDA device: made here and exported, or another's and opened here. By CUDA's
 * IPC handles, for memory of cudaMalloc, or by descriptors, for memory of cuMemCreate; the latter is of the driver's
 * interface, whose functions are found at run time. Any thread, with the device current.
 */
#ifndef DAEMON_EXPORT_H
#define DAEMON_EXPORT_H

#include <cuda_runtime.h>

#include "daemon/device/device.h"

/* Finds the driver's functions; where it has none of them, descriptors are cudaErrorNotSupported. Before all others. */
void cuda_share_init(void);

/* Zeroed memory of device `index`, a multiple of LIMIT_SHARED_UNIT_BYTES. cuda_share_close frees it. */
cudaError_t cuda_share_create(int index, uint64_t size_bytes, enum scand_sharing sharing, struct shared_memory **out);
/* cudaErrorInvalidDevice: it is another device's memory; of other failures *error says what is wrong with the ticket.
 */
cudaError_t cuda_share_open(int index, const struct shared_ticket *ticket, uint64_t offset, uint64_t size_bytes,
                            struct shared_memory **out, struct error *error);
cudaError_t cuda_share_export(const struct shared_memory *memory, struct shared_ticket *out);
cudaError_t cuda_share_close(struct shared_memory *memory);
/* Bytes that cuda_share_create took for it; 0: it is another process's. */
uint64_t cuda_share_own_bytes(const struct shared_memory *memory);

#endif
