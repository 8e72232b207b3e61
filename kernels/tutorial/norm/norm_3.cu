/*
 * norm-3: a thread block per row.
 *
 * The change from norm-2: 256 threads share a row and combine their sums in the tree of reduce-v5. With eight times as
 * much of a row on its way at once, few long rows suffice to keep the GPU busy.
 *
 * Association: thread t adds the squares of t, t + 256, t + 512, ... one by one; of the 256 sums i and i + 128, then i
 * and i + 64, and so on.
 */
#include "kernels/tutorial/norm/norm.cuh"

static __global__ void __launch_bounds__(THREADS) norm_3_kernel(struct reduce_rows rows)
{
    __shared__ double results[THREADS];
    for (uint64_t number = blockIdx.x; number < rows.rows; number += gridDim.x) {
        const float *x = row_at(rows, number);
        double sum = 0;
        for (uint64_t i = threadIdx.x; i < rows.length; i += THREADS)
            sum += op_squares::of(x[i]);
        norm_store(&rows.output[number], sum, results);
    }
}

extern "C" int norm_3(const struct reduce_rows *rows, void *, cudaStream_t stream)
{
    norm_3_kernel<<<grid_of(rows->rows), THREADS, 0, stream>>>(*rows);
    return cudaGetLastError();
}
