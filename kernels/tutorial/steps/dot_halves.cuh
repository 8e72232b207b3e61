/*
 * Common parts of the dot products of halves: the sum of a row, whose samples are read by pairs.
 */
#ifndef KERNELS_TUTORIAL_STEPS_DOT_HALVES_CUH
#define KERNELS_TUTORIAL_STEPS_DOT_HALVES_CUH

#include "kernels/tutorial/steps/dot.cuh"

/* True when a row's halves can be read by twos. */
GPU_INLINE bool lies_in_pairs(const struct step_operand &operand, const char *row)
{
    return operand.stride == sizeof(__half) && (uintptr_t)row % sizeof(__half2) == 0;
}

/* Returns the sum of this warp's part of a row, in its first lane. */
GPU_INLINE float row_sum(const struct step_rows &rows, uint64_t row)
{
    const struct step_operand &other = rows.further[DOT_OTHER];
    const char *x = step_row(&rows, &rows.input, row), *y = step_row(&rows, &other, row);
    const bool paired = lies_in_pairs(rows.input, x) && lies_in_pairs(other, y);
    const uint64_t pairs = paired ? rows.input.length / 2 : 0;
    float sum = 0;
    for (uint64_t p = dot_thread(); p < pairs; p += dot_threads()) {
        const float2 a = __half22float2(((const __half2 *)x)[p]), b = __half22float2(((const __half2 *)y)[p]);
        sum += a.x * b.x + a.y * b.y;
    }
    for (uint64_t i = 2 * pairs + dot_thread(); i < rows.input.length; i += dot_threads())
        sum += product<SCAND_DTYPE_F16>(rows, x, y, i);
    return warp_sum(sum);
}

#endif
