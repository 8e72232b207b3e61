/*
 * Sums in vectors, one in each lane, for the four accumulators: the same functions by the same names,
 * <accumulator>_sum_* and, for each operator, <accumulator>_<operator>_add (two sums) and _add_sample (a sum and one
 * sample more), so that cpu_pass.inc can be written once. f2 follows f2.h, operation by operation.
 */
#include "kernels/cpu.h"
#include "kernels/cpu_vector.h"

typedef f32_vector f32_sum;
typedef f64_vector f64_sum;
typedef u64_vector exact_sum;
struct f2_sum {
    f32_vector high, low;
};
typedef struct f2_sum f2_sum;

#define f32_SUM_LANES   F32_LANES
#define f64_SUM_LANES   F64_LANES
#define f2_SUM_LANES    F32_LANES
#define exact_SUM_LANES F64_LANES

/* An operator that takes a sample as it takes a sum. */
#define SUM_OPERATOR(TYPE, NAME, RESULT)                                                       \
    INLINE TYPE##_sum TYPE##_##NAME##_add(TYPE##_sum left, TYPE##_sum right)                   \
    {                                                                                          \
        return RESULT;                                                                         \
    }                                                                                          \
    INLINE TYPE##_sum TYPE##_##NAME##_add_sample(TYPE##_sum sum, TYPE##_sum sample, bool wide) \
    {                                                                                          \
        (void)wide;                                                                            \
        return TYPE##_##NAME##_add(sum, sample);                                               \
    }

/* f32 */

SUM_OPERATOR(f32, sum, (left + right))
SUM_OPERATOR(f32, prod, (left * right))
SUM_OPERATOR(f32, max, F32_SELECT((right > left) | (right != right), right, left))
SUM_OPERATOR(f32, min, F32_SELECT((right < left) | (right != right), right, left))

INLINE f32_sum f32_sum_load(const struct sums *sums, int lane)
{
    return f32_load(sums->f32 + lane);
}

INLINE void f32_sum_store(struct sums *sums, int lane, f32_sum sum)
{
    f32_store(sums->f32 + lane, sum);
}

INLINE f32_sum f32_sum_everywhere(const union sum *sum)
{
    return sum->f32 - (f32_vector){0};
}

INLINE f32_sum f32_sum_shift(f32_sum before, f32_sum sum, int distance)
{
    return f32_shift(before, sum, distance);
}

INLINE f32_sum f32_sum_reverse(f32_sum sum)
{
    return f32_reverse(sum);
}

INLINE f32_sum f32_sum_from_lane(int start, f32_sum a, f32_sum b)
{
    return f32_from_lane(start, a, b);
}

/* One sample in each lane, as a sum. There are no wide samples with f32. */
INLINE f32_sum f32_sum_sample(const struct narrow_tile *narrow, const struct wide_tile *wide, int row, int lane)
{
    (void)wide;
    return f32_load(&narrow->f32[row][lane]);
}

/* The value of kind half. */
INLINE f32_sum f32_sum_less_half(f32_sum sum, f32_sum sample, bool wide)
{
    (void)wide;
    return sum - 0.5f * sample;
}

/* Rounds values into the tile that is given. */
INLINE void f32_sum_value(struct narrow_tile *narrow, struct wide_tile *wide, int row, int lane, f32_sum sum)
{
    (void)wide;
    f32_store(&narrow->f32[row][lane], sum);
}

/* f64 */

SUM_OPERATOR(f64, sum, (left + right))
SUM_OPERATOR(f64, prod, (left * right))
SUM_OPERATOR(f64, max, F64_SELECT((right > left) | (right != right), right, left))
SUM_OPERATOR(f64, min, F64_SELECT((right < left) | (right != right), right, left))

INLINE f64_sum f64_sum_load(const struct sums *sums, int lane)
{
    return f64_load(sums->f64 + lane);
}

