/* Rows without their means. */
#include <math.h>

#include "kernels/steps/demean/demean.h"
#include "tests/check.h"
#include "tests/kernels/step_case.h"

#define COUNT(LIST) (sizeof(LIST) / sizeof(LIST)[0])

static uint64_t seed;

static void reference(double *x, uint64_t length)
{
    const struct step_operand row = {.origin = (char *)x, .length = length, .stride = 8, .dtype = SCAND_DTYPE_F64};
    const struct step_rows rows = {.row_count = 1, .input = row, .output = row};
    const struct step_tile all = {0, 1, 0, length};
    demean_kernel.reference(&rows, NULL, &all, NULL);
}

static void means_are_taken_off(void)
{
    double x[4] = {1, 2, 3, 6}, infinite[3] = {1, INFINITY, 2};
    reference(x, 4);
    CHECK(x[0] == -2 && x[1] == -1 && x[2] == 0 && x[3] == 3);
    reference(infinite, 3);
    CHECK(infinite[0] == -INFINITY && isnan(infinite[1]) && infinite[2] == -INFINITY);
    reference(NULL, 0);
}

/* The total is that of order 1: the units are lost in 2^53 unless they meet each other first. */
static void totals_are_of_order_1(void)
{
    double x[32];
    for (int i = 0; i < 32; i++)
        x[i] = 1;
    x[0] = 0x1p53;
    reference(x, 32);
    CHECK(x[31] == 1 - (0x1p53 + 16) / 32);
}

/*
 * A scan that takes the mean first has the same bits.
 */

static struct scan_rows scan_rows_of(double *x, uint64_t length, bool demean)
{
    return (struct scan_rows){.rule = {.passes = {SCAND_PASS_FORWARD},
                                       .pass_count = 1,
                                       .accumulator = SCAND_ACCUMULATOR_F64,
                                       .input = SCAND_DTYPE_F64,
                                       .output = SCAND_DTYPE_F64,
                                       .demean = demean},
                              .row_count = 1,
                              .length = length,
                              .input = x,
                              .input_stride = 8,
                              .output = x,
                              .output_stride = 8};
}

static void as_a_scan_has_it(void)
{
    enum { MOST = 40000 };
    static double x[MOST], y[MOST];
    static const uint64_t lengths[] = {1, 15, 16, 17, 511, 513, 16384, 16385, MOST};
    for (unsigned i = 0; i < COUNT(lengths); i++) {
        for (uint64_t k = 0; k < lengths[i]; k++)
            x[k] = y[k] = 3 + (double)(int64_t)random_next(&seed) * 0x1p-63;
        const struct scan_rows at_once = scan_rows_of(x, lengths[i], true), after = scan_rows_of(y, lengths[i], false);
        CHECK_EQ(scan_reference(&at_once, 0, 1), 0);
        reference(y, lengths[i]);
        CHECK_EQ(scan_reference(&after, 0, 1), 0);
        CHECK(memcmp(x, y, lengths[i] * sizeof *x) == 0);
    }
}

/*
 * All implementations.
 */

static void check_laid_out(enum scand_dtype from, enum scand_dtype to, uint64_t rows, uint64_t length,
                           enum step_fill fill, bool in_place, enum step_layout given, enum step_layout made)
{
    const struct step_case c = {.kernel = &demean_kernel,
                                .params = "",
                                .row_count = rows,
                                .in_place = in_place,
                                .input = {.dtype = from, .length = length, .layout = given, .fill = fill},
                                .output = {.dtype = to, .length = length, .layout = made}};
    CHECK(step_case_check(&c, &seed));
}

static void check(enum scand_dtype from, enum scand_dtype to, uint64_t rows, uint64_t length, enum step_fill fill)
{
    const bool in_place = from == to && random_next(&seed) % 2;
    check_laid_out(from, to, rows, length, fill, in_place,
                   random_next(&seed) % (in_place ? LAYOUT_SHARED : LAYOUT_COUNT), random_next(&seed) % LAYOUT_SHARED);
}

