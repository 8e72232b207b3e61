/*
 * Common parts of the norms of whole tensors: a row is a tensor, which thread blocks along the second dimension of the
 * grid have parts of.
 */
#ifndef KERNELS_TUTORIAL_NORM_TENSOR_CUH
#define KERNELS_TUTORIAL_NORM_TENSOR_CUH

#include "kernels/tutorial/norm/norm.cuh"

#define EACH       16   /* least samples of a thread, where there are as many */
#define BLOCKS_MAX 1024 /* thread blocks of a row */

static __global__ void norms_zero(double *output, uint64_t rows)
{
    uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x;
    for (; i < rows; i += (uint64_t)gridDim.x * THREADS)
        output[i] = 0;
}

static __global__ void norms_root(double *output, uint64_t rows)
{
    uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x;
    for (; i < rows; i += (uint64_t)gridDim.x * THREADS)
        output[i] = sqrt(output[i]);
}

/* Adds up this thread's squares, of samples that all threads of a row take in turns. */
GPU_INLINE double squares_in_turns(const struct reduce_rows &rows, uint64_t number)
{
    const float *x = row_at(rows, number);
    double sum = 0;
    uint64_t i = (uint64_t)blockIdx.y * THREADS + threadIdx.x;
    for (; i < rows.length; i += (uint64_t)gridDim.y * THREADS)
        sum += op_squares::of(x[i]);
    return sum;
}

/* Block::sum(squares) adds the squares of a thread block, in its first thread. */
template <class Block> static __global__ void __launch_bounds__(THREADS) norms_add(struct reduce_rows rows)
{
    for (uint64_t number = blockIdx.x; number < rows.rows; number += gridDim.x) {
        double sum = Block::sum(squares_in_turns(rows, number));
        if (threadIdx.x == 0)
            atomicAdd(&rows.output[number], sum);
        __syncthreads();
    }
}

/* Zeros, sums, roots: nobody knows which thread block adds last. */
template <class Block> static int norms_run(const struct reduce_rows *rows, cudaStream_t stream)
{
    const uint64_t blocks = parts_of(rows->length, THREADS * EACH);
    const unsigned along = (unsigned)(blocks < 1 ? 1 : blocks < BLOCKS_MAX ? blocks : BLOCKS_MAX);
    const unsigned grid = grid_of(parts_of(rows->rows, THREADS));
    norms_zero<<<grid, THREADS, 0, stream>>>(rows->output, rows->rows);
    norms_add<Block><<<dim3(grid_of(rows->rows), along), THREADS, 0, stream>>>(*rows);
    norms_root<<<grid, THREADS, 0, stream>>>(rows->output, rows->rows);
    return cudaGetLastError();
}

#endif