INLINE void f64_sum_store(struct sums *sums, int lane, f64_sum sum)
{
    f64_store(sums->f64 + lane, sum);
}

INLINE f64_sum f64_sum_everywhere(const union sum *sum)
{
    return sum->f64 - (f64_vector){0};
}

INLINE f64_sum f64_sum_shift(f64_sum before, f64_sum sum, int distance)
{
    return f64_shift(before, sum, distance);
}

INLINE f64_sum f64_sum_reverse(f64_sum sum)
{
    return f64_reverse(sum);
}

INLINE f64_sum f64_sum_from_lane(int start, f64_sum a, f64_sum b)
{
    return f64_from_lane(start, a, b);
}

/* The samples lie in the tile that is given, the other is NULL; so in f64_sum_value and for f2. */
INLINE f64_sum f64_sum_sample(const struct narrow_tile *narrow, const struct wide_tile *wide, int row, int lane)
{
    return wide ? f64_load(&wide->f64[row][lane]) : f64_load_f32(&narrow->f32[row][lane]);
}

INLINE f64_sum f64_sum_less_half(f64_sum sum, f64_sum sample, bool wide)
{
    (void)wide;
    return sum - 0.5 * sample;
}

INLINE void f64_sum_value(struct narrow_tile *narrow, struct wide_tile *wide, int row, int lane, f64_sum sum)
{
    if (wide)
        f64_store(&wide->f64[row][lane], sum);
    else
        f64_store_f32(&narrow->f32[row][lane], sum);
}

/* f2 */

INLINE f2_sum f2_sum_load(const struct sums *sums, int lane)
{
    return (f2_sum){f32_load(sums->f2.high + lane), f32_load(sums->f2.low + lane)};
}

INLINE void f2_sum_store(struct sums *sums, int lane, f2_sum sum)
{
    f32_store(sums->f2.high + lane, sum.high);
    f32_store(sums->f2.low + lane, sum.low);
}

INLINE f2_sum f2_sum_everywhere(const union sum *sum)
{
    return (f2_sum){sum->f2.high - (f32_vector){0}, sum->f2.low - (f32_vector){0}};
}

INLINE f2_sum f2_two_sums(f32_vector a, f32_vector b)
{
    f32_vector high = a + b, a_part = high - b, b_part = high - a_part;
    return (f2_sum){high, (a - a_part) + (b - b_part)};
}

INLINE f2_sum f2_fast_two_sums(f32_vector a, f32_vector b)
{
    f32_vector high = a + b;
    return (f2_sum){high, b - (high - a)};
}

INLINE f2_sum f2_two_prods(f32_vector a, f32_vector b)
{
    f32_vector high = a * b;
    return (f2_sum){high, f32_fma(a, b, -high)};
}

INLINE f2_sum f2_sum_add(f2_sum a, f2_sum b)
{
    f2_sum s = f2_two_sums(a.high, b.high), t = f2_two_sums(a.low, b.low);
    f2_sum v = f2_fast_two_sums(s.high, s.low + t.high);
    return f2_fast_two_sums(v.high, t.low + v.low);
}

INLINE f2_sum f2_sum_add_sample(f2_sum sum, f2_sum sample, bool wide)
{
    if (wide)
        return f2_sum_add(sum, sample);
    f2_sum s = f2_two_sums(sum.high, sample.high);
    return f2_fast_two_sums(s.high, sum.low + s.low);
}

INLINE f2_sum f2_prod_add(f2_sum a, f2_sum b)
{
    f2_sum c = f2_two_prods(a.high, b.high);
    f32_vector low = f32_fma(a.high, b.low, a.low * b.low);
    return f2_fast_two_sums(c.high, c.low + f32_fma(a.low, b.high, low));
}

INLINE f2_sum f2_prod_add_sample(f2_sum sum, f2_sum sample, bool wide)
{
    if (wide)
        return f2_prod_add(sum, sample);
    f2_sum c = f2_two_prods(sum.high, sample.high);
    return f2_fast_two_sums(c.high, f32_fma(sum.low, sample.high, c.low));
}

