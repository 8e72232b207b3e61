/*
 * tensor-norm-1: one thread block, each thread a contiguous part.
 *
 * The loop of a CPU with threads: the tensor is cut into as many parts as there are threads, and each adds the squares
 * of its own. That is how processors like it. On a GPU 32 neighbouring threads read 32 samples that lie a part's length
 * apart, so a load touches 32 lines of memory for four bytes of each, and lives from what the cache keeps of them for
 * the loads that follow. And there is but one thread block
 * for a tensor, so that all but one multiprocessor wait.
 *
 * Association: thread t adds the squares of its part one by one; the 256 sums as in norm-3.
 */
#include "kernels/tutorial/norm/norm.cuh"

static __global__ void __launch_bounds__(THREADS) tensor_norm_1_kernel(struct reduce_rows rows)
{
    __shared__ double results[THREADS];
    for (uint64_t number = blockIdx.x; number < rows.rows; number += gridDim.x) {
        const float *x = row_at(rows, number);
        const uint64_t part = (rows.length + THREADS - 1) / THREADS, first = threadIdx.x * part;
        const uint64_t end = min(first + part, rows.length);
        double sum = 0;
        for (uint64_t i = first; i < end; i++)
            sum += op_squares::of(x[i]);
        norm_store(&rows.output[number], sum, results);
    }
}

extern "C" int tensor_norm_1(const struct reduce_rows *rows, void *, cudaStream_t stream)
{
    tensor_norm_1_kernel<<<grid_of(rows->rows), THREADS, 0, stream>>>(*rows);
    return cudaGetLastError();
}
