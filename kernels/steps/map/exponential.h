/*
 * exp and log, the project's own: mathematical libraries differ in their last bits, and these return the same ones on
 * every processor and GPU. They consist of additions, multiplications and divisions of f64, each rounded, in the order
 * that is written here, without branches, so that compilers make vectors of them.
 *
 * Both are within 1 ulp of f32 and of f64 (tests/kernels/test_map.c measures them). exp is 0, infinity, infinity, NaN
 * of -infinity, what is too large, infinity, NaN; log is -infinity, NaN, infinity, NaN of +-0, what is negative,
 * infinity, NaN. Denormals are numbers like others.
 */
#ifndef KERNELS_STEPS_EXPONENTIAL_H
#define KERNELS_STEPS_EXPONENTIAL_H

#include "kernels/order1/dtypes.h"

/* ln 2 in two parts: products of the first, of 32 bits, with whole numbers up to 2^21 are exact. */
#define LN2_HIGH 0x1.62e42feep-1
#define LN2_LOW  0x1.a39ef35793c76p-33
#define LOG2_E   0x1.71547652b82fep+0

/* Added to a number below 2^51 it leaves the nearest whole one in the last bits. */
#define TO_WHOLE 0x1.8p52

/* a b + c, where a b is exact, so that a fused operation has the same bits: one instruction of f64 less on a GPU, where
 * these are what counts. Processors may have no such operation. */
CODEC_INLINE double exact_product_plus(double a, double b, double c)
{
#ifdef __CUDA_ARCH__
    return __fma_rn(a, b, c);
#else
    return a * b + c;
#endif
}

/* 2^n of a whole number -1022 <= n <= 1023, of which this is n + TO_WHOLE. */
CODEC_INLINE double power_of_two(double shifted)
{
    return codec_f64_of_bits((codec_bits_f64(shifted) - codec_bits_f64(TO_WHOLE) + 1023) << 52);
}

/* y 2^n, where both are normal numbers, as the product is; of a NaN any number. */
CODEC_INLINE double times_power_of_two(double y, double shifted)
{
#ifdef __CUDA_ARCH__
    return __hiloint2double(__double2hiint(y) + (__double2loint(shifted) << 20), __double2loint(y));
#else
    return y * power_of_two(shifted);
#endif
}

/* Taylor's series of (exp(r) - 1 - r) / r^2, for |r| <= ln(2) / 2. */
CODEC_INLINE double exp_series(double r, bool is_f32)
{
    double sum = 1.0 / 3628800; /* 10! */
    if (!is_f32) {
        sum = 1.0 / 87178291200; /* 14! */
        sum = sum * r + 1.0 / 6227020800;
        sum = sum * r + 1.0 / 479001600;
        sum = sum * r + 1.0 / 39916800;
        sum = sum * r + 1.0 / 3628800;
    }
    sum = sum * r + 1.0 / 362880;
    sum = sum * r + 1.0 / 40320;
    sum = sum * r + 1.0 / 5040;
    sum = sum * r + 1.0 / 720;
    sum = sum * r + 1.0 / 120;
    sum = sum * r + 1.0 / 24;
    sum = sum * r + 1.0 / 6;
    return sum * r + 0.5;
}

/* x = k ln 2 + r + rest. */
CODEC_INLINE double exp_reduce(double x, double k, double *rest)
{
    const double near = exact_product_plus(-k, LN2_HIGH, x), low = k * LN2_LOW, r = near - low;
    *rest = (near - r) - low;
    return r;
}

CODEC_INLINE double exp_f64(double x)
{
    const double inside = x > 710 ? 710 : x < -746 ? -746 : x; /* beyond are infinity and 0 */
    const double k = (inside * LOG2_E + TO_WHOLE) - TO_WHOLE;
    double rest;
    const double r = exp_reduce(inside, k, &rest);
    const double head = 1 + r, tail = (1 - head) + r;
    const double y = head + (tail + (r * r * exp_series(r, false) + (rest + rest * r)));
    /* The power is multiplied in two steps, of which the second alone may round, where the result is denormal. */
    const double half = exact_product_plus(k, 0.5, TO_WHOLE);
    return y * power_of_two(half) * power_of_two((k - (half - TO_WHOLE)) + TO_WHOLE);
}

/* Computed in f64, where 2^k and the result are normal, and rounded. */
CODEC_INLINE float exp_f32(float x)
{
    const float inside = x > 90 ? 90 : x < -105 ? -105 : x;
    const double shifted = (double)inside * LOG2_E + TO_WHOLE;
    double rest;
    const double r = exp_reduce((double)inside, shifted - TO_WHOLE, &rest);
    const double y = times_power_of_two(1 + (r + r * r * exp_series(r, true)), shifted);
    return x == x ? (float)y : x;
}

/* x = 2^k (1 + f) of a positive normal number, 1 + f between the roots of 1/2 and 2. */
CODEC_INLINE double log_reduce(double x, double *k)
{
    const uint64_t bits = codec_bits_f64(x), one = codec_bits_f64(1.0), root = UINT64_C(0x3fe6a09e667f3bcd);
    const uint64_t power = (bits - root + one) >> 52; /* k + 1023 */
    *k = codec_f64_of_bits(codec_bits_f64(0x1p52) | power) - (0x1p52 + 1023);
    return codec_f64_of_bits(bits + one - (power << 52)) - 1;
}

/* The series of the logarithm: with s = f / (2 + f), log(1 + f) = 2 (s + s^3 / 3 + s^5 / 5 + ...); returns this, less 2
 * s, divided by s. */
CODEC_INLINE double log_series(double s, bool is_f32)
{
    const double z = s * s;
    double sum = 2.0 / 15;
    if (!is_f32) {
        sum = 2.0 / 23;
        sum = sum * z + 2.0 / 21;
        sum = sum * z + 2.0 / 19;
        sum = sum * z + 2.0 / 17;
        sum = sum * z + 2.0 / 15;
    }
    sum = sum * z + 2.0 / 13;
    sum = sum * z + 2.0 / 11;
    sum = sum * z + 2.0 / 9;
    sum = sum * z + 2.0 / 7;
    sum = sum * z + 2.0 / 5;
    return (sum * z + 2.0 / 3) * z;
}

/* Replaces `value`, the logarithm of x, where x is not positive and finite. */
CODEC_INLINE double log_special(double x, double value)
{
    value = x == INFINITY ? x : value;
    value = x == 0 ? -INFINITY : value;
    return x >= 0 ? value : codec_f64_of_bits(UINT64_C(0x7ff8000000000000));
}

/* 2 s is f - s f, whose large part is exact, and s f is f^2 / 2 - s f^2 / 2. */
CODEC_INLINE double log_f64(double x)
{
    const bool denormal = x < 0x1p-1022;
    double k;
    const double f = log_reduce(denormal ? x * 0x1p54 : x, &k), s = f / (2 + f), half = 0.5 * f * f;
    k -= denormal ? 54 : 0;
    return log_special(
        x, exact_product_plus(k, LN2_HIGH, -((half - (s * (half + log_series(s, false)) + k * LN2_LOW)) - f)));
}

CODEC_INLINE float log_f32(float x)
{
    double k;
    const double f = log_reduce((double)x, &k), s = f / (2 + f);
    return (float)log_special((double)x, k * (LN2_HIGH + LN2_LOW) + exact_product_plus(2, s, s * log_series(s, true)));
}

#endif
