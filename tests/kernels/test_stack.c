/* Samples added into bins. */
#include "kernels/steps/stack/stack.h"

#include <math.h>

#include "tests/check.h"
#include "tests/kernels/step_case.h"

static uint64_t seed;

/* A row of f64, and what becomes of it. */
static void reference(const double *x, const int32_t *index, uint64_t length, const struct stack *stack, double *y,
                      int64_t *folds)
{
    struct step_rows rows = {
        .row_count = 1,
        .input = {.origin = (char *)x, .length = length, .stride = 8, .dtype = SCAND_DTYPE_F64},
        .output = {.origin = (char *)y, .length = stack->bins, .stride = 8, .dtype = SCAND_DTYPE_F64}};
    rows.further[STACK_INDEX] =
        (struct step_operand){.origin = (char *)index, .length = length, .stride = 4, .dtype = SCAND_DTYPE_I32};
    if (folds)
        rows.further[STACK_FOLD] = (struct step_operand){
            .origin = (char *)folds, .length = stack->bins, .stride = 8, .dtype = SCAND_DTYPE_I64};
    const struct step_tile all = {0, 1, 0, stack->bins};
    stack_kernel.reference(&rows, stack, &all, NULL);
}

static void samples_are_added(void)
{
    const double x[6] = {1, 10, 100, 0, 1000, -3};
    const int32_t index[6] = {2, 0, 2, 0, 2, 3};
    struct stack stack = {.bins = 4, .norm = STACK_NORM_NONE, .power = 1, .alpha = 1};
    double y[4];
    int64_t folds[4];
    reference(x, index, 6, &stack, y, folds);
    CHECK(y[0] == 10 && y[1] == 0 && y[2] == 1101 && y[3] == -3);
    CHECK(folds[0] == 1 && folds[1] == 0 && folds[2] == 3 && folds[3] == 1);
    stack.norm = STACK_NORM_FOLD;
    reference(x, index, 6, &stack, y, NULL);
    CHECK(y[0] == 10 && y[1] == 0 && y[2] == 367 && y[3] == -3);
    stack.power = 2;
    reference(x, index, 6, &stack, y, NULL);
    CHECK(y[2] == 1101 / 9.0);
    stack.power = 0.5;
    reference(x, index, 6, &stack, y, NULL);
    CHECK(y[2] == 1101 / sqrt(3));
}

/* A row of f64 onto what y has, which it becomes. */
static void reference_onto(const double *x, const int32_t *index, uint64_t length, double alpha, double *y,
                           uint64_t bins)
{
    const struct stack stack = {.bins = bins, .norm = STACK_NORM_NONE, .power = 1, .alpha = alpha};
    const struct step_operand made = {.origin = (char *)y, .length = bins, .stride = 8, .dtype = SCAND_DTYPE_F64};
    struct step_rows rows = {.row_count = 1,
                             .input = {.origin = (char *)x, .length = length, .stride = 8, .dtype = SCAND_DTYPE_F64},
                             .output = made};
    rows.further[STACK_INDEX] =
        (struct step_operand){.origin = (char *)index, .length = length, .stride = 4, .dtype = SCAND_DTYPE_I32};
    rows.further[STACK_ONTO] = made;
    const struct step_tile all = {0, 1, 0, bins};
    stack_kernel.reference(&rows, &stack, &all, NULL);
}

static void samples_are_added_onto_others(void)
{
    const double x[5] = {1, 10, 100, 0, -3};
    const int32_t index[5] = {2, 0, 2, 1, 7};
    double y[4] = {0.5, -0.0, NAN, -0.0};
    reference_onto(x, index, 5, -2, y, 4);
    CHECK(y[0] == -19.5 && y[1] == 0 && isnan(y[2]));
    CHECK(y[3] == 0 && signbit(y[3])); /* nothing is added to this bin */
    y[2] = 1000;
    reference_onto(x, index, 5, 0.5, y, 4);
    CHECK(y[0] == -14.5 && y[2] == 1050.5);
}

