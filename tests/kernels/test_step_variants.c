/*
 * The tutorials' variants of operations in tiles (kernels/tutorial/steps), each in the list: the bits of the reference,
 * for sums in any order with samples whose sums are exact.
 */
#include "kernels/steps/block_sum/block_sum.h"
#include "kernels/steps/convolve/convolve.h"
#include "kernels/steps/dot/dot.h"
#include "kernels/steps/map/map.h"
#include "kernels/steps/stack/stack.h"
#include "kernels/steps/upsample/upsample.h"
#include "kernels/tutorial/steps/steps.h"
#include "tests/check.h"
#include "tests/kernels/step_case.h"

static void names(void)
{
    for (int i = 0; i < STEP_VARIANT_COUNT; i++) {
        CHECK_EQ(step_variant_find(step_variant_list[i].name), i);
        CHECK(strlen(step_variant_list[i].teaches) > 20 && strlen(step_variant_list[i].teaches) < 100);
    }
    CHECK_EQ(step_variant_find("dot"), -1);
}

#ifdef SCAND_HAVE_CUDA
#include <cuda_runtime.h>

#include "tests/step_launches.h"

static uint64_t seed;

struct shape {
    uint64_t rows, length;
};

static const struct shape shapes[] = {
    {37, 0},   {1, 1},    {5, 3},     {40, 17},   {33, 64},   {9, 255},  {6, 257}, {7, 1000},
    {6, 1001}, {1, 1003}, {1, 40000}, {1, 40003}, {3, 20002}, {3000, 5}, {0, 9},
};
#define SHAPE_COUNT (sizeof shapes / sizeof shapes[0])

/* Returns a layout for an output: aligned, each element once. */
static enum step_layout output_layout(void)
{
    enum step_layout layout;
    do
        layout = random_next(&seed) % LAYOUT_COUNT;
    while (layout == LAYOUT_SHARED || layout == LAYOUT_PITCHED);
    return layout;
}

static struct step_case case_of(unsigned id, const void *params, size_t params_bytes, struct shape shape)
{
    const struct step_variant *variant = &step_variant_list[id];
    struct step_case c = {
        .kernel = variant->kernel,
        .launch = step_variant_launches[id],
        .params = params,
        .params_bytes = params_bytes,
        .row_count = shape.rows,
        .input = {.dtype = variant->dtype, .length = shape.length},
        .output = {.dtype = variant->dtype, .length = shape.length},
    };
    return c;
}

static void check(const struct step_case *c, unsigned id)
{
    const bool right = step_case_check(c, &seed);
    if (!right)
        fprintf(stderr, "that was %s\n", step_variant_list[id].name);
    CHECK(right);
}

static void dot_check(unsigned id, struct shape shape, enum step_layout layout, enum step_layout other)
{
    struct step_case c = case_of(id, "", 0, shape);
    c.input.layout = layout;
    c.input.fill = STEP_ONES;
    c.output.length = 1;
    c.output.layout = output_layout();
    c.further[DOT_OTHER] = (struct step_case_operand){
        .given = true, .dtype = c.input.dtype, .length = shape.length, .layout = other, .fill = STEP_ONES};
    check(&c, id);
}

static void dot_products(void)
{
    if (!step_case_has_cuda())
        SKIP("no GPU");
    for (unsigned id = 0; id < STEP_VARIANT_COUNT; id++)
        for (unsigned i = 0; i < SHAPE_COUNT && step_variant_list[id].kernel == &dot_kernel; i++) {
            dot_check(id, shapes[i], LAYOUT_DENSE, LAYOUT_DENSE);
            for (unsigned layout = 0; layout < LAYOUT_COUNT; layout++)
                dot_check(id, shapes[i], layout, random_next(&seed) % LAYOUT_COUNT);
        }
}

static void map_check(unsigned id, enum map_op op, struct shape shape, enum step_layout layout, bool with_other)
{
    const struct map map = {.op = op, .by = op == MAP_CLIP ? -0.25 : 1.5, .high = 0.5};
    struct step_case c = case_of(id, &map, sizeof map, shape);
    const enum step_fill fill = random_next(&seed) % STEP_ONES;
    c.in_place = random_next(&seed) % 2 && layout != LAYOUT_SHARED && layout != LAYOUT_PITCHED;
    c.input.layout = layout;
    c.input.fill = fill;
    c.output.layout = layout == LAYOUT_DENSE || c.in_place ? layout : output_layout();
    if (with_other)
        c.further[MAP_OTHER] = (struct step_case_operand){.given = true,
                                                          .dtype = c.input.dtype,
                                                          .length = shape.length,
                                                          .layout = random_next(&seed) % 3 ? layout : LAYOUT_SHARED,
                                                          .fill = fill};
    check(&c, id);
}

