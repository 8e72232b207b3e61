/* Picks of triangles of any width about any place: their formula, what they skip, and that all implementations have the
 * same bits. */
#include "kernels/steps/pick/pick.h"
#include "kernels/steps/triangle/triangle.h"
#include "tests/check.h"
#include "tests/kernels/step_case.h"

#define COUNT(LIST) (sizeof(LIST) / sizeof(LIST)[0])

static uint64_t seed;

static double noise(void)
{
    return (double)(int64_t)random_next(&seed) * 0x1p-63;
}

static struct step_operand row_of(const double *x, uint64_t length)
{
    return (struct step_operand){.origin = (char *)x, .length = length, .stride = 8, .dtype = SCAND_DTYPE_F64};
}

/* Picks from a row of f64, by the reference. */
static void pick(const double *d, uint64_t length, const double *positions, const double *half_widths, uint64_t picks,
                 double *y)
{
    const struct pick params = {picks};
    const struct step_rows rows = {.row_count = 1,
                                   .input = row_of(d, length),
                                   .output = row_of(y, picks),
                                   .further = {row_of(positions, picks), row_of(half_widths, picks)}};
    const struct step_tile all = {0, 1, 0, picks};
    pick_kernel.reference(&rows, &params, &all, NULL);
}

static double pick_one(const double *d, uint64_t length, double position, double half_width)
{
    double y = NAN;
    pick(d, length, &position, &half_width, 1, &y);
    return y;
}

static void values_by_hand(void)
{
    const double d[6] = {1, 3, 7, 5, 5, 2};
    CHECK(pick_one(d, 6, 1, 0) == 2 * 3 - 1 - 7);
    CHECK(pick_one(d, 6, 2, 1) == (2 * 7 - 1 - 5) / 4.0);
    CHECK(pick_one(d, 6, 2.5, 0.5) == (2 * 6 - 3 - 5) / 2.25);
    CHECK(pick_one(d, 6, 1.25, 0) == 2 * 4 - 1.5 - 6.5);
    CHECK(pick_one(d, 6, 2.5, 1.5) == (2 * 6 - 1 - 2) / 6.25); /* the outer taps are the first and last sample */
}

/* Picks are 0 where a tap leaves the row, or place or width is not valid; the samples around are not read. */
static void what_is_skipped(void)
{
    const double d[6] = {1, 3, 7, 5, 5, 2};
    static const double skipped[][2] = {
        {0, 0},    {0.999, 0},    {4.001, 0},     {5, 0},          {2, 1.001},   {2.5, 2.6},
        {-1, 0},   {7, 0},        {NAN, 0},       {2.5, NAN},      {2.5, -0.25}, {2.5, -1},
        {2.5, -3}, {INFINITY, 0}, {-INFINITY, 0}, {2.5, INFINITY}, {1e300, 1},
    };
    for (unsigned i = 0; i < COUNT(skipped); i++)
        CHECK(pick_one(d, 6, skipped[i][0], skipped[i][1]) == 0);
    CHECK(pick_one(d + 2, 1, 0, 0) == 0);
    CHECK(pick_one(d + 2, 2, 0.5, 0) == 0);
    CHECK(pick_one(d, 0, 0, 0) == 0);
    CHECK(pick_one((const double[3]){1, INFINITY, 1}, 3, 1, 0) == INFINITY);
    CHECK(pick_one((const double[3]){1, NAN, 1}, 2, 0, 0) == 0);
}

/* Returns a pick by a loop that is written from the formula, bit by bit. */
static double formula(const double *d, int64_t length, double t, double half_width)
{
    const double w = half_width + 1, at[3] = {t - w, t, t + w};
    double taps[3];
    if (!(half_width >= 0) || !(at[0] >= 0) || !(at[2] <= (double)(length - 1)))
        return 0;
    for (int i = 0; i < 3; i++) {
        const int64_t j = (int64_t)at[i];
        const double f = at[i] - (double)j;
        taps[i] = f == 0 ? d[j] : d[j] + f * (d[j + 1] - d[j]);
    }
    return (2 * taps[1] - taps[0] - taps[2]) / (w * w);
}

