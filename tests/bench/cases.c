#include "tests/bench/cases.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/order1/dtypes.h"

#define OUT     CASE_LEFT_OUT
#define SUM     SCAND_OPERATOR_SUM
#define MAX     SCAND_OPERATOR_MAX
#define AFFINE  SCAND_OPERATOR_AFFINE
#define PROD    SCAND_OPERATOR_PROD
#define F32     SCAND_DTYPE_F32
#define F64     SCAND_DTYPE_F64
#define F16     SCAND_DTYPE_F16
#define BF16    SCAND_DTYPE_BF16
#define I32     SCAND_DTYPE_I32
#define I64     SCAND_DTYPE_I64
#define F32BE   SCAND_DTYPE_F32BE
#define IBM32   SCAND_DTYPE_IBM32
#define HEADER  240 /* header of a trace in SU and SEG-Y */
#define ROWS    CASE_ROWS
#define COLUMNS CASE_COLUMNS
#define RAGGED  CASE_RAGGED
#define EACH    CASE_COEFFICIENTS

// clang-format off
const struct bench_case bench_cases[] = {
    /* The main job; as it lies in files.
    op    dtype  passes      rows    samples  gap     layout   copies targets: f32, f64, f2 */
    {SUM,  F32,   "fb",     10000,     10000, 0,      ROWS,    1,       {0.97, 0.95, 0.80}},
    {SUM,  F32,   "fb",     10000,     10007, HEADER, ROWS,    1,       {0.92, 0.90, 0.76}},
    {SUM,  F32BE, "fb",     10000,     10000, HEADER, ROWS,    1,       {0.90, 0.90, 0}},
    {SUM,  IBM32, "fb",     10000,     10000, HEADER, ROWS,    1,       {0.90, 0.90, 0}},
    /* Short rows, and those of a thread block or less. */
    {SUM,  F32,   "fb",  33333333,         3, 0,      ROWS,    1,       {0,    0,    0}},
    {SUM,  F32,   "fb",  12500000,         8, 0,      ROWS,    1,       {0.80, 0.80, 0}},
    {SUM,  F32,   "fb",   9090909,        11, 0,      ROWS,    1,       {0.80, 0.80, 0}},
    {SUM,  F32,   "fb",   3125000,        32, 0,      ROWS,    1,       {0.80, 0.80, 0}},
    {SUM,  F32,   "fb",   1562500,        64, 0,      ROWS,    1,       {0.80, 0.80, 0}},
    {SUM,  F32,   "fb",    781250,       128, 0,      ROWS,    1,       {0.92, 0.92, 0}},
    {SUM,  F32,   "fb",    333333,       300, 0,      ROWS,    1,       {0.92, 0.92, 0.85}},
    {SUM,  F32,   "fb",    200000,       500, 0,      ROWS,    1,       {0.92, 0.92, 0}},
    {SUM,  F32,   "fb",    142857,       700, 0,      ROWS,    1,       {0,    0,    0.80}},
    {SUM,  F32,   "fb",    100000,      1000, 0,      ROWS,    1,       {0.92, 0.92, 0}},
    {SUM,  F32,   "fb",     50000,      2000, 0,      ROWS,    1,       {0.92, 0.92, 0}},
    {SUM,  F32,   "fb",     24414,      4096, 0,      ROWS,    1,       {0.92, 0.92, 0}},
    {SUM,  F32,   "fb",    100000,      1000, 0,      RAGGED,  1,       {0.80, 0.80, 0}},
    {SUM,  F64,   "fb",    100000,      1000, 0,      RAGGED,  1,       {OUT,  0,    OUT}},
    {SUM,  F16,   "fb",    100000,      1000, 0,      RAGGED,  1,       {0,    0,    OUT}},
    {SUM,  I32,   "fb",    100000,      1000, 0,      RAGGED,  1,       {0,    OUT,  OUT}},
    {MAX,  F32,   "fb",    100000,      1000, 0,      RAGGED,  1,       {0,    OUT,  OUT}},
    {AFFINE, F32, "fb",    100000,      1000, 0,      RAGGED,  1,       {0,    0,    0}},
    /* A batch of 1: one row, which few SMs have a part of. */
    {SUM,  F32,   "fb",         1,     10000, 0,      ROWS,    1,       {0,    0,    0}},
    /* Rows that one thread block does not hold. */
    {SUM,  F32,   "fb",      1754,     57001, 0,      ROWS,    1,       {0.85, 0.85, 0}},
    {SUM,  F32,   "fb",      1000,    100000, 0,      ROWS,    1,       {0.85, 0.85, 0}},
    {SUM,  F32,   "fb",       111,    900000, 0,      ROWS,    1,       {0.85, 0.85, 0}},
    {SUM,  F64,   "fb",      1754,     57001, 0,      ROWS,    1,       {OUT,  0,    OUT}},
    {SUM,  F16,   "fb",      1754,     57001, 0,      ROWS,    1,       {0,    0,    OUT}},
    {SUM,  I32,   "fb",      1754,     57001, 0,      ROWS,    1,       {0,    OUT,  OUT}},
    {MAX,  F32,   "fb",      1754,     57001, 0,      ROWS,    1,       {0,    OUT,  OUT}},
    {SUM,  F64,   "fb",      1000,    100000, 0,      ROWS,    1,       {OUT,  0,    OUT}},
    {SUM,  F16,   "fb",      1000,    100000, 0,      ROWS,    1,       {0,    0,    OUT}},
    {AFFINE, F32, "fb",      1754,     57001, 0,      ROWS,    1,       {0,    0,    0}},
    {SUM,  F64,   "fb",       111,    900000, 0,      ROWS,    1,       {OUT,  0,    OUT}},
    {SUM,  F16,   "fb",       111,    900000, 0,      ROWS,    1,       {0,    0,    OUT}},
    {SUM,  I32,   "fb",       111,    900000, 0,      ROWS,    1,       {0,    OUT,  OUT}},
    {MAX,  F32,   "fb",       111,    900000, 0,      ROWS,    1,       {0,    OUT,  OUT}},
    /* One row that no GPU holds: both passes take three transfers at least. */
    {SUM,  F32,   "f",          1, 1000000000, 0,     ROWS,    1,       {0.80, 0.80, OUT}},
    {SUM,  F32,   "fb",         1, 1000000000, 0,     ROWS,    1.5,     {0.85, 0.85, OUT}},
    /* Along the first axis. */
    {SUM,  F32,   "f",      10000,     10000, 0,      COLUMNS, 1,       {0.85, 0.85, 0}},
    {SUM,  F32,   "fb",     10000,     10000, 0,      COLUMNS, 1,       {0.75, 0.75, 0}},
    {MAX,  F32,   "f",      10000,     10000, 0,      COLUMNS, 1,       {0.75, OUT,  OUT}},
    {MAX,  F32,   "fb",     10000,     10000, 0,      COLUMNS, 1,       {0.55, OUT,  OUT}},
    {SUM,  F64,   "f",      10000,     10000, 0,      COLUMNS, 1,       {OUT,  0.75, OUT}},
    {SUM,  F64,   "fb",     10000,     10000, 0,      COLUMNS, 1,       {OUT,  0.55, OUT}},
    {SUM,  I32,   "f",      10000,     10000, 0,      COLUMNS, 1,       {0.75, OUT,  OUT}},
    {SUM,  I32,   "fb",     10000,     10000, 0,      COLUMNS, 1,       {0.55, OUT,  OUT}},
    {SUM,  F16,   "f",      10000,     10000, 0,      COLUMNS, 1,       {0.75, 0,    OUT}},
    {SUM,  F16,   "fb",     10000,     10000, 0,      COLUMNS, 1,       {0.55, 0,    OUT}},
    {PROD, F32,   "fb",     10000,     10000, 0,      COLUMNS, 1,       {0,    0,    OUT}},
    {SUM,  I64,   "fb",     10000,     10000, 0,      COLUMNS, 1,       {0,    OUT,  OUT}},
    {SUM,  IBM32, "fb",     10000,     10000, 0,      COLUMNS, 1,       {0,    0,    0}},
    {AFFINE, F32, "fb",     10000,     10000, 0,      COLUMNS, 1,       {0.45, 0,    0}},
    /* Columns whose lines are not aligned. */
    {SUM,  F32,   "f",      10000,     10001, 0,      COLUMNS, 1,       {0,    0,    0}},
    {SUM,  F32,   "fb",     10000,     10001, 0,      COLUMNS, 1,       {0,    0,    0}},
    {MAX,  F32,   "fb",     10000,     10001, 0,      COLUMNS, 1,       {0,    OUT,  OUT}},
    /* Other dtypes and operators. */
    {SUM,  F16,   "fb",     10000,     10000, 0,      ROWS,    1,       {0.70, 0.70, OUT}},
    {SUM,  BF16,  "fb",     10000,     10000, 0,      ROWS,    1,       {0.70, 0.70, OUT}},
    {SUM,  F64,   "fb",     10000,     10000, 0,      ROWS,    1,       {OUT,  0,    OUT}},
    {SUM,  I32,   "fb",     10000,     10000, 0,      ROWS,    1,       {0,    OUT,  OUT}},
    {SUM,  I64,   "fb",     10000,     10000, 0,      ROWS,    1,       {0,    OUT,  OUT}},
    {AFFINE, F32, "fb",     10000,     10000, 0,      ROWS,    1,       {0,    0,    0}},
    {AFFINE, F32, "fb",     10000,     10000, 0,      EACH,    1.5,     {0,    0,    0}},
    {AFFINE, F32, "fb",     10000,     10007, HEADER, EACH,    1.5,     {0,    0,    0}},
    {AFFINE, F32, "fb",    100000,      1000, 0,      EACH,    1.5,     {0,    0,    0}},
    {MAX,  F32,   "fb",     10000,     10000, 0,      ROWS,    1,       {0,    OUT,  OUT}},
    {PROD, F32,   "fb",     10000,     10000, 0,      ROWS,    1,       {0,    OUT,  OUT}},
    /* Short rows of them. */
    {MAX,  F32,   "fb",  12500000,         8, 0,      ROWS,    1,       {0,    OUT,  OUT}},
    {SUM,  I32,   "fb",   1000000,       100, 0,      ROWS,    1,       {0,    OUT,  OUT}},
    {SUM,  F64,   "fb",    333333,       300, 0,      ROWS,    1,       {OUT,  0,    OUT}},
    {SUM,  F16,   "fb",   1000000,       100, 0,      ROWS,    1,       {0,    0,    0}},
    {AFFINE, F32, "fb",   1000000,       100, 0,      ROWS,    1,       {0,    0,    0}},
    {SUM,  I32,   "fb",   1000000,       100, 0,      RAGGED,  1,       {0,    OUT,  OUT}},
};
// clang-format on
const size_t bench_case_count = sizeof(bench_cases) / sizeof(bench_cases[0]);

