/*
 * A program that has no daemon: a CUDA context of its own, pinned memory, and the daemon's kernel over chunks
 * on a few streams, so that uploads, kernels and downloads overlap.
 */
#include <algorithm>
#include <cstdio>

#include "kernels/cuda/kernels/launchers.h"
#include "tests/bench/programs.h"

#define STREAMS    4
#define CHUNK_ROWS 209 /* rows of 8 MiB, as the daemon's chunks */

struct own {
    float *host, *chunks[STREAMS];
    cudaStream_t streams[STREAMS];
    scan_device device;
};

static cudaError_t own_init(own *self)
{
    cudaError_t error =
        cudaHostAlloc((void **)&self->host, client_bytes(FRESH_ROWS, MAIN_SAMPLES), cudaHostAllocDefault);
    for (int i = 0; i < STREAMS && !error; i++) {
        error = cudaMalloc((void **)&self->chunks[i], client_bytes(CHUNK_ROWS, MAIN_SAMPLES));
        if (!error)
            error = cudaStreamCreateWithFlags(&self->streams[i], cudaStreamNonBlocking);
    }
    if (!error)
        error = scan_device_find(&self->device);
    return error ? error : scan_block_per_row_load(&self->device);
}

static cudaError_t own_chunk(own *self, uint64_t first, uint64_t count, int slot)
{
    float *host = self->host + first * MAIN_SAMPLES, *chunk = self->chunks[slot];
    cudaStream_t stream = self->streams[slot];
    const size_t bytes = client_bytes(count, MAIN_SAMPLES);
    const scan_rows rows = client_rows(chunk, count, MAIN_SAMPLES);
    const scan_call call = {&self->device, SELECT_BLOCK_PER_ROW,          &rows, 0,     count, NULL,
                            NULL,          scan_plan_of(&rows, 0, count), NULL,  stream};
    cudaError_t error = cudaMemcpyAsync(chunk, host, bytes, cudaMemcpyHostToDevice, stream);
    if (!error)
        error = scan_block_per_row(&call);
    return error ? error : cudaMemcpyAsync(host, chunk, bytes, cudaMemcpyDeviceToHost, stream);
}

static cudaError_t own_job(own *self)
{
    cudaError_t error = cudaSuccess;
    for (uint64_t first = 0; first < FRESH_ROWS && !error; first += CHUNK_ROWS)
        error = own_chunk(self, first, std::min<uint64_t>(CHUNK_ROWS, FRESH_ROWS - first),
                          (int)(first / CHUNK_ROWS % STREAMS));
    return error ? error : cudaDeviceSynchronize();
}

extern "C" int fresh_own(int, char **)
{
    static own self;
    cudaError_t error = own_init(&self);
    if (!error)
        client_fill(self.host, MAIN_SAMPLES);
    for (int i = 0; i < FRESH_JOBS && !error; i++) {
        error = own_job(&self);
        if (!error && i == 0 && !client_row_is_scanned(self.host))
            return client_fail("program without a daemon", "the first row is not what it should be");
    }
    return error ? client_fail("program without a daemon", cudaGetErrorString(error)) : 0;
}