/* The sums equal loops that are written from the formula, in the same order. */
static void sums_of_the_formula(void)
{
    enum { LENGTH = 2000, BINS = 37 };
    static double x[LENGTH], y[BINS], expected[BINS];
    static int32_t index[LENGTH];
    for (int turn = 0; turn < 8; turn++) {
        const double alpha = turn == 0 ? 1 : ldexp((double)(int64_t)random_next(&seed), -62);
        for (int b = 0; b < BINS; b++)
            y[b] = expected[b] = ldexp((double)(int64_t)random_next(&seed), -60);
        for (int i = 0; i < LENGTH; i++) {
            x[i] = (double)(int64_t)random_next(&seed) * 0x1p-63;
            index[i] = (int32_t)(random_next(&seed) % BINS);
            expected[index[i]] = expected[index[i]] + alpha * x[i];
        }
        reference_onto(x, index, LENGTH, alpha, y, BINS);
        CHECK(memcmp(y, expected, sizeof y) == 0);
    }
}

static void what_is_out_of_range_is_left_out(void)
{
    const double x[5] = {1, 2, 4, 8, 16};
    const int32_t index[5] = {0, -1, 2, INT32_MAX, 1};
    const struct stack stack = {.bins = 2, .norm = STACK_NORM_NONE, .power = 1, .alpha = 1};
    double y[2];
    reference(x, index, 5, &stack, y, NULL);
    CHECK(y[0] == 1 && y[1] == 16);
}

static void powers_are_powers(void)
{
    static const double powers[] = {0x1p-10, 0.1, 0.25, 0.5, 2.0 / 3, 1, 1.5, 2, 3.75, 8};
    for (unsigned i = 0; i < sizeof powers / sizeof powers[0]; i++)
        for (double fold = 1; fold < 0x1p24; fold = floor(fold * 1.7) + 1)
            CHECK(fabs(stack_power(fold, powers[i]) / pow(fold, powers[i]) - 1) < 32 * 0x1p-52);
}

/* The adjoint gathers: <A x, y> = <x, A* y>. */
static void the_adjoint_gathers(void)
{
    enum { LENGTH = 3000, BINS = 70 };
    static double x[LENGTH], y[BINS], stacked[BINS];
    static int32_t index[LENGTH];
    const struct stack stack = {.bins = BINS, .norm = STACK_NORM_NONE, .power = 1, .alpha = 1};
    double left = 0, right = 0;
    for (int i = 0; i < LENGTH; i++) {
        x[i] = (double)(int64_t)random_next(&seed) * 0x1p-63;
        index[i] = (int32_t)(random_next(&seed) % BINS);
    }
    for (int b = 0; b < BINS; b++)
        y[b] = (double)(int64_t)random_next(&seed) * 0x1p-63;
    reference(x, index, LENGTH, &stack, stacked, NULL);
    for (int b = 0; b < BINS; b++)
        left += stacked[b] * y[b];
    for (int i = 0; i < LENGTH; i++)
        right += x[i] * y[index[i]];
    CHECK(fabs(left - right) < 1e-11);
}

/*
 * Implementations against the reference.
 */

struct shape {
    uint64_t rows, length, bins;
};

static struct step_case case_of(enum scand_dtype from, enum scand_dtype to, struct shape shape, struct stack *stack)
{
    *stack = (struct stack){.bins = shape.bins, .norm = STACK_NORM_NONE, .power = 1, .alpha = 1};
    struct step_case c = {.kernel = &stack_kernel,
                          .params = stack,
                          .params_bytes = sizeof *stack,
                          .row_count = shape.rows,
                          .input = {.dtype = from, .length = shape.length, .fill = STEP_SPREAD},
                          .output = {.dtype = to, .length = shape.bins}};
    c.further[STACK_INDEX] =
        (struct step_case_operand){.given = true,
                                   .dtype = random_next(&seed) % 2 ? SCAND_DTYPE_I32 : SCAND_DTYPE_I64,
                                   .length = shape.length,
                                   .layout = LAYOUT_SHARED,
                                   .below = shape.bins + shape.bins / 8};
    return c;
}

static void with_fold(struct step_case *c)
{
    c->further[STACK_FOLD] =
        (struct step_case_operand){.given = true,
                                   .dtype = random_next(&seed) % 2 ? SCAND_DTYPE_I32 : SCAND_DTYPE_I64,
                                   .length = c->output.length,
                                   .layout = random_next(&seed) % LAYOUT_SHARED};
}

