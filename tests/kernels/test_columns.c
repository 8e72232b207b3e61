/*
 * Columns so many that all processors of a GPU have some, against the reference, bit by bit (columns_tma.cuh and
 * columns_direct.cuh). test_kernels has fewer columns.
 */
#include "tests/kernels/rules.h"
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
static void many_columns(const struct group *group)
{
    static const uint64_t length_list[] = {512, 529, 1056};
    for (unsigned i = 0; i < 8; i++) {
        struct scan_case c = many_case(i, length_list[i % COUNT(length_list)]);
        check(group, &c);
    }
}

/* Columns over the border between two order blocks, backward, where the block that is met first has a tile and some
 * leaves. */
static void long_columns(const struct group *group)
{
    struct scan_case c = many_case(7, 16384 + 530);
    check(group, &c);
}

/* The i-th case of columns that the copy engine can move. */
static struct scan_case boxed_case(unsigned i, const char *passes, enum scand_accumulator accumulator, uint64_t length,
                                   uint64_t columns)
{
    struct scan_case c = {
        .rule = rule_of(passes, i / 2 % 2 ? SCAND_KIND_EXCLUSIVE : SCAND_KIND_INCLUSIVE, accumulator, SCAND_DTYPE_F32,
                        SCAND_DTYPE_F32),
        .rank = 3,
        .axis = 1,
        .shape = {1, length, columns},
        .input = {.name = "columns", .offset = 16 * (i % 2), .axis_gap = 16 * (i % 3)},
        .output = {.name = "columns", .offset = 16 * (i / 2 % 2), .axis_gap = 16 * (i / 3 % 2)},
        .in_place = i % 5 == 1,
        .fill = i % 4 == 1   ? FILL_SPECIALS
                : i % 4 == 2 ? FILL_ZEROS
                             : FILL_NOISE,
    };
    if (i % 4 == 3) {
        c.shape[0] = 3;
        c.shape[2] = (columns / 2 + 3) / 4 * 4;
        c.first = c.shape[2];
        c.count = 2 * c.shape[2];
    }
    if (i % 6 == 4)
        c.rule.output = SCAND_DTYPE_IBM32;
    if (i % 6 == 5)
        c.rule.input = SCAND_DTYPE_F32BE;
    return c;
}

/* The same of samples of 2 bytes. */
static struct scan_case short_boxed_case(unsigned i, const char *passes, enum scand_accumulator accumulator,
                                         uint64_t length, uint64_t columns)
{
    struct scan_case c = boxed_case(i, passes, accumulator, length, columns);
    c.rule.input = i % 2 ? SCAND_DTYPE_BF16 : SCAND_DTYPE_F16;
    c.rule.output = i % 3 ? c.rule.input : SCAND_DTYPE_F16;
    c.shape[2] = c.shape[2] / 8 * 8;
    if (c.shape[0] > 1) {
        c.first = c.shape[2];
        c.count = 2 * c.shape[2];
    }
    return c;
}

/* Around leaves and tiles, up to an order block; the last strip has all columns or few. */
static void boxed_columns(const struct group *group)
{
    static const uint64_t list[][2] = {{512, 8512}, {513, 8512}, {1040, 4228}, {1500, 2880}, {5000, 900}, {16384, 268}};
    for (unsigned i = 0; i < COUNT(list); i++) {
        const char *const pass = i % 2 ? "b" : "f";
        struct scan_case c = boxed_case(i, pass, SCAND_ACCUMULATOR_F32, list[i][0], list[i][1]);
        struct scan_case short_c = short_boxed_case(i + i / 2, pass, SCAND_ACCUMULATOR_F32, list[i][0], list[i][1]);
        check(group, &c);
        check(group, &short_c);
        c.rule.op = SCAND_OPERATOR_PROD + i % 3;
        check(group, &c);
    }
}

