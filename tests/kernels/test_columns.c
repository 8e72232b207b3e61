/*
 * Columns so many that all processors of a GPU have some, against the reference, bit by bit: one pass over them has a
 * kernel of its own (cuda/walk.cuh). test_kernels has fewer columns.
 */
#include "tests/kernels/suite.h"

/* Strips of 32 columns, two for each of 132 processors, and a few more columns. */
#define MANY (2 * 132 * 32 + 33)

/* The i-th case of columns of a length: in one plane or three, at any pitch; some of them, too. */
static struct scan_case many_case(unsigned i, uint64_t length)
{
    const enum scand_dtype output = i % 5 == 3 ? SCAND_DTYPE_F64 : SCAND_DTYPE_F32;
    struct scan_case c = {
        .rule = rule_of(i % 2 ? "b" : "f", i / 2 % 2 ? SCAND_KIND_EXCLUSIVE : SCAND_KIND_INCLUSIVE,
                        (enum scand_accumulator)(SCAND_ACCUMULATOR_F32 + i % 3), SCAND_DTYPE_F32, output),
        .rank = 3,
        .axis = 1,
        .shape = {1, length, MANY + i % 4},
        .input = {.name = "columns", .offset = i % 4 == 2 ? 4 : 0, .axis_gap = i % 3 * 4},
        .output = {.name = "columns", .axis_gap = i / 3 % 2 * 12},
        .fill = i % 6 == 5   ? FILL_SPECIALS
                : i % 6 == 2 ? FILL_ZEROS
                             : FILL_NOISE,
    };
    if (i % 4 == 3) {
        c.shape[0] = 3;
        c.shape[2] = MANY / 3 + 13;
        c.first = 31;
        c.count = MANY;
    }
    if (i % 6 == 4)
        c.rule.input = SCAND_DTYPE_IBM32;
    c.in_place = i % 5 == 1 && output == SCAND_DTYPE_F32;
    return c;
}

/* Around leaves and tiles. */
static void many_columns(const struct implementation *implementation)
{
    static const uint64_t length_list[] = {512, 529, 1056};
    for (unsigned i = 0; i < 8; i++) {
        struct scan_case c = many_case(i, length_list[i % COUNT(length_list)]);
        check(implementation, &c);
    }
}

/* Over the border between two order blocks, backward, where the one that is met first has a tile and some leaves. */
static void long_columns(const struct implementation *implementation)
{
    struct scan_case c = many_case(7, 16384 + 530);
    check(implementation, &c);
}

/* The least that this kernel is for, for tools that slow a program down a hundredfold. */
static void few_many_columns(const struct implementation *implementation)
{
    struct scan_case c = many_case(1, 529);
    check(implementation, &c);
}

SUITE(cuda, many_columns)
SUITE(cuda, long_columns)
SUITE(cuda, few_many_columns)

static const struct test tests[] = {TEST(cuda_many_columns), TEST(cuda_long_columns), TEST(cuda_few_many_columns),
                                    TEST_END};

int main(int argc, char **argv)
{
    seed = random_seed();
    return test_main(argc, argv, tests);
}
