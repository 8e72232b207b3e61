/*
 * block-sum: y[j] = x[j factor] + x[j factor + 1] + ... + x[j factor + factor - 1]. The output has one element for each
 * block of `factor` samples, which make up the row: its length is a multiple of the factor. It is the adjoint of
 * upsample: <upsample(x), y> = <x, block_sum(y)>.
 *
 * Floats of any dtype are added in f64, from the first sample of the block to the last, and the sum is rounded once: to
 * f64 or f32, from which the codec of other dtypes goes on. Infinities and NaNs do what additions do with them.
 * Integers are added in 64 bits and wrap.
 */
#ifndef KERNELS_STEPS_BLOCK_SUM_H
#define KERNELS_STEPS_BLOCK_SUM_H

#include "kernels/steps/step.h"

struct block_sum {
    uint64_t factor; /* at least 1 */
};

extern const struct step_kernel block_sum_kernel;

/* The sum of `factor` elements from `at` on. */
CODEC_INLINE double block_sum_f64(enum scand_dtype dtype, const char *at, int64_t stride, uint64_t factor)
{
    double sum = step_get_f64(dtype, at);
    for (uint64_t k = 1; k < factor; k++)
        sum += step_get_f64(dtype, at + (int64_t)k * stride);
    return sum;
}

CODEC_INLINE uint64_t block_sum_integer(enum scand_dtype dtype, const char *at, int64_t stride, uint64_t factor)
{
    uint64_t sum = 0;
    for (uint64_t k = 0; k < factor; k++)
        sum += step_decode_integer(dtype, at + (int64_t)k * stride);
    return sum;
}

/* Element j of a row's output, where the row's input begins at `from`. */
CODEC_INLINE void block_sum_element(const struct step_rows *rows, const struct block_sum *params, const char *from,
                                    char *to, uint64_t j)
{
    const struct step_operand *input = &rows->input, *output = &rows->output;
    const char *at = from + (int64_t)(j * params->factor) * input->stride;
    char *out = to + (int64_t)j * output->stride;
    if (codec_is_integer(input->dtype))
        step_encode_integer(output->dtype, block_sum_integer(input->dtype, at, input->stride, params->factor), out);
    else
        step_put_f64(output->dtype, block_sum_f64(input->dtype, at, input->stride, params->factor), out);
}

#endif
