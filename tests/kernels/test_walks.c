/*
 * Rows of several order blocks that a thread of the CPU path walks along, whatever way their samples reach it, against
 * the reference, bit by bit.
 */
#include "tests/kernels/suite.h"

#define BLOCK 16384

static const enum scand_kind kinds[] = {SCAND_KIND_INCLUSIVE, SCAND_KIND_EXCLUSIVE};
static const char *const pass_lists[] = {"f", "b", "fb", "bf", "ff", "bb"};

/* Rows that are not contiguous pass through lines, in which values may be wider than samples, or narrower. */
static void other_widths(const struct implementation *implementation)
{
    for (unsigned i = 0; i < 12; i++) {
        const enum scand_dtype wide = SCAND_DTYPE_F64, narrow = SCAND_DTYPE_F32;
        const enum scand_dtype input = i % 2 ? wide : narrow, output = i % 2 ? narrow : wide;
        const enum scand_accumulator accumulator = i / 2 % 2 ? SCAND_ACCUMULATOR_F2 : SCAND_ACCUMULATOR_F64;
        struct scan_case c = {.rule =
                                  rule_of(pass_lists[i % COUNT(pass_lists)], kinds[i / 6], accumulator, output, output),
                              .rank = 2,
                              .axis = i / 3 % 2,
                              .shape = {3, 3},
                              .input = {.name = "gaps", .element_gap = 4},
                              .output = {.name = "gaps", .element_gap = 8}};
        c.rule.input = input;
        c.shape[c.axis] = BLOCK + 100 * i + 1100;
        check(implementation, &c);
    }
}

#define SUITES(NAME) SUITE(NAME, other_widths)
#define TESTS(NAME)  TEST(NAME##_other_widths)

SUITES(avx512)
SUITES(avx2)
SUITES(portable)
SUITES(pool)

int main(int argc, char **argv)
{
    static const struct test tests[] = {TESTS(avx512), TESTS(avx2), TESTS(portable), TESTS(pool), TEST_END};
    seed = random_seed();
    return test_main(argc, argv, tests);
}
