/*
 * Reductions by every implementation against the reference, bit by bit; the reference against sums that are exact.
 */
#include <float.h>
#include <math.h>

#include "kernels/order1/dtypes.h"
#include "kernels/order1/reduce.h"
#include "tests/kernels/suite.h"

#define FOR_EACH_REDUCTION(R) for (enum scand_reduction R = SCAND_REDUCTION_SUM; R < SCAND_REDUCTION_COUNT; R++)

static const struct layout layout_list[] = {
    {.name = "packed"},
    {.name = "word on", .offset = 4},
    {.name = "byte on", .offset = 1},
    {.name = "headers", .axis_gap = 240},
    {.name = "gaps", .element_gap = 3},
    {.name = "wide gaps", .element_gap = 12, .axis_gap = 8},
    {.name = "columns first", .columns_first = true},
    {.name = "columns, headers", .columns_first = true, .axis_gap = 20, .offset = 8},
    {.name = "backwards", .negative = 3},
};

/* Integers have no mean, rms and norm. */
static bool reduces(enum scand_reduction reduction, enum scand_dtype input)
{
    return !codec_is_integer(input) || reduction <= SCAND_REDUCTION_MAX;
}

static struct scan_case case_of(uint64_t rows, uint64_t length, enum scand_reduction reduction, enum scand_dtype input,
                                enum scand_dtype output)
{
    return (struct scan_case){
        .rule = reduce_rule(reduction, input, output), .rank = 2, .axis = 1, .shape = {rows, length}};
}

/* Every length around the sizes of the tree's groups. */
static void lengths(const struct group *group)
{
    static const uint64_t list[] = {0,    1,    2,    3,     15,    16,    17,    31,    32,    33,   48,
                                    255,  256,  257,  496,   511,   512,   513,   528,   1000,  1023, 1024,
                                    1025, 2000, 9999, 10000, 10007, 16383, 16384, 16385, 16897, 32768};
    for (size_t i = 0; i < COUNT(list); i++)
        FOR_EACH_REDUCTION(reduction)
        {
            struct scan_case c =
                case_of(3, list[i], reduction, SCAND_DTYPE_F32, i % 2 ? SCAND_DTYPE_F32 : SCAND_DTYPE_F64);
            c.fill = (enum fill)((i + reduction) % FILL_COUNT);
            check(group, &c);
        }
}

/* Many short rows, one right after the other, beginning at every sample of 16 bytes: several rows share a warp. */
static void short_rows(const struct group *group)
{
    static const enum scand_dtype others[] = {SCAND_DTYPE_F64, SCAND_DTYPE_I32, SCAND_DTYPE_F16, SCAND_DTYPE_U64,
                                              SCAND_DTYPE_I16BE};
    for (uint64_t length = 1; length <= 520; length += length < 70 ? 1 : 17)
        FOR_EACH_REDUCTION(reduction)
        {
            const enum scand_dtype types[] = {SCAND_DTYPE_F32, others[(length + reduction) % COUNT(others)]};
            for (int i = 0; i < 2; i++) {
                enum scand_dtype output = codec_is_integer(types[i]) ? SCAND_DTYPE_I64 : SCAND_DTYPE_F64;
                struct scan_case c = case_of(1 + 5000 / length, length, reduction, types[i], output);
                c.input.offset = (unsigned)(length + reduction) % 4 * codec_bytes(types[i]);
                c.fill = (enum fill)((length + reduction) % FILL_COUNT);
                c.first = length % 3;
                c.count = c.shape[0] - c.first;
                if (reduces(reduction, types[i]))
                    check_some(group, &c);
            }
        }
}

