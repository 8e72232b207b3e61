/* Each block of samples to its sum, and that it is the adjoint of upsampling. */
#include "kernels/steps/block_sum/block_sum.h"
#include "kernels/steps/upsample/upsample.h"
#include "tests/check.h"
#include "tests/kernels/step_case.h"

static uint64_t seed;

/* One dense row, by the reference. */
static void run(const struct step_kernel *kernel, const void *params, enum scand_dtype dtype, const void *x,
                uint64_t length, void *y, uint64_t left)
{
    const int64_t stride = codec_bytes(dtype);
    const struct step_rows rows = {.row_count = 1,
                                   .input = {.origin = (char *)x, .length = length, .stride = stride, .dtype = dtype},
                                   .output = {.origin = y, .length = left, .stride = stride, .dtype = dtype}};
    const struct step_tile all = {0, 1, 0, left};
    kernel->reference(&rows, params, &all, NULL);
}

static void blocks_are_added(void)
{
    const struct block_sum params = {.factor = 3};
    const float x[6] = {1, -2, 3, 0.5f, 0.25f, 4};
    float y[2] = {0};
    run(&block_sum_kernel, &params, SCAND_DTYPE_F32, x, 6, y, 2);
    CHECK(y[0] == 2 && y[1] == 4.75f);
    const float large[6] = {1e8f, 1, -1e8f, INFINITY, -INFINITY, 1}; /* f32 would lose the 1 */
    run(&block_sum_kernel, &params, SCAND_DTYPE_F32, large, 6, y, 2);
    CHECK(y[0] == 1 && y[1] != y[1]);
    const uint32_t whole[6] = {UINT32_MAX, 1, 5, 7, 8, 9};
    uint32_t sums[2] = {0};
    run(&block_sum_kernel, &params, SCAND_DTYPE_U32, whole, 6, sums, 2);
    CHECK(sums[0] == 5 && sums[1] == 24);
}

/* <upsample(x), y> = <x, block_sum(y)>, exactly: all products and sums are of small whole numbers. */
static void is_the_adjoint_of_upsample(void)
{
    enum { LENGTH = 37 };
    for (uint64_t factor = 1; factor < 9; factor++) {
        const struct upsample up = {.factor = factor};
        const struct block_sum down = {.factor = factor};
        double x[LENGTH], y[8 * LENGTH], longer[8 * LENGTH], sums[LENGTH], one = 0, two = 0;
        for (uint64_t i = 0; i < LENGTH; i++)
            x[i] = (double)(random_next(&seed) % 2000) - 1000;
        for (uint64_t i = 0; i < factor * LENGTH; i++)
            y[i] = (double)(random_next(&seed) % 2000) - 1000;
        run(&upsample_kernel, &up, SCAND_DTYPE_F64, x, LENGTH, longer, factor * LENGTH);
        run(&block_sum_kernel, &down, SCAND_DTYPE_F64, y, factor * LENGTH, sums, LENGTH);
        for (uint64_t i = 0; i < factor * LENGTH; i++)
            one += longer[i] * y[i];
        for (uint64_t i = 0; i < LENGTH; i++)
            two += x[i] * sums[i];
        CHECK(one == two);
    }
}

static bool may_become(enum scand_dtype from, enum scand_dtype to)
{
    return codec_is_integer(from) == codec_is_integer(to) &&
           (!codec_is_integer(from) || codec_bytes(to) >= codec_bytes(from));
}

static void check_laid_out(enum scand_dtype from, enum scand_dtype to, uint64_t rows, uint64_t left, uint64_t factor,
                           enum step_layout layout, enum step_layout made)
{
    const struct block_sum params = {.factor = factor};
    struct step_case c = {.kernel = &block_sum_kernel,
                          .params = &params,
                          .params_bytes = sizeof params,
                          .row_count = rows,
                          .input = {.dtype = from,
                                    .length = left * factor,
                                    .layout = layout,
                                    .fill = random_next(&seed) % 2 ? STEP_SPREAD : STEP_SPECIALS},
                          .output = {.dtype = to, .length = left, .layout = made}};
    CHECK(step_case_check(&c, &seed));
}

static void check(enum scand_dtype from, enum scand_dtype to, uint64_t rows, uint64_t left, uint64_t factor,
                  enum step_layout layout)
{
    check_laid_out(from, to, rows, left, factor, layout, random_next(&seed) % LAYOUT_SHARED);
}

static void every_dtype(void)
{
    for (unsigned from = 0; from < SCAND_DTYPE_COUNT; from++)
        for (unsigned to = 0; to < SCAND_DTYPE_COUNT; to++)
            for (enum step_layout layout = 0; layout < LAYOUT_COUNT && may_become(from, to); layout++)
                check(from, to, 3, 67, 3, layout);
}

static void every_length(void)
{
    const uint64_t lengths[] = {0, 1, 15, 16, 17, 100, 5000};
    for (unsigned i = 0; i < sizeof lengths / sizeof lengths[0]; i++)
        for (uint64_t factor = 1; factor < 7; factor++) {
            const uint64_t rows = 1 + random_next(&seed) % 7;
            check(SCAND_DTYPE_F32, SCAND_DTYPE_F32, rows, lengths[i], factor, LAYOUT_DENSE);
            check(SCAND_DTYPE_F64, SCAND_DTYPE_F32, rows, lengths[i], factor, LAYOUT_PITCHED);
        }
}

/* Dense rows that whole packs of 16 bytes do not fill. */
static void packs_and_a_tail(void)
{
    static const enum scand_dtype dtypes[] = {SCAND_DTYPE_F32, SCAND_DTYPE_F64, SCAND_DTYPE_F16, SCAND_DTYPE_BF16};
    for (unsigned i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++)
        for (uint64_t left = 1003; left <= 40003; left += 39000)
            for (uint64_t factor = 1; factor < 4; factor++)
                check_laid_out(dtypes[i], dtypes[i], 1, left, factor, LAYOUT_DENSE, LAYOUT_DENSE);
}

static void large_factors(void)
{
    const uint64_t factors[] = {1000, 16383, 16384, 16385, 65536};
    for (unsigned i = 0; i < sizeof factors / sizeof factors[0]; i++) {
        check(SCAND_DTYPE_F32, SCAND_DTYPE_F32, 2, 1, factors[i], LAYOUT_DENSE);
        check(SCAND_DTYPE_F16, SCAND_DTYPE_F64, 1, 17, factors[i], LAYOUT_REVERSED);
    }
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {TEST(blocks_are_added),
                                        TEST(is_the_adjoint_of_upsample),
                                        TEST(every_dtype),
                                        TEST(every_length),
                                        TEST(packs_and_a_tail),
                                        TEST(large_factors),
                                        TEST_END};
    seed = random_seed();
    return test_main(argc, argv, tests);
}
