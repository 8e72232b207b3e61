/* The ceiling of every job between host and device: pinned copies in both directions at once. */
#include <cuda_runtime.h>
#include <stdio.h>

#include "tests/bench/bench.h"

#define BYTES ((size_t)400000000)
#define RUNS  15

struct duplex {
    void *host[2], *device[2];
    cudaStream_t streams[2];
};

static cudaError_t duplex_init(struct duplex *duplex)
{
    cudaError_t e = cudaSuccess;
    for (int i = 0; i < 2 && e == cudaSuccess; i++) {
        e = cudaHostAlloc(&duplex->host[i], BYTES, cudaHostAllocDefault);
        if (e == cudaSuccess)
            e = cudaMalloc(&duplex->device[i], BYTES);
        if (e == cudaSuccess)
            e = cudaStreamCreateWithFlags(&duplex->streams[i], cudaStreamNonBlocking);
    }
    return e;
}

static void duplex_finish(struct duplex *duplex)
{
    for (int i = 0; i < 2; i++) {
        cudaFreeHost(duplex->host[i]);
        cudaFree(duplex->device[i]);
    }
}

static cudaError_t duplex_run(struct duplex *duplex, double *milliseconds)
{
    double begin_ms = bench_now_ms();
    cudaMemcpyAsync(duplex->device[0], duplex->host[0], BYTES, cudaMemcpyHostToDevice, duplex->streams[0]);
    cudaMemcpyAsync(duplex->host[1], duplex->device[1], BYTES, cudaMemcpyDeviceToHost, duplex->streams[1]);
    cudaError_t e = cudaDeviceSynchronize();
    *milliseconds = bench_now_ms() - begin_ms;
    return e;
}

int bench_duplex(struct bench_table *table, double *gb_per_second)
{
    struct duplex duplex = {0};
    double times_ms[RUNS], warm_ms;
    cudaError_t e = duplex_init(&duplex);
    if (e == cudaSuccess)
        e = duplex_run(&duplex, &warm_ms);
    for (int i = 0; i < RUNS && e == cudaSuccess; i++)
        e = duplex_run(&duplex, &times_ms[i]);
    duplex_finish(&duplex);
    if (e != cudaSuccess) {
        fprintf(stderr, "bench_duplex: %s\n", cudaGetErrorString(e));
        return 1;
    }
    struct bench_row row = {.name = "copy of 400 MB in both directions", .milliseconds = bench_median(times_ms, RUNS)};
    *gb_per_second = (double)BYTES / row.milliseconds / 1e6;
    bench_add(table, &row);
    return 0;
}
