/* Rows with a filter, and the adjoint of that. */
#include "kernels/steps/convolve/convolve.h"
#include "tests/check.h"
#include "tests/kernels/step_case.h"

#define COUNT(LIST) (sizeof(LIST) / sizeof(LIST)[0])

static uint64_t seed;

static uint64_t length_of(enum convolve_mode mode, uint64_t length, uint64_t taps)
{
    const uint64_t full = length + taps - 1, valid = length >= taps ? length - taps + 1 : 0;
    return length == 0 ? 0 : mode == CONVOLVE_FULL ? full : mode == CONVOLVE_SAME ? length : valid;
}

/*
 * Results by hand.
 */

static void compute(bool correlate, enum convolve_mode mode, const double *x, uint64_t length, const double *w,
                    uint64_t taps, double *y)
{
    const struct convolve params = convolve_params(correlate, mode, taps, true);
    const uint64_t outputs = length_of(mode, length, taps);
    const struct step_rows rows = {
        .row_count = 1,
        .input = {.origin = (char *)x, .length = length, .stride = 8, .dtype = SCAND_DTYPE_F64},
        .output = {.origin = (char *)y, .length = outputs, .stride = 8, .dtype = SCAND_DTYPE_F64},
        .further[0] = {.origin = (char *)w, .length = taps, .stride = 8, .dtype = SCAND_DTYPE_F64}};
    const struct step_tile all = {0, 1, 0, outputs};
    convolve_kernel.reference(&rows, &params, &all, NULL);
}

static void each_mode(void)
{
    static const double x[] = {1, 2, 4, 8}, odd[] = {1, 10, 100}, even[] = {1, 10};
    static const struct {
        bool correlate;
        enum convolve_mode mode;
        const double *filter;
        uint64_t taps;
        double y[6];
    } list[] = {
        {false, CONVOLVE_FULL, odd, 3, {1, 12, 124, 248, 480, 800}},
        {false, CONVOLVE_SAME, odd, 3, {12, 124, 248, 480}},
        {false, CONVOLVE_VALID, odd, 3, {124, 248}},
        {false, CONVOLVE_SAME, even, 2, {1, 12, 24, 48}},
        {true, CONVOLVE_FULL, odd, 3, {100, 210, 421, 842, 84, 8}},
        {true, CONVOLVE_SAME, odd, 3, {210, 421, 842, 84}},
        {true, CONVOLVE_VALID, odd, 3, {421, 842}},
        {true, CONVOLVE_SAME, even, 2, {21, 42, 84, 8}},
    };
    for (unsigned i = 0; i < COUNT(list); i++) {
        double y[6] = {0};
        compute(list[i].correlate, list[i].mode, x, 4, list[i].filter, list[i].taps, y);
        CHECK(memcmp(y, list[i].y, sizeof y) == 0);
    }
}

/* An infinite tap makes NaN of a zero, but not where there is no sample; sums of nothing are 0. */
static void taps_outside(void)
{
    static const double x[] = {0, 1}, w[] = {1, INFINITY, 0x1p-600};
    double y[4];
    compute(false, CONVOLVE_FULL, x, 2, w, 3, y);
    CHECK(y[0] == 0 && isnan(y[1]) && y[2] == INFINITY && y[3] == 0x1p-600);
    static const double small[] = {-0x1p-600};
    compute(false, CONVOLVE_FULL, small, 1, w + 2, 1, y);
    CHECK(y[0] == 0 && signbit(y[0]));
}

static double noise(void)
{
    return (double)(int64_t)random_next(&seed) * 0x1p-63;
}