static enum step_layout any_layout(bool written)
{
    return random_next(&seed) % (written ? LAYOUT_SHARED : LAYOUT_COUNT);
}

/* Adds onto an operand of the class of the samples, which the output may be. */
static void with_onto(struct step_case *c, struct stack *stack)
{
    const bool in_place = codec_class(c->input.dtype) == codec_class(c->output.dtype) && random_next(&seed) % 2;
    stack->norm = STACK_NORM_NONE;
    stack->alpha = random_next(&seed) % 3 ? (double)(int64_t)(random_next(&seed) % 17) - 8 : 1;
    if (!codec_is_integer(c->input.dtype))
        stack->alpha *= random_next(&seed) % 2 ? 1 : 0.3;
    c->onto = in_place ? 1 + STACK_ONTO : 0;
    c->further[STACK_ONTO] = (struct step_case_operand){.given = true,
                                                        .dtype = in_place ? c->output.dtype : c->input.dtype,
                                                        .length = c->output.length,
                                                        .layout = in_place ? c->output.layout : any_layout(false),
                                                        .fill = c->input.fill};
}

static bool may_become(enum scand_dtype from, enum scand_dtype to)
{
    return codec_is_integer(from) == codec_is_integer(to) &&
           (!codec_is_integer(from) || codec_bytes(to) >= codec_bytes(from));
}

static void every_dtype(void)
{
    struct stack stack;
    for (unsigned from = 0; from < SCAND_DTYPE_COUNT; from++)
        for (unsigned to = 0; to < SCAND_DTYPE_COUNT; to++)
            if (may_become(from, to))
                for (unsigned layout = LAYOUT_DENSE; layout <= LAYOUT_COLUMNS; layout += 2) {
                    struct step_case c = case_of(from, to, (struct shape){37, 60, 5}, &stack);
                    c.input.layout = c.output.layout = layout;
                    c.input.fill = STEP_NOISE;
                    with_fold(&c);
                    CHECK(step_case_check(&c, &seed));
                    with_onto(&c, &stack);
                    CHECK(step_case_check(&c, &seed));
                }
}

