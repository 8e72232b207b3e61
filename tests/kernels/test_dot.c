/* Dot products of rows. */
#include <math.h>
#include <stdlib.h>

#include "kernels/cpu/cpu.h"
#include "kernels/steps/dot/dot.h"
#include "tests/check.h"
#include "tests/kernels/step_case.h"

static uint64_t seed;

static double reference(const double *x, const double *y, uint64_t length)
{
    double result = NAN;
    struct step_rows rows = {.row_count = 1,
                             .input = {.origin = (char *)x, .length = length, .stride = 8, .dtype = SCAND_DTYPE_F64},
                             .output = {.origin = (char *)&result, .length = 1, .stride = 8, .dtype = SCAND_DTYPE_F64}};
    rows.further[DOT_OTHER] =
        (struct step_operand){.origin = (char *)y, .length = length, .stride = 8, .dtype = SCAND_DTYPE_F64};
    const struct step_tile all = {0, 1, 0, 1};
    dot_kernel.reference(&rows, NULL, &all, NULL);
    return result;
}

static void products_are_added(void)
{
    const double x[3] = {1, -2, 3}, y[3] = {10, 100, 1000}, zeros[2] = {0, -0.0}, ones[2] = {-1, 1};
    CHECK(reference(x, y, 3) == 2810);
    CHECK(reference(x, y, 0) == 0);
    CHECK(signbit(reference(zeros, ones, 2)) && reference(zeros, ones, 2) == 0);
}

/* The order of additions is order 1: leaves of 16, then pairs. The units are lost in 2^53 unless they meet each other
 * first. */
static void leaves_are_added_apart(void)
{
    double x[64], ones[64];
    for (int i = 0; i < 64; i++)
        x[i] = ones[i] = 1;
    x[0] = 0x1p53;
    CHECK(reference(x, ones, 16) == 0x1p53);
    CHECK(reference(x, ones, 32) == 0x1p53 + 16);
    CHECK(reference(x, ones, 64) == 0x1p53 + 48);
    CHECK(reference(x, ones, 48) == 0x1p53 + 32);
}

/* A dot product is linear: powers of two move out of it without a rounding. And the operands may change places. */
static void it_is_linear(void)
{
    enum { LENGTH = 20000 };
    static double x[LENGTH], y[LENGTH], more[LENGTH];
    for (int i = 0; i < LENGTH; i++) {
        x[i] = (double)(int64_t)random_next(&seed) * 0x1p-63;
        y[i] = (double)(int64_t)random_next(&seed) * 0x1p-63;
        more[i] = 8 * x[i];
    }
    CHECK(reference(more, y, LENGTH) == 8 * reference(x, y, LENGTH));
    CHECK(reference(y, x, LENGTH) == reference(x, y, LENGTH));
}

struct shape {
    uint64_t rows, length;
};

static bool layout_may_be_written(enum step_layout layout)
{
    return layout != LAYOUT_SHARED;
}

static enum step_layout any_layout(bool written)
{
    enum step_layout layout;
    do
        layout = random_next(&seed) % LAYOUT_COUNT;
    while (written && !layout_may_be_written(layout));
    return layout;
}

static void check(enum scand_dtype x, enum scand_dtype y, enum scand_dtype result, struct shape shape,
                  enum step_layout layout, enum step_fill fill)
{
    struct step_case c = {.kernel = &dot_kernel,
                          .params = "",
                          .row_count = shape.rows,
                          .input = {.dtype = x, .length = shape.length, .layout = layout, .fill = fill},
                          .output = {.dtype = result, .length = 1, .layout = any_layout(true)}};
    const enum step_layout other = random_next(&seed) % 2 ? layout : any_layout(false);
    c.further[DOT_OTHER] =
        (struct step_case_operand){.given = true, .dtype = y, .length = shape.length, .layout = other, .fill = fill};
    CHECK(step_case_check(&c, &seed));
}

static bool is_pair(enum scand_dtype x, enum scand_dtype y, enum scand_dtype result)
{
    if (codec_is_integer(x))
        return codec_class(x) == codec_class(y) && codec_is_integer(result) && codec_bytes(result) >= codec_bytes(x);
    return codec_class(x) == codec_class(y) && !codec_is_integer(result);
}

