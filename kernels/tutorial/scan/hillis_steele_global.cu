/*
 * hillis-steele-global: a launch per distance, through global memory.
 *
 * Hillis and Steele, "Data parallel algorithms", CACM 29(12), 1986: in step d = 1, 2, 4, ... every sample adds the one
 * d before it. After log2(n) steps each holds the sum of all up to itself, on a machine with a processor per sample.
 * Here the end of a launch is the barrier that keeps steps apart, and since a step overwrites what its neighbours still
 * read, two buffers are used in turn. That makes n log2(n) additions, but what costs is log2(n) trips through memory.
 *
 * Association: in each step x[i - d] + x[i], over the whole row; steps of ascending distance.
 */
#include "kernels/tutorial/scan/common.cuh"

#define THREADS       256
#define GRID_ROWS_MAX 65535

/* Runs one step; distance 0 copies. */
static __global__ void step_kernel(struct pass pass, uint64_t distance)
{
    uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x;
    for (uint64_t number = blockIdx.y; number < pass.rows; number += gridDim.y) {
        struct row x = pass.x[number], y = pass.y[number];
        for (uint64_t j = i; j < pass.length; j += (uint64_t)gridDim.x * THREADS)
            y[j] = distance > 0 && j >= distance ? x[j - distance] + x[j] : x[j];
    }
}

static void step_launch(const struct pass &pass, struct side from, struct side to, uint64_t distance,
                        cudaStream_t stream)
{
    struct pass step = {from, to, pass.rows, pass.length};
    unsigned rows = (unsigned)(pass.rows < GRID_ROWS_MAX ? pass.rows : GRID_ROWS_MAX);
    step_kernel<<<dim3(grid_of(parts_of(pass.length, THREADS)), rows), THREADS, 0, stream>>>(step, distance);
}

static int steps_of(uint64_t length)
{
    int steps = 0;
    while ((uint64_t)1 << steps < length)
        steps++;
    return steps;
}

/* Buffers take turns so that the last step ends in the output, which the first one must not overwrite if it is x. */
static void pass_launch(const struct pass &pass, void *workspace, cudaStream_t stream)
{
    const struct side buffers[2] = {pass.y, {(char *)workspace, (int64_t)(pass.length * sizeof(float)), 1}};
    int steps = steps_of(pass.length);
    struct side from = pass.x;
    if (steps == 0 || (steps % 2 == 1 && pass.x.first == pass.y.first)) {
        from = buffers[steps % 2];
        step_launch(pass, pass.x, from, 0, stream);
    }
    for (int step = 0; step < steps; step++) {
        struct side to = buffers[(steps - 1 - step) % 2];
        step_launch(pass, from, to, (uint64_t)1 << step, stream);
        from = to;
    }
}

extern "C" uint64_t hillis_steele_workspace(const struct variant_scan *scan)
{
    return scan->rows * scan->length * sizeof(float);
}

extern "C" int hillis_steele_global(const struct variant_scan *scan, void *workspace, cudaStream_t stream)
{
    return passes_run(scan, [=](const struct pass &pass) { pass_launch(pass, workspace, stream); });
}
