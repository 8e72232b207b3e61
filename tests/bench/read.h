/* Reading device memory and nothing else, for benchmarks. */
#ifndef TESTS_BENCH_READ_H
#define TESTS_BENCH_READ_H

#include <cuda_runtime.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Queues a read of `bytes`, 16-byte aligned; `never` is device memory that is not written. Returns a cudaError_t. */
int bench_read(const void *data, size_t bytes, unsigned *never, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