static void picks_of_the_formula(void)
{
    enum { LENGTH = 500, PICKS = 3000 };
    static double d[LENGTH], positions[PICKS], half_widths[PICKS], y[PICKS];
    int kept = 0;
    for (int i = 0; i < LENGTH; i++)
        d[i] = noise();
    for (int k = 0; k < PICKS; k++) {
        positions[k] = ldexp((double)(random_next(&seed) % (1 << 20)), -11) - 4;
        half_widths[k] = k % 3 == 0 ? (double)(k % 40) : fabs(noise()) * 60 - 0.1;
        positions[k] = k % 5 == 0 ? floor(positions[k]) : positions[k];
    }
    pick(d, LENGTH, positions, half_widths, PICKS, y);
    for (int k = 0; k < PICKS; k++) {
        const double expected = formula(d, LENGTH, positions[k], half_widths[k]);
        CHECK(memcmp(&y[k], &expected, sizeof expected) == 0);
        kept += expected != 0;
    }
    CHECK(kept > PICKS / 2 && kept < PICKS);
}

/* Picks of double sums, at samples, are the triangle that skips. All sums are exact. */
static void is_the_triangle_of_double_sums(void)
{
    enum { LENGTH = 300 };
    static double x[LENGTH], d[LENGTH], expected[LENGTH], y[LENGTH], positions[LENGTH], half_widths[LENGTH];
    for (int turn = 0; turn < 20; turn++) {
        const uint32_t half_width = 1u << random_next(&seed) % 8; /* its square divides exactly */
        const struct triangle triangle = {.half_width = half_width,
                                          .shape = TRIANGLE_TRIANGLE,
                                          .boundary = BOUNDARY_SKIP,
                                          .scale = 1 / ((double)half_width * half_width)};
        const struct step_rows rows = {.row_count = 1, .input = row_of(x, LENGTH), .output = row_of(expected, LENGTH)};
        const struct step_tile all = {0, 1, 0, LENGTH};
        double sum = 0;
        for (int i = 0; i < LENGTH; i++) {
            x[i] = (double)(random_next(&seed) % 17) - 8;
            d[i] = sum += x[i];
            positions[i] = i;
            half_widths[i] = half_width - 1;
        }
        for (int i = LENGTH - 1; i-- > 0;)
            d[i] += d[i + 1];
        triangle_kernel.reference(&rows, &triangle, &all, NULL);
        pick(d, LENGTH, positions, half_widths, LENGTH, y);
        for (int i = 0; i < LENGTH; i++)
            CHECK(y[i] == expected[i]);
    }
}

/* The adjoint: <A x, y> = <x, A* y>, where A* is the transpose of the results of unit rows: picks are linear in the
 * samples. */
static void its_adjoint(void)
{
    enum { LENGTH = 60, PICKS = 90 };
    double x[LENGTH], y[PICKS], positions[PICKS], half_widths[PICKS], picked[PICKS], left = 0, right = 0;
    for (int k = 0; k < PICKS; k++) {
        positions[k] = fabs(noise()) * LENGTH;
        half_widths[k] = fabs(noise()) * 9;
        y[k] = noise();
    }
    for (int i = 0; i < LENGTH; i++)
        x[i] = noise();
    pick(x, LENGTH, positions, half_widths, PICKS, picked);
    for (int k = 0; k < PICKS; k++)
        left += picked[k] * y[k];
    for (int i = 0; i < LENGTH; i++) {
        double unit[LENGTH] = {0}, column[PICKS];
        unit[i] = 1;
        pick(unit, LENGTH, positions, half_widths, PICKS, column);
        for (int k = 0; k < PICKS; k++)
            right += x[i] * column[k] * y[k];
    }
    CHECK(fabs(left - right) < 1e-12);
}

