/*
 * The main job on a GPU without a daemon: chunks of its rows go through a ring of slots, as in the daemon's CUDA
 * device, from and to host memory that is pinned in one piece. A daemon can be no faster.
 */
#include <cuda_runtime.h>

#include "kernels/cuda/scan_cuda.h"
#include "tests/bench/bench.h"
#include "tests/bench/client.h"
#include "tests/bench/job.h"

#define SLOTS      4
#define ROW_BYTES  client_bytes(1, MAIN_SAMPLES)
#define CHUNK_ROWS ((uint64_t)(8 << 20) / ROW_BYTES)
#define CHUNKS     ((MAIN_ROWS + CHUNK_ROWS - 1) / CHUNK_ROWS)
#define RUNS       15

enum stage { UPLOAD, KERNEL, DOWNLOAD, STAGES };

struct ring {
    char *input, *output;
    void *slots[SLOTS];
    cudaStream_t streams[STAGES];
    cudaEvent_t passed[SLOTS][STAGES];
};

static cudaError_t slot_init(struct ring *ring, int slot)
{
    cudaError_t e = cudaMalloc(&ring->slots[slot], CHUNK_ROWS * ROW_BYTES);
    for (int stage = 0; stage < STAGES && e == cudaSuccess; stage++)
        e = cudaEventCreateWithFlags(&ring->passed[slot][stage], cudaEventDisableTiming);
    return e;
}

static cudaError_t ring_init(struct ring *ring)
{
    cudaError_t e = (cudaError_t)scan_cuda_init();
    if (e == cudaSuccess)
        e = cudaHostAlloc((void **)&ring->input, MAIN_ROWS * ROW_BYTES, cudaHostAllocPortable);
    if (e == cudaSuccess)
        e = cudaHostAlloc((void **)&ring->output, MAIN_ROWS * ROW_BYTES, cudaHostAllocPortable);
    for (int stage = 0; stage < STAGES && e == cudaSuccess; stage++)
        e = cudaStreamCreateWithFlags(&ring->streams[stage], cudaStreamNonBlocking);
    for (int slot = 0; slot < SLOTS && e == cudaSuccess; slot++)
        e = slot_init(ring, slot);
    return e;
}

static void ring_finish(struct ring *ring)
{
    cudaFreeHost(ring->input);
    cudaFreeHost(ring->output);
    for (int slot = 0; slot < SLOTS; slot++) {
        cudaFree(ring->slots[slot]);
        for (int stage = 0; stage < STAGES && ring->passed[slot][stage]; stage++)
            cudaEventDestroy(ring->passed[slot][stage]);
    }
    for (int stage = 0; stage < STAGES && ring->streams[stage]; stage++)
        cudaStreamDestroy(ring->streams[stage]);
}

/* Queues a stage of a chunk, of so many rows from byte `at` on. */
static cudaError_t stage_start(const struct ring *ring, uint64_t slot, enum stage stage, uint64_t at, uint64_t rows)
{
    cudaStream_t stream = ring->streams[stage];
    if (stage == UPLOAD)
        return cudaMemcpyAsync(ring->slots[slot], ring->input + at, rows * ROW_BYTES, cudaMemcpyHostToDevice, stream);
    if (stage == DOWNLOAD)
        return cudaMemcpyAsync(ring->output + at, ring->slots[slot], rows * ROW_BYTES, cudaMemcpyDeviceToHost, stream);
    const struct scan_rows scan = client_rows(ring->slots[slot], rows, MAIN_SAMPLES);
    return (cudaError_t)scan_cuda(&scan, 0, rows, NULL, stream); /* rows of this length need no workspace */
}

static cudaError_t chunk_start(const struct ring *ring, uint64_t chunk)
{
    const uint64_t slot = chunk % SLOTS, first = chunk * CHUNK_ROWS, left = MAIN_ROWS - first;
    cudaError_t e = cudaSuccess;
    for (int stage = 0; stage < STAGES && e == cudaSuccess; stage++) {
        if (stage > 0)
            e = cudaStreamWaitEvent(ring->streams[stage], ring->passed[slot][stage - 1], 0);
        if (e == cudaSuccess)
            e = stage_start(ring, slot, stage, first * ROW_BYTES, left < CHUNK_ROWS ? left : CHUNK_ROWS);
        if (e == cudaSuccess)
            e = cudaEventRecord(ring->passed[slot][stage], ring->streams[stage]);
    }
    return e;
}

static cudaError_t chunk_await(const struct ring *ring, uint64_t chunk)
{
    cudaError_t e;
    while ((e = cudaEventQuery(ring->passed[chunk % SLOTS][DOWNLOAD])) == cudaErrorNotReady)
        ;
    return e;
}

static cudaError_t ring_run(const struct ring *ring, double *milliseconds)
{
    double begin_ms = bench_now_ms();
    cudaError_t e = cudaSuccess;
    for (uint64_t chunk = 0; chunk < CHUNKS + SLOTS && e == cudaSuccess; chunk++) {
        if (chunk >= SLOTS)
            e = chunk_await(ring, chunk - SLOTS);
        if (e == cudaSuccess && chunk < CHUNKS)
            e = chunk_start(ring, chunk);
    }
    *milliseconds = bench_now_ms() - begin_ms;
    return e;
}

int bench_ring(struct bench_table *table, const struct service *service)
{
    struct ring ring = {0};
    double times_ms[RUNS], warm_ms;
    cudaError_t e = ring_init(&ring);
    if (e == cudaSuccess)
        e = ring_run(&ring, &warm_ms);
    for (int i = 0; i < RUNS && e == cudaSuccess; i++)
        e = ring_run(&ring, &times_ms[i]);
    ring_finish(&ring);
    if (e != cudaSuccess)
        return job_fail("ring", (int)e);
    struct bench_row row = {.name = "the same by a ring without a daemon",
                            .shape = "10000 x 10000",
                            .accumulator = "f64",
                            .milliseconds = bench_median(times_ms, RUNS),
                            .against = "copy of 400 MB in both directions"};
    row.share = (double)(MAIN_ROWS * ROW_BYTES) / row.milliseconds / 1e6 / service->duplex_gb_per_second;
    bench_add(table, &row);
    return 0;
}