static void every_dtype(void)
{
    for (unsigned from = 0; from < SCAND_DTYPE_COUNT; from++)
        for (unsigned to = 0; to < SCAND_DTYPE_COUNT; to++)
            if (!codec_is_integer(from) && !codec_is_integer(to)) {
                check(from, to, 3, 600, STEP_NOISE);
                check(from, to, 5, 40, STEP_SPECIALS);
            }
}

static void every_length(void)
{
    static const uint64_t lengths[] = {0,   1,   2,    15,   16,   17,    31,    32,    33,    511,
                                       512, 513, 1024, 8191, 8192, 16383, 16384, 16385, 40000, 600000};
    for (unsigned i = 0; i < COUNT(lengths); i++) {
        check(SCAND_DTYPE_F32, SCAND_DTYPE_F32, 1 + random_next(&seed) % 3, lengths[i], STEP_SPREAD);
        if (lengths[i] < 20000)
            check(SCAND_DTYPE_F64, SCAND_DTYPE_F64, 1 + random_next(&seed) % 9, lengths[i], STEP_SPREAD);
    }
    check(SCAND_DTYPE_F32, SCAND_DTYPE_F64, 9000, 3, STEP_NOISE);
}

/* Dense rows that whole packs of 16 bytes do not fill. */
static void packs_and_a_tail(void)
{
    static const enum scand_dtype dtypes[] = {SCAND_DTYPE_F32, SCAND_DTYPE_F64, SCAND_DTYPE_F16, SCAND_DTYPE_BF16};
    for (unsigned i = 0; i < COUNT(dtypes); i++)
        for (uint64_t length = 1003; length <= 40003; length += 39000)
            check_laid_out(dtypes[i], dtypes[i], 1, length, STEP_SPREAD, false, LAYOUT_DENSE, LAYOUT_DENSE);
}

/* Dense rows that a GPU keeps in shared memory, by one warp or several, and some that are too short or too long. */
static void rows_in_shared_memory(void)
{
    static const uint64_t lengths[] = {252,  256,  508,  512,  516,   1024,  1028,  1536, 2052,
                                       4100, 8188, 8192, 8196, 12000, 16380, 16384, 16388};
    for (unsigned i = 0; i < COUNT(lengths); i++)
        for (enum step_fill fill = STEP_NOISE; fill <= STEP_SPREAD; fill++) {
            const enum scand_dtype dtype = random_next(&seed) % 3 ? SCAND_DTYPE_F32 : SCAND_DTYPE_F64;
            const uint64_t rows = 1 + random_next(&seed) % 20, length = lengths[i] - (rows == 1 ? i % 4 : 0);
            check_laid_out(dtype, dtype, rows, length, fill, random_next(&seed) % 2, LAYOUT_DENSE, LAYOUT_DENSE);
        }
    for (uint64_t length = 16377; length <= 16384; length++)
        check_laid_out(SCAND_DTYPE_F32, SCAND_DTYPE_F32, 1, length, STEP_SPREAD, false, LAYOUT_DENSE, LAYOUT_DENSE);
}

static void ragged_rows(void)
{
    for (unsigned i = 0; i < 8; i++) {
        static const uint64_t most[] = {3, 40, 700, 5000};
        uint64_t offsets[41] = {random_next(&seed) % 5};
        for (unsigned r = 0; r < 40; r++)
            offsets[r + 1] = offsets[r] + random_next(&seed) % most[i % 4] * (random_next(&seed) % 4 > 0);
        const struct step_case c = {
            .kernel = &demean_kernel,
            .params = "",
            .row_count = i < 6 ? 40 : 1,
            .offsets = offsets,
            .input = {.dtype = SCAND_DTYPE_F32, .layout = i % 3 ? LAYOUT_DENSE : LAYOUT_SPACED, .fill = STEP_NOISE},
            .output = {.dtype = SCAND_DTYPE_F32, .layout = LAYOUT_DENSE}};
        CHECK(step_case_check(&c, &seed));
    }
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(means_are_taken_off),   TEST(totals_are_of_order_1), TEST(as_a_scan_has_it),
        TEST(every_dtype),           TEST(every_length),          TEST(packs_and_a_tail),
        TEST(rows_in_shared_memory), TEST(ragged_rows),           TEST_END};
    seed = random_seed();
    return test_main(argc, argv, tests);
}
