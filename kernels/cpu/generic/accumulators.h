/*
 * Sums in vectors, one in each lane, for the accumulators: the same functions by the same names, <accumulator>_sum_*
 * and, for each operator, <accumulator>_<operator>_add (two sums) and _add_sample (a sum and one sample more), so that
 * pass.inc can be written once. f2 follows f2.h, operation by operation. Integers have two: exact, of 64 bits, and
 * exact32, which leaves out the upper half where nobody will ask for it.
 */
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/generic/simd.h"

typedef f32_vector f32_sum;
typedef f64_vector f64_sum;
typedef u64_vector exact_sum;
typedef u32_vector exact32_sum;
struct f2_sum {
    f32_vector high, low;
};
typedef struct f2_sum f2_sum;

#define f32_SUM_LANES     F32_LANES
#define f64_SUM_LANES     F64_LANES
#define f2_SUM_LANES      F32_LANES
#define exact_SUM_LANES   F64_LANES
#define exact32_SUM_LANES F32_LANES

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

/* Functions that f32 and f64 have alike. */
#define SUM_OF_REALS(TYPE)                                                              \
    INLINE TYPE##_sum TYPE##_sum_load(const struct sums *sums, int lane)                \
    {                                                                                   \
        return TYPE##_load(sums->TYPE + lane);                                          \
    }                                                                                   \
    INLINE void TYPE##_sum_store(struct sums *sums, int lane, TYPE##_sum sum)           \
    {                                                                                   \
        TYPE##_store(sums->TYPE + lane, sum);                                           \
    }                                                                                   \
    INLINE TYPE##_sum TYPE##_sum_everywhere(const union sum *sum)                       \
    {                                                                                   \
        return sum->TYPE - (TYPE##_vector){0};                                          \
    }                                                                                   \
    INLINE TYPE##_sum TYPE##_sum_shift(TYPE##_sum before, TYPE##_sum sum, int distance) \
    {                                                                                   \
        return TYPE##_shift(before, sum, distance);                                     \
    }                                                                                   \
    INLINE TYPE##_sum TYPE##_sum_reverse(TYPE##_sum sum)                                \
    {                                                                                   \
        return TYPE##_reverse(sum);                                                     \
    }                                                                                   \
    INLINE TYPE##_sum TYPE##_sum_from_lane(int start, TYPE##_sum a, TYPE##_sum b)       \
    {                                                                                   \
        return TYPE##_from_lane(start, a, b);                                           \
    }

/* f32 */

SUM_OPERATOR(f32, sum, (left + right))
SUM_OPERATOR(f32, prod, (left * right))
SUM_OPERATOR(f32, max, F32_SELECT((right > left) | (right != right), right, left))
SUM_OPERATOR(f32, min, F32_SELECT((right < left) | (right != right), right, left))

SUM_OF_REALS(f32)

/* Returns the address of a tile's `row`-th samples, from `lane` on, in words of so many bytes. A tile may lie anywhere.
 */
#define TILE_AT(TILE, ROW, LANE, BYTES) ((TILE) + ((ROW)*ORDER_FAN + (LANE)) * (int)(BYTES))

/* Reads one sample of a tile in each lane, as a sum; `wide`: samples of 8 bytes, which f32 does not have. */
INLINE f32_sum f32_sum_sample(const char *tile, bool wide, int row, int lane)
{
    (void)wide;
    return f32_load(TILE_AT(tile, row, lane, sizeof(float)));
}

/* Reads samples that lie side by side anywhere, and writes values, with their one NaN. `wide`: of 8 bytes each. */
INLINE f32_sum f32_sum_read(const char *from, bool wide)
{
    (void)wide;
    return f32_load(from);
}

INLINE void f32_sum_write(char *to, f32_sum sum, bool wide)
{
    (void)wide;
    f32_store(to, f32_one_nan(sum));
}

/* The value of kind half. */
INLINE f32_sum f32_sum_less_half(f32_sum sum, f32_sum sample, bool wide)
{
    (void)wide;
    return sum - 0.5f * sample;
}

/* Rounds values into a tile. */
INLINE void f32_sum_value(char *tile, bool wide, int row, int lane, f32_sum sum)
{
    (void)wide;
    f32_store(TILE_AT(tile, row, lane, sizeof(float)), sum);
}

/* f64 */

SUM_OPERATOR(f64, sum, (left + right))
SUM_OPERATOR(f64, prod, (left * right))
SUM_OPERATOR(f64, max, F64_SELECT((right > left) | (right != right), right, left))
SUM_OPERATOR(f64, min, F64_SELECT((right < left) | (right != right), right, left))

SUM_OF_REALS(f64)

INLINE f64_sum f64_sum_sample(const char *tile, bool wide, int row, int lane)
{
    return wide ? f64_load(TILE_AT(tile, row, lane, sizeof(double)))
                : f64_load_f32(TILE_AT(tile, row, lane, sizeof(float)));
}

INLINE f64_sum f64_sum_read(const char *from, bool wide)
{
    return wide ? f64_load(from) : f64_load_f32(from);
}

INLINE void f64_sum_write(char *to, f64_sum sum, bool wide)
{
    sum = f64_one_nan(sum);
    if (wide)
        f64_store(to, sum);
    else
        f64_store_f32(to, sum);
}

INLINE f64_sum f64_sum_less_half(f64_sum sum, f64_sum sample, bool wide)
{
    (void)wide;
    return sum - 0.5 * sample;
}

INLINE void f64_sum_value(char *tile, bool wide, int row, int lane, f64_sum sum)
{
    if (wide)
        f64_store(TILE_AT(tile, row, lane, sizeof(double)), sum);
    else
        f64_store_f32(TILE_AT(tile, row, lane, sizeof(float)), sum);
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

/* Reads a sample in each lane. A wide tile has all high words, then all low ones. */
INLINE f2_sum f2_sum_sample(const char *tile, bool wide, int row, int lane)
{
    f32_vector high = f32_load(TILE_AT(tile, row, lane, sizeof(float)));
    return (f2_sum){high, wide ? f32_load(TILE_AT(tile, ORDER_LEAF + row, lane, sizeof(float))) : (f32_vector){0}};
}

/* A wide sample is split in two, and a wide value put together. */
INLINE f2_sum f2_sum_read(const char *from, bool wide)
{
    float high[F32_LANES], low[F32_LANES];
    if (!wide)
        return (f2_sum){f32_load(from), (f32_vector){0}};
    for (int i = 0; i < F32_LANES; i += F64_LANES) {
        f64_vector sample = f64_load(from + i * (int)sizeof(double));
        f64_store_f32(high + i, sample);
        f64_store_f32(low + i, sample - f64_load_f32(high + i));
    }
    return (f2_sum){f32_load(high), f32_load(low)};
}

INLINE void f2_sum_write(char *to, f2_sum sum, bool wide)
{
    float high[F32_LANES], low[F32_LANES];
    if (!wide) {
        f32_store(to, f32_one_nan(sum.high));
        return;
    }
    f32_store(high, sum.high);
    f32_store(low, sum.low);
    for (int i = 0; i < F32_LANES; i += F64_LANES)
        f64_store(to + i * (int)sizeof(double), f64_one_nan(f64_load_f32(high + i) + f64_load_f32(low + i)));
}

INLINE f2_sum f2_sum_less_half(f2_sum sum, f2_sum sample, bool wide)
{
    return f2_sum_add_sample(sum, (f2_sum){-0.5f * sample.high, -0.5f * sample.low}, wide);
}

INLINE void f2_sum_value(char *tile, bool wide, int row, int lane, f2_sum sum)
{
    f32_store(TILE_AT(tile, row, lane, sizeof(float)), sum.high);
    if (wide)
        f32_store(TILE_AT(tile, ORDER_LEAF + row, lane, sizeof(float)), sum.low);
}

/* Integers. Moving lanes only moves bits, so REAL's functions serve. */
#define SUM_OF_INTEGERS(TYPE, REAL, INTEGER, INTEGERS)                                            \
    INLINE TYPE##_sum TYPE##_sum_everywhere(const union sum *sum)                                 \
    {                                                                                             \
        return (INTEGER)sum->exact + (INTEGERS){0};                                               \
    }                                                                                             \
    INLINE TYPE##_sum TYPE##_sum_shift(TYPE##_sum before, TYPE##_sum sum, int distance)           \
    {                                                                                             \
        return (TYPE##_sum)REAL##_shift((REAL##_vector)before, (REAL##_vector)sum, distance);     \
    }                                                                                             \
    INLINE TYPE##_sum TYPE##_sum_shift_down(TYPE##_sum sum, TYPE##_sum after, int distance)       \
    {                                                                                             \
        return (TYPE##_sum)REAL##_shift_down((REAL##_vector)sum, (REAL##_vector)after, distance); \
    }                                                                                             \
    INLINE TYPE##_sum TYPE##_sum_lane(TYPE##_sum sum, int lane)                                   \
    {                                                                                             \
        return (TYPE##_sum)REAL##_lane((REAL##_vector)sum, lane);                                 \
    }                                                                                             \
    INLINE TYPE##_sum TYPE##_sum_from_lane(int start, TYPE##_sum a, TYPE##_sum b)                 \
    {                                                                                             \
        return (TYPE##_sum)REAL##_from_lane(start, (REAL##_vector)a, (REAL##_vector)b);           \
    }                                                                                             \
    INLINE TYPE##_sum TYPE##_sum_read(const char *from, bool wide)                                \
    {                                                                                             \
        (void)wide;                                                                               \
        return (TYPE##_sum)REAL##_load(from);                                                     \
    }                                                                                             \
    INLINE void TYPE##_sum_write(char *to, TYPE##_sum sum, bool wide)                             \
    {                                                                                             \
        (void)wide;                                                                               \
        REAL##_store(to, (REAL##_vector)sum);                                                     \
    }

/* exact: integers, which are always wide. */

#define EXACT_SELECT(WHERE, A, B) ((u64_vector)F64_SELECT(WHERE, (f64_vector)(A), (f64_vector)(B)))

SUM_OPERATOR(exact, sum, (left + right))
SUM_OPERATOR(exact, prod, (left * right))
SUM_OPERATOR(exact, max, EXACT_SELECT(right > left, right, left))
SUM_OPERATOR(exact, min, EXACT_SELECT(right < left, right, left))
SUM_OPERATOR(exact, signed_max, EXACT_SELECT((i64_vector)right > (i64_vector)left, right, left))
SUM_OPERATOR(exact, signed_min, EXACT_SELECT((i64_vector)right < (i64_vector)left, right, left))
SUM_OF_INTEGERS(exact, f64, uint64_t, u64_vector)

/* exact32: the 32 bits of sums and products of 32-bit integers whose results have 32 bits, too. */

SUM_OPERATOR(exact32, sum, (left + right))
SUM_OPERATOR(exact32, prod, (left * right))
SUM_OF_INTEGERS(exact32, f32, uint32_t, u32_vector)