static void every_dtype(void)
{
    for (unsigned x = 0; x < SCAND_DTYPE_COUNT; x++)
        for (unsigned y = 0; y < SCAND_DTYPE_COUNT; y++)
            for (unsigned result = 0; result < SCAND_DTYPE_COUNT; result++)
                if (is_pair(x, y, result))
                    check(x, y, result, (struct shape){3, 600}, any_layout(false), STEP_NOISE);
}

static void every_layout(void)
{
    static const enum scand_dtype dtypes[] = {SCAND_DTYPE_F32,  SCAND_DTYPE_F64,   SCAND_DTYPE_F16,
                                              SCAND_DTYPE_BF16, SCAND_DTYPE_IBM32, SCAND_DTYPE_I64};
    for (unsigned i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++)
        for (unsigned layout = 0; layout < LAYOUT_COUNT; layout++) {
            const enum scand_dtype result = codec_is_integer(dtypes[i]) ? SCAND_DTYPE_I64 : SCAND_DTYPE_F64;
            const struct shape many = {33 + random_next(&seed) % 40, random_next(&seed) % 1500};
            check(dtypes[i], dtypes[i], result, many, layout, STEP_SPREAD);
            check(dtypes[i], dtypes[i], result, (struct shape){2, 1 + random_next(&seed) % 40000}, layout, STEP_NOISE);
        }
}

static void every_length(void)
{
    static const uint64_t lengths[] = {0,   1,    2,    15,   16,    17,    31,    32,    33,     511,  512,
                                       513, 1024, 8191, 8192, 16383, 16384, 16385, 40000, 600000, 1003, 40003};
    for (unsigned i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        const struct shape shape = {lengths[i] % 1000 == 3 ? 1 : 1 + random_next(&seed) % 9, lengths[i]};
        check(SCAND_DTYPE_F32, SCAND_DTYPE_F32, SCAND_DTYPE_F64, shape, LAYOUT_DENSE, STEP_SPREAD);
        if (lengths[i] < 40000)
            check(SCAND_DTYPE_F32, SCAND_DTYPE_F32, SCAND_DTYPE_F32, (struct shape){35, lengths[i]}, LAYOUT_COLUMNS,
                  STEP_SPREAD);
    }
    check(SCAND_DTYPE_F64, SCAND_DTYPE_F64, SCAND_DTYPE_F64, (struct shape){9, 40000}, LAYOUT_COLUMNS, STEP_SPREAD);
    check(SCAND_DTYPE_F32, SCAND_DTYPE_F32, SCAND_DTYPE_F32, (struct shape){9000, 3}, LAYOUT_DENSE, STEP_NOISE);
}

/* So many dense rows that a GPU takes them by warps that have several. */
static void many_rows(void)
{
    static const enum scand_dtype dtypes[] = {SCAND_DTYPE_F32, SCAND_DTYPE_F64, SCAND_DTYPE_F16};
    static const uint64_t lengths[] = {8, 16, 24, 504, 512, 520, 1024, 1032, 4104};
    for (unsigned i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++) {
        for (unsigned k = 0; k < sizeof lengths / sizeof lengths[0]; k++) {
            const struct shape shape = {512 + random_next(&seed) % 100, lengths[k]};
            check(dtypes[i], dtypes[i], SCAND_DTYPE_F64, shape, LAYOUT_DENSE, STEP_SPREAD);
            check(dtypes[i], dtypes[i], SCAND_DTYPE_F32, shape, LAYOUT_DENSE, STEP_SPECIALS);
        }
    }
    check(SCAND_DTYPE_F32, SCAND_DTYPE_F32, SCAND_DTYPE_F64, (struct shape){515, 16388}, LAYOUT_DENSE, STEP_NOISE);
    check(SCAND_DTYPE_F32, SCAND_DTYPE_F32, SCAND_DTYPE_F64, (struct shape){4001, 8}, LAYOUT_DENSE, STEP_NOISE);
}

