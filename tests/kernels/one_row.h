/*
 * The rig of tests of the reference: rules, and samples of one row.
 */
#ifndef TESTS_KERNELS_ONE_ROW_H
#define TESTS_KERNELS_ONE_ROW_H

#include "kernels/scan.h"
#include "tests/check.h"

#define LENGTH_MAX 40000

static inline struct scan_rule rule_of(const char *passes, enum scand_kind kind, enum scand_accumulator accumulator,
                                       enum scand_dtype dtype)
{
    struct scan_rule rule = {.pass_count = (uint32_t)strlen(passes),
                             .kind = kind,
                             .accumulator = accumulator,
                             .intermediate = dtype,
                             .output = dtype};
    for (uint32_t i = 0; i < rule.pass_count; i++)
        rule.passes[i] = passes[i] == 'b' ? SCAND_PASS_BACKWARD : SCAND_PASS_FORWARD;
    return rule;
}

/* A number in -1 to 1. */
static inline float noise(uint64_t *random)
{
    return (float)((double)(int64_t)random_next(random) * 0x1p-63);
}

#endif