static void maps(void)
{
    if (!step_case_has_cuda())
        SKIP("no GPU");
    for (unsigned id = 0; id < STEP_VARIANT_COUNT; id++)
        for (enum map_op op = 0; op <= MAP_CAST && step_variant_list[id].kernel == &map_kernel; op++)
            for (unsigned i = 0; i < SHAPE_COUNT; i++) {
                map_check(id, op, shapes[i], LAYOUT_DENSE, op <= MAP_MAX && i % 2);
                map_check(id, op, shapes[i], random_next(&seed) % LAYOUT_COUNT, op <= MAP_MAX && i % 3 > 0);
            }
}

/* Outputs in pairs, and samples: of even and odd factors, of dense rows and of all others. */

static void upsample_check(unsigned id, uint64_t factor, struct shape shape, enum step_layout layout)
{
    const struct upsample upsample = {.factor = factor};
    struct step_case c = case_of(id, &upsample, sizeof upsample, shape);
    c.input.layout = layout;
    c.input.fill = STEP_SPECIALS;
    c.output.length = shape.length * factor;
    c.output.layout = layout == LAYOUT_DENSE ? LAYOUT_DENSE : output_layout();
    check(&c, id);
}

static void block_sum_check(unsigned id, uint64_t factor, struct shape shape, enum step_layout layout)
{
    const struct block_sum block_sum = {.factor = factor};
    struct step_case c = case_of(id, &block_sum, sizeof block_sum, shape);
    c.input.length = shape.length * factor;
    c.input.layout = layout;
    c.input.fill = random_next(&seed) % STEP_ONES;
    c.output.layout = output_layout();
    check(&c, id);
}

static void finer_and_coarser(void)
{
    static const uint64_t factors[] = {1, 2, 3, 4, 5, 6, 300};
    const uint64_t most = 50000; /* elements of the longer rows */
    if (!step_case_has_cuda())
        SKIP("no GPU");
    for (unsigned id = 0; id < STEP_VARIANT_COUNT; id++)
        for (unsigned f = 0; f < sizeof factors / sizeof factors[0]; f++)
            for (unsigned i = 0; i < SHAPE_COUNT; i++) {
                const bool up = step_variant_list[id].kernel == &upsample_kernel;
                if ((!up && step_variant_list[id].kernel != &block_sum_kernel) || shapes[i].length * factors[f] > most)
                    continue;
                (up ? upsample_check : block_sum_check)(id, factors[f], shapes[i], LAYOUT_DENSE);
                (up ? upsample_check : block_sum_check)(id, factors[f], shapes[i], random_next(&seed) % LAYOUT_COUNT);
            }
}

/* Outputs of a mode, of rows that have samples. */
static uint64_t outputs_of(enum convolve_mode mode, uint64_t length, uint64_t taps)
{
    const uint64_t valid = length >= taps ? length - taps + 1 : 0;
    return length == 0 ? 0 : mode == CONVOLVE_FULL ? length + taps - 1 : mode == CONVOLVE_SAME ? length : valid;
}

/* Filters of all rows, taps side by side, and any others. */
static void convolve_check(unsigned id, uint64_t taps, struct shape shape, enum step_layout layout,
                           enum step_layout filter)
{
    const enum convolve_mode mode = (enum convolve_mode)(random_next(&seed) % (CONVOLVE_VALID + 1));
    const bool wide = random_next(&seed) % 2;
    const struct convolve convolve = convolve_params(random_next(&seed) % 2, mode, taps, wide);
    struct step_case c = case_of(id, &convolve, sizeof convolve, shape);
    const enum step_fill fill = random_next(&seed) % STEP_ONES;
    c.input.layout = layout;
    c.input.fill = fill;
    c.output.length = outputs_of(mode, shape.length, taps);
    c.output.layout = output_layout();
    c.further[0] = (struct step_case_operand){
        .given = true, .dtype = c.input.dtype, .length = taps, .layout = filter, .fill = fill};
    check(&c, id);
}

