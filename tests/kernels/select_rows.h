/*
 * Rows of which a test says what is unlike the simplest ones, for tests of the choice of kernels.
 */
#ifndef TESTS_KERNELS_SELECT_ROWS_H
#define TESTS_KERNELS_SELECT_ROWS_H

#include "kernels/cuda/select/select.h"

#define F64  SCAND_DTYPE_F64
#define F16  SCAND_DTYPE_F16
#define I16  SCAND_DTYPE_I16
#define I32  SCAND_DTYPE_I32
#define I64  SCAND_DTYPE_I64
#define IBM  SCAND_DTYPE_IBM32
#define MAX  SCAND_OPERATOR_MAX
#define HALF SCAND_KIND_HALF

enum accumulator { IN_F32, IN_F64, IN_F2 };
enum what { SCAN, SCAN_AFFINE, REDUCE };

/* Rows, where nothing is said of one f32 sample after the other, row after row, from the start of a slot. */
struct rows {
    uint64_t length;
    enum accumulator accumulator;
    enum what what;
    enum scand_operator op;
    enum scand_kind kind;
    enum scand_dtype input, output;
    bool demean, wide;                    /* wide: an f64 between the passes */
    bool one_pass, ragged, columns, many; /* many: two strips of columns for each of 132 processors */
    uint64_t gap, input_at, output_at;    /* bytes between rows; the first ones' addresses */
};

static struct scan_rule rule_of(const struct rows *r)
{
    static const enum scand_accumulator accumulators[] = {SCAND_ACCUMULATOR_F32, SCAND_ACCUMULATOR_F64,
                                                          SCAND_ACCUMULATOR_F2};
    return (struct scan_rule){
        .operation = r->what == REDUCE ? SCAND_OPERATION_REDUCE : SCAND_OPERATION_SCAN,
        .passes = {SCAND_PASS_FORWARD, SCAND_PASS_BACKWARD},
        .pass_count = r->one_pass || r->what == REDUCE ? 1 : 2,
        .kind = r->kind,
        .op = r->what == SCAN_AFFINE ? SCAND_OPERATOR_AFFINE : r->op,
        .accumulator = accumulators[r->accumulator],
        .intermediate = r->wide ? SCAND_DTYPE_F64 : SCAND_DTYPE_F32,
        .input = r->input,
        .output = r->output,
        .demean = r->demean,
    };
}

static int64_t bytes_of(enum scand_dtype dtype)
{
    return dtype == F64 || dtype == I64 ? 8 : dtype == F16 || dtype == I16 ? 2 : 4;
}

static struct scan_rows rows_of(struct rows r)
{
    static const uint64_t offsets[] = {0, 1};
    const int64_t in = bytes_of(r.input), out = bytes_of(r.output), length = (int64_t)r.length, gap = (int64_t)r.gap;
    const int64_t count = r.many ? 10000 : 1000;
    return (struct scan_rows){
        .rule = rule_of(&r),
        .length = r.length,
        .row_count = (uint64_t)count,
        .offsets = r.ragged ? offsets : NULL,
        .outer_rank = r.ragged ? 0 : 1,
        .outer_shape = {(uint64_t)count},
        .input_outer_strides = {r.columns ? in : in * length + gap},
        .output_outer_strides = {r.what == REDUCE || r.columns ? out : out * length + gap},
        .input_stride = r.columns ? in * count : in,
        .output_stride = r.columns ? out * count : out,
        .input = (const void *)(uintptr_t)(4096 + r.input_at),
        .output = (void *)(uintptr_t)(1048576 + r.output_at),
    };
}

#endif
