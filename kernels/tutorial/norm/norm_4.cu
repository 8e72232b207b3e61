/*
 * norm-4: 16 bytes per load.
 *
 * The change from norm-3: a thread takes four neighbouring samples at a time, in one load where the row begins at a
 * multiple of 16 bytes and in four where it does not, so that the sums are the same wherever the row lies. A quarter of
 * the loads, and four squares are added to each other before they join the sum.
 *
 * Association: groups of four, (x0 x0 + x1 x1) + (x2 x2 + x3 x3); thread t adds those of groups t, t + 256, ... one by
 * one, then of the samples after the last group the t-th; the 256 sums as in norm-3.
 */
#include "kernels/tutorial/norm/norm.cuh"

static __global__ void __launch_bounds__(THREADS) norm_4_kernel(struct reduce_rows rows)
{
    __shared__ double results[THREADS];
    for (uint64_t number = blockIdx.x; number < rows.rows; number += gridDim.x) {
        const float *x = row_at(rows, number);
        bool aligned = is_aligned(x);
        double sum = 0;
        for (uint64_t group = threadIdx.x; group < rows.length / 4; group += THREADS)
            sum += squares_4(load_4(x + 4 * group, aligned));
        norm_store(&rows.output[number], sum + squares_rest(x, rows.length), results);
    }
}

extern "C" int norm_4(const struct reduce_rows *rows, void *, cudaStream_t stream)
{
    norm_4_kernel<<<grid_of(rows->rows), THREADS, 0, stream>>>(*rows);
    return cudaGetLastError();
}
