/* The nearest sample on a finer grid. */
#include "kernels/steps/upsample/upsample.h"
#include "tests/check.h"
#include "tests/kernels/step_case.h"

static uint64_t seed;

static void values_are_repeated(void)
{
    const float x[3] = {1, -2, 3};
    float y[6] = {0};
    const struct upsample params = {.factor = 2};
    const struct step_rows rows = {.row_count = 1,
                                   .input = {.origin = (char *)x, .length = 3, .stride = 4, .dtype = SCAND_DTYPE_F32},
                                   .output = {.origin = (char *)y, .length = 6, .stride = 4, .dtype = SCAND_DTYPE_F32}};
    const struct step_tile all = {0, 1, 0, 6};
    upsample_kernel.reference(&rows, &params, &all, NULL);
    const float expected[6] = {1, 1, -2, -2, 3, 3};
    CHECK(memcmp(y, expected, sizeof y) == 0);
}

static bool may_become(enum scand_dtype from, enum scand_dtype to)
{
    return codec_is_integer(from) == codec_is_integer(to) &&
           (!codec_is_integer(from) || codec_bytes(to) >= codec_bytes(from));
}

static void check_laid_out(enum scand_dtype from, enum scand_dtype to, uint64_t rows, uint64_t length, uint64_t factor,
                           enum step_layout given, enum step_layout made)
{
    const struct upsample params = {.factor = factor};
    struct step_case c = {.kernel = &upsample_kernel,
                          .params = &params,
                          .params_bytes = sizeof params,
                          .row_count = rows,
                          .input = {.dtype = from, .length = length, .layout = given, .fill = STEP_SPECIALS},
                          .output = {.dtype = to, .length = length * factor, .layout = made}};
    CHECK(step_case_check(&c, &seed));
}

static void check(enum scand_dtype from, enum scand_dtype to, uint64_t rows, uint64_t length, uint64_t factor)
{
    check_laid_out(from, to, rows, length, factor, random_next(&seed) % LAYOUT_COUNT,
                   random_next(&seed) % LAYOUT_SHARED);
}

static void every_dtype(void)
{
    for (unsigned from = 0; from < SCAND_DTYPE_COUNT; from++)
        for (unsigned to = 0; to < SCAND_DTYPE_COUNT; to++)
            if (may_become(from, to))
                check(from, to, 3, 101, 3);
}

static void every_length(void)
{
    const uint64_t lengths[] = {0, 1, 2, 31, 4096, 8191, 10000};
    for (unsigned i = 0; i < sizeof lengths / sizeof lengths[0]; i++)
        for (uint64_t factor = 1; factor < 6; factor++)
            check(SCAND_DTYPE_F32, SCAND_DTYPE_F32, 1 + random_next(&seed) % 7, lengths[i], factor);
    check(SCAND_DTYPE_F32, SCAND_DTYPE_F32, 2, 3, 30000);
}

/* Dense rows that whole packs of 16 bytes do not fill. */
static void packs_and_a_tail(void)
{
    static const enum scand_dtype dtypes[] = {SCAND_DTYPE_F32, SCAND_DTYPE_F64, SCAND_DTYPE_F16, SCAND_DTYPE_BF16};
    for (unsigned i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++)
        for (uint64_t length = 1003; length <= 40003; length += 39000)
            for (uint64_t factor = 1; factor < 4; factor++)
                check_laid_out(dtypes[i], dtypes[i], 1, length, factor, LAYOUT_DENSE, LAYOUT_DENSE);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {TEST(values_are_repeated), TEST(every_dtype), TEST(every_length),
                                        TEST(packs_and_a_tail), TEST_END};
    seed = random_seed();
    return test_main(argc, argv, tests);
}
