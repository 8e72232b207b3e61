/*
 * norm-1: a thread per row.
 *
 * The loop of a CPU, once per row. 32 neighbouring threads read 32 samples that lie a row apart, so every load of a
 * warp touches 32 lines of memory and uses four bytes of each; what the caches keep of them is all that helps. And a
 * batch of 10,000 rows is 313 warps, too few to keep a GPU busy.
 *
 * Association: squares one by one, from the left.
 */
#include "kernels/tutorial/reduce/reduce.cuh"

static __global__ void norm_1_kernel(struct reduce_rows rows)
{
    uint64_t number = (uint64_t)blockIdx.x * WARP + threadIdx.x;
    for (; number < rows.rows; number += (uint64_t)gridDim.x * WARP) {
        const float *x = (const float *)((const char *)rows.input + (int64_t)number * rows.pitch);
        double sum = 0;
        for (uint64_t i = 0; i < rows.length; i++)
            sum += op_squares::of(x[i]);
        rows.output[number] = sqrt(sum);
    }
}

extern "C" int norm_1(const struct reduce_rows *rows, void *, cudaStream_t stream)
{
    norm_1_kernel<<<grid_of(parts_of(rows->rows, WARP)), WARP, 0, stream>>>(*rows);
    return cudaGetLastError();
}