/* Rows of several levels above a block, in types that kernels take apart. */
static void long_rows(const struct group *group)
{
    static const uint64_t list[] = {16384 * 3 + 5, 16384 * 32 - 1, 16384 * 32, 16384 * 32 + 17, 16384 * 33 + 1};
    static const enum scand_dtype types[] = {SCAND_DTYPE_F32, SCAND_DTYPE_F64, SCAND_DTYPE_I32, SCAND_DTYPE_IBM32};
    for (size_t i = 0; i < COUNT(list); i++)
        FOR_EACH_REDUCTION(reduction)
        {
            enum scand_dtype input = types[(i + reduction) % COUNT(types)];
            struct scan_case c = case_of(1 + i % 2, list[i], reduction, input,
                                         codec_is_integer(input) ? SCAND_DTYPE_I64 : SCAND_DTYPE_F64);
            c.fill = reduction % 2 ? FILL_NOISE : FILL_SPECIALS;
            if (reduces(reduction, input))
                check(group, &c);
        }
}

/* Rows of so many blocks that results take more than one thread block. */
static void longest_rows(const struct group *group)
{
    static const enum scand_dtype types[] = {SCAND_DTYPE_F32, SCAND_DTYPE_I32, SCAND_DTYPE_F16};
    FOR_EACH_REDUCTION(reduction)
    {
        enum scand_dtype input = types[reduction % COUNT(types)];
        struct scan_case c = case_of(1 + reduction % 2, (UINT64_C(1) << 24) + 33 * 16384 * reduction + 1, reduction,
                                     input, codec_is_integer(input) ? SCAND_DTYPE_I64 : SCAND_DTYPE_F64);
        if (reduces(reduction, input))
            check(group, &c);
    }
}

/* More rows than a launch has warps. */
static void many_rows(const struct group *group)
{
    static const uint64_t list[] = {1, 17, 64, 600};
    for (size_t i = 0; i < COUNT(list); i++) {
        struct scan_case c = case_of(9001 + 11 * i, list[i], (enum scand_reduction)(1 + i % 6), SCAND_DTYPE_F32,
                                     i % 2 ? SCAND_DTYPE_F32 : SCAND_DTYPE_F64);
        check(group, &c);
    }
}

/* Every dtype into every other that it may be written as. */
static void dtypes(const struct group *group)
{
    static const uint64_t length_list[] = {0, 1, 16, 33, 530, 1537, 16390};
    for (enum scand_dtype input = 0; input < SCAND_DTYPE_COUNT; input++)
        for (enum scand_dtype output = 0; output < SCAND_DTYPE_COUNT; output++)
            FOR_EACH_REDUCTION(reduction)
            {
                for (size_t i = 0; i < COUNT(length_list); i++) {
                    struct scan_case c = case_of(3, length_list[i], reduction, input, output);
                    c.fill = (enum fill)((i + output + reduction) % FILL_COUNT);
                    if (writes(input, output) && reduces(reduction, input))
                        check_some(group, &c);
                }
            }
}

/* Rows of differing lengths, empty ones first and last, and then none but those. */
static void ragged(const struct group *group)
{
    static const uint64_t list[] = {0, 1, 16, 40, 511, 0, 513, 700, 20, 16383, 16385, 3000, 33 * 16384 + 77, 16, 0};
    static const enum scand_dtype types[] = {SCAND_DTYPE_F32, SCAND_DTYPE_F64, SCAND_DTYPE_I32, SCAND_DTYPE_BF16};
    static uint64_t offsets[COUNT(list) + 1] = {5}, nothing[COUNT(list) + 1];
    for (size_t i = 0; i < COUNT(list); i++)
        offsets[i + 1] = offsets[i] + list[i];
    for (size_t t = 0; t < COUNT(types); t++)
        FOR_EACH_REDUCTION(reduction)
        {
            enum scand_dtype output = codec_is_integer(types[t]) ? SCAND_DTYPE_I64 : SCAND_DTYPE_F32;
            struct scan_case c = {.rule = reduce_rule(reduction, types[t], output),
                                  .rank = 1,
                                  .shape = {offsets[COUNT(list)] + 3},
                                  .offsets = offsets,
                                  .row_count = COUNT(list),
                                  .fill = (enum fill)((t + reduction) % FILL_COUNT),
                                  .input = layout_list[(t + reduction) % COUNT(layout_list)],
                                  .output = layout_list[(2 * t + reduction) % COUNT(layout_list)]};
            if (!reduces(reduction, types[t]))
                continue;
            check(group, &c);
            c.first = 2;
            c.count = 8;
            check(group, &c);
            c.offsets = nothing;
            check(group, &c);
        }
}

