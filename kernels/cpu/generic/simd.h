/*
 * Vectors of CPU_VECTOR_BYTES (16, 32 or 64), with the extensions that GCC and clang share: loads and stores of any
 * alignment, lane shifts, reversal, selection, and the transposition of square tiles. Builds of block.inc choose the
 * size; otherwise vectors are as long as the instructions that may be used.
 */
#ifndef CPU_VECTOR_BYTES
#ifdef __AVX512F__
#define CPU_VECTOR_BYTES 64
#elif defined(__AVX2__)
#define CPU_VECTOR_BYTES 32
#else
#define CPU_VECTOR_BYTES 16
#endif
#endif

#include <math.h>
#include <stdint.h>
#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

#define F32_LANES (CPU_VECTOR_BYTES / 4)
#define F64_LANES (CPU_VECTOR_BYTES / 8)
#define INLINE    static inline __attribute__((always_inline))

/* A function of which each combination of forms and kinds has a copy, so that compilers find constants in it; but where
 * code is to be small, there is one for all. */
#ifdef __OPTIMIZE_SIZE__
#define COPIED static __attribute__((noinline))
#else
#define COPIED INLINE
#endif

typedef float f32_vector __attribute__((vector_size(CPU_VECTOR_BYTES)));
typedef double f64_vector __attribute__((vector_size(CPU_VECTOR_BYTES)));
typedef float f32_half __attribute__((vector_size(CPU_VECTOR_BYTES / 2)));
typedef int32_t i32_vector __attribute__((vector_size(CPU_VECTOR_BYTES)));
typedef int64_t i64_vector __attribute__((vector_size(CPU_VECTOR_BYTES)));
typedef uint32_t u32_vector __attribute__((vector_size(CPU_VECTOR_BYTES)));
typedef uint64_t u64_vector __attribute__((vector_size(CPU_VECTOR_BYTES)));

/* Lists of lane numbers: n, n + step, ... as many as a vector has. */
#define LANES_2(N, STEP)  (N), (N) + (STEP)
#define LANES_4(N, STEP)  LANES_2(N, STEP), LANES_2((N) + 2 * (STEP), STEP)
#define LANES_8(N, STEP)  LANES_4(N, STEP), LANES_4((N) + 4 * (STEP), STEP)
#define LANES_16(N, STEP) LANES_8(N, STEP), LANES_8((N) + 8 * (STEP), STEP)

/* Lists of the lanes of two vectors of L lanes by turns, from n on. */
#define TURNS_2(N, L)  (N), (L) + (N)
#define TURNS_4(N, L)  TURNS_2(N, L), TURNS_2((N) + 1, L)
#define TURNS_8(N, L)  TURNS_4(N, L), TURNS_4((N) + 2, L)
#define TURNS_16(N, L) TURNS_8(N, L), TURNS_8((N) + 4, L)

#if CPU_VECTOR_BYTES == 64
#define F32_LIST(N, STEP) LANES_16(N, STEP)
#define F64_LIST(N, STEP) LANES_8(N, STEP)
#define F32_TURNS(N)      TURNS_16(N, 16)
#define F64_TURNS(N)      TURNS_8(N, 8)
#elif CPU_VECTOR_BYTES == 32
#define F32_LIST(N, STEP) LANES_8(N, STEP)
#define F64_LIST(N, STEP) LANES_4(N, STEP)
#define F32_TURNS(N)      TURNS_8(N, 8)
#define F64_TURNS(N)      TURNS_4(N, 4)
#else
#define F32_LIST(N, STEP) LANES_4(N, STEP)
#define F64_LIST(N, STEP) LANES_2(N, STEP)
#define F32_TURNS(N)      TURNS_4(N, 4)
#define F64_TURNS(N)      TURNS_2(N, 2)
#endif

/* Lane j of (before, vector) shifted by `distance` lanes upwards: the lanes that enter come from the end of `before`.
 */
#define SHIFT(LIST, LANES, BEFORE, VECTOR, DISTANCE) \
    __builtin_shufflevector(BEFORE, VECTOR, LIST((LANES) - (DISTANCE) % (LANES), 1))

