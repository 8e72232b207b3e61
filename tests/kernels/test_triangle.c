/* Triangles and boxes: their weights, their edges, and that all implementations have the same bits. */
#include "kernels/steps/triangle/triangle.h"
#include "tests/check.h"
#include "tests/kernels/step_case.h"

#define COUNT(LIST) (sizeof(LIST) / sizeof(LIST)[0])

static uint64_t seed;

static double weight(const struct triangle *triangle, int64_t m)
{
    const int64_t width = triangle->half_width, distance = m < 0 ? -m : m;
    return distance >= width ? 0 : triangle->shape == TRIANGLE_BOX ? 1 : (double)(width - distance);
}

/* A row of f64, all of it, by the reference. */
static void filter(const struct triangle *triangle, const double *x, double *y, uint64_t length)
{
    const struct step_rows rows = {
        .row_count = 1,
        .input = {.origin = (char *)x, .length = length, .stride = 8, .dtype = SCAND_DTYPE_F64},
        .output = {.origin = (char *)y, .length = length, .stride = 8, .dtype = SCAND_DTYPE_F64}};
    const struct step_tile all = {0, 1, 0, length};
    triangle_kernel.reference(&rows, triangle, &all, NULL);
}

static void check_row(enum triangle_shape shape, enum boundary boundary, uint32_t half_width, const double expected[6])
{
    const double x[6] = {1, 2, 3, 4, 5, 9};
    const struct triangle triangle = {half_width, shape, boundary, 1, WINDOW_NORM_NONE};
    double y[6];
    filter(&triangle, x, y, 6);
    for (int i = 0; i < 6; i++)
        CHECK(y[i] == expected[i]);
}

static void values_by_hand(void)
{
    check_row(TRIANGLE_TRIANGLE, BOUNDARY_REFLECT, 2, (const double[6]){5, 8, 12, 16, 23, 32});
    check_row(TRIANGLE_TRIANGLE, BOUNDARY_ZERO, 2, (const double[6]){4, 8, 12, 16, 23, 23});
    check_row(TRIANGLE_TRIANGLE, BOUNDARY_SKIP, 2, (const double[6]){0, 0, 12, 16, 0, 0});
    check_row(TRIANGLE_BOX, BOUNDARY_REFLECT, 2, (const double[6]){4, 6, 9, 12, 18, 23});
    check_row(TRIANGLE_BOX, BOUNDARY_ZERO, 2, (const double[6]){3, 6, 9, 12, 18, 14});
    check_row(TRIANGLE_BOX, BOUNDARY_SKIP, 2, (const double[6]){0, 6, 9, 12, 18, 0});
    check_row(TRIANGLE_BOX, BOUNDARY_ZERO, 2000, (const double[6]){24, 24, 24, 24, 24, 24});
    check_row(TRIANGLE_BOX, BOUNDARY_REFLECT, 7, (const double[6]){57, 53, 52, 51, 50, 49});
}

/*
 * The definition against its formula.
 */

static double extended(const struct triangle *triangle, const double *x, int64_t i, int64_t length)
{
    if (triangle->boundary == BOUNDARY_REFLECT)
        while (i < 0 || i >= length)
            i = i < 0 ? -1 - i : 2 * length - 1 - i;
    return i >= 0 && i < length ? x[i] : 0;
}

static bool skipped(const struct triangle *triangle, int64_t i, int64_t length)
{
    const int64_t tap = triangle->half_width - (triangle->shape == TRIANGLE_BOX);
    return triangle->boundary == BOUNDARY_SKIP && (i - tap < 0 || i + tap >= length);
}

static double by_formula(const struct triangle *triangle, const double *x, int64_t i, int64_t length)
{
    const int64_t width = triangle->half_width;
    long double y = 0;
    for (int64_t m = 1 - width; m < width; m++)
        y += (long double)weight(triangle, m) * extended(triangle, x, i + m, length);
    return skipped(triangle, i, length) ? 0 : (double)(y * triangle->scale);
}