/* Input and output each in a layout of its own, along every axis. */
static void layouts(const struct group *group)
{
    static const uint64_t shapes[][SCAND_RANK_MAX] = {{1033}, {35, 37}, {5, 34, 18}, {3, 19, 2, 33}};
    static const enum scand_dtype types[] = {SCAND_DTYPE_F32, SCAND_DTYPE_F64, SCAND_DTYPE_U32, SCAND_DTYPE_BF16,
                                             SCAND_DTYPE_F32BE};
    for (unsigned i = 0; i < COUNT(layout_list); i++)
        for (uint32_t rank = 1; rank <= SCAND_RANK_MAX; rank++)
            for (uint32_t axis = 0; axis < rank; axis++)
                for (unsigned t = 0; t < COUNT(types); t++) {
                    enum scand_reduction reduction = (enum scand_reduction)(1 + (i + t + axis) % 3);
                    struct scan_case c = case_of(1, 1, reduction, types[t], types[t]);
                    c.rank = rank;
                    c.axis = axis;
                    c.fill = FILL_STEPS;
                    c.input = layout_list[i];
                    c.output = layout_list[(i + rank + axis) % COUNT(layout_list)];
                    memcpy(c.shape, shapes[rank - 1], sizeof(c.shape));
                    if (reduces(reduction, types[t]))
                        check_some(group, &c);
                }
}

/* Squares beyond the range of f64, at the borders of leaves, tiles and blocks, in rows, columns and ragged rows. */
static void squares(const struct group *group)
{
    static const uint64_t list[] = {1,   15,  16,   17,    31,    33,    100,           511,
                                    512, 513, 1025, 10007, 16384, 16385, 16384 * 33 + 5};
    for (size_t i = 0; i < COUNT(list); i++)
        for (enum fill fill = FILL_COUNT; fill < FILL_END; fill++)
            for (enum scand_reduction op = SCAND_REDUCTION_RMS; op <= SCAND_REDUCTION_NORM; op++) {
                uint64_t rows = 1 + 4000 / list[i];
                struct scan_case c = case_of(rows, list[i], op, SCAND_DTYPE_F64, SCAND_DTYPE_F64);
                uint64_t offsets[] = {3, 3 + list[i], 3 + list[i], 4 + list[i], 4 + 2 * list[i]};
                struct scan_case ragged = c;
                c.fill = ragged.fill = fill;
                check_some(group, &c);
                c.input = layout_list[(i + fill) % COUNT(layout_list)];
                check_some(group, &c);
                ragged.rank = 1;
                ragged.axis = 0;
                ragged.shape[0] = offsets[4];
                ragged.offsets = offsets;
                ragged.row_count = 4;
                check_some(group, &ragged);
            }
}

/* A few of each, for tools that take a thousand times as long. */
static void small(const struct group *group)
{
    static const uint64_t list[] = {0, 1, 17, 64, 700, 20000};
    for (size_t i = 0; i < COUNT(list); i++)
        FOR_EACH_REDUCTION(reduction)
        {
            static const enum scand_dtype types[] = {SCAND_DTYPE_F32, SCAND_DTYPE_I64, SCAND_DTYPE_I32BE,
                                                     SCAND_DTYPE_F16, SCAND_DTYPE_F64};
            enum scand_dtype input = types[(i + reduction) % COUNT(types)];
            if (!reduces(reduction, input))
                input = SCAND_DTYPE_F32;
            struct scan_case c = case_of(i < 4 ? 40 : 2, list[i], reduction, input,
                                         codec_is_integer(input) ? SCAND_DTYPE_I64 : SCAND_DTYPE_F64);
            c.input = layout_list[(i + reduction) % COUNT(layout_list)];
            check(group, &c);
        }
}

/* The reference: what can be known without it. */

