/*
 * Accumulators of sums, one struct each, so that the order (block.cuh) is written once. Each names
 *
 * - `sum`, the accumulator, and `sample`, what a lane holds of one sample from the first pass to the last;
 * - first, add_sample and add: a sum begins with its first sample, takes more samples, joins the sum that follows it;
 * - has_identity: whether adding `identity` on either side, or `absent` as a sample, changes no bit. (For sums that is
 *   -0: +0 would make a +0 of a -0. f2 has none: an addition alters -0 and infinities);
 * - value: what a pass leaves of a sum in place of a sample; between_passes: that, rounded to the intermediate type;
 * - as_f32 and as_f64: what is written;
 * - registers of a thread and stage_vectors of a warp, which results pass through (tile_io.cuh): with 64 instead of 128
 *   vectors three thread blocks of f2 that fetch ahead fit an SM, and 10,000 x 10,000 takes 0.288 ms instead of
 *   0.291 on an H200. f64 cannot have a third for want of registers; f32 can, but gets slower, from 0.96 of a copy to
 *   0.91;
 * - where sum_by_f64, add_smaller: as add_sample, for samples no further from 0 than the sum.
 */
#ifndef KERNELS_CUDA_LANE_ACCUMULATOR_CUH
#define KERNELS_CUDA_LANE_ACCUMULATOR_CUH

#include <stdint.h>
#include <type_traits>

#include "kernels/cuda/ptx.cuh"
#include "kernels/order1/f2.h"

DEVICE void pin(struct f2 &x)
{
    pin(x.high);
    pin(x.low);
}

struct sum_f32 {
    using sum = float;
    using sample = float;
    static const int registers = 40;
    static const int stage_vectors = 128;
    static const bool has_identity = true;

    DEVICE sample from_f32(float x)
    {
        return x;
    }
    DEVICE sum first(sample x)
    {
        return x;
    }
    DEVICE sum add_sample(sum s, sample x)
    {
        return s + x;
    }
    DEVICE sum add(sum left, sum right)
    {
        return left + right;
    }
    DEVICE sum identity()
    {
        return -0.0f;
    }
    DEVICE sample absent()
    {
        return -0.0f;
    }
    DEVICE sum zero()
    {
        return 0.0f;
    }
    DEVICE sample value(sum s)
    {
        return s;
    }
    DEVICE sample between_passes(sample x, bool)
    {
        return x;
    }
    DEVICE float as_f32(sample x)
    {
        return x;
    }
    DEVICE double as_f64(sample x)
    {
        return x;
    }
};

/* Samples are held as doubles from the load on: conversions are the scarce unit on most GPUs. */
struct sum_f64 {
    using sum = double;
    using sample = double;
    static const int registers = 48;
    static const int stage_vectors = 128;
    static const bool has_identity = true;

    DEVICE sample from_f32(float x)
    {
        return x;
    }
    DEVICE sum first(sample x)
    {
        return x;
    }
    DEVICE sum add_sample(sum s, sample x)
    {
        return s + x;
    }
    DEVICE sum add(sum left, sum right)
    {
        return left + right;
    }
    DEVICE sum identity()
    {
        return -0.0;
    }
    DEVICE sample absent()
    {
        return -0.0;
    }
    DEVICE sum zero()
    {
        return 0.0;
    }
    DEVICE sample value(sum s)
    {
        return s;
    }
    DEVICE sample between_passes(sample x, bool to_f32)
    {
        return to_f32 ? (double)(float)x : x;
    }
    DEVICE float as_f32(sample x)
    {
        return (float)x;
    }
    DEVICE double as_f64(sample x)
    {
        return x;
    }
};

/* f2 where f32 goes in and f32 comes out of every pass: only high words are held. */
struct sum_f2 {
    using sum = struct f2;
    using sample = float;
    static const int registers = 32;
    static const int stage_vectors = 64;
    static const bool has_identity = false;

    DEVICE sample from_f32(float x)
    {
        return x;
    }
    DEVICE sum first(sample x)
    {
        return f2_from_f32(x);
    }
    DEVICE sum add_sample(sum s, sample x)
    {
        return f2_add_f32(s, x);
    }
    DEVICE sum add_smaller(sum s, sample x)
    {
        const struct f2 t = f2_fast_two_sum(s.high, x);
        return f2_fast_two_sum(t.high, s.low + t.low);
    }
    DEVICE sum add(sum left, sum right)
    {
        return f2_add(left, right);
    }
    DEVICE sum identity()
    {
        return zero();
    }
    DEVICE sample absent()
    {
        return 0.0f;
    }
    DEVICE sum zero()
    {
        return f2_from_f32(0.0f);
    }
    DEVICE sample value(sum s)
    {
        return s.high;
    }
    DEVICE sample between_passes(sample x, bool)
    {
        return x;
    }
    DEVICE float as_f32(sample x)
    {
        return x;
    }
};

/* f2 where a pass leaves f64: both words are held. Samples are still f32 values, in the high word. */
struct sum_f2_pair {
    using sum = struct f2;
    using sample = struct f2;
    static const int registers = 64;
    static const int stage_vectors = 128;
    static const bool has_identity = false;

    DEVICE sample from_f32(float x)
    {
        return f2_from_f32(x);
    }
    DEVICE sum first(sample x)
    {
        return x;
    }
    DEVICE sum add_sample(sum s, sample x)
    {
        return f2_add_f32(s, x.high);
    }
    DEVICE sum add(sum left, sum right)
    {
        return f2_add(left, right);
    }
    DEVICE sum identity()
    {
        return zero();
    }
    DEVICE sample absent()
    {
        return f2_from_f32(0.0f);
    }
    DEVICE sum zero()
    {
        return f2_from_f32(0.0f);
    }
    DEVICE sample value(sum s)
    {
        return s;
    }
    DEVICE sample between_passes(sample x, bool to_f32)
    {
        return to_f32 ? f2_from_f32(x.high) : f2_from_f64(f2_to_f64(x));
    }
    DEVICE float as_f32(sample x)
    {
        return x.high;
    }
    DEVICE double as_f64(sample x)
    {
        return f2_to_f64(x);
    }
};

/* The pass after one that left f64: samples are double-words. */
struct sum_f2_wide : sum_f2_pair {
    DEVICE sum add_sample(sum s, sample x)
    {
        return f2_add(s, x);
    }
};

/* True when totals of a tile may be made as f2_by_f64.cuh says. */
template <class Sum> constexpr bool sum_by_f64 = false;
template <> constexpr bool sum_by_f64<sum_f2> = true;

/* The accumulator for samples and carries among which there is no -0, which takes fewer steps; or Sum itself. */
template <class Sum> struct sum_plain {
    using sum = Sum;
};
template <class Sum> constexpr bool sum_has_plain = !std::is_same<typename sum_plain<Sum>::sum, Sum>::value;

/* The result that is written of a value. Hardware differs in which NaN it makes, so there is only one. */
template <class Sum> DEVICE void result_of(typename Sum::sample x, float *result)
{
    *result = Sum::as_f32(x);
}

template <class Sum> DEVICE void result_of(typename Sum::sample x, double *result)
{
    *result = Sum::as_f64(x);
}

DEVICE void quiet_nan(float *x)
{
    *x = *x == *x ? *x : __int_as_float(0x7fc00000);
}

DEVICE void quiet_nan(double *x)
{
    *x = *x == *x ? *x : __longlong_as_double(0x7ff8000000000000);
}

#endif