/*
 * All implementations.
 */

struct shape {
    uint64_t rows, length, picks;
};

static bool is_float(enum scand_dtype dtype)
{
    return !codec_is_integer(dtype);
}

static struct step_case case_of(enum scand_dtype from, enum scand_dtype to, struct shape shape, struct pick *params)
{
    params->picks = shape.picks;
    struct step_case c = {.kernel = &pick_kernel,
                          .params = params,
                          .params_bytes = sizeof *params,
                          .row_count = shape.rows,
                          .input = {.dtype = from,
                                    .length = shape.length,
                                    .layout = random_next(&seed) % LAYOUT_COUNT,
                                    .fill = random_next(&seed) % 2 ? STEP_NOISE : STEP_SPECIALS},
                          .output = {.dtype = to, .length = shape.picks, .layout = random_next(&seed) % LAYOUT_SHARED}};
    for (int i = 0; i < 2; i++)
        c.further[i] = (struct step_case_operand){.given = true,
                                                  .dtype = SCAND_DTYPE_F32,
                                                  .length = shape.picks,
                                                  .layout = random_next(&seed) % LAYOUT_COUNT,
                                                  .below = shape.length,
                                                  .fill = i == PICK_POSITION ? STEP_PLACES : STEP_WIDTHS};
    return c;
}

static void check(enum scand_dtype from, enum scand_dtype to, struct shape shape)
{
    struct pick params;
    const struct step_case c = case_of(from, to, shape, &params);
    CHECK(step_case_check(&c, &seed));
}

static void every_dtype(void)
{
    for (unsigned from = 0; from < SCAND_DTYPE_COUNT; from++)
        for (unsigned to = 0; to < SCAND_DTYPE_COUNT; to++) {
            struct pick params;
            if (!is_float(from) || !is_float(to))
                continue;
            check(from, to, (struct shape){3, 301, 200});
            struct step_case c = case_of(from, to, (struct shape){2, 301, 100}, &params);
            c.further[PICK_POSITION].dtype = from;
            c.further[PICK_HALF_WIDTH].dtype = to;
            CHECK(step_case_check(&c, &seed));
        }
}

static void every_shape(void)
{
    static const struct shape shapes[] = {{1, 1, 5},        {3, 0, 7},       {4, 2, 0},       {1, 300, 1},
                                          {1, 3000, 40003}, {300, 100, 31},  {2000, 40, 3},   {7, 5000, 257},
                                          {9, 255, 256},    {40, 513, 1000}, {1, 40003, 1003}};
    for (unsigned i = 0; i < COUNT(shapes); i++)
        for (unsigned turn = 0; turn < 6; turn++)
            check(turn % 2 ? SCAND_DTYPE_F64 : SCAND_DTYPE_F32, turn % 3 ? SCAND_DTYPE_F32 : SCAND_DTYPE_F64,
                  shapes[i]);
}

/* Operands of any content do no harm, as they may be changed while a job runs. */
static void hostile_operands(void)
{
    for (unsigned turn = 0; turn < 10; turn++) {
        struct pick params;
        struct step_case c = case_of(SCAND_DTYPE_F32, SCAND_DTYPE_F64, (struct shape){5, 300, 1000}, &params);
        c.further[turn % 2].fill = STEP_SPREAD;
        c.further[(turn + 1) % 2].fill = STEP_SPECIALS;
        CHECK(step_case_check(&c, &seed));
    }
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {TEST(values_by_hand),
                                        TEST(what_is_skipped),
                                        TEST(picks_of_the_formula),
                                        TEST(is_the_triangle_of_double_sums),
                                        TEST(its_adjoint),
                                        TEST(every_dtype),
                                        TEST(every_shape),
                                        TEST(hostile_operands),
                                        TEST_END};
    seed = random_seed();
    return test_main(argc, argv, tests);
}