static double reference_of(enum scand_reduction reduction, const float *samples, uint64_t length)
{
    double result = 12345;
    struct scan_rows rows = {.rule = reduce_rule(reduction, SCAND_DTYPE_F32, SCAND_DTYPE_F64),
                             .length = length,
                             .row_count = 1,
                             .input_stride = sizeof(float),
                             .input = samples,
                             .output = &result};
    CHECK_EQ(scan_reference(&rows, 0, 1), 0);
    return result;
}

static void reference_values(void)
{
    static float samples[20000];
    for (int i = 0; i < 20000; i++)
        samples[i] = (float)(i % 7 - 2); /* sums and sums of squares are exact in any order */
    CHECK(reference_of(SCAND_REDUCTION_SUM, samples, 7) == 7);
    CHECK(reference_of(SCAND_REDUCTION_MIN, samples, 20000) == -2);
    CHECK(reference_of(SCAND_REDUCTION_MAX, samples, 20000) == 4);
    CHECK(reference_of(SCAND_REDUCTION_SUM, samples, 19999) == 19999);
    CHECK(reference_of(SCAND_REDUCTION_MEAN, samples, 19999) == 1);
    CHECK(reference_of(SCAND_REDUCTION_RMS, samples, 7) == sqrt(5));
    CHECK(reference_of(SCAND_REDUCTION_NORM, samples, 7) == sqrt(35));
    samples[3] = NAN;
    FOR_EACH_REDUCTION(reduction)
    CHECK(isnan(reference_of(reduction, samples, 100)));
}

static void reference_nothing(void)
{
    CHECK(reference_of(SCAND_REDUCTION_SUM, NULL, 0) == 0);
    CHECK(reference_of(SCAND_REDUCTION_MIN, NULL, 0) == (double)INFINITY);
    CHECK(reference_of(SCAND_REDUCTION_MAX, NULL, 0) == -(double)INFINITY);
    CHECK(isnan(reference_of(SCAND_REDUCTION_MEAN, NULL, 0)));
    CHECK(isnan(reference_of(SCAND_REDUCTION_RMS, NULL, 0)));
    CHECK(reference_of(SCAND_REDUCTION_NORM, NULL, 0) == 0);
}

static double reference_f64(enum scand_reduction reduction, const double *samples, uint64_t length)
{
    double result = 12345;
    struct scan_rows rows = {.rule = reduce_rule(reduction, SCAND_DTYPE_F64, SCAND_DTYPE_F64),
                             .length = length,
                             .row_count = 1,
                             .input_stride = sizeof(double),
                             .input = samples,
                             .output = &result};
    CHECK_EQ(scan_reference(&rows, 0, 1), 0);
    return result;
}

/* The reference's results for any finite samples, compared with a type of wider range. */
static void reference_range(void)
{
    static double samples[20000];
    uint64_t random = seed;
    if (LDBL_MAX_EXP <= 4 * DBL_MAX_EXP)
        SKIP("long double has no wider range here");
    for (int times = 0; times < 3000; times++) {
        const uint64_t length = 1 + random_next(&random) % (times % 100 ? 600 : COUNT(samples));
        const int from = (int)(random_next(&random) % 2098) - 1074, width = 1 + (int)(random_next(&random) % 300);
        long double total = 0;
        for (uint64_t i = 0; i < length; i++) {
            int exponent = from + (int)(random_next(&random) % (unsigned)width);
            samples[i] = ldexp((double)random_next(&random) * 0x1p-64, exponent < 1024 ? exponent : 1024);
            total += (long double)samples[i] * samples[i];
        }
        const long double norm = sqrtl(total), rms = sqrtl(total / length), least = 0x1p-1074L;
        const double got_norm = reference_f64(SCAND_REDUCTION_NORM, samples, length);
        CHECK(fabsl(reference_f64(SCAND_REDUCTION_RMS, samples, length) - rms) <= rms * 0x1p-47L + least);
        CHECK(norm > DBL_MAX ? got_norm >= DBL_MAX : fabsl(got_norm - norm) <= norm * 0x1p-47L + least);
    }
}

