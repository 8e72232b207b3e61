/*
 * Loads from shared memory and nothing else: all warps of one processor load the same elements again and again, enough
 * of them that latency hides and what is left is how many wavefronts the memory needs for a load.
 */
#include <cuda_runtime.h>
#include <stdint.h>

#include "tests/bench/banks.h"

#define THREADS 1024
#define LOADS   8   /* loads of a thread that are on their way at once */
#define ROUNDS  256 /* rounds of loads */
#define RUNS    21
#define DEVICE  static __device__ __forceinline__

struct lanes {
    int element[BANK_LANES];
};

/* Loads a word, volatile, so that each load is made; the values keep the destination registers apart. */
DEVICE void load(unsigned address, uint32_t *value)
{
    asm volatile("ld.volatile.shared.u32 %0, [%1];" : "=r"(*value) : "r"(address));
}

DEVICE void load(unsigned address, uint2 *value)
{
    asm volatile("ld.volatile.shared.v2.u32 {%0, %1}, [%2];" : "=r"(value->x), "=r"(value->y) : "r"(address));
}

DEVICE void load(unsigned address, uint4 *value)
{
    asm volatile("ld.volatile.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(value->x), "=r"(value->y), "=r"(value->z), "=r"(value->w)
                 : "r"(address));
}

DEVICE uint32_t word_of(uint32_t value)
{
    return value;
}

DEVICE uint32_t word_of(uint2 value)
{
    return value.x ^ value.y;
}

DEVICE uint32_t word_of(uint4 value)
{
    return value.x ^ value.y ^ value.z ^ value.w;
}

template <class T>
static __global__ void __launch_bounds__(THREADS) bank_kernel(struct lanes lanes, long long *cycles, uint32_t *seen)
{
    __shared__ uint4 memory[BANK_SHARED_BYTES / sizeof(uint4)];
    for (int i = threadIdx.x; i < BANK_SHARED_BYTES / (int)sizeof(uint4); i += THREADS)
        memory[i] = uint4{};
    unsigned address =
        (unsigned)__cvta_generic_to_shared(memory) + lanes.element[threadIdx.x % BANK_LANES] * (unsigned)sizeof(T);
    uint32_t word = 0;
    __syncthreads();
    long long begin = clock64();
    for (int round = 0; round < ROUNDS; round++) {
        T values[LOADS];
#pragma unroll
        for (int i = 0; i < LOADS; i++)
            load(address, &values[i]);
#pragma unroll
        for (int i = 0; i < LOADS; i++)
            word ^= word_of(values[i]);
    }
    __syncthreads();
    if (threadIdx.x == 0)
        *cycles = clock64() - begin;
    seen[threadIdx.x] = word;
}

static cudaError_t launch(struct lanes lanes, int bytes, long long *cycles, uint32_t *seen)
{
    if (bytes == 4)
        bank_kernel<uint32_t><<<1, THREADS>>>(lanes, cycles, seen);
    else if (bytes == 8)
        bank_kernel<uint2><<<1, THREADS>>>(lanes, cycles, seen);
    else
        bank_kernel<uint4><<<1, THREADS>>>(lanes, cycles, seen);
    return cudaGetLastError();
}

/* The least of several runs: nothing makes a load need fewer cycles. */
extern "C" int bank_cycles(const struct bank_pattern *pattern, int bytes, double *cycles)
{
    struct lanes lanes;
    long long *device = NULL, least = INT64_MAX, measured = 0;
    for (int t = 0; t < BANK_LANES; t++)
        lanes.element[t] = pattern->element[t];
    cudaError_t error = cudaMalloc(&device, sizeof(*device) + THREADS * sizeof(uint32_t));
    for (int run = 0; run < RUNS && !error; run++) {
        error = launch(lanes, bytes, device, (uint32_t *)(device + 1));
        if (!error)
            error = cudaMemcpy(&measured, device, sizeof measured, cudaMemcpyDeviceToHost);
        least = measured < least ? measured : least;
    }
    cudaFree(device);
    *cycles = (double)least / (ROUNDS * LOADS * (THREADS / BANK_LANES));
    return error;
}
