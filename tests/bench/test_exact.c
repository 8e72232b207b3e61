/* The exact sums that the benchmarks compare with: against cases whose results are known without them. */
#include <errno.h>
#include <math.h>

#include "tests/bench/exact.h"
#include "tests/check.h"

/* Rows in memory, as many as asked for. */
struct array {
    struct exact_source source;
    const double *samples;
    uint64_t length;
};

static const double *array_read(struct exact_source *source, uint64_t row, uint64_t first, uint64_t count)
{
    const struct array *array = (const struct array *)source;
    return first + count <= array->length ? array->samples + row * array->length + first : NULL;
}

static const struct scan_rule both = {.passes = {SCAND_PASS_FORWARD, SCAND_PASS_BACKWARD}, .pass_count = 2};

static struct exact_result compare(const struct scan_rule *rule, uint64_t rows, uint64_t length, const double *in,
                                   const double *out)
{
    struct array input = {{array_read}, in, length}, output = {{array_read}, out, length};
    const struct exact_sides sides = {&input.source, &output.source};
    struct exact_result result = {0};
    CHECK_EQ(exact_compare(rule, rows, length, &sides, 1, &result), 0);
    CHECK_EQ(result.checked, rows * length);
    return result;
}

static void sums_that_are_right(void)
{
    static const double in[] = {1, 0.5, -0.25, 0x1p-62, 1, 1, 1, -1}, forward[] = {1, 1.5, 1.25, 1.25, 1, 2, 3, 2},
                        twice[] = {5, 4, 2.5, 1.25, 8, 7, 5, 2};
    const struct scan_rule one = {.passes = {SCAND_PASS_FORWARD}, .pass_count = 1};
    struct exact_result result = compare(&one, 2, 4, in, forward);
    CHECK_EQ(result.rounded, 8);
    CHECK(result.worst_ulps == 0x1p-62 * 0x1p23); /* what rounding 1.25 + 2^-62 to f32 loses */
    result = compare(&both, 2, 4, in, twice);
    CHECK_EQ(result.rounded, 8);
    CHECK(result.worst_ulps == 0); /* that is lost between the passes, and not held against the second */
}

static void sums_that_are_wrong(void)
{
    static const double in[] = {1, 1, 1}, out[] = {1, 2 + 0x1p-22, 3 - 0x1p-20};
    const struct scan_rule one = {.passes = {SCAND_PASS_FORWARD}, .pass_count = 1};
    struct exact_result result = compare(&one, 1, 3, in, out);
    CHECK_EQ(result.rounded, 1);
    CHECK(result.worst_ulps == 4);
    static const double not_numbers[] = {1, NAN, INFINITY};
    result = compare(&one, 1, 3, in, not_numbers);
    CHECK_EQ(result.rounded, 1);
    CHECK(result.worst_ulps == INFINITY);
}

/* Ties go to even, and a single unit decides otherwise; in f32, and in forms of fewer digits. */
static void rounding(void)
{
    const struct scan_rule one = {.passes = {SCAND_PASS_FORWARD}, .pass_count = 1};
    struct scan_rule bf16 = one, f64 = one;
    bf16.output = SCAND_DTYPE_BF16;
    f64.output = SCAND_DTYPE_F64;
    static const double in[] = {1, 0x1p-24, 0x1p-62, 1}, out[] = {1, 1, 1 + 0x1p-23, 2};
    static const double wide[] = {1, 1 + 0x1p-24, 1 + 0x1p-24, 2 + 0x1p-24};
    struct exact_result result = compare(&one, 1, 4, in, out);
    CHECK_EQ(result.rounded, 4);
    CHECK(result.worst_ulps == 0.5); /* of 1 + 2^-24 */
    CHECK_EQ(compare(&f64, 1, 4, in, wide).rounded, 4);
    static const double bf16_in[] = {1, 0x1p-8, 0x1p-20}, bf16_out[] = {1, 1, 1 + 0x1p-7};
    CHECK_EQ(compare(&bf16, 1, 3, bf16_in, bf16_out).rounded, 3);
}

/* Rows of more than a piece, both ways round: sums of ones are known. */
static void long_rows_by(unsigned threads)
{
    enum { LENGTH = (3 << 20) + 1000 };
    double *in = malloc(LENGTH * sizeof(double)), *out = malloc(LENGTH * sizeof(double));
    struct array input = {{array_read}, in, LENGTH}, output = {{array_read}, out, LENGTH};
    struct exact_result result = {0};
    const struct exact_sides side = {&input.source, &output.source}, sides[] = {side, side, side};
    struct scan_rule rule = both;
    rule.output = SCAND_DTYPE_F64;
    REQUIRE(in && out);
    for (uint64_t i = 0; i < LENGTH; i++) {
        in[i] = 1;
        out[i] = (double)((uint64_t)LENGTH * (LENGTH + 1) / 2 - i * (i + 1) / 2);
    }
    CHECK_EQ(exact_compare(&rule, 1, LENGTH, sides, threads, &result), 0);
    CHECK(result.checked > LENGTH / 18 && result.rounded == result.checked && result.worst_ulps == 0);
    rule.passes[0] = SCAND_PASS_BACKWARD;
    rule.passes[1] = SCAND_PASS_FORWARD;
    for (uint64_t i = 0; i < LENGTH / 2; i++) {
        double swapped = out[i];
        out[i] = out[LENGTH - 1 - i];
        out[LENGTH - 1 - i] = swapped;
    }
    result = (struct exact_result){0};
    CHECK_EQ(exact_compare(&rule, 1, LENGTH, sides, threads, &result), 0);
    CHECK(result.checked > LENGTH / 18 && result.rounded == result.checked && result.worst_ulps == 0);
    free(in);
    free(out);
}

static void long_rows(void)
{
    long_rows_by(1);
    long_rows_by(3);
}

static void totals(void)
{
    static const double in[] = {1, -0x1p-62, 0.5, 0.25, 0.25, 0.25}, out[] = {1.5, 0.75 + 0x1p-53};
    struct array input = {{array_read}, in, 3}, output = {{array_read}, out, 1};
    const struct exact_sides sides = {&input.source, &output.source};
    struct exact_result result = {0};
    CHECK_EQ(exact_compare_totals(2, 3, &sides, &result), 0);
    CHECK_EQ(result.checked, 2);
    CHECK_EQ(result.rounded, 1);
    CHECK(result.worst_ulps == 1);
}

static void samples_that_it_refuses(void)
{
    static const double wrong[] = {1.5, 0x1p-63, NAN};
    double out = 0;
    for (int i = 0; i < 3; i++) {
        struct array input = {{array_read}, &wrong[i], 1}, output = {{array_read}, &out, 1};
        const struct exact_sides sides = {&input.source, &output.source};
        struct exact_result result = {0};
        CHECK_EQ(exact_compare(&both, 1, 1, &sides, 1, &result), -EDOM);
        CHECK_EQ(exact_compare_totals(1, 1, &sides, &result), -EDOM);
        output.length = 0;
        CHECK_EQ(exact_compare_totals(1, 1, &sides, &result), -EIO);
    }
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {TEST(sums_that_are_right),
                                        TEST(sums_that_are_wrong),
                                        TEST(rounding),
                                        TEST(long_rows),
                                        TEST(totals),
                                        TEST(samples_that_it_refuses),
                                        TEST_END};
    return test_main(argc, argv, tests);
}