/* Rows one after the other, and side by side, of an index for all or for each. */
static void every_layout(void)
{
    static const struct shape shapes[] = {{1, 700, 40},   {5, 0, 3},      {3, 1000, 700}, {33, 257, 17},
                                          {129, 300, 40}, {1100, 40, 33}, {40, 513, 1},   {200, 1, 9}};
    struct stack stack;
    for (unsigned s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
        for (unsigned layout = 0; layout < LAYOUT_COUNT; layout++)
            for (unsigned own = 0; own < 2; own++) {
                struct step_case c = case_of(SCAND_DTYPE_F32, SCAND_DTYPE_F32, shapes[s], &stack);
                c.input.layout = layout;
                c.output.layout = random_next(&seed) % LAYOUT_SHARED;
                c.further[STACK_INDEX].layout = own ? random_next(&seed) % LAYOUT_SHARED : LAYOUT_SHARED;
                if (random_next(&seed) % 2)
                    with_fold(&c);
                stack.norm = random_next(&seed) % 2 ? STACK_NORM_FOLD : STACK_NORM_NONE;
                stack.power = 0.25 * (double)(1 + random_next(&seed) % 8);
                CHECK(step_case_check(&c, &seed));
                with_onto(&c, &stack);
                CHECK(step_case_check(&c, &seed));
            }
}

static void many_bins(void)
{
    struct stack stack;
    for (int i = 0; i < 4; i++) {
        struct step_case c =
            case_of(i % 2 ? SCAND_DTYPE_F64 : SCAND_DTYPE_F16, SCAND_DTYPE_F64, (struct shape){2, 100, 40000}, &stack);
        c.input.layout = c.output.layout = i < 2 ? LAYOUT_DENSE : LAYOUT_COLUMNS;
        CHECK(step_case_check(&c, &seed));
        with_onto(&c, &stack);
        CHECK(step_case_check(&c, &seed));
    }
    struct step_case c = case_of(SCAND_DTYPE_F32, SCAND_DTYPE_F64, (struct shape){70, 20, 700}, &stack);
    c.input.layout = LAYOUT_COLUMNS;
    CHECK(step_case_check(&c, &seed));
}

/* NaN counts as a sample, zeros do not. */
static void special_values(void)
{
    struct stack stack;
    for (int i = 0; i < 20; i++) {
        const struct shape shape = {1 + random_next(&seed) % 50, 1 + random_next(&seed) % 50,
                                    1 + random_next(&seed) % 20};
        struct step_case c = case_of(SCAND_DTYPE_F32, SCAND_DTYPE_F32, shape, &stack);
        c.input.fill = STEP_SPECIALS;
        c.input.layout = i % 2 ? LAYOUT_COLUMNS : LAYOUT_DENSE;
        with_fold(&c);
        stack.norm = i % 3 ? STACK_NORM_FOLD : STACK_NORM_NONE;
        CHECK(step_case_check(&c, &seed));
        with_onto(&c, &stack);
        CHECK(step_case_check(&c, &seed));
    }
}

/* Indices of any value do no harm, as they may be changed while a job runs. */
static void hostile_indices(void)
{
    struct stack stack;
    for (unsigned layout = 0; layout < LAYOUT_COUNT; layout++) {
        struct step_case c = case_of(SCAND_DTYPE_F32, SCAND_DTYPE_F64, (struct shape){70, 300, 40}, &stack);
        c.input.layout = layout;
        c.further[STACK_INDEX].below = 0;
        c.further[STACK_INDEX].layout = random_next(&seed) % LAYOUT_COUNT;
        CHECK(step_case_check(&c, &seed));
        with_onto(&c, &stack);
        CHECK(step_case_check(&c, &seed));
    }
}

/*
 * Borders of what a thread block has.
 */

#ifdef SCAND_HAVE_CUDA
static step_launch *const launches[] = {NULL, stack_launch_wide};
#else
static step_launch *const launches[] = {NULL};
#endif

/* The kernel's own launch, and on a GPU each further one. */
static unsigned launch_count(void)
{
    return step_case_has_cuda() ? sizeof launches / sizeof launches[0] : 1;
}

/* Columns of an index for all, by each launch: without folds and with them, from zeros and onto others. */
static void check_columns(struct shape shape, enum scand_dtype dtype, enum step_order order)
{
    for (unsigned i = 0; i < launch_count(); i++)
        for (unsigned kind = 0; kind < 3; kind++) {
            struct stack stack;
            struct step_case c = case_of(dtype, dtype, shape, &stack);
            c.launch = launches[i];
            c.input.layout = c.output.layout = LAYOUT_COLUMNS;
            c.further[STACK_INDEX].order = order;
            if (kind == 1)
                with_fold(&c);
            if (kind == 2)
                with_onto(&c, &stack);
            else
                stack.norm = random_next(&seed) % 4 ? STACK_NORM_NONE : STACK_NORM_FOLD;
            CHECK(step_case_check(&c, &seed));
        }
}

/* Rows and bins about those of warps and thread blocks. */
static void borders_of_rows_and_bins(void)
{
    static const uint64_t rows[] = {1, 31, 32, 33, 127, 128, 129, 257, 1000};
    static const uint64_t bins[] = {1, 2, 15, 16, 17, 31, 32, 33, 500, 5000};
    for (unsigned r = 0; r < sizeof rows / sizeof rows[0]; r++)
        for (unsigned b = 0; b < sizeof bins / sizeof bins[0]; b++) {
            const uint64_t most = 300000 / (rows[r] * bins[b]);
            const struct shape shape = {rows[r], 4 + random_next(&seed) % (most < 500 ? most + 1 : 500), bins[b]};
            check_columns(shape, SCAND_DTYPE_F32, random_next(&seed) % STEP_ORDER_COUNT);
        }
}

/* Lists of all lengths about the samples that are added at a time, and stretches that are cut short. */
static void borders_of_lengths(void)
{
    for (uint64_t length = 0; length < 300; length += 1 + random_next(&seed) % 7)
        check_columns((struct shape){40 + random_next(&seed) % 100, length, 1 + random_next(&seed) % 4},
                      SCAND_DTYPE_F32, random_next(&seed) % STEP_ORDER_COUNT);
}

/* Indices about those that a thread block looks up once, as often as it does at a time, or in a batch, of each order.
 * Those of 1,024 samples warps still look up for themselves. */
static void borders_of_sorting(void)
{
    static const uint64_t lengths[] = {1023, 1024, 1025, 2047,  2049,  7168,  7169,  8191,
                                       8192, 8193, 9217, 11264, 11265, 14336, 14337, 40000};
    for (unsigned i = 0; i < sizeof lengths / sizeof lengths[0]; i++)
        for (unsigned order = 0; order < STEP_ORDER_COUNT; order++)
            check_columns((struct shape){33 + random_next(&seed) % 2, lengths[i], 1 + random_next(&seed) % 7},
                          SCAND_DTYPE_F32, order);
    check_columns((struct shape){130, 11300, 34}, SCAND_DTYPE_F32, STEP_RANDOM);
    check_columns((struct shape){33, 11300, 34}, SCAND_DTYPE_F64, STEP_RANDOM);
    check_columns((struct shape){33, 11300, 34}, SCAND_DTYPE_U32, STEP_RANDOM);
}

static void orders_of_each_dtype(void)
{
    for (unsigned dtype = 0; dtype < SCAND_DTYPE_COUNT; dtype++)
        for (unsigned order = 0; order < STEP_ORDER_COUNT; order++)
            check_columns((struct shape){45, 1 + random_next(&seed) % 200, 35}, dtype, order);
}

/* Every integer dtype, aligned or not, is an index. */
static void every_index(void)
{
    for (unsigned dtype = 0; dtype < SCAND_DTYPE_COUNT; dtype++)
        for (unsigned layout = 0; layout < LAYOUT_COUNT && codec_is_integer(dtype); layout++) {
            struct stack stack;
            struct step_case c = case_of(SCAND_DTYPE_F32, SCAND_DTYPE_F32, (struct shape){66, 500, 40}, &stack);
            c.input.layout = c.output.layout = LAYOUT_COLUMNS;
            c.further[STACK_INDEX].dtype = dtype;
            c.further[STACK_INDEX].layout = layout;
            CHECK(step_case_check(&c, &seed));
        }
}

/* Planes of columns, each with an index of its own that its rows share, and other layouts of two dimensions. */
static void planes_of_columns(void)
{
    static const uint64_t widths[] = {1, 5, 31, 32, 33, 128, 130};
    for (unsigned w = 0; w < sizeof widths / sizeof widths[0]; w++)
        for (unsigned i = 0; i < launch_count(); i++)
            for (unsigned layout = 0; layout < LAYOUT_COUNT; layout++) {
                const uint64_t planes = 2 + random_next(&seed) % 5;
                const struct shape shape = {planes * widths[w], random_next(&seed) % 150, 1 + random_next(&seed) % 70};
                struct stack stack;
                struct step_case c = case_of(SCAND_DTYPE_F32, SCAND_DTYPE_F32, shape, &stack);
                c.launch = launches[i];
                c.planes = planes;
                c.input.layout = layout;
                c.output.layout = any_layout(true);
                if (random_next(&seed) % 4 == 0)
                    c.further[STACK_INDEX].layout = LAYOUT_DENSE;
                if (random_next(&seed) % 2)
                    with_fold(&c);
                CHECK(step_case_check(&c, &seed));
                with_onto(&c, &stack);
                CHECK(step_case_check(&c, &seed));
            }
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {TEST(samples_are_added),
                                        TEST(samples_are_added_onto_others),
                                        TEST(sums_of_the_formula),
                                        TEST(what_is_out_of_range_is_left_out),
                                        TEST(powers_are_powers),
                                        TEST(the_adjoint_gathers),
                                        TEST(every_dtype),
                                        TEST(every_layout),
                                        TEST(many_bins),
                                        TEST(special_values),
                                        TEST(hostile_indices),
                                        TEST(borders_of_rows_and_bins),
                                        TEST(borders_of_lengths),
                                        TEST(borders_of_sorting),
                                        TEST(orders_of_each_dtype),
                                        TEST(every_index),
                                        TEST(planes_of_columns),
                                        TEST_END};
    seed = random_seed();
    return test_main(argc, argv, tests);
}
