/* Differences along rows: by hand, as what undoes running sums, as a derivative of polynomials, and all
 * implementations. */
#include "kernels/steps/diff/diff.h"
#include "tests/check.h"
#include "tests/kernels/step_case.h"

static uint64_t seed;

/* One dense row, by the reference. */
static void run(struct diff params, enum scand_dtype dtype, const void *x, uint64_t length, void *y)
{
    const int64_t stride = codec_bytes(dtype);
    const struct step_rows rows = {.row_count = 1,
                                   .input = {.origin = (char *)x, .length = length, .stride = stride, .dtype = dtype},
                                   .output = {.origin = y, .length = length, .stride = stride, .dtype = dtype}};
    const struct step_tile all = {0, 1, 0, length};
    diff_kernel.reference(&rows, &params, &all, NULL);
}

static void values_by_hand(void)
{
    const float x[5] = {2, 3, 7, 7, -1};
    float y[5];
    const float first[5] = {2, 1, 4, 0, -8}, second[5] = {2, -1, 3, -4, -8}, slope[5] = {12, 2, 22, -8, -48};
    run((struct diff){.kind = DIFF_FIRST}, SCAND_DTYPE_F32, x, 5, y);
    CHECK(memcmp(y, first, sizeof y) == 0);
    run((struct diff){.kind = DIFF_SECOND}, SCAND_DTYPE_F32, x, 5, y);
    CHECK(memcmp(y, second, sizeof y) == 0);
    run((struct diff){.kind = DIFF_DERIVATIVE, .dt = 0.25}, SCAND_DTYPE_F32, x, 5, y);
    CHECK(memcmp(y, slope, sizeof y) == 0);
}

/* The first difference of running sums that wrap, and the second one of those of these. */
static void running_sums_are_undone(void)
{
    enum { LENGTH = 500 };
    uint64_t x[LENGTH], once[LENGTH], twice[LENGTH], y[LENGTH], sum = 0, sums = 0;
    for (unsigned i = 0; i < LENGTH; i++) {
        x[i] = random_next(&seed);
        once[i] = sum += x[i];
        twice[i] = sums += sum;
    }
    run((struct diff){.kind = DIFF_FIRST}, SCAND_DTYPE_U64, once, LENGTH, y);
    CHECK(memcmp(y, x, sizeof y) == 0);
    run((struct diff){.kind = DIFF_SECOND}, SCAND_DTYPE_I64, twice, LENGTH, y);
    CHECK(memcmp(y, x, sizeof y) == 0);
}

/* The derivative of a parabola is exact from the third sample on: here 3 t^2 - 5 t + 2, at multiples of 1/8. */
static void derivative_of_a_parabola(void)
{
    double x[100], y[100];
    for (int i = 0; i < 100; i++) {
        const double t = i / 8.0;
        x[i] = 3 * t * t - 5 * t + 2;
    }
    run((struct diff){.kind = DIFF_DERIVATIVE, .dt = 0.125}, SCAND_DTYPE_F64, x, 100, y);
    for (int i = 2; i < 100; i++)
        CHECK(y[i] == 6 * (i / 8.0) - 5);
}

static bool may_become(enum scand_dtype from, enum scand_dtype to)
{
    return codec_is_integer(from) == codec_is_integer(to) &&
           (!codec_is_integer(from) || codec_bytes(to) >= codec_bytes(from));
}

static struct diff any_diff(enum scand_dtype dtype)
{
    const struct diff all[3] = {{.kind = DIFF_FIRST}, {.kind = DIFF_SECOND}, {.kind = DIFF_DERIVATIVE, .dt = 0.004}};
    return all[random_next(&seed) % (codec_is_integer(dtype) ? 2 : 3)];
}

static void check(enum scand_dtype from, enum scand_dtype to, uint64_t rows, uint64_t length, enum step_layout given,
                  enum step_layout made)
{
    const struct diff params = any_diff(from);
    const struct step_case c = {.kernel = &diff_kernel,
                                .params = &params,
                                .params_bytes = sizeof params,
                                .row_count = rows,
                                .input = {.dtype = from,
                                          .length = length,
                                          .layout = given,
                                          .fill = random_next(&seed) % 2 ? STEP_SPREAD : STEP_SPECIALS},
                                .output = {.dtype = to, .length = length, .layout = made}};
    CHECK(step_case_check(&c, &seed));
}

static void every_dtype(void)
{
    for (unsigned from = 0; from < SCAND_DTYPE_COUNT; from++)
        for (unsigned to = 0; to < SCAND_DTYPE_COUNT; to++)
            for (enum step_layout layout = 0; layout < LAYOUT_SHARED && may_become(from, to); layout++)
                check(from, to, 3, 301, random_next(&seed) % LAYOUT_COUNT, layout);
}

static void every_length(void)
{
    const uint64_t lengths[] = {0, 1, 2, 3, 255, 257, 5000, 16384, 16385, 40000};
    for (unsigned i = 0; i < sizeof lengths / sizeof lengths[0]; i++)
        for (enum step_layout layout = 0; layout < LAYOUT_SHARED; layout++) {
            check(SCAND_DTYPE_F32, SCAND_DTYPE_F32, 1 + random_next(&seed) % 5, lengths[i], layout, layout);
            check(SCAND_DTYPE_F64, SCAND_DTYPE_F64, 1 + random_next(&seed) % 5, lengths[i], LAYOUT_DENSE, layout);
        }
}

/* Dense rows that whole packs of 16 bytes do not fill. */
static void packs_and_a_tail(void)
{
    static const enum scand_dtype dtypes[] = {SCAND_DTYPE_F32, SCAND_DTYPE_F64, SCAND_DTYPE_F16, SCAND_DTYPE_BF16};
    for (unsigned i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++)
        for (uint64_t length = 1003; length <= 40003; length += 39000)
            check(dtypes[i], dtypes[i], 1, length, LAYOUT_DENSE, LAYOUT_DENSE);
}

/* More columns than a tile has. */
static void many_columns(void)
{
    for (uint64_t rows = 1000; rows < 3000; rows += 700)
        check(SCAND_DTYPE_F32, SCAND_DTYPE_F32, rows, 40, LAYOUT_COLUMNS, LAYOUT_COLUMNS);
    check(SCAND_DTYPE_F32, SCAND_DTYPE_F32, 1500, 40, LAYOUT_DENSE, LAYOUT_COLUMNS);
    check(SCAND_DTYPE_F32, SCAND_DTYPE_F32, 1500, 40, LAYOUT_COLUMNS, LAYOUT_DENSE);
}

static void ragged_rows(void)
{
    const uint64_t offsets[] = {3, 3, 4, 6, 400, 20000, 20001};
    for (unsigned dtype = 0; dtype < SCAND_DTYPE_COUNT; dtype++) {
        const struct diff params = any_diff(dtype);
        const struct step_case c = {.kernel = &diff_kernel,
                                    .params = &params,
                                    .params_bytes = sizeof params,
                                    .row_count = 6,
                                    .offsets = offsets,
                                    .input = {.dtype = dtype, .fill = STEP_SPECIALS},
                                    .output = {.dtype = dtype, .layout = LAYOUT_SPACED}};
        CHECK(step_case_check(&c, &seed));
    }
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {TEST(values_by_hand),
                                        TEST(running_sums_are_undone),
                                        TEST(derivative_of_a_parabola),
                                        TEST(every_dtype),
                                        TEST(every_length),
                                        TEST(packs_and_a_tail),
                                        TEST(many_columns),
                                        TEST(ragged_rows),
                                        TEST_END};
    seed = random_seed();
    return test_main(argc, argv, tests);
}