/* Columns of four tiles for each processor, as for sums of 8 bytes, or eight, as for two passes. */
static void more_boxed_columns(const struct group *group)
{
    static const struct {
        const char *passes;
        enum scand_accumulator accumulator;
        uint64_t length, columns;
    } list[] = {
        {"ff", SCAND_ACCUMULATOR_F32, 2052, 13508}, {"bf", SCAND_ACCUMULATOR_F64, 1530, 22600},
        {"b", SCAND_ACCUMULATOR_F2, 2043, 8450},    {"fb", SCAND_ACCUMULATOR_F2, 1000, 33800},
        {"fb", SCAND_ACCUMULATOR_F32, 1000, 33800},
    };
    for (unsigned i = 0; i < COUNT(list); i++) {
        const uint64_t length = list[i].length, columns = list[i].columns;
        struct scan_case c = boxed_case(i, list[i].passes, list[i].accumulator, length, columns);
        struct scan_case short_c = short_boxed_case(i + 1, list[i].passes, list[i].accumulator, length, columns);
        check(group, &c);
        check(group, &short_c);
        c.rule.op = SCAND_OPERATOR_MAX + i % 2;
        check(group, &c);
    }
}

/* The i-th case of columns of any rule: in one plane or three, at any pitch; some of them, too. */
static struct scan_case direct_case(unsigned i, uint64_t length, uint64_t columns)
{
    const enum scand_dtype input = (enum scand_dtype)(i % SCAND_DTYPE_COUNT);
    const enum scand_dtype output = codec_is_integer(input) || i % 3 ? input : SCAND_DTYPE_F64;
    const int64_t gap = (int64_t)(i % 3) * (int64_t)codec_bytes(input);
    struct scan_case c = {
        .rule = typed_rule(i, input, output),
        .rank = 3,
        .axis = 1,
        .shape = {i % 4 == 3 ? 3 : 1, length, columns},
        .input = {.name = "columns", .axis_gap = gap},
        .output = {.name = "columns", .axis_gap = i / 2 % 2 * (int64_t)codec_bytes(output)},
        .fill = (enum fill)(i % FILL_COUNT),
    };
    if (i % 4 == 3) {
        c.first = columns - 1;
        c.count = columns + 2;
    }
    c.in_place = i % 5 == 1 && input == output;
    return c;
}

/* The i-th case of sums of 2-byte floats that the copy engine can move, or nearly: at an odd place or pitch, or of one
 * column more. */
static struct scan_case moved_case(unsigned i, uint64_t length, uint64_t columns)
{
    const enum scand_dtype input = i % 2 ? SCAND_DTYPE_BF16 : SCAND_DTYPE_F16;
    const unsigned odd = i / 48 % 5;
    struct scan_case c = direct_case(0, length, columns + (odd == 1));
    c.rule = rule_of(pass_lists[i / 2 % COUNT(pass_lists)], i / 4 % 2 ? EXCLUSIVE : INCLUSIVE,
                     i / 12 % 2 ? SCAND_ACCUMULATOR_F64 : SCAND_ACCUMULATOR_F32, i / 24 % 2 ? D64 : D32,
                     i % 7 == 6 ? SCAND_DTYPE_F16 : input);
    c.rule.input = input;
    c.fill = (enum fill)(i % FILL_COUNT);
    c.input.axis_gap = odd == 2 ? 2 : i % 3 * 16;
    c.output.axis_gap = odd == 3 ? 2 : i / 3 % 3 * 16;
    c.input.offset = odd == 4 ? 2 : 0;
    c.in_place = false;
    return c;
}

/* Returns the i-th case of affine with one coefficient. */
static struct scan_case direct_affine_case(unsigned i, uint64_t length, uint64_t columns)
{
    struct scan_case c = direct_case(i, length, columns);
    c.rule.op = SCAND_OPERATOR_AFFINE;
    c.rule.kind = i / 2 % 2 ? INCLUSIVE : EXCLUSIVE;
    c.rule.coefficients = c.rule.input;
    c.rule.coefficient = codec_is_integer(c.rule.input) ? (i % 2 ? 3 : -2) : i % 2 ? -0.998 : 1.0009765625;
    return c;
}

