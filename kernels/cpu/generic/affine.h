/*
 * The numbers of affine on the CPU, one kind for each accumulator: how they are read from contiguous samples, joined,
 * rounded between two passes, and written.
 */
#ifndef KERNELS_CPU_GENERIC_AFFINE_H
#define KERNELS_CPU_GENERIC_AFFINE_H

#include "kernels/order1/dtypes.h"
#include "kernels/order1/f2.h"

typedef float f32_affine_type;
typedef double f64_affine_type;
typedef struct f2 f2_affine_type;
typedef uint64_t exact_affine_type;

/* A float or double of a staging line (cpu.h), less the mean of its row. */
CODEC_INLINE float affine_read_f32(const void *staged, uint64_t at, const double *mean)
{
    float x = codec_f32_of_bits(codec_load32((const char *)staged + at * sizeof(float)));
    return mean ? (float)((double)x - *mean) : x;
}

CODEC_INLINE double affine_read_f64(const void *staged, uint64_t at, const double *mean)
{
    double x = codec_decode_f64(SCAND_DTYPE_F64, (const char *)staged + at * sizeof(double));
    return mean ? x - *mean : x;
}

CODEC_INLINE void affine_write_f32(void *staged, uint64_t at, float value)
{
    codec_encode_f32(SCAND_DTYPE_F32, value, (char *)staged + at * sizeof(float));
}

CODEC_INLINE void affine_write_f64(void *staged, uint64_t at, double value)
{
    codec_encode_f64(SCAND_DTYPE_F64, value, (char *)staged + at * sizeof(double));
}

/* f32: samples are never f64. */

CODEC_INLINE float f32_affine_read(enum scand_dtype dtype, const void *staged, uint64_t at, const double *mean)
{
    (void)dtype;
    return affine_read_f32(staged, at, mean);
}

CODEC_INLINE void f32_affine_write(enum scand_dtype dtype, void *staged, uint64_t at, float value)
{
    if (codec_class(dtype) == SCAND_CLASS_F64)
        affine_write_f64(staged, at, (double)value);
    else
        affine_write_f32(staged, at, value);
}

CODEC_INLINE float f32_affine_mul(float left, float right)
{
    return left * right;
}

CODEC_INLINE float f32_affine_map(float factor, float y, float term)
{
    return factor * y + term;
}

CODEC_INLINE float f32_affine_round(float value, bool to_f32)
{
    (void)to_f32;
    return value;
}

/* f64 */

CODEC_INLINE double f64_affine_read(enum scand_dtype dtype, const void *staged, uint64_t at, const double *mean)
{
    if (codec_class(dtype) == SCAND_CLASS_F64)
        return affine_read_f64(staged, at, mean);
    return (double)affine_read_f32(staged, at, mean);
}

CODEC_INLINE void f64_affine_write(enum scand_dtype dtype, void *staged, uint64_t at, double value)
{
    if (codec_class(dtype) == SCAND_CLASS_F64)
        affine_write_f64(staged, at, value);
    else
        affine_write_f32(staged, at, (float)value);
}

CODEC_INLINE double f64_affine_mul(double left, double right)
{
    return left * right;
}

CODEC_INLINE double f64_affine_map(double factor, double y, double term)
{
    return factor * y + term;
}

CODEC_INLINE double f64_affine_round(double value, bool to_f32)
{
    return to_f32 ? (double)(float)value : value;
}

/* f2 */

CODEC_INLINE struct f2 f2_affine_read(enum scand_dtype dtype, const void *staged, uint64_t at, const double *mean)
{
    if (codec_class(dtype) == SCAND_CLASS_F64)
        return f2_from_f64(affine_read_f64(staged, at, mean));
    return f2_from_f32(affine_read_f32(staged, at, mean));
}

CODEC_INLINE void f2_affine_write(enum scand_dtype dtype, void *staged, uint64_t at, struct f2 value)
{
    if (codec_class(dtype) == SCAND_CLASS_F64)
        affine_write_f64(staged, at, f2_to_f64(value));
    else
        affine_write_f32(staged, at, value.high);
}

CODEC_INLINE struct f2 f2_affine_mul(struct f2 left, struct f2 right)
{
    return f2_mul(left, right);
}

CODEC_INLINE struct f2 f2_affine_map(struct f2 factor, struct f2 y, struct f2 term)
{
    return f2_add(f2_mul(factor, y), term);
}

/* A value of f64 is what the two words add up to, split again. */
CODEC_INLINE struct f2 f2_affine_round(struct f2 value, bool to_f32)
{
    return to_f32 ? f2_from_f32(value.high) : f2_from_f64(f2_to_f64(value));
}

/* exact */

CODEC_INLINE uint64_t exact_affine_read(enum scand_dtype dtype, const void *staged, uint64_t at, const double *mean)
{
    (void)dtype, (void)mean;
    return codec_load64((const char *)staged + at * sizeof(uint64_t));
}

CODEC_INLINE void exact_affine_write(enum scand_dtype dtype, void *staged, uint64_t at, uint64_t value)
{
    (void)dtype;
    memcpy((char *)staged + at * sizeof(uint64_t), &value, sizeof(value));
}

CODEC_INLINE uint64_t exact_affine_mul(uint64_t left, uint64_t right)
{
    return left * right;
}

CODEC_INLINE uint64_t exact_affine_map(uint64_t factor, uint64_t y, uint64_t term)
{
    return factor * y + term;
}

CODEC_INLINE uint64_t exact_affine_round(uint64_t value, bool to_f32)
{
    (void)to_f32;
    return value;
}

#endif
