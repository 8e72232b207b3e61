/*
 * Double-word arithmetic on two floats, for C and CUDA: the unevaluated sum high + low with |low| <= ulp(high) / 2.
 *
 * The algorithms are those of M. Joldes, J.-M. Muller, V. Popescu, "Tight and rigorous error bounds for basic building
 * blocks of double-word arithmetic", ACM TOMS 44(2), 2017: 2Sum (algorithm 2), Fast2Sum (1), 2Prod (3), DWPlusFP (4),
 * AccurateDWPlusDW (6), DWTimesFP3 (9), DWTimesDW3 (12). They are correct only without fast-math and without
 * contraction: where they want a fused multiply-add, fmaf stands there by name.
 */
#ifndef KERNELS_ORDER1_F2_H
#define KERNELS_ORDER1_F2_H

#include <math.h>

#ifdef __CUDACC__
#define F2_INLINE static __host__ __device__ __forceinline__
#else
#define F2_INLINE static inline
#endif

struct f2 {
    float high, low;
};

F2_INLINE struct f2 f2_two_sum(float a, float b)
{
    struct f2 r;
    r.high = a + b;
    float a_part = r.high - b;
    float b_part = r.high - a_part;
    r.low = (a - a_part) + (b - b_part);
    return r;
}

F2_INLINE struct f2 f2_fast_two_sum(float a, float b)
{
    struct f2 r;
    r.high = a + b;
    r.low = b - (r.high - a);
    return r;
}

F2_INLINE struct f2 f2_add_f32(struct f2 a, float b)
{
    struct f2 s = f2_two_sum(a.high, b);
    return f2_fast_two_sum(s.high, a.low + s.low);
}

F2_INLINE struct f2 f2_add(struct f2 a, struct f2 b)
{
    struct f2 s = f2_two_sum(a.high, b.high);
    struct f2 t = f2_two_sum(a.low, b.low);
    struct f2 v = f2_fast_two_sum(s.high, s.low + t.high);
    return f2_fast_two_sum(v.high, t.low + v.low);
}

F2_INLINE struct f2 f2_two_prod(float a, float b)
{
    struct f2 r;
    r.high = a * b;
    r.low = fmaf(a, b, -r.high);
    return r;
}

F2_INLINE struct f2 f2_mul_f32(struct f2 a, float b)
{
    struct f2 c = f2_two_prod(a.high, b);
    return f2_fast_two_sum(c.high, fmaf(a.low, b, c.low));
}

F2_INLINE struct f2 f2_mul(struct f2 a, struct f2 b)
{
    struct f2 c = f2_two_prod(a.high, b.high);
    float low = fmaf(a.high, b.low, a.low * b.low);
    return f2_fast_two_sum(c.high, c.low + fmaf(a.low, b.high, low));
}

F2_INLINE struct f2 f2_from_f32(float x)
{
    struct f2 r = {x, 0.0f};
    return r;
}

/* Converts a double to a double-word: its 24 leading bits, then as many of the rest as a float holds. */
F2_INLINE struct f2 f2_from_f64(double x)
{
    struct f2 r;
    r.high = (float)x;
    r.low = (float)(x - (double)r.high);
    return r;
}

F2_INLINE double f2_to_f64(struct f2 a)
{
    return (double)a.high + (double)a.low;
}

#endif
