#include <string.h>

#include "kernels/order1/f2.h"
#include "tests/bench/plain.h"

/* Compiles a function for the vectors of the processor that runs it, as far as the compiler makes any. */
#ifdef __x86_64__
#define EVERY_PROCESSOR __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define EVERY_PROCESSOR
#endif

static float f32be_load(const uint32_t *from)
{
    uint32_t bits = __builtin_bswap32(*from);
    float x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

static uint32_t f32be_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return __builtin_bswap32(bits);
}

/* The values of the first pass, in the output, are in the form of the output, too. */
#define ROWS_SCAN(NAME, SAMPLE, SUM, LOAD, ADD, VALUE)                                                            \
    EVERY_PROCESSOR static void NAME(const void *input, void *output, void *sums, uint64_t rows, uint64_t length) \
    {                                                                                                             \
        (void)sums;                                                                                               \
        for (uint64_t r = 0; r < rows; r++) {                                                                     \
            const SAMPLE *from = (const SAMPLE *)input + r * length;                                              \
            SAMPLE *to = (SAMPLE *)output + r * length;                                                           \
            SUM forward = {0}, backward = {0};                                                                    \
            for (uint64_t i = 0; i < length; i++) {                                                               \
                forward = ADD(forward, LOAD(from + i));                                                           \
                to[i] = VALUE(forward);                                                                           \
            }                                                                                                     \
            for (uint64_t i = length; i-- > 0;) {                                                                 \
                backward = ADD(backward, LOAD(to + i));                                                           \
                to[i] = VALUE(backward);                                                                          \
            }                                                                                                     \
        }                                                                                                         \
    }

#define COLUMNS_SCAN(NAME, SAMPLE, SUM)                                                                               \
    EVERY_PROCESSOR static void NAME(const void *input, void *output, void *all_sums, uint64_t rows, uint64_t length) \
    {                                                                                                                 \
        const SAMPLE *restrict from = input;                                                                          \
        SAMPLE *restrict to = output;                                                                                 \
        SUM *restrict sums = all_sums;                                                                                \
        memset(sums, 0, rows * sizeof(SUM));                                                                          \
        for (uint64_t i = 0; i < length; i++)                                                                         \
            for (uint64_t r = 0; r < rows; r++)                                                                       \
                to[i * rows + r] = (SAMPLE)(sums[r] += (SUM)from[i * rows + r]);                                      \
        memset(sums, 0, rows * sizeof(SUM));                                                                          \
        for (uint64_t i = length; i-- > 0;)                                                                           \
            for (uint64_t r = 0; r < rows; r++)                                                                       \
                to[i * rows + r] = (SAMPLE)(sums[r] += (SUM)to[i * rows + r]);                                        \
    }

#define PLUS(SUM, X) ((SUM) + (X))
#define LOAD(FROM)   (*(FROM))
#define SAME(SUM)    (SUM)
#define TO_F32(SUM)  ((float)(SUM))
#define HIGH(SUM)    ((SUM).high)

ROWS_SCAN(f32_rows, float, float, LOAD, PLUS, SAME)
ROWS_SCAN(f32_rows_f64, float, double, LOAD, PLUS, TO_F32)
ROWS_SCAN(f32_rows_f2, float, struct f2, LOAD, f2_add_f32, HIGH)
ROWS_SCAN(f64_rows, double, double, LOAD, PLUS, SAME)
ROWS_SCAN(i32_rows, uint32_t, uint32_t, LOAD, PLUS, SAME)
ROWS_SCAN(f32be_rows, uint32_t, double, f32be_load, PLUS, f32be_of)
COLUMNS_SCAN(f32_columns, float, float)
COLUMNS_SCAN(f32_columns_f64, float, double)
COLUMNS_SCAN(f64_columns, double, double)
COLUMNS_SCAN(i32_columns, uint32_t, uint32_t)

plain_scan *plain_find(enum scand_dtype dtype, enum scand_accumulator accumulator, bool columns)
{
    switch (dtype) {
    case SCAND_DTYPE_F32:
        if (accumulator == SCAND_ACCUMULATOR_F32)
            return columns ? f32_columns : f32_rows;
        if (accumulator == SCAND_ACCUMULATOR_F64)
            return columns ? f32_columns_f64 : f32_rows_f64;
        return columns ? NULL : f32_rows_f2;
    case SCAND_DTYPE_F64:
        return columns ? f64_columns : f64_rows;
    case SCAND_DTYPE_I32:
        return columns ? i32_columns : i32_rows;
    case SCAND_DTYPE_F32BE:
        return columns ? NULL : f32be_rows;
    default:
        return NULL;
    }
}