/* Checks the error against the formula, in units of the largest sample, for samples within 1 of `mean`. */
static void check_formula(const struct triangle *triangle, uint64_t length, double mean)
{
    double *x = malloc(2 * length * sizeof *x), *y = x + length, worst = 0;
    for (uint64_t i = 0; i < length; i++)
        x[i] = mean + (double)(int64_t)random_next(&seed) * 0x1p-63;
    filter(triangle, x, y, length);
    for (uint64_t i = 0; i < length; i++)
        worst = fmax(worst, fabs(y[i] - by_formula(triangle, x, (int64_t)i, (int64_t)length)));
    const double bound = 0x1p-49 * (1 + fabs(mean));
    if (!(worst <= bound))
        fprintf(stderr, "half-width %u, shape %u, boundary %u, length %u: off by %g, allowed %g\n",
                triangle->half_width, triangle->shape, triangle->boundary, (unsigned)length, worst, bound);
    CHECK(worst <= bound);
    free(x);
}

static double area(enum triangle_shape shape, double width)
{
    return shape == TRIANGLE_BOX ? 2 * width - 1 : width * width;
}

static struct triangle random_triangle(uint32_t half_width)
{
    struct triangle triangle = {half_width, random_next(&seed) % 2, random_next(&seed) % 3, 0, WINDOW_NORM_AREA};
    triangle.scale = 1 / area(triangle.shape, half_width);
    return triangle;
}

static const uint32_t half_widths_tried[] = {1,   2,   3,   5,   8,   9,   31,   63,   64,   65,
                                             127, 128, 200, 256, 257, 700, 1024, 1025, 2047, 2048};

static void sums_of_the_formula(void)
{
    for (unsigned i = 0; i < COUNT(half_widths_tried); i++)
        for (unsigned k = 0; k < 4; k++) {
            const struct triangle triangle = random_triangle(half_widths_tried[i]);
            check_formula(&triangle, 1 + random_next(&seed) % 1500, k % 2 ? 1000 : 0);
        }
}

/*
 * Half-widths of each output.
 */

/* Filters a row of f64, by the reference. */
static void filter_own(const struct triangle *triangle, const int32_t *half_widths, const double *x, double *y,
                       uint64_t length)
{
    const struct step_rows rows = {
        .row_count = 1,
        .input = {.origin = (char *)x, .length = length, .stride = 8, .dtype = SCAND_DTYPE_F64},
        .output = {.origin = (char *)y, .length = length, .stride = 8, .dtype = SCAND_DTYPE_F64},
        .further = {{.origin = (char *)half_widths, .length = length, .stride = 4, .dtype = SCAND_DTYPE_I32}}};
    const struct step_tile all = {0, 1, 0, length};
    triangle_kernel.reference(&rows, triangle, &all, NULL);
}

static void half_widths_by_hand(void)
{
    const double x[6] = {1, 2, 3, 4, 5, 9};
    const int32_t half_widths[6] = {2, 1, 2, 3, 0, 4};
    struct triangle triangle = {3, TRIANGLE_TRIANGLE, BOUNDARY_REFLECT, 0, WINDOW_NORM_NONE};
    double y[6];
    filter_own(&triangle, half_widths, x, y, 6);
    CHECK(y[0] == 5 && y[1] == 2 && y[2] == 12 && y[3] == 2 + 6 + 12 + 10 + 9 && y[4] == 0 && y[5] == 0);
    triangle.norm = WINDOW_NORM_AREA;
    filter_own(&triangle, half_widths, x, y, 6);
    CHECK(y[0] == 1.25 && y[1] == 2 && y[2] == 3 && fabs(y[3] - 39.0 / 9) < 1e-15);
    triangle.norm = WINDOW_NORM_HEIGHT;
    filter_own(&triangle, half_widths, x, y, 6);
    CHECK(y[0] == 2.5 && y[1] == 2 && y[2] == 6 && fabs(y[3] - 13) < 1e-14);
    triangle.boundary = BOUNDARY_SKIP;
    filter_own(&triangle, half_widths, x, y, 6);
    CHECK(y[0] == 0 && y[1] == 2 && y[2] == 6 && y[3] == 0);
    triangle.shape = TRIANGLE_BOX;
    triangle.norm = WINDOW_NORM_AREA;
    filter_own(&triangle, half_widths, x, y, 6);
    CHECK(y[0] == 0 && y[1] == 2 && y[2] == 3 && fabs(y[3] - 23.0 / 5) < 1e-15);
}