static enum scand_accumulator accumulator_of(const struct bench_case *c, int number)
{
    static const enum scand_accumulator of_floats[CASE_ACCUMULATORS] = {SCAND_ACCUMULATOR_F32, SCAND_ACCUMULATOR_F64,
                                                                        SCAND_ACCUMULATOR_F2};
    return codec_is_integer(c->dtype) ? SCAND_ACCUMULATOR_EXACT : of_floats[number];
}

static struct scan_rule rule_of(const struct bench_case *c, int accumulator)
{
    struct scan_rule rule = {.pass_count = (uint32_t)strlen(c->passes),
                             .op = c->op,
                             .accumulator = accumulator_of(c, accumulator),
                             .intermediate = c->dtype == F64 ? F64 : F32,
                             .input = c->dtype,
                             .output = c->dtype,
                             .coefficients = c->dtype,
                             .coefficient = 0.998};
    for (uint32_t i = 0; i < rule.pass_count; i++)
        rule.passes[i] = c->passes[i] == 'b' ? SCAND_PASS_BACKWARD : SCAND_PASS_FORWARD;
    return rule;
}

/* Lengths above `length` / 3 whose chance to be above L is proportional to L^-1.5: their mean is `length`. */
int case_offsets_make(const struct bench_case *c, struct case_offsets *offsets)
{
    const uint64_t samples = c->rows * c->length;
    uint64_t room = samples / (c->length / 3) + 2, random = 1;
    *offsets = (struct case_offsets){.rows = 0};
    if (c->layout != CASE_RAGGED)
        return 0;
    offsets->starts = malloc(room * sizeof(uint64_t));
    if (!offsets->starts)
        return -ENOMEM;
    offsets->starts[0] = 0;
    for (uint64_t at = 0; at < samples;) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        double chance = (double)((random >> 12) + 1) * 0x1p-52;
        uint64_t length = (uint64_t)((double)c->length / 3 * pow(chance, -1 / 1.5)) + 1, left = samples - at;
        length = length < left ? length : left;
        offsets->longest = length > offsets->longest ? length : offsets->longest;
        offsets->starts[++offsets->rows] = at += length;
    }
    return 0;
}