/* Rows that are divided: by threads that take turns, on a GPU, and whole, the same bits. */
static void long_rows(void)
{
    static const struct shape shapes[] = {
        {1, DOT_DIVIDED}, {3, DOT_DIVIDED + 1}, {1, 33 * ORDER_BLOCK + 5}, {2, 600001}, {1, (1 << 20) + 17}};
    for (unsigned i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        check(SCAND_DTYPE_F32, SCAND_DTYPE_F32, SCAND_DTYPE_F64, shapes[i], LAYOUT_DENSE, STEP_SPREAD);
        check(SCAND_DTYPE_F64, SCAND_DTYPE_F64, SCAND_DTYPE_F32, shapes[i], any_layout(false), STEP_NOISE);
        check(SCAND_DTYPE_F16, SCAND_DTYPE_F32, SCAND_DTYPE_F64, shapes[i], any_layout(false), STEP_SPECIALS);
        check(SCAND_DTYPE_I32, SCAND_DTYPE_I32, SCAND_DTYPE_I64, shapes[i], any_layout(false), STEP_NOISE);
    }
}

/* Some of the rows with several outer dimensions, from a row in the middle on, in memory of those rows alone. */
static void parts_of_some_rows(void)
{
    enum { LENGTH = DOT_DIVIDED + 100, ROWS = 6 };
    float *x = malloc(sizeof *x * LENGTH * ROWS);
    double found[ROWS] = {0}, expected[ROWS] = {0};
    struct cpu_pool *pool = cpu_pool_create(2);
    REQUIRE(x && pool);
    for (int i = 0; i < LENGTH * ROWS; i++)
        x[i] = (float)((double)(int64_t)random_next(&seed) * 0x1p-63);
    struct step_rows rows = {
        .row_count = ROWS,
        .outer_rank = 2,
        .outer_shape = {2, 3},
        .input = {(char *)x, LENGTH, 4, {12 * LENGTH, 4 * LENGTH}, SCAND_DTYPE_F32, false},
        .output = {(char *)found, 1, 8, {24, 8}, SCAND_DTYPE_F64, false},
    };
    rows.further[DOT_OTHER] = rows.input;
    CHECK(step_parts_of(&dot_kernel, &rows) != NULL);
    struct step_task *task = step_task_create(pool, &dot_kernel, &rows, "", 0, 2, 3);
    REQUIRE(task);
    CHECK_EQ(step_task_run(task, NULL, NULL), 0);
    step_task_destroy(task);
    const struct step_tile some = {2, 3, 0, 1};
    rows.output.origin = (char *)expected;
    dot_kernel.reference(&rows, NULL, &some, NULL);
    CHECK(memcmp(found, expected, sizeof found) == 0 && expected[2] > 0 && expected[5] == 0);
    cpu_pool_destroy(pool);
    free(x);
}

static void special_values(void)
{
    for (int i = 0; i < 20; i++)
        check(SCAND_DTYPE_F32, SCAND_DTYPE_F16, SCAND_DTYPE_F32, (struct shape){20, 1 + random_next(&seed) % 30},
              any_layout(false), STEP_SPECIALS);
}

/* Ragged rows of different lengths, some without samples, one much longer than the others. */
static void ragged_rows(void)
{
    enum { ROWS = 50 };
    for (int turn = 0; turn < 6; turn++) {
        uint64_t offsets[ROWS + 1] = {random_next(&seed) % 5};
        for (int i = 0; i < ROWS; i++)
            offsets[i + 1] = offsets[i] + (random_next(&seed) % 3 ? random_next(&seed) % (turn % 2 ? 40 : 3000) : 0);
        if (turn == 0)
            offsets[ROWS] += 40000;
        struct step_case c = {.kernel = &dot_kernel,
                              .params = "",
                              .row_count = ROWS,
                              .offsets = offsets,
                              .input = {.dtype = SCAND_DTYPE_F32, .layout = turn % 3 ? LAYOUT_DENSE : LAYOUT_SPACED},
                              .output = {.dtype = SCAND_DTYPE_F64, .length = 1}};
        c.further[DOT_OTHER] = (struct step_case_operand){.given = true, .dtype = SCAND_DTYPE_F32};
        CHECK(step_case_check(&c, &seed));
    }
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(products_are_added), TEST(leaves_are_added_apart), TEST(it_is_linear), TEST(every_dtype),
        TEST(every_layout),       TEST(every_length),           TEST(many_rows),    TEST(long_rows),
        TEST(parts_of_some_rows), TEST(special_values),         TEST(ragged_rows),  TEST_END};
    seed = random_seed();
    return test_main(argc, argv, tests);
}
