/*
 * Rows that a thread of the CPU path streams through, in whatever way their samples reach it, against the reference,
 * bit by bit: rows of several order blocks, once for each pass, and integers.
 */
#include "tests/kernels/suite.h"

#define BLOCK 16384

static const enum scand_kind kinds[] = {SCAND_KIND_INCLUSIVE, SCAND_KIND_EXCLUSIVE};
static const char *const pass_lists[] = {"f", "b", "fb", "bf", "ff", "bb"};

/* Rows that are not contiguous pass through lines, in which values may be wider than samples, or narrower. */
static void other_widths(const struct group *group)
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
        check(group, &c);
    }
}

/* Pairs of rows whose samples take turns, of several blocks and of a few samples, in one plane or three. */
static void pairs(const struct group *group)
{
    static const enum scand_dtype dtypes[] = {SCAND_DTYPE_F32, SCAND_DTYPE_F64, SCAND_DTYPE_I32, SCAND_DTYPE_I64};
    static const uint64_t lengths[] = {5, 32, 700, BLOCK + 1, 2 * BLOCK + 531};
    for (unsigned i = 0; i < 12 * COUNT(lengths); i++) {
        const enum scand_dtype dtype = dtypes[i % COUNT(dtypes)];
        struct scan_case c = {.rule = rule_of(pass_lists[i / 2 % COUNT(pass_lists)], kinds[i / 6 % 2],
                                              i % 3 ? SCAND_ACCUMULATOR_F64 : SCAND_ACCUMULATOR_F2, dtype, dtype),
                              .rank = 3,
                              .axis = 1,
                              .shape = {i % 3 == 2 ? 3 : 1, lengths[i / 12], 2},
                              .input = {.name = "pairs", .offset = i % 5 == 4 ? 4 : 0},
                              .output = {.name = "pairs"},
                              .in_place = i % 2,
                              .first = i % 11 == 8, /* not whole pairs */
                              .count = i % 11 == 8 ? 3 : 0};
        c.rule.input = dtype;
        if (codec_is_integer(dtype)) {
            c.rule.accumulator = SCAND_ACCUMULATOR_EXACT;
            c.rule.intermediate = SCAND_DTYPE_F32;
        }
        check(group, &c);
    }
}

/* Integers, by every operator, of lengths around vectors, tiles and blocks; with headers between rows, too. */
static void integers(const struct group *group)
{
    static const enum scand_dtype dtypes[] = {SCAND_DTYPE_I32, SCAND_DTYPE_U32, SCAND_DTYPE_I64, SCAND_DTYPE_U64};
    static const uint64_t lengths[] = {1,  2,  3,  5,  7,   8,   9,   11,   15,        16,
                                       17, 31, 33, 47, 130, 511, 513, 1100, BLOCK + 35};
    for (unsigned i = 0; i < 24 * COUNT(lengths); i++) {
        const enum scand_dtype input = dtypes[i % COUNT(dtypes)];
        const enum scand_dtype output = i % 7 == 6 ? SCAND_DTYPE_I64 : input;
        struct scan_case c = {.rule = rule_of(pass_lists[i % COUNT(pass_lists)], kinds[i / 12 % 2],
                                              SCAND_ACCUMULATOR_EXACT, SCAND_DTYPE_F32, output),
                              .rank = 2,
                              .axis = 1,
                              .shape = {lengths[i / 24] < 1000 ? 35 : 3, lengths[i / 24]},
                              .input = {.name = "rows", .axis_gap = i % 5 == 3 ? 8 : 0},
                              .output = {.name = "rows"},
                              .in_place = i % 3 == 1 && input == output,
                              .fill = (enum fill)(i % FILL_COUNT)};
        c.rule.input = input;
        c.rule = rule_with_op(c.rule, (enum scand_operator)(i / 2 % 4));
        check_some(group, &c);
    }
}

SUITE(cpu, other_widths)
SUITE(cpu, pairs)
SUITE(cpu, integers)

int main(int argc, char **argv)
{
    static const struct test tests[] = {TEST(cpu_other_widths), TEST(cpu_pairs), TEST(cpu_integers), TEST_END};
    seed = random_seed();
    return test_main(argc, argv, tests);
}