/* Lane j of (vector, after) shifted by `distance` lanes downwards: the lanes that enter come from the begin of `after`.
 */
#define SHIFT_DOWN(LIST, LANES, VECTOR, AFTER, DISTANCE) \
    __builtin_shufflevector(VECTOR, AFTER, LIST((DISTANCE) % (LANES), 1))

INLINE f32_vector f32_load(const void *from)
{
    f32_vector vector;
    memcpy(&vector, from, sizeof(vector));
    return vector;
}

INLINE void f32_store(void *to, f32_vector vector)
{
    memcpy(to, &vector, sizeof(vector));
}

INLINE f64_vector f64_load(const void *from)
{
    f64_vector vector;
    memcpy(&vector, from, sizeof(vector));
    return vector;
}

INLINE void f64_store(void *to, f64_vector vector)
{
    memcpy(to, &vector, sizeof(vector));
}

/* The first `count` lanes, which is all that is touched in memory; the others are 0. */
#if CPU_VECTOR_BYTES == 64 && defined(__AVX512F__)
INLINE f32_vector f32_load_some(const void *from, int count)
{
    return _mm512_maskz_loadu_ps((__mmask16)((1u << count) - 1), from);
}

#elif CPU_VECTOR_BYTES == 32 && defined(__AVX__)
INLINE __m256i f32_mask(int count)
{
    static const int32_t mask[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
    return _mm256_loadu_si256((const __m256i *)(mask + F32_LANES - count));
}

INLINE f32_vector f32_load_some(const void *from, int count)
{
    return _mm256_maskload_ps(from, f32_mask(count));
}

#else
INLINE f32_vector f32_load_some(const void *from, int count)
{
    f32_vector vector = {0};
    for (int i = 0; i < count; i++)
        memcpy((char *)&vector + 4 * i, (const char *)from + 4 * i, 4);
    return vector;
}

#endif

/* Converts by an intrinsic, since GCC 12 makes several instructions of conversions that are one. */
INLINE f64_vector f64_load_f32(const void *from)
{
    f32_half half;
    memcpy(&half, from, sizeof(half));
#if CPU_VECTOR_BYTES == 64 && defined(__AVX512F__)
    return _mm512_cvtps_pd(half);
#elif CPU_VECTOR_BYTES == 32 && defined(__AVX__)
    return _mm256_cvtps_pd(half);
#else
    return __builtin_convertvector(half, f64_vector);
#endif
}

INLINE void f64_store_f32(void *to, f64_vector vector)
{
#if CPU_VECTOR_BYTES == 64 && defined(__AVX512F__)
    f32_half half = _mm512_cvtpd_ps(vector);
#elif CPU_VECTOR_BYTES == 32 && defined(__AVX__)
    f32_half half = _mm256_cvtpd_ps(vector);
#else
    f32_half half = __builtin_convertvector(vector, f32_half);
#endif
    memcpy(to, &half, sizeof(half));
}

INLINE f32_vector f32_shift(f32_vector before, f32_vector vector, int distance)
{
    switch (distance) {
    case 1:
        return SHIFT(F32_LIST, F32_LANES, before, vector, 1);
    case 2:
        return SHIFT(F32_LIST, F32_LANES, before, vector, 2);
    case 4:
        return SHIFT(F32_LIST, F32_LANES, before, vector, 4);
    default:
        return SHIFT(F32_LIST, F32_LANES, before, vector, 8);
    }
}

INLINE f64_vector f64_shift(f64_vector before, f64_vector vector, int distance)
{
    switch (distance) {
    case 1:
        return SHIFT(F64_LIST, F64_LANES, before, vector, 1);
    case 2:
        return SHIFT(F64_LIST, F64_LANES, before, vector, 2);
    default:
        return SHIFT(F64_LIST, F64_LANES, before, vector, 4);
    }
}

INLINE f32_vector f32_shift_down(f32_vector vector, f32_vector after, int distance)
{
    switch (distance) {
    case 1:
        return SHIFT_DOWN(F32_LIST, F32_LANES, vector, after, 1);
    case 2:
        return SHIFT_DOWN(F32_LIST, F32_LANES, vector, after, 2);
    case 4:
        return SHIFT_DOWN(F32_LIST, F32_LANES, vector, after, 4);
    default:
        return SHIFT_DOWN(F32_LIST, F32_LANES, vector, after, 8);
    }
}

INLINE f64_vector f64_shift_down(f64_vector vector, f64_vector after, int distance)
{
    switch (distance) {
    case 1:
        return SHIFT_DOWN(F64_LIST, F64_LANES, vector, after, 1);
    case 2:
        return SHIFT_DOWN(F64_LIST, F64_LANES, vector, after, 2);
    default:
        return SHIFT_DOWN(F64_LIST, F64_LANES, vector, after, 4);
    }
}

/* Stores the first `count` lanes in halves, quarters and so on: after a masked store, loads wait that do not touch what
 * it stores. */
INLINE void f32_store_some(void *to, f32_vector vector, int count)
{
    char *at = to;
#pragma GCC unroll 5
    for (int width = F32_LANES; width > 0; width /= 2)
        if (count & width) {
            memcpy(at, &vector, (size_t)width * sizeof(float));
            at += (size_t)width * sizeof(float);
            vector = f32_shift_down(vector, vector, width);
        }
}

/* The first lane, or the last, in every lane. */
INLINE f32_vector f32_lane(f32_vector vector, int lane)
{
    return lane == 0 ? __builtin_shufflevector(vector, vector, F32_LIST(0, 0))
                     : __builtin_shufflevector(vector, vector, F32_LIST(F32_LANES - 1, 0));
}

INLINE f64_vector f64_lane(f64_vector vector, int lane)
{
    return lane == 0 ? __builtin_shufflevector(vector, vector, F64_LIST(0, 0))
                     : __builtin_shufflevector(vector, vector, F64_LIST(F64_LANES - 1, 0));
}

INLINE f32_vector f32_reverse(f32_vector vector)
{
    return __builtin_shufflevector(vector, vector, F32_LIST(F32_LANES - 1, -1));
}

INLINE f64_vector f64_reverse(f64_vector vector)
{
    return __builtin_shufflevector(vector, vector, F64_LIST(F64_LANES - 1, -1));
}

/* A where the comparison WHERE is true, B elsewhere. Macros: GCC 12 must see the comparison in the expression to make
 * one instruction of it. */
#define F32_SELECT(WHERE, A, B) \
    ((f32_vector)(((i32_vector)(A) & (i32_vector)(WHERE)) | ((i32_vector)(B) & ~(i32_vector)(WHERE))))
#define F64_SELECT(WHERE, A, B) \
    ((f64_vector)(((i64_vector)(A) & (i64_vector)(WHERE)) | ((i64_vector)(B) & ~(i64_vector)(WHERE))))

/* True when a comparison is true in any lane. */
INLINE bool f64_any(i64_vector where)
{
#if CPU_VECTOR_BYTES == 64 && defined(__AVX512DQ__)
    return _mm512_movepi64_mask((__m512i)where) != 0;
#elif CPU_VECTOR_BYTES == 32 && defined(__AVX__)
    return !_mm256_testz_si256((__m256i)where, (__m256i)where);
#else
    int64_t any = 0;
    for (int i = 0; i < F64_LANES; i++)
        any |= where[i];
    return any != 0;
#endif
}

/* Selects a in the lanes lane >= start, b in the others. */
INLINE f32_vector f32_from_lane(int start, f32_vector a, f32_vector b)
{
    static const int32_t lanes[16] = {LANES_16(0, 1)};
    i32_vector lane;
    memcpy(&lane, lanes, sizeof(lane));
    return F32_SELECT(lane >= start, a, b);
}

INLINE f64_vector f64_from_lane(int start, f64_vector a, f64_vector b)
{
    static const int64_t lanes[8] = {LANES_8(0, 1)};
    i64_vector lane;
    memcpy(&lane, lanes, sizeof(lane));
    return F64_SELECT(lane >= (int64_t)start, a, b);
}

/* Returns a x b + c, rounded once. */
INLINE f32_vector f32_fma(f32_vector a, f32_vector b, f32_vector c)
{
#if CPU_VECTOR_BYTES == 64 && defined(__AVX512F__)
    return _mm512_fmadd_ps(a, b, c);
#elif CPU_VECTOR_BYTES == 32 && defined(__FMA__)
    return _mm256_fmadd_ps(a, b, c);
#else
    f32_vector result = {0};
    for (int i = 0; i < F32_LANES; i++)
        result[i] = fmaf(a[i], b[i], c[i]);
    return result;
#endif
}

INLINE f64_vector f64_fma(f64_vector a, f64_vector b, f64_vector c)
{
#if CPU_VECTOR_BYTES == 64 && defined(__AVX512F__)
    return _mm512_fmadd_pd(a, b, c);
#elif CPU_VECTOR_BYTES == 32 && defined(__FMA__)
    return _mm256_fmadd_pd(a, b, c);
#else
    f64_vector result = {0};
    for (int i = 0; i < F64_LANES; i++)
        result[i] = fma(a[i], b[i], c[i]);
    return result;
#endif
}

/* The one NaN that results are written with, in the lanes that hold any. */
INLINE f32_vector f32_one_nan(f32_vector vector)
{
    i32_vector mask = vector != vector;
    return (f32_vector)(((i32_vector)vector & ~mask) | (INT32_C(0x7fc00000) & mask));
}

INLINE f64_vector f64_one_nan(f64_vector vector)
{
    i64_vector mask = vector != vector;
    return (f64_vector)(((i64_vector)vector & ~mask) | (INT64_C(0x7ff8000000000000) & mask));
}

/* Lists for shuffles of two vectors inside each 16 bytes, and of 16-byte quads. */
#if CPU_VECTOR_BYTES == 64
#define EACH_QUAD(WHAT, N) WHAT(N), WHAT(4 + (N)), WHAT(8 + (N)), WHAT(12 + (N))
#define QUADS(N)           LANES_4(N, 1), LANES_4(8 + (N), 1), LANES_4(16 + (N), 1), LANES_4(24 + (N), 1)
#elif CPU_VECTOR_BYTES == 32
#define EACH_QUAD(WHAT, N) WHAT(N), WHAT(4 + (N))
#define QUADS(N)           LANES_4(N, 1), LANES_4(8 + (N), 1)
#else
#define EACH_QUAD(WHAT, N) WHAT(N)
#endif
#define SINGLES(N)                (N), F32_LANES + (N), (N) + 1, F32_LANES + (N) + 1
#define PAIRS(N)                  (N), (N) + 1, F32_LANES + (N), F32_LANES + (N) + 1
#define INTERLEAVE(A, B, WHAT, N) __builtin_shufflevector(A, B, EACH_QUAD(WHAT, N))

/* Transposes the 4 x 4 squares that four vectors hold. */
INLINE void f32_transpose_quads(f32_vector *row)
{
    f32_vector low_01 = INTERLEAVE(row[0], row[1], SINGLES, 0), high_01 = INTERLEAVE(row[0], row[1], SINGLES, 2);
    f32_vector low_23 = INTERLEAVE(row[2], row[3], SINGLES, 0), high_23 = INTERLEAVE(row[2], row[3], SINGLES, 2);
    row[0] = INTERLEAVE(low_01, low_23, PAIRS, 0);
    row[1] = INTERLEAVE(low_01, low_23, PAIRS, 2);
    row[2] = INTERLEAVE(high_01, high_23, PAIRS, 0);
    row[3] = INTERLEAVE(high_01, high_23, PAIRS, 2);
}

/* Moves the even quads of two vectors to the first and the odd ones to the second. */
INLINE void f32_part_quads(f32_vector *a, f32_vector *b)
{
#if CPU_VECTOR_BYTES > 16
    f32_vector even = __builtin_shufflevector(*a, *b, QUADS(0));
    *b = __builtin_shufflevector(*a, *b, QUADS(4));
    *a = even;
#else
    (void)a;
    (void)b;
#endif
}

/* Transposes the squares of quads that vectors hold, a quad being `lanes` of them wide: so many are transposed already.
 */
INLINE void f32_part_squares(f32_vector *row, int count, int lanes)
{
#pragma GCC unroll 4
    for (int distance = lanes; distance < count; distance *= 2)
#pragma GCC unroll 8
        for (int i = 0; i < count / 2; i++) {
            int upper = i / distance * 2 * distance + i % distance;
            f32_part_quads(&row[upper], &row[upper + distance]);
        }
}

/* Transposes a square of F32_LANES x F32_LANES floats. */
INLINE void f32_square(f32_vector *row)
{
#pragma GCC unroll 4
    for (int i = 0; i < F32_LANES; i += 4)
        f32_transpose_quads(row + i);
    f32_part_squares(row, F32_LANES, 4);
}

/* Transposes a square of F64_LANES x F64_LANES words of 8 bytes. */
INLINE void f64_square(f32_vector *row)
{
#pragma GCC unroll 4
    for (int i = 0; i < F64_LANES; i += 2) {
        f32_vector even = INTERLEAVE(row[i], row[i + 1], PAIRS, 0);
        row[i + 1] = INTERLEAVE(row[i], row[i + 1], PAIRS, 2);
        row[i] = even;
    }
    f32_part_squares(row, F64_LANES, 2);
}

#if CPU_VECTOR_BYTES > 16
INLINE f32_half f32_load_half(const void *from)
{
    f32_half half;
    memcpy(&half, from, sizeof(half));
    return half;
}

INLINE f32_half f32_low(f32_vector vector)
{
    f32_half half;
    memcpy(&half, &vector, sizeof(half));
    return half;
}

INLINE f32_vector f32_join(f32_half low, f32_half high)
{
    return __builtin_shufflevector(low, high, F32_LIST(0, 1));
}

/* Transposes half squares: F32_LANES rows of half as many floats, each vector being rows i and i + 4 or, from the
 * fourth vector on, those 8 rows further. */
INLINE void f32_half_square(f32_vector *row)
{
#pragma GCC unroll 2
    for (int i = 0; i < F32_LANES / 2; i += 4)
        f32_transpose_quads(row + i);
    f32_part_squares(row, F32_LANES / 2, 4);
}

/* Transposes half squares back. */
INLINE void f32_half_square_back(f32_vector *row)
{
#pragma GCC unroll 2
    for (int i = 0; i < F32_LANES / 2; i += 4)
        f32_transpose_quads(row + i);
#if CPU_VECTOR_BYTES == 64
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        f32_vector low = row[i], high = row[i + 4];
        row[i] = __builtin_shufflevector(low, high, LANES_4(0, 1), LANES_4(16, 1), LANES_4(4, 1), LANES_4(20, 1));
        row[i + 4] = __builtin_shufflevector(low, high, LANES_4(8, 1), LANES_4(24, 1), LANES_4(12, 1), LANES_4(28, 1));
    }
#endif
}
#endif

/* Transposes a square of F32_LANES x F32_LANES floats; strides are in bytes, addresses of any alignment. */
INLINE void f32_transpose(char *to, int64_t to_stride, const char *from, int64_t from_stride, int one_nan)
{
    f32_vector row[F32_LANES];
#pragma GCC unroll 16
    for (int i = 0; i < F32_LANES; i++)
        row[i] = f32_load(from + i * from_stride);
    f32_square(row);
#pragma GCC unroll 16
    for (int i = 0; i < F32_LANES; i++)
        f32_store(to + i * to_stride, one_nan ? f32_one_nan(row[i]) : row[i]);
}

/* Transposes words of 8 bytes. */
INLINE void f64_transpose(char *to, int64_t to_stride, const char *from, int64_t from_stride, int one_nan)
{
    f32_vector row[F64_LANES];
#pragma GCC unroll 8
    for (int i = 0; i < F64_LANES; i++)
        row[i] = f32_load(from + i * from_stride);
    f64_square(row);
#pragma GCC unroll 8
    for (int i = 0; i < F64_LANES; i++)
        f32_store(to + i * to_stride, one_nan ? (f32_vector)f64_one_nan((f64_vector)row[i]) : row[i]);
}