INLINE f2_sum f2_sum_shift(f2_sum before, f2_sum sum, int distance)
{
    return (f2_sum){f32_shift(before.high, sum.high, distance), f32_shift(before.low, sum.low, distance)};
}

INLINE f2_sum f2_sum_reverse(f2_sum sum)
{
    return (f2_sum){f32_reverse(sum.high), f32_reverse(sum.low)};
}

INLINE f2_sum f2_sum_from_lane(int start, f2_sum a, f2_sum b)
{
    return (f2_sum){f32_from_lane(start, a.high, b.high), f32_from_lane(start, a.low, b.low)};
}

INLINE f2_sum f2_sum_sample(const struct narrow_tile *narrow, const struct wide_tile *wide, int row, int lane)
{
    if (wide)
        return (f2_sum){f32_load(&wide->f2.high[row][lane]), f32_load(&wide->f2.low[row][lane])};
    return (f2_sum){f32_load(&narrow->f32[row][lane]), (f32_vector){0}};
}

INLINE f2_sum f2_sum_less_half(f2_sum sum, f2_sum sample, bool wide)
{
    return f2_sum_add_sample(sum, (f2_sum){-0.5f * sample.high, -0.5f * sample.low}, wide);
}

INLINE void f2_sum_value(struct narrow_tile *narrow, struct wide_tile *wide, int row, int lane, f2_sum sum)
{
    f32_store(wide ? &wide->f2.high[row][lane] : &narrow->f32[row][lane], sum.high);
    if (wide)
        f32_store(&wide->f2.low[row][lane], sum.low);
}

/* exact: integers, which are always wide. What moves lanes only moves bits, so that it can be that of f64. */

#define EXACT_SELECT(WHERE, A, B) ((u64_vector)F64_SELECT(WHERE, (f64_vector)(A), (f64_vector)(B)))

SUM_OPERATOR(exact, sum, (left + right))
SUM_OPERATOR(exact, prod, (left * right))
SUM_OPERATOR(exact, max, EXACT_SELECT(right > left, right, left))
SUM_OPERATOR(exact, min, EXACT_SELECT(right < left, right, left))
SUM_OPERATOR(exact, signed_max, EXACT_SELECT((i64_vector)right > (i64_vector)left, right, left))
SUM_OPERATOR(exact, signed_min, EXACT_SELECT((i64_vector)right < (i64_vector)left, right, left))

INLINE exact_sum exact_sum_load(const struct sums *sums, int lane)
{
    return (exact_sum)f64_load(sums->exact + lane);
}

INLINE void exact_sum_store(struct sums *sums, int lane, exact_sum sum)
{
    f64_store(sums->exact + lane, (f64_vector)sum);
}

INLINE exact_sum exact_sum_everywhere(const union sum *sum)
{
    return sum->exact + (u64_vector){0};
}

INLINE exact_sum exact_sum_shift(exact_sum before, exact_sum sum, int distance)
{
    return (exact_sum)f64_shift((f64_vector)before, (f64_vector)sum, distance);
}

INLINE exact_sum exact_sum_reverse(exact_sum sum)
{
    return (exact_sum)f64_reverse((f64_vector)sum);
}

INLINE exact_sum exact_sum_from_lane(int start, exact_sum a, exact_sum b)
{
    return (exact_sum)f64_from_lane(start, (f64_vector)a, (f64_vector)b);
}

INLINE exact_sum exact_sum_sample(const struct narrow_tile *narrow, const struct wide_tile *wide, int row, int lane)
{
    (void)narrow;
    return (exact_sum)f64_load(&wide->exact[row][lane]);
}

INLINE void exact_sum_value(struct narrow_tile *narrow, struct wide_tile *wide, int row, int lane, exact_sum sum)
{
    (void)narrow;
    f64_store(&wide->exact[row][lane], (f64_vector)sum);
}