/* The sums equal those of the formula with each output's half-width, within the bound that the largest half-width has
 * by the smallest. */
static void own_sums_of_the_formula(void)
{
    enum { LENGTH = 1500 };
    static double x[LENGTH], y[LENGTH];
    static int32_t half_widths[LENGTH];
    for (unsigned turn = 0; turn < 24; turn++) {
        const uint32_t most = (uint32_t[]){1, 2, 40, 64, 300, 2048}[turn % 6];
        const struct triangle triangle = {most, turn / 6 % 2, random_next(&seed) % 3, 0, turn % 3};
        const double mean = turn % 2 ? 1000 : 0;
        for (unsigned i = 0; i < LENGTH; i++) {
            x[i] = mean + (double)(int64_t)random_next(&seed) * 0x1p-63;
            half_widths[i] = 1 + (int32_t)(random_next(&seed) % most);
        }
        filter_own(&triangle, half_widths, x, y, LENGTH);
        for (unsigned i = 0; i < LENGTH; i++) {
            const struct triangle own = triangle_with(&triangle, (uint64_t)half_widths[i]);
            const double share = (double)most / half_widths[i];
            const double bound =
                0x1p-50 * (1 + share * share) * (1 + mean) * area(own.shape, own.half_width) * own.scale;
            CHECK(fabs(y[i] - by_formula(&own, x, i, LENGTH)) <= bound);
        }
    }
}

/* Half-widths that all are the largest give the bits of that half-width alone. */
static void equal_half_widths(void)
{
    enum { LENGTH = 700 };
    static double x[LENGTH], y[LENGTH], expected[LENGTH];
    static int32_t half_widths[LENGTH];
    for (unsigned i = 0; i < LENGTH; i++)
        x[i] = (double)(int64_t)random_next(&seed) * 0x1p-63;
    for (unsigned k = 0; k < COUNT(half_widths_tried); k++) {
        const struct triangle triangle = random_triangle(half_widths_tried[k]);
        for (unsigned i = 0; i < LENGTH; i++)
            half_widths[i] = (int32_t)half_widths_tried[k];
        filter(&triangle, x, expected, LENGTH);
        filter_own(&triangle, half_widths, x, y, LENGTH);
        CHECK(memcmp(y, expected, sizeof y) == 0);
    }
}

/* The filter is its own adjoint, <A x, y> = <x, A y>: the weights are symmetric, and so are mirrors. */
static void its_own_adjoint(void)
{
    enum { LENGTH = 999 };
    static double x[LENGTH], y[LENGTH], ax[LENGTH], ay[LENGTH];
    for (unsigned k = 0; k < COUNT(half_widths_tried); k++) {
        struct triangle triangle = random_triangle(half_widths_tried[k]);
        double left = 0, right = 0, size = 0;
        triangle.boundary = triangle.boundary == BOUNDARY_SKIP ? BOUNDARY_ZERO : triangle.boundary;
        for (unsigned i = 0; i < LENGTH; i++) {
            x[i] = (double)(int64_t)random_next(&seed) * 0x1p-63;
            y[i] = (double)(int64_t)random_next(&seed) * 0x1p-63;
        }
        filter(&triangle, x, ax, LENGTH);
        filter(&triangle, y, ay, LENGTH);
        for (unsigned i = 0; i < LENGTH; i++) {
            left += ax[i] * y[i];
            right += x[i] * ay[i];
            size += fabs(ax[i] * y[i]);
        }
        CHECK(fabs(left - right) <= 1e-12 * size);
    }
}