static void reference_ends(void)
{
    const double huge[] = {DBL_MAX, 0, 5e-324, -1}, tiny[] = {3e-320, 4e-320, 0}, infinite[] = {1, -INFINITY, 1e300};
    const double usual[] = {3, 4e-200, 4, -1e-300}, nan[] = {INFINITY, NAN, 1e300};
    CHECK(reference_f64(SCAND_REDUCTION_NORM, huge, 4) == DBL_MAX);
    CHECK(reference_f64(SCAND_REDUCTION_RMS, huge, 4) == DBL_MAX / 2);
    CHECK(reference_f64(SCAND_REDUCTION_NORM, tiny, 3) == 5e-320);
    CHECK(reference_f64(SCAND_REDUCTION_NORM, usual, 4) == 5);
    CHECK(reference_f64(SCAND_REDUCTION_NORM, infinite, 3) == (double)INFINITY);
    CHECK(isnan(reference_f64(SCAND_REDUCTION_NORM, nan, 3)));
}

static double serial_sum(const float *samples, int count)
{
    double sum = (double)samples[0];
    for (int i = 1; i < count; i++)
        sum += (double)samples[i];
    return sum;
}

/* The association: leaves one by one, then the last prefix of the network. */
static void reference_order(void)
{
    float samples[16 * 5 - 3];
    uint64_t random = seed;
    for (int times = 0; times < 100; times++) {
        fill_samples(FILL_EXPONENTS, &random, samples, COUNT(samples));
        double a = serial_sum(samples, 16), b = serial_sum(samples + 16, 16), c = serial_sum(samples + 32, 16);
        double d = serial_sum(samples + 48, 16), e = serial_sum(samples + 64, 13);
        CHECK(reference_of(SCAND_REDUCTION_SUM, samples, 13) == serial_sum(samples, 13));
        CHECK(reference_of(SCAND_REDUCTION_SUM, samples, 48) == a + (b + c));
        CHECK(reference_of(SCAND_REDUCTION_SUM, samples, 77) == a + ((b + c) + (d + e)));
        CHECK(reference_of(SCAND_REDUCTION_MEAN, samples, 77) == (a + ((b + c) + (d + e))) / 77);
    }
}

#define SUITES(NAME)        \
    SUITE(NAME, lengths)    \
    SUITE(NAME, short_rows) \
    SUITE(NAME, long_rows)  \
    SUITE(NAME, many_rows)  \
    SUITE(NAME, dtypes)     \
    SUITE(NAME, layouts)    \
    SUITE(NAME, ragged)     \
    SUITE(NAME, squares)    \
    SUITE(NAME, small)
#define TESTS(NAME)                                                                                \
    TEST(NAME##_lengths), TEST(NAME##_short_rows), TEST(NAME##_long_rows), TEST(NAME##_many_rows), \
        TEST(NAME##_dtypes), TEST(NAME##_layouts), TEST(NAME##_ragged), TEST(NAME##_squares), TEST(NAME##_small),
#define IMPLEMENTATIONS(X) X(cpu) X(cuda) X(paths) X(together)

IMPLEMENTATIONS(SUITES)
SUITE(cuda, longest_rows)

/* Long rows a few blocks at a time. */
#define BY_RANGES(SUITE)                       \
    static void cuda_##SUITE##_by_ranges(void) \
    {                                          \
        suite_run("ranges", SUITE);            \
    }
BY_RANGES(long_rows)
BY_RANGES(longest_rows)
BY_RANGES(dtypes)
BY_RANGES(layouts)
BY_RANGES(ragged)
BY_RANGES(squares)

static const struct test tests[] = {TEST(reference_values),
                                    TEST(reference_nothing),
                                    TEST(reference_order),
                                    TEST(reference_range),
                                    TEST(reference_ends),
                                    IMPLEMENTATIONS(TESTS) TEST(cuda_longest_rows),
                                    TEST(cuda_long_rows_by_ranges),
                                    TEST(cuda_longest_rows_by_ranges),
                                    TEST(cuda_dtypes_by_ranges),
                                    TEST(cuda_layouts_by_ranges),
                                    TEST(cuda_ragged_by_ranges),
                                    TEST(cuda_squares_by_ranges),
                                    TEST_END};

int main(int argc, char **argv)
{
    seed = random_seed();
    return test_main(argc, argv, tests);
}
