/*
 * The end of a tree, when one warp is left: no barrier for the whole thread block. Lanes no longer run in step by
 * themselves, as they did when tutorials left out the barrier altogether, so the warp's own is needed.
 */
#ifndef KERNELS_TUTORIAL_REDUCE_REDUCE_TREE_CUH
#define KERNELS_TUTORIAL_REDUCE_REDUCE_TREE_CUH

#include "kernels/tutorial/reduce/reduce.cuh"

/* Combines, in the first warp, 64 results to one, in lane 0. */
template <class Op> GPU_INLINE double warp_tree(double *results)
{
    int t = threadIdx.x;
    double value = results[t];
#pragma unroll
    for (int stride = WARP; stride > 0; stride /= 2) {
        value = Op::combine(value, results[t + stride]);
        __syncwarp();
        results[t] = value;
        __syncwarp();
    }
    return value;
}

/* All 256 results to one, in thread 0, with no loop left. */
template <class Op> GPU_INLINE double block_tree(double *results)
{
    int t = threadIdx.x;
#pragma unroll
    for (int stride = THREADS / 2; stride > WARP; stride /= 2) {
        __syncthreads();
        if (t < stride)
            results[t] = Op::combine(results[t], results[t + stride]);
    }
    __syncthreads();
    return t < WARP ? warp_tree<Op>(results) : 0;
}

#endif
