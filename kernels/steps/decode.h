/*
 * Runs of floats as f64, for kernels on processors: the dtype is looked at once for a run, and loops over the usual
 * ones that lie side by side are made of vectors.
 */
#ifndef KERNELS_STEPS_DECODE_H
#define KERNELS_STEPS_DECODE_H

#include "kernels/steps/step.h"

/* The dtype is a constant where this is inlined. */
CODEC_INLINE void decode_as(enum scand_dtype dtype, const char *from, int64_t stride, uint64_t count, double *out)
{
    for (uint64_t i = 0; i < count; i++)
        out[i] = step_get_f64(dtype, from + (int64_t)i * stride);
}

static inline void decode_f64(enum scand_dtype dtype, const char *from, int64_t stride, uint64_t count, double *out)
{
    const bool dense = stride == (int64_t)codec_bytes(dtype);
    if (dense && dtype == SCAND_DTYPE_F32)
        decode_as(SCAND_DTYPE_F32, from, sizeof(float), count, out);
    else if (dense && dtype == SCAND_DTYPE_F64)
        decode_as(SCAND_DTYPE_F64, from, sizeof(double), count, out);
    else if (dense && dtype == SCAND_DTYPE_F16)
        decode_as(SCAND_DTYPE_F16, from, 2, count, out);
    else if (dense && dtype == SCAND_DTYPE_BF16)
        decode_as(SCAND_DTYPE_BF16, from, 2, count, out);
    else if (dtype == SCAND_DTYPE_F32)
        decode_as(SCAND_DTYPE_F32, from, stride, count, out);
    else
        decode_as(dtype, from, stride, count, out);
}

#endif
