/*
 * Reading alone, the least that a reduction can do. Each thread reads 16 bytes at a time, four such loads on their way
 * at once, and keeps one bit of what it saw, so that the compiler must leave the loads in.
 */
#include <stdint.h>

#include "tests/bench/read.h"

#define THREADS 512
#define AHEAD   4

static __global__ void read_kernel(const uint4 *data, uint64_t count, unsigned *never)
{
    uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x, step = (uint64_t)gridDim.x * THREADS;
    unsigned seen = 0;
    for (; i < count; i += AHEAD * step) {
        uint4 x[AHEAD];
#pragma unroll
        for (int k = 0; k < AHEAD; k++)
            x[k] = i + k * step < count ? data[i + k * step] : uint4{};
#pragma unroll
        for (int k = 0; k < AHEAD; k++)
            seen |= x[k].x ^ x[k].y ^ x[k].z ^ x[k].w;
    }
    if (seen == 0x12345678) /* noise has all bits */
        *never = seen;
}

extern "C" int bench_read(const void *data, size_t bytes, unsigned *never, cudaStream_t stream)
{
    int device, processors;
    cudaError_t error = cudaGetDevice(&device);
    if (!error)
        error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    if (!error)
        read_kernel<<<processors * 4, THREADS, 0, stream>>>((const uint4 *)data, bytes / sizeof(uint4), never);
    return error ? error : cudaGetLastError();
}
