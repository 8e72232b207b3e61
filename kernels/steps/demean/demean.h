/*
 * demean: y[i] = x[i] - m, m being the mean of the row, as a scan with `demean` has it: the row's total in order 1,
 * forward and in f64, divided by its length. The difference is rounded to f64 of f64 samples and i32be, to f32 of other
 * floats, and that to the output. A NaN or an infinity makes NaN of its row.
 */
#ifndef KERNELS_STEPS_DEMEAN_H
#define KERNELS_STEPS_DEMEAN_H

#include "kernels/steps/totals.h"

/* demean has no parameters and no further operand. Input and output are of floats. */
extern const struct step_kernel demean_kernel;

CODEC_INLINE double demean_sample(enum scand_dtype dtype, double sample, double mean)
{
    return codec_class(dtype) == SCAND_CLASS_F64 ? sample - mean : (double)(float)(sample - mean);
}

#endif
