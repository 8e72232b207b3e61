/*
 * Rows of several order blocks that a thread block cluster takes (cuda/kernels/cluster_per_row.cuh, any_cluster.cuh),
 * against the reference, bit by bit: around its borders, and so many that clusters take several. Other implementations
 * have them in test_kernels.
 */
#include "tests/kernels/rules.h"
#include "tests/kernels/suite.h"

/* More than twice as many clusters as a processor of 132 has. */
#define MANY (2 * 3 * 66 + 1)

/* The i-th case of rows of a length: of any passes, kind, accumulator and place, some of them after headers. */
static struct scan_case cluster_case(unsigned i, uint64_t rows, uint64_t length)
{
    static const enum fill fills[] = {FILL_NOISE, FILL_SPECIALS, FILL_NOISE, FILL_ZEROS, FILL_INFINITIES};
    struct scan_case c = {
        .rule = rule_of(pass_lists[i % COUNT(pass_lists)], i / 2 % 2 ? SCAND_KIND_EXCLUSIVE : SCAND_KIND_INCLUSIVE,
                        (enum scand_accumulator)(SCAND_ACCUMULATOR_F32 + i / 3 % 3),
                        i % 5 == 4 ? SCAND_DTYPE_F64 : SCAND_DTYPE_F32, SCAND_DTYPE_F32),
        .rank = 2,
        .axis = 1,
        .shape = {rows, length},
        .input = {.name = "rows", .offset = i % 4 * 4, .axis_gap = i % 3 * 4},
        .output = {.name = "rows", .offset = i / 2 % 4 * 4, .axis_gap = i / 3 % 2 * 240},
        .in_place = i % 7 == 3,
        .fill = fills[i % COUNT(fills)],
        .first = i % 2 && rows > 1,
    };
    c.input.negative = i % 8 == 5;
    if (i % 6 == 4)
        c.rule.output = SCAND_DTYPE_IBM32;
    if (i % 6 == 5)
        c.rule.input = SCAND_DTYPE_F32BE;
    return c;
}

/* The same of any rule, into its dtype or the widest of its kind. */
static struct scan_case any_cluster_case(unsigned i, uint64_t rows, uint64_t length)
{
    static const enum scand_dtype dtypes[] = {SCAND_DTYPE_F64,   SCAND_DTYPE_F16, SCAND_DTYPE_I32,  SCAND_DTYPE_F32,
                                              SCAND_DTYPE_I64,   SCAND_DTYPE_U32, SCAND_DTYPE_BF16, SCAND_DTYPE_I16,
                                              SCAND_DTYPE_F64BE, SCAND_DTYPE_U64, SCAND_DTYPE_I32BE};
    struct scan_case c = cluster_case(i, rows, length);
    const enum scand_dtype input = dtypes[i % COUNT(dtypes)],
                           widest = codec_is_integer(input) ? SCAND_DTYPE_I64 : SCAND_DTYPE_F64,
                           output = i % 4 == 1 ? widest : input;
    c.rule = typed_rule(i, input, output);
    c.input.offset = i % 4 * codec_bytes(input);
    c.input.axis_gap = i % 3 * codec_bytes(input);
    c.output.offset = i / 2 % 4 * codec_bytes(output);
    c.in_place = c.in_place && input == output;
    return c;
}

/* The same of affine: of four, one with integers or f64 samples, and one with a coefficient for each sample. */
static struct scan_case affine_cluster_case(unsigned i, uint64_t rows, uint64_t length)
{
    static const double coefficients[] = {0.998, -1.0009765625, 0, 1e-30};
    const unsigned turn = i / 5;
    struct scan_case c = turn % 4 == 3 ? any_cluster_case(i, rows, length) : cluster_case(i, rows, length);
    if (c.rule.kind != SCAND_KIND_EXCLUSIVE)
        c.rule.kind = SCAND_KIND_INCLUSIVE;
    c.rule.op = SCAND_OPERATOR_AFFINE;
    c.rule.demean = false;
    c.rule.coefficients = c.rule.input;
    c.rule.coefficient = codec_is_integer(c.rule.input) ? 3 : coefficients[i % COUNT(coefficients)];
    c.has_coefficients = turn % 4 == 2;
    c.coefficients = (struct layout){.name = "rows", .offset = i % 3 * codec_bytes(c.rule.input)};
    c.coefficient_fill = i % 7 == 0 ? FILL_ENDS : FILL_NEAR_ONE;
    return c;
}

/* Checks a few rows of each length, so many times, each time as another case. */
static void check_lengths(const struct group *group, unsigned times, const uint64_t *lengths, unsigned count,
                          struct scan_case (*make)(unsigned i, uint64_t rows, uint64_t length))
{
    for (unsigned i = 0; i < times * count; i++) {
        struct scan_case c = make(i + i / count, 1 + i % 3, lengths[i % count]);
        check(group, &c);
    }
}

/* Lengths around the end of the last leaf, tile, thread block or order block, and around lengths where clusters of
 * another size begin. */
static const uint64_t cluster_lengths[] = {16385, 16401, 16896, 16897, 28672, 28673, 32768,  32769,  49153,  57001,
                                           57344, 61440, 65519, 65537, 98305, 99999, 131073, 163841, 200001, 262144};
static const uint64_t any_cluster_lengths[] = {16385, 16401, 16896,  16897,  20481,  32769,  49153, 57001,
                                               81921, 99999, 131073, 163840, 163841, 245761, 262144};