/* A NaN or an infinity reaches as far as triangle.h says, and as far as its weights do. */
static void reach_of_specials(void)
{
    enum { LENGTH = 9000, AT = 5000 };
    static double x[LENGTH], y[LENGTH], clean[LENGTH];
    for (unsigned k = 1; k < COUNT(half_widths_tried); k++) {
        struct triangle triangle = random_triangle(half_widths_tried[k]);
        const int64_t segment = half_widths_tried[k], number = AT / segment;
        triangle.boundary = BOUNDARY_ZERO;
        for (unsigned i = 0; i < LENGTH; i++)
            x[i] = (double)(int64_t)random_next(&seed) * 0x1p-63;
        filter(&triangle, x, clean, LENGTH);
        x[AT] = k % 2 ? NAN : INFINITY;
        filter(&triangle, x, y, LENGTH);
        for (int64_t i = 0; i < LENGTH; i++) {
            if (i / segment < number - 1 || i / segment > number + 1)
                CHECK(y[i] == clean[i]);
            if (weight(&triangle, AT - i) > 0)
                CHECK(!isfinite(y[i]));
        }
    }
}

/*
 * Bits.
 */

static bool is_float(enum scand_dtype dtype)
{
    return !codec_is_integer(dtype);
}

static void check_case(const struct triangle *triangle, struct step_case test_case)
{
    test_case.kernel = &triangle_kernel;
    test_case.params = triangle;
    test_case.params_bytes = sizeof *triangle;
    const bool same = step_case_check(&test_case, &seed);
    if (!same)
        fprintf(stderr, "half-width %u, shape %u, boundary %u\n", triangle->half_width, triangle->shape,
                triangle->boundary);
    CHECK(same);
}

static void check(enum scand_dtype from, enum scand_dtype to, uint64_t rows, uint64_t length, uint32_t half_width,
                  enum step_fill fill)
{
    const struct triangle triangle = random_triangle(half_width);
    check_case(
        &triangle,
        (struct step_case){
            .row_count = rows,
            .input = {.dtype = from, .length = length, .layout = random_next(&seed) % LAYOUT_COUNT, .fill = fill},
            .output = {.dtype = to, .length = length, .layout = random_next(&seed) % LAYOUT_SHARED}});
}

static void every_dtype(void)
{
    for (unsigned from = 0; from < SCAND_DTYPE_COUNT; from++)
        for (unsigned to = 0; to < SCAND_DTYPE_COUNT; to++)
            if (is_float(from) && is_float(to))
                check(from, to, 3, 301, half_widths_tried[random_next(&seed) % 10], STEP_SPECIALS);
}

static void every_length_and_half_width(void)
{
    const uint64_t lengths[] = {0, 1, 2, 3, 63, 64, 65, 255, 256, 1000, 4096, 5001};
    for (unsigned i = 0; i < COUNT(lengths); i++)
        for (unsigned k = 0; k < COUNT(half_widths_tried); k++)
            check(SCAND_DTYPE_F32, SCAND_DTYPE_F32, 1 + random_next(&seed) % 3, lengths[i], half_widths_tried[k],
                  STEP_SPREAD);
}

static void long_rows(void)
{
    for (unsigned k = 0; k < COUNT(half_widths_tried); k++)
        check(SCAND_DTYPE_F32, SCAND_DTYPE_F64, 1, 40000 + random_next(&seed) % 100, half_widths_tried[k], STEP_NOISE);
}

/* Half-widths for each row or for all rows, some of them out of range, since they may be changed while a job runs. */
static void own_half_widths(void)
{
    static const struct {
        uint64_t rows, length;
    } shapes[] = {{3, 0}, {2, 1}, {40, 64}, {3, 301}, {2, 5001}, {1, 40003}};
    for (unsigned i = 0; i < COUNT(shapes); i++)
        for (unsigned k = 0; k < COUNT(half_widths_tried); k++) {
            const bool dense = random_next(&seed) % 2;
            struct triangle triangle = random_triangle(half_widths_tried[k]);
            triangle.norm = random_next(&seed) % 3;
            struct step_case c = {.row_count = shapes[i].rows,
                                  .input = {.dtype = k % 3 ? SCAND_DTYPE_F32 : SCAND_DTYPE_F64,
                                            .length = shapes[i].length,
                                            .layout = dense ? LAYOUT_DENSE : random_next(&seed) % LAYOUT_COUNT,
                                            .fill = STEP_SPREAD},
                                  .output = {.dtype = k % 4 ? SCAND_DTYPE_F32 : SCAND_DTYPE_F64,
                                             .length = shapes[i].length,
                                             .layout = dense ? LAYOUT_DENSE : random_next(&seed) % LAYOUT_SHARED}};
            c.further[TRIANGLE_HALF_WIDTHS] =
                (struct step_case_operand){.given = true,
                                           .dtype = random_next(&seed) % 2 ? SCAND_DTYPE_I32 : SCAND_DTYPE_I64,
                                           .length = shapes[i].length,
                                           .layout = random_next(&seed) % LAYOUT_COUNT,
                                           .below = k % 5 ? half_widths_tried[k] + 2 : 0};
            check_case(&triangle, c);
        }
}