/* Columns of every dtype in some rules, around leaves, tiles, order blocks and groups of these. */
static void direct_columns(const struct group *group)
{
    static const uint64_t list[][2] = {{2, 33}, {17, 40}, {500, 67}, {513, 31}, {1500, 37}, {17000, 18}};
    for (unsigned i = 0; i < 6 * SCAND_DTYPE_COUNT; i++) {
        struct scan_case c = direct_case(i, list[i % 5][0], list[i % 5][1]);
        check_some(group, &c);
    }
    for (unsigned i = 0; i < 2 * SCAND_DTYPE_COUNT; i++) {
        struct scan_case c = direct_case(i, list[5][0], list[5][1]);
        check_some(group, &c);
    }
    /* Even numbers of columns, at pitches that keep pairs aligned, or do not. */
    static const uint64_t even[][2] = {{15, 34}, {530, 32}, {1500, 38}, {17000, 18}};
    for (unsigned i = 0; i < 4 * SCAND_DTYPE_COUNT; i++) {
        struct scan_case c = direct_case(i, even[i % 4][0], even[i % 4][1]);
        const enum scand_dtype input = c.rule.input;
        if (codec_bytes(input) == 2 && i / 2 % 2)
            c.rule.output = SCAND_DTYPE_F32;
        c.in_place = c.in_place && c.rule.output == input;
        c.input.axis_gap = (int64_t)(i / 4 % 3) * (int64_t)codec_bytes(input);
        c.output.axis_gap = i / 12 % 2 * 2 * (int64_t)codec_bytes(c.rule.output);
        check_some(group, &c);
    }
    static const uint64_t moved[][2] = {{530, 72}, {15, 136}, {1500, 40}, {17000, 24}, {512, 64}};
    for (unsigned i = 0; i < 240; i++) {
        struct scan_case c = moved_case(i, moved[i % 5][0], moved[i % 5][1]);
        check_some(group, &c);
    }
    /* Of every kind, without their means, which a kind must not change. */
    for (unsigned i = 0; i < 6 * SCAND_KIND_COUNT; i++) {
        struct scan_case c = direct_case(0, list[i % 6][0], list[i % 6][1]);
        const enum scand_accumulator accumulator = accumulators[i % COUNT(accumulators)];
        c.rule = rule_of(pass_lists[i % COUNT(pass_lists)], (enum scand_kind)(i / 6), accumulator, D32, D32);
        c.rule.input = i % 2 && accumulator != F32 ? D64 : D32;
        c.rule.demean = true;
        check_some(group, &c);
    }
    for (unsigned i = 1; i < 5; i++) {
        struct scan_case c = direct_case(i, 32 * 16384 + 530, 5), affine = direct_affine_case(i, 32 * 16384 + 530, 5);
        check_some(group, &c);
        check_some(group, &affine);
    }
    for (unsigned i = 0; i < 6 * SCAND_DTYPE_COUNT; i++) {
        struct scan_case c = direct_affine_case(i, list[i % 6][0], list[i % 6][1]);
        check_some(group, &c);
    }
}

/* The least that these kernels are for, for tools that slow a program down a hundredfold. */
static void few_many_columns(const struct group *group)
{
    struct scan_case walk = many_case(1, 529), boxes = boxed_case(1, "b", SCAND_ACCUMULATOR_F32, 529, 4480);
    struct scan_case short_boxes = short_boxed_case(1, "b", SCAND_ACCUMULATOR_F32, 529, 4480);
    check(group, &walk);
    check(group, &boxes);
    check(group, &short_boxes);
    for (unsigned i = 0; i < SCAND_DTYPE_COUNT; i++) {
        const uint64_t length = i % 4 ? 530 : 17000, columns = i % 4 ? 31 : 5;
        struct scan_case direct = direct_case(i, length, columns), affine = direct_affine_case(i, length, columns);
        struct scan_case pairs = direct_case(i, 530, 34), moved = moved_case(5 * i, 530, 72);
        check(group, &direct);
        check(group, &affine);
        check(group, &pairs);
        check(group, &moved);
    }
}

SUITE(cuda, many_columns)
SUITE(cuda, long_columns)
SUITE(cuda, boxed_columns)
SUITE(cuda, more_boxed_columns)
SUITE(paths, many_columns)
SUITE(paths, boxed_columns)
SUITE(paths, more_boxed_columns)
SUITE(cuda, direct_columns)
SUITE(paths, direct_columns)
SUITE(cpu, direct_columns)
SUITE(cuda, few_many_columns)

static const struct test tests[] = {
    TEST(cuda_many_columns),     TEST(cuda_long_columns),    TEST(cuda_boxed_columns),  TEST(cuda_more_boxed_columns),
    TEST(cuda_few_many_columns), TEST(paths_many_columns),   TEST(paths_boxed_columns), TEST(paths_more_boxed_columns),
    TEST(cuda_direct_columns),   TEST(paths_direct_columns), TEST(cpu_direct_columns),  TEST_END};

int main(int argc, char **argv)
{
    seed = random_seed();
    return test_main(argc, argv, tests);
}