static struct scan_rows ragged_rows(const struct bench_case *c, int accumulator, const struct case_offsets *offsets)
{
    return (struct scan_rows){.rule = rule_of(c, accumulator),
                              .length = offsets->longest,
                              .row_count = offsets->rows,
                              .offsets = offsets->starts,
                              .input_stride = codec_bytes(c->dtype),
                              .output_stride = codec_bytes(c->dtype)};
}

struct scan_rows case_rows(const struct bench_case *c, int accumulator, const struct case_offsets *offsets)
{
    int64_t bytes = codec_bytes(c->dtype), line = (int64_t)(c->length * codec_bytes(c->dtype) + c->gap_bytes);
    bool columns = c->layout == CASE_COLUMNS;
    int64_t outer = columns ? bytes : line, inner = columns ? line : bytes;
    uint64_t row_count = columns ? c->length : c->rows;
    if (c->layout == CASE_RAGGED)
        return ragged_rows(c, accumulator, offsets);
    return (struct scan_rows){
        .rule = rule_of(c, accumulator),
        .length = columns ? c->rows : c->length,
        .row_count = row_count,
        .outer_rank = 1,
        .outer_shape = {row_count},
        .input_outer_strides = {outer},
        .output_outer_strides = {outer},
        .coefficient_outer_strides = {outer},
        .input_stride = inner,
        .output_stride = inner,
        .coefficient_stride = inner,
    };
}

uint64_t case_sample_bytes(const struct bench_case *c)
{
    return c->rows * c->length * codec_bytes(c->dtype);
}

uint64_t case_region_bytes(const struct bench_case *c)
{
    return case_sample_bytes(c) + c->rows * c->gap_bytes;
}

void case_name(const struct bench_case *c, char name[40])
{
#define X(NAME, WORD) WORD,
    static const char *const operators[] = {SCAND_OPERATORS(X)};
#undef X
    snprintf(name, 40, "%s %s", operators[c->op], c->passes);
}

void case_shape(const struct bench_case *c, char shape[40])
{
#define X(NAME, WORD, ...) WORD,
    static const char *const dtypes[] = {SCAND_DTYPES(X)};
#undef X
    static const char *const layouts[] = {"", " along axis 0", " ragged", " by coefficients"};
    snprintf(shape, 40, "%llu x %llu%s%s%s%s", (unsigned long long)c->rows, (unsigned long long)c->length,
             c->dtype == F32 ? "" : " ", c->dtype == F32 ? "" : dtypes[c->dtype], c->gap_bytes ? " + headers" : "",
             layouts[c->layout]);
}