static void convolutions(void)
{
    static const uint64_t taps[] = {1, 2, 31, 256, 257, LIMIT_TAPS};
    static const struct shape some[] = {{37, 0}, {1, 1}, {5, 3}, {9, 255}, {6, 257}, {4, 1000}, {1, 4100}, {2, 17000}};
    if (!step_case_has_cuda())
        SKIP("no GPU");
    for (unsigned id = 0; id < STEP_VARIANT_COUNT; id++)
        for (unsigned t = 0; t < sizeof taps / sizeof taps[0]; t++)
            for (unsigned i = 0; i < sizeof some / sizeof some[0]; i++) {
                if (step_variant_list[id].kernel != &convolve_kernel || (taps[t] == LIMIT_TAPS && i > 6))
                    continue;
                convolve_check(id, taps[t], some[i], LAYOUT_DENSE, LAYOUT_SHARED);
                convolve_check(id, taps[t], some[i], random_next(&seed) % LAYOUT_COUNT, LAYOUT_SHARED);
                convolve_check(id, taps[t], some[i], random_next(&seed) % LAYOUT_COUNT,
                               random_next(&seed) % LAYOUT_COUNT);
            }
}

/* Checks additions onto nothing, onto others, and onto the output's content; indices out of range are left out. */
static void index_add_check(unsigned id, uint64_t bins, struct shape shape, enum step_layout layout)
{
    const struct stack stack = {.bins = bins, .power = 1, .alpha = random_next(&seed) % 2 ? 1 : -2};
    const unsigned onto = random_next(&seed) % 3;
    struct step_case c = case_of(id, &stack, sizeof stack, shape);
    c.input.layout = layout;
    c.input.fill = STEP_ONES;
    c.output.length = bins;
    c.output.layout = output_layout();
    c.onto = onto == 2 ? 1 + STACK_ONTO : 0;
    c.further[STACK_INDEX] =
        (struct step_case_operand){.given = true,
                                   .dtype = random_next(&seed) % 2 ? SCAND_DTYPE_I32 : SCAND_DTYPE_I64,
                                   .length = shape.length,
                                   .layout = random_next(&seed) % LAYOUT_COUNT,
                                   .below = bins + bins / 8};
    if (onto > 0)
        c.further[STACK_ONTO] =
            (struct step_case_operand){.given = true,
                                       .dtype = c.input.dtype,
                                       .length = bins,
                                       .layout = onto == 2 ? c.output.layout : random_next(&seed) % LAYOUT_COUNT,
                                       .fill = STEP_ONES};
    check(&c, id);
}

static void additions(void)
{
    static const uint64_t bins[] = {1, 7, 300, 20000};
    if (!step_case_has_cuda())
        SKIP("no GPU");
    for (unsigned i = 0; i < SHAPE_COUNT; i++)
        for (unsigned b = 0; b < sizeof bins / sizeof bins[0]; b++)
            for (unsigned layout = 0; layout < LAYOUT_COUNT; layout++)
                if (shapes[i].rows * bins[b] <= 200000)
                    index_add_check(STEP_VARIANT_index_add_atomic, bins[b], shapes[i], layout);
}

static void refusals(void)
{
    float numbers[4] = {0};
    struct step_rows rows = {.row_count = 1,
                             .input = {(char *)numbers, 1, 4, .dtype = SCAND_DTYPE_F64},
                             .output = {(char *)numbers, 1, 4, .dtype = SCAND_DTYPE_F32}};
    const struct step_tiles none = {0};
    if (!step_case_has_cuda())
        SKIP("no GPU");
    CHECK_EQ(step_variant_launch(STEP_VARIANT_map_naive, &rows, "", &none, 0, 0, NULL), cudaErrorNotSupported);
    rows.input.dtype = SCAND_DTYPE_F32;
    CHECK_EQ(step_variant_launch(STEP_VARIANT_map_naive, &rows, "", &none, 0, 0, NULL), cudaSuccess);
    rows.further[STACK_INDEX] = (struct step_operand){(char *)numbers, 1, 4, .dtype = SCAND_DTYPE_I32};
    const struct stack fold = {.bins = 1, .norm = STACK_NORM_FOLD, .power = 1, .alpha = 1};
    const struct step_tiles one = step_tiles_of(&stack_kernel, &rows, &fold, 0, 1);
    CHECK_EQ(step_variant_launch(STEP_VARIANT_index_add_atomic, &rows, &fold, &one, 0, 1, NULL), cudaErrorNotSupported);
    rows.output.origin++;
    CHECK_EQ(step_variant_launch(STEP_VARIANT_map_naive, &rows, "", &none, 0, 0, NULL), cudaErrorNotSupported);
}
#endif

static const struct test tests[] = {
    TEST(names),
#ifdef SCAND_HAVE_CUDA
    TEST(dot_products), TEST(maps), TEST(finer_and_coarser), TEST(convolutions), TEST(additions), TEST(refusals),
#endif
    TEST_END,
};

int main(int argc, char **argv)
{
#ifdef SCAND_HAVE_CUDA
    seed = random_seed();
#endif
    return test_main(argc, argv, tests);
}
