/*
 * Rules of all sorts for the tests of scans: the i-th of each list, of which neighbours are unlike.
 */
#ifndef TESTS_KERNELS_RULES_H
#define TESTS_KERNELS_RULES_H

#include "kernels/order1/dtypes.h"
#include "tests/kernels/case.h"

#define INCLUSIVE SCAND_KIND_INCLUSIVE
#define EXCLUSIVE SCAND_KIND_EXCLUSIVE
#define HALF      SCAND_KIND_HALF
#define TRAPEZOID SCAND_KIND_TRAPEZOID
#define F32       SCAND_ACCUMULATOR_F32
#define F64       SCAND_ACCUMULATOR_F64
#define F2        SCAND_ACCUMULATOR_F2
#define D32       SCAND_DTYPE_F32
#define D64       SCAND_DTYPE_F64

static const struct layout packed = {.name = "packed"};
static const enum scand_accumulator accumulators[] = {F32, F64, F2}; /* accumulators of floats */
static const char *const pass_lists[] = {"f", "b", "fb", "bf", "ff", "bb"};

static inline struct scan_case case_of(uint64_t rows, uint64_t length, struct scan_rule rule)
{
    return (struct scan_case){
        .rule = rule, .rank = 2, .axis = 1, .shape = {rows, length}, .input = packed, .output = packed};
}

static inline struct scan_rule typed_rule(unsigned i, enum scand_dtype input, enum scand_dtype output)
{
    enum scand_accumulator accumulator = accumulators[i % COUNT(accumulators)];
    struct scan_rule rule = rule_of(pass_lists[i % COUNT(pass_lists)], i / 2 % 2 ? INCLUSIVE : EXCLUSIVE, accumulator,
                                    i / 4 % 2 ? D32 : D64, output);
    rule.input = input;
    rule.op = (enum scand_operator)(i / 3 % SCAND_OPERATOR_AFFINE);
    bool floats = !codec_is_integer(input);
    rule.demean = floats && i % 5 == 1;
    if (floats && rule.op == SCAND_OPERATOR_SUM && i % 4 == 3)
        rule.kind = i % 8 == 3 ? HALF : TRAPEZOID;
    if (!floats)
        rule.accumulator = SCAND_ACCUMULATOR_EXACT;
    else if (codec_class(input) == SCAND_CLASS_F64 && accumulator == F32)
        rule.accumulator = i % 2 ? F64 : F2;
    return rule;
}

/* A case of affine: each third time one coefficient for all, else one for each sample. */
static inline struct scan_case affine_case(unsigned i, uint64_t rows, uint64_t length, enum scand_dtype input,
                                           enum scand_dtype output)
{
    struct scan_case c = case_of(rows, length, typed_rule(i, input, output));
    c.rule.op = SCAND_OPERATOR_AFFINE;
    c.rule.kind = i / 2 % 2 ? INCLUSIVE : EXCLUSIVE;
    c.rule.coefficients = input;
    c.has_coefficients = i % 3 != 0;
    c.coefficient_fill = i % 7 == 0 ? FILL_ENDS : FILL_NEAR_ONE;
    c.rule.coefficient = codec_is_integer(input) ? (double)(int)(i % 9) - 4 : i % 2 ? -0.998 : 1.0009765625;
    return c;
}

#endif
