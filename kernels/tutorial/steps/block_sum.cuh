/*
 * Common parts of the block sums, which are upsampling backward: the gradient of a sample is the sum of its copies'
 * gradients. A thread adds the samples of a block in their order, in f64, so the bits are those of the reference.
 */
#ifndef KERNELS_TUTORIAL_STEPS_BLOCK_SUM_CUH
#define KERNELS_TUTORIAL_STEPS_BLOCK_SUM_CUH

#include "kernels/steps/block_sum/block_sum.h"
#include "kernels/tutorial/steps/pairs.cuh"

template <enum scand_dtype DTYPE>
static __global__ void __launch_bounds__(THREADS)
    block_sum_one_by_one(const __grid_constant__ struct step_rows rows, uint64_t factor,
                         const __grid_constant__ struct step_tiles tiles, uint64_t begin)
{
    each_element(step_block_tile(tiles, begin), 0, [&](uint64_t row, uint64_t j) {
        const int64_t stride = rows.input.stride;
        const char *x = step_row(&rows, &rows.input, row) + (int64_t)(j * factor) * stride;
        char *y = step_row(&rows, &rows.output, row) + (int64_t)j * rows.output.stride;
        step_put_f64(DTYPE, block_sum_f64(DTYPE, x, stride, factor), y);
    });
}

/* Adds samples two at a time, for an even factor. */
template <enum scand_dtype DTYPE>
static __global__ void __launch_bounds__(THREADS)
    block_sum_by_twos(const __grid_constant__ struct step_rows rows, uint64_t factor,
                      const __grid_constant__ struct step_tiles tiles, uint64_t begin)
{
    each_element(step_block_tile(tiles, begin), 0, [&](uint64_t row, uint64_t j) {
        const uint64_t pairs = factor / 2;
        const struct pair<DTYPE> *x = (const struct pair<DTYPE> *)step_row(&rows, &rows.input, row) + j * pairs;
        struct pair<DTYPE> two = x[0];
        double sum = number<DTYPE>(two.first) + number<DTYPE>(two.second);
        for (uint64_t p = 1; p < pairs; p++) {
            two = x[p];
            sum += number<DTYPE>(two.first);
            sum += number<DTYPE>(two.second);
        }
        step_put_f64(DTYPE, sum, step_row(&rows, &rows.output, row) + (int64_t)j * rows.output.stride);
    });
}

template <enum scand_dtype DTYPE>
static int block_sum_run(bool in_pairs, const struct step_rows *rows, const void *params,
                         const struct step_tiles *tiles, uint64_t begin, uint64_t end, void *stream)
{
    const uint64_t factor = ((const struct block_sum *)params)->factor;
    const bool by_twos = in_pairs && factor % 2 == 0 && lies_in_pairs<DTYPE>(rows, &rows->input);
    auto *const kernel = by_twos ? block_sum_by_twos<DTYPE> : block_sum_one_by_one<DTYPE>;
    return step_launch_each(begin, end, [&](uint64_t first, unsigned grid) {
        kernel<<<grid, THREADS, 0, (cudaStream_t)stream>>>(*rows, factor, *tiles, first);
    });
}

#endif