/* The adjoints: <C x, y> = <x, C* y>, where each mode has its pair. */
static void adjoints(void)
{
    static const enum convolve_mode pairs[] = {
        [CONVOLVE_FULL] = CONVOLVE_VALID, [CONVOLVE_SAME] = CONVOLVE_SAME, [CONVOLVE_VALID] = CONVOLVE_FULL};
    for (unsigned i = 0; i < 3 * 40; i++) {
        const enum convolve_mode mode = i % 3;
        const uint64_t taps = 1 + random_next(&seed) % 30, length = taps + random_next(&seed) % 50;
        const uint64_t outputs = length_of(mode, length, taps);
        double x[80], w[30], y[110], forward[110], back[80], left = 0, right = 0;
        for (unsigned k = 0; k < 80; k++)
            x[k] = noise();
        for (unsigned k = 0; k < 30; k++)
            w[k] = noise();
        for (unsigned k = 0; k < 110; k++)
            y[k] = noise();
        compute(false, mode, x, length, w, taps, forward);
        compute(true, pairs[mode], y, outputs, w, taps, back);
        CHECK_EQ(length_of(pairs[mode], outputs, taps), length);
        for (unsigned k = 0; k < outputs; k++)
            left += forward[k] * y[k];
        for (unsigned k = 0; k < length; k++)
            right += x[k] * back[k];
        CHECK(fabs(left - right) < 1e-12);
    }
}

/*
 * All implementations.
 */

struct shape {
    uint64_t rows, length, taps;
};

/* Layouts are those of input and output. */
static void check_laid_out(struct shape shape, enum convolve_mode mode, bool wide, const enum scand_dtype dtypes[3],
                           enum step_fill fill, const enum step_layout layouts[2])
{
    const bool correlate = random_next(&seed) % 2;
    const struct convolve params = convolve_params(correlate, mode, shape.taps, wide);
    struct step_case c = {
        .kernel = &convolve_kernel,
        .params = &params,
        .params_bytes = sizeof params,
        .row_count = shape.rows,
        .input = {.dtype = dtypes[0], .length = shape.length, .layout = layouts[0], .fill = fill},
        .output = {.dtype = dtypes[1], .length = length_of(mode, shape.length, shape.taps), .layout = layouts[1]},
        .further[0] = {.given = true,
                       .dtype = dtypes[2],
                       .length = shape.taps,
                       .layout = random_next(&seed) % 2 ? LAYOUT_SHARED : LAYOUT_PITCHED,
                       .fill = fill}};
    CHECK(step_case_check(&c, &seed));
}

static void check_filled(struct shape shape, enum convolve_mode mode, bool wide, const enum scand_dtype dtypes[3],
                         enum step_fill fill)
{
    const enum step_layout layouts[2] = {random_next(&seed) % LAYOUT_COUNT, random_next(&seed) % LAYOUT_SHARED};
    check_laid_out(shape, mode, wide, dtypes, fill, layouts);
}

static void check(struct shape shape, enum convolve_mode mode)
{
    static const enum scand_dtype f32[3] = {SCAND_DTYPE_F32, SCAND_DTYPE_F32, SCAND_DTYPE_F32};
    static const enum scand_dtype f64[3] = {SCAND_DTYPE_F64, SCAND_DTYPE_F64, SCAND_DTYPE_F64};
    check_filled(shape, mode, false, f32, STEP_NOISE);
    check_filled(shape, mode, true, f32, STEP_SPREAD);
    check_filled(shape, mode, true, f64, STEP_NOISE);
}

static void every_dtype(void)
{
    for (unsigned from = 0; from < SCAND_DTYPE_COUNT; from++)
        for (unsigned to = 0; to < SCAND_DTYPE_COUNT; to++) {
            const unsigned filter = random_next(&seed) % SCAND_DTYPE_COUNT;
            const enum scand_dtype dtypes[3] = {from, to, codec_is_integer(filter) ? SCAND_DTYPE_F16 : filter};
            if (codec_is_integer(from) || codec_is_integer(to))
                continue;
            for (enum convolve_mode mode = 0; mode < 3; mode++)
                check_filled((struct shape){3, 301, 9}, mode, random_next(&seed) % 2, dtypes, STEP_NOISE);
            check_filled((struct shape){2, 301, 9}, CONVOLVE_SAME, random_next(&seed) % 2, dtypes, STEP_SPECIALS);
        }
}