static void cluster_borders(const struct group *group)
{
    check_lengths(group, 6, cluster_lengths, COUNT(cluster_lengths), cluster_case);
}

static void cluster_turns(const struct group *group)
{
    static const uint64_t list[] = {16385, 20001, 33000, 57001};
    for (unsigned i = 0; i < 3 * COUNT(list); i++) {
        struct scan_case c = cluster_case(i * 5, MANY, list[i % COUNT(list)]);
        check(group, &c);
    }
}

static void any_cluster_borders(const struct group *group)
{
    check_lengths(group, 8, any_cluster_lengths, COUNT(any_cluster_lengths), any_cluster_case);
}

static void any_cluster_turns(const struct group *group)
{
    static const uint64_t list[] = {16385, 33000, 57001};
    for (unsigned i = 0; i < 3 * COUNT(list); i++) {
        struct scan_case c = any_cluster_case(i * 5, MANY, list[i % COUNT(list)]);
        check(group, &c);
    }
}

static void affine_cluster_borders(const struct group *group)
{
    check_lengths(group, 10, any_cluster_lengths, COUNT(any_cluster_lengths), affine_cluster_case);
}

static void affine_cluster_turns(const struct group *group)
{
    static const uint64_t list[] = {16385, 33000, 57001};
    for (unsigned i = 0; i < 2 * COUNT(list); i++) {
        struct scan_case c = affine_cluster_case(i * 5 + i / 3, MANY, list[i % COUNT(list)]);
        check(group, &c);
    }
}

/* Rules of any_grid: without means, and without f2. */
static struct scan_case any_grid_case(unsigned i, uint64_t rows, uint64_t length)
{
    struct scan_case c = any_cluster_case(i, rows, length);
    c.rule.demean = false;
    if (c.rule.accumulator == SCAND_ACCUMULATOR_F2)
        c.rule.accumulator = SCAND_ACCUMULATOR_F64;
    return c;
}

/* Rows that no cluster holds, of up to 32 order blocks and of more. */
static void any_grid_borders(const struct group *group)
{
    static const uint64_t list[] = {131073, 163841, 262143, 262145, 278528, 278529,
                                    300001, 524288, 524289, 540690, 900000};
    check_lengths(group, 6, list, COUNT(list), any_grid_case);
}

/* So many that clusters take several order blocks, and wait for those of rows before. */
static void any_grid_turns(const struct group *group)
{
    static const uint64_t list[][2] = {{49, 270001}, {25, 300001}, {13, 900000}, {4, 2000003}};
    for (unsigned i = 0; i < 3 * COUNT(list); i++) {
        struct scan_case c = any_grid_case(i * 5 + 1, list[i % COUNT(list)][0], list[i % COUNT(list)][1]);
        check(group, &c);
    }
}

/* Order blocks that are not resident together: two passes take another path, one pass in either direction does not. */
static void any_grid_longest(const struct group *group)
{
    static const uint64_t list[] = {3500000, 17000001};
    for (unsigned i = 0; i < 6 * COUNT(list); i++) {
        struct scan_case c = any_grid_case(i, 1, list[i / 6]);
        check(group, &c);
    }
}

/* Few cases, for tools that slow a program down a hundredfold. */
static void few_clusters(const struct group *group)
{
    for (unsigned i = 0; i < 3; i++) {
        struct scan_case c = cluster_case(i * 3, 2, 16901 + i * 16000);
        check(group, &c);
    }
    for (unsigned i = 0; i < 5; i++) {
        struct scan_case c = any_cluster_case(i * 3, 2, 16901 + i * 8000);
        check(group, &c);
    }
    for (unsigned i = 0; i < 6; i++) {
        struct scan_case c = affine_cluster_case(i * 4, 2, 16901 + i * 8000),
                         longer = any_grid_case(i * 3, 1 + i % 2 * 12, 262145 + i * 8000);
        check(group, &c);
        check(group, &longer);
    }
}

SUITE(cuda, cluster_borders)
SUITE(cuda, cluster_turns)
SUITE(cuda, any_cluster_borders)
SUITE(cuda, any_cluster_turns)
SUITE(cuda, affine_cluster_borders)
SUITE(cuda, affine_cluster_turns)
SUITE(cuda, any_grid_borders)
SUITE(cuda, any_grid_turns)
SUITE(cuda, any_grid_longest)
SUITE(cuda, few_clusters)
SUITE(paths, cluster_borders)
SUITE(paths, any_cluster_borders)
SUITE(paths, affine_cluster_borders)
SUITE(paths, any_grid_borders)
SUITE(paths, any_grid_longest)
SUITE(capability, cluster_borders)

static const struct test tests[] = {TEST(cuda_cluster_borders),
                                    TEST(cuda_cluster_turns),
                                    TEST(cuda_any_cluster_borders),
                                    TEST(cuda_any_cluster_turns),
                                    TEST(cuda_few_clusters),
                                    TEST(paths_cluster_borders),
                                    TEST(paths_any_cluster_borders),
                                    TEST(cuda_affine_cluster_borders),
                                    TEST(cuda_affine_cluster_turns),
                                    TEST(paths_affine_cluster_borders),
                                    TEST(capability_cluster_borders),
                                    TEST(cuda_any_grid_borders),
                                    TEST(cuda_any_grid_turns),
                                    TEST(cuda_any_grid_longest),
                                    TEST(paths_any_grid_borders),
                                    TEST(paths_any_grid_longest),
                                    TEST_END};

int main(int argc, char **argv)
{
    seed = random_seed();
    return test_main(argc, argv, tests);
}
