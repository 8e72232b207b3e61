/*
 * norm-2: a warp per row.
 *
 * The change from norm-1: the lanes of a warp share a row, so a load takes one line of memory and all of it is used.
 * Their sums meet in five shuffles.
 *
 * Association: lane t adds the squares of t, t + 32, t + 64, ... one by one; of the 32 sums i and i + 16, then i and i
 * + 8, and so on.
 */
#include "kernels/tutorial/norm/norm.cuh"

#define WARPS (THREADS / WARP)

static __global__ void norm_2_kernel(struct reduce_rows rows)
{
    uint64_t number = (uint64_t)blockIdx.x * WARPS + threadIdx.x / WARP;
    for (; number < rows.rows; number += (uint64_t)gridDim.x * WARPS) {
        const float *x = row_at(rows, number);
        double sum = 0;
        for (uint64_t i = threadIdx.x % WARP; i < rows.length; i += WARP)
            sum += op_squares::of(x[i]);
#pragma unroll
        for (int distance = WARP / 2; distance > 0; distance /= 2)
            sum += __shfl_down_sync(ALL, sum, distance);
        if (threadIdx.x % WARP == 0)
            rows.output[number] = sqrt(sum);
    }
}

extern "C" int norm_2(const struct reduce_rows *rows, void *, cudaStream_t stream)
{
    norm_2_kernel<<<grid_of(parts_of(rows->rows, WARPS)), THREADS, 0, stream>>>(*rows);
    return cudaGetLastError();
}