static void few_taps(void)
{
    static const uint64_t lengths[] = {0, 1, 2, 7, 8, 9, 31, 63, 65, 255, 257, 300, 1023, 1025};
    static const uint64_t taps[] = {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 64};
    for (unsigned i = 0; i < COUNT(lengths); i++)
        for (unsigned k = 0; k < COUNT(taps); k++)
            for (enum convolve_mode mode = 0; mode < 3; mode++)
                check((struct shape){1 + random_next(&seed) % 7, lengths[i], taps[k]}, mode);
}

static void many_taps(void)
{
    static const struct shape shapes[] = {{2, 2000, 255}, {2, 700, 256},   {2, 1500, 257},  {1, 3000, 513},
                                          {1, 10, 4096},  {1, 4095, 4096}, {1, 4096, 4096}, {1, 6000, 4095}};
    for (unsigned i = 0; i < COUNT(shapes); i++)
        for (enum convolve_mode mode = 0; mode < 3; mode++)
            check(shapes[i], mode);
}

/* Rows of several tiles, and many short rows. */
static void many_samples(void)
{
    static const struct shape shapes[] = {{1, 20001, 31}, {2, 9000, 2},  {1500, 12, 5}, {300, 100, 31},
                                          {40, 2100, 12}, {1, 1003, 31}, {1, 40003, 31}};
    for (unsigned i = 0; i < COUNT(shapes); i++)
        for (enum convolve_mode mode = 0; mode < 3; mode++)
            check(shapes[i], mode);
}

/* Rows that a GPU takes by strips, if the outputs are whole vectors too; and such of 513 taps, that it does not. */
static void whole_vectors(void)
{
    static const enum scand_dtype f32[3] = {SCAND_DTYPE_F32, SCAND_DTYPE_F32, SCAND_DTYPE_F32};
    static const enum step_layout dense[2] = {LAYOUT_DENSE, LAYOUT_DENSE};
    static const enum step_fill fills[] = {STEP_NOISE, STEP_SPECIALS, STEP_TINY};
    static const uint64_t lengths[] = {1024, 1284, 5000};
    static const uint64_t taps[] = {1, 2, 3, 4, 5, 23, 24, 25, 31, 32, 64, 255, 256, 509, 512, 513};
    for (unsigned i = 0; i < COUNT(lengths); i++)
        for (unsigned k = 0; k < COUNT(taps); k++)
            for (unsigned n = 0; n < COUNT(fills); n++) {
                const enum convolve_mode mode = random_next(&seed) % 2 ? CONVOLVE_SAME : random_next(&seed) % 3;
                check_laid_out((struct shape){3, lengths[i], taps[k]}, mode, false, f32, fills[n], dense);
            }
}

static void ragged_rows(void)
{
    for (unsigned i = 0; i < 8; i++) {
        static const uint64_t most[] = {3, 40, 700, 5000};
        uint64_t offsets[41] = {random_next(&seed) % 5};
        for (unsigned r = 0; r < 40; r++)
            offsets[r + 1] = offsets[r] + random_next(&seed) % most[i % 4] * (random_next(&seed) % 4 > 0);
        const struct convolve params =
            convolve_params(random_next(&seed) % 2, CONVOLVE_SAME, 1 + random_next(&seed) % 60, i % 2);
        struct step_case c = {
            .kernel = &convolve_kernel,
            .params = &params,
            .params_bytes = sizeof params,
            .row_count = i < 6 ? 40 : 1,
            .offsets = offsets,
            .input = {.dtype = SCAND_DTYPE_F32, .layout = i % 3 ? LAYOUT_DENSE : LAYOUT_SPACED, .fill = STEP_NOISE},
            .output = {.dtype = SCAND_DTYPE_F32, .layout = LAYOUT_DENSE},
            .further[0] = {.given = true,
                           .dtype = SCAND_DTYPE_F32,
                           .length = params.taps,
                           .layout = LAYOUT_SHARED,
                           .fill = STEP_NOISE}};
        CHECK(step_case_check(&c, &seed));
    }
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(each_mode), TEST(taps_outside), TEST(adjoints),      TEST(every_dtype), TEST(few_taps),
        TEST(many_taps), TEST(many_samples), TEST(whole_vectors), TEST(ragged_rows), TEST_END};
    seed = random_seed();
    return test_main(argc, argv, tests);
}