/* Dense rows of the dtypes that have kernels of their own. */
static void dense_rows(void)
{
    const enum scand_dtype dtypes[] = {SCAND_DTYPE_F32, SCAND_DTYPE_F64, SCAND_DTYPE_F16, SCAND_DTYPE_BF16};
    for (unsigned d = 0; d < COUNT(dtypes); d++)
        for (unsigned k = 0; k < COUNT(half_widths_tried); k++) {
            const struct triangle triangle = random_triangle(half_widths_tried[k]);
            const uint64_t length = 4 * (500 + random_next(&seed) % 1000) + k % 2;
            const enum step_fill fill = random_next(&seed) % 3 > 0 ? STEP_SPREAD : STEP_SPECIALS;
            check_case(&triangle, (struct step_case){.row_count = 3,
                                                     .input = {.dtype = dtypes[d], .length = length, .fill = fill},
                                                     .output = {.dtype = dtypes[d], .length = length}});
        }
}

static void ragged_rows(void)
{
    const uint64_t offsets[] = {3, 3, 4, 100, 101, 3000, 3000, 9000};
    for (unsigned k = 0; k < COUNT(half_widths_tried); k++) {
        const struct triangle triangle = random_triangle(half_widths_tried[k]);
        struct step_case c = {.row_count = COUNT(offsets) - 1,
                              .offsets = offsets,
                              .input = {.dtype = SCAND_DTYPE_F32},
                              .output = {.dtype = SCAND_DTYPE_F32}};
        check_case(&triangle, c);
        c.further[TRIANGLE_HALF_WIDTHS] = (struct step_case_operand){.given = true,
                                                                     .dtype = SCAND_DTYPE_I32,
                                                                     .layout = random_next(&seed) % LAYOUT_SHARED,
                                                                     .below = half_widths_tried[k] + 1};
        check_case(&triangle, c);
    }
}

/* Tiles of rows that are shorter than their segments have few of them: each is summed from three segments. */
static void tiles_of_short_rows(void)
{
    static const struct {
        uint64_t length;
        uint32_t half_width;
        uint64_t rows;
    } list[] = {{1, 2048, 3}, {1, 3, 2340}, {1000, 2048, 3}, {5000, 1, 3}, {20000, 2048, 1}};
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
        const struct triangle triangle = {.half_width = list[i].half_width};
        const struct step_rows rows = {
            .row_count = 5000, .input = {.length = list[i].length}, .output = {.length = list[i].length}};
        CHECK_EQ(step_tiles_of(&triangle_kernel, &rows, &triangle, 0, rows.row_count).tiling.rows, list[i].rows);
    }
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {TEST(values_by_hand),
                                        TEST(sums_of_the_formula),
                                        TEST(its_own_adjoint),
                                        TEST(reach_of_specials),
                                        TEST(every_dtype),
                                        TEST(every_length_and_half_width),
                                        TEST(long_rows),
                                        TEST(dense_rows),
                                        TEST(ragged_rows),
                                        TEST(half_widths_by_hand),
                                        TEST(own_sums_of_the_formula),
                                        TEST(equal_half_widths),
                                        TEST(own_half_widths),
                                        TEST(tiles_of_short_rows),
                                        TEST_END};
    seed = random_seed();
    return test_main(argc, argv, tests);
}
