/* The ceiling of every job between host and devices: pinned copies in both directions at once, each device its part. */
#include <cuda_runtime.h>
#include <stdio.h>

#include "tests/bench/bench.h"

#define BYTES ((size_t)400000000)
#define RUNS  15

struct duplex {
    int devices;
    char *host[2]; /* memory of all devices */
    void *device[2][BENCH_DEVICES_MAX];
    cudaStream_t streams[2][BENCH_DEVICES_MAX];
};

static size_t part_bytes(const struct duplex *duplex)
{
    return BYTES / (size_t)duplex->devices;
}

static cudaError_t duplex_init(struct duplex *duplex)
{
    cudaError_t e = cudaSuccess;
    for (int i = 0; i < 2 && e == cudaSuccess; i++) {
        e = cudaHostAlloc((void **)&duplex->host[i], BYTES, cudaHostAllocPortable);
        for (int d = 0; d < duplex->devices && e == cudaSuccess; d++) {
            e = cudaSetDevice(d);
            if (e == cudaSuccess)
                e = cudaMalloc(&duplex->device[i][d], part_bytes(duplex));
            if (e == cudaSuccess)
                e = cudaStreamCreateWithFlags(&duplex->streams[i][d], cudaStreamNonBlocking);
        }
    }
    return e;
}

static void duplex_finish(struct duplex *duplex)
{
    for (int i = 0; i < 2; i++) {
        cudaFreeHost(duplex->host[i]);
        for (int d = 0; d < duplex->devices; d++)
            cudaFree(duplex->device[i][d]);
    }
    cudaSetDevice(0);
}

static cudaError_t duplex_run(struct duplex *duplex, double *milliseconds)
{
    double begin_ms = bench_now_ms();
    size_t bytes = part_bytes(duplex);
    cudaError_t e = cudaSuccess;
    for (int d = 0; d < duplex->devices; d++) {
        cudaSetDevice(d);
        cudaMemcpyAsync(duplex->device[0][d], duplex->host[0] + (size_t)d * bytes, bytes, cudaMemcpyHostToDevice,
                        duplex->streams[0][d]);
        cudaMemcpyAsync(duplex->host[1] + (size_t)d * bytes, duplex->device[1][d], bytes, cudaMemcpyDeviceToHost,
                        duplex->streams[1][d]);
    }
    for (int d = 0; d < duplex->devices && e == cudaSuccess; d++) {
        cudaSetDevice(d);
        e = cudaDeviceSynchronize();
    }
    *milliseconds = bench_now_ms() - begin_ms;
    return e;
}

int bench_device_count(void)
{
    int count = 0;
    cudaGetDeviceCount(&count);
    return count < BENCH_DEVICES_MAX ? count : BENCH_DEVICES_MAX;
}

int bench_duplex(struct bench_table *table, int devices, double *gb_per_second)
{
    struct duplex duplex = {.devices = devices};
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
    if (devices > 1)
        snprintf(row.shape, sizeof row.shape, "%d GPUs", devices);
    *gb_per_second = (double)BYTES / row.milliseconds / 1e6;
    bench_add(table, &row);
    return 0;
}
