/*
 * Common parts of the reductions, so that their files hold little but the kernel: operations, and the launches that
 * reduce a row in parts and then its parts.
 */
#ifndef KERNELS_TUTORIAL_REDUCE_REDUCE_CUH
#define KERNELS_TUTORIAL_REDUCE_REDUCE_CUH

#include <math_constants.h>

#include "kernels/tutorial/reduce/reduce.h"
#include "kernels/tutorial/scan/launch.cuh"

#define THREADS 256 /* threads of a thread block, in all rungs */

/* An operation: what it makes of a sample, how two results become one, and what changes nothing. */
struct op_sum {
    GPU_INLINE double of(double x) { return x; }
    GPU_INLINE double combine(double a, double b) { return a + b; }
    GPU_INLINE double identity() { return 0; }
};

struct op_squares : op_sum {
    GPU_INLINE double of(double x) { return x * x; }
};

struct op_min : op_sum {
    GPU_INLINE double combine(double a, double b) { return a < b || a != a ? a : b; }
    GPU_INLINE double identity() { return CUDART_INF; }
};

struct op_max : op_sum {
    GPU_INLINE double combine(double a, double b) { return a > b || a != a ? a : b; }
    GPU_INLINE double identity() { return -CUDART_INF; }
};

/* One launch: rows of samples, or of results of the launch before, to `parts` results each. */
struct level {
    const char *input;
    int64_t pitch;
    uint64_t rows, length, parts;
    double *output;
    enum scand_reduction op;
    uint64_t samples; /* samples of a whole row */
};

/* The part of a row that one thread block reduces at a time. */
template <class In> struct part {
    const In *x;
    int count;
};

template <class In> GPU_INLINE struct part<In> part_at(const struct level &level, uint64_t number, int span) {
    const In *row = (const In *)(level.input + (int64_t)(number / level.parts) * level.pitch);
    uint64_t first = number % level.parts * span;
    return {row + first, (int)min(level.length - first, (uint64_t)span)};
}

template <class Op, class In>
GPU_INLINE double load(struct part<In> part, int i)
{
    return i < part.count ? Op::of(part.x[i]) : Op::identity();
}

/* Returns the result of a row from its combined samples. */
GPU_INLINE double finished(enum scand_reduction op, double value, uint64_t samples)
{
    if (op == SCAND_REDUCTION_MEAN || op == SCAND_REDUCTION_RMS)
        value = value / (double)samples;
    return op == SCAND_REDUCTION_RMS || op == SCAND_REDUCTION_NORM ? sqrt(value) : value;
}

/* Rung::block<Op>(part, results) reduces a part of Rung::span samples; `results` is shared memory. Thread 0 returns it.
 */
template <class Rung, class Op, class In>
static __global__ void __launch_bounds__(THREADS) level_kernel(struct level level)
{
    __shared__ double results[THREADS];
    for (uint64_t number = blockIdx.x; number < level.rows * level.parts; number += gridDim.x) {
        double value = Rung::template block<Op>(part_at<In>(level, number, Rung::span), results);
        if (threadIdx.x == 0)
            level.output[number] = level.parts > 1 ? value : finished(level.op, value, level.samples);
        __syncthreads();
    }
}

/* Returns the number of a row's parts; a row of no samples has a result, too. */
static inline uint64_t level_parts(uint64_t length, uint64_t span)
{
    return length > span ? parts_of(length, span) : 1;
}

/* Launches kernel after kernel until one result per row is left. First takes samples, Later results. */
template <class Rung, class First, class Later>
static int levels_launch(const struct reduce_rows *rows, void *workspace, cudaStream_t stream)
{
    double *areas[2] = {(double *)workspace, (double *)workspace + rows->rows * level_parts(rows->length, Rung::span)};
    struct level level = {
        (const char *)rows->input, rows->pitch, rows->rows, rows->length, 0, NULL, rows->op, rows->length};
    for (int depth = 0; level.parts != 1; depth++) {
        level.parts = level_parts(level.length, Rung::span);
        level.output = level.parts == 1 ? rows->output : areas[depth % 2];
        unsigned grid = grid_of(level.rows * level.parts);
        if (depth == 0)
            level_kernel<Rung, First, float><<<grid, THREADS, 0, stream>>>(level);
        else
            level_kernel<Rung, Later, double><<<grid, THREADS, 0, stream>>>(level);
        level.input = (const char *)level.output;
        level.pitch = (int64_t)(level.parts * sizeof(double));
        level.length = level.parts;
    }
    return cudaGetLastError();
}

template <class Rung> static int levels_run(const struct reduce_rows *rows, void *workspace, cudaStream_t stream)
{
    switch (rows->op) {
    case SCAND_REDUCTION_MIN:
        return levels_launch<Rung, op_min, op_min>(rows, workspace, stream);
    case SCAND_REDUCTION_MAX:
        return levels_launch<Rung, op_max, op_max>(rows, workspace, stream);
    case SCAND_REDUCTION_RMS:
    case SCAND_REDUCTION_NORM:
        return levels_launch<Rung, op_squares, op_sum>(rows, workspace, stream);
    default:
        return levels_launch<Rung, op_sum, op_sum>(rows, workspace, stream);
    }
}

#endif
