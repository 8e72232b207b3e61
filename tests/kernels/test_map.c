/* Samples one by one: by hand, exp and log against the library's of longer numbers, casts, and all implementations. */
#include "kernels/steps/map/map.h"
#include "tests/check.h"
#include "tests/kernels/step_case.h"

static uint64_t seed;

/*
 * exp and log.
 */

/* Returns how far apart two numbers are, in units of the last place of the expected number's f32 or f64. */
static double ulps(long double got, long double expected, int digits, int least)
{
    int exponent;
    if (isinf(got) || isinf(expected))
        return got == expected ? 0 : INFINITY;
    frexpl(expected, &exponent);
    return (double)(fabsl(got - expected) / ldexpl(1, (exponent < least ? least : exponent) - digits));
}

static double ulps_f64(double got, long double expected)
{
    return ulps(got, isinf((double)expected) ? (double)expected : expected, 53, -1021);
}

static double ulps_f32(float got, long double expected)
{
    return ulps(got, isinf((float)expected) ? (float)expected : expected, 24, -125);
}

static double uniform(double range)
{
    return (double)(int64_t)random_next(&seed) * 0x1p-63 * range;
}

static double most(double a, double b)
{
    return a > b ? a : b;
}

static void exponentials_are_close(void)
{
    double single = 0, twice = 0;
    for (int i = 0; i < 300000; i++) {
        const double range = i % 3 == 0 ? 760 : i % 3 == 1 ? 2 : 0.36;
        const double x = uniform(range);
        const float y = (float)uniform(range / 7);
        twice = most(twice, ulps_f64(exp_f64(x), expl(x)));
        single = most(single, ulps_f32(exp_f32(y), expl(y)));
    }
    printf("exp: at most %.3f ulp in f32, %.3f in f64\n", single, twice);
    CHECK(single < 0.51 && twice < 0.9);
}

static void logarithms_are_close(void)
{
    double single = 0, twice = 0;
    for (int i = 0; i < 300000; i++) {
        /* The number is any positive one, one near 1, or a denormal. */
        const uint64_t bits = random_next(&seed) >> 1;
        const double x = i % 3 == 0   ? codec_f64_of_bits(bits)
                         : i % 3 == 1 ? 1 + uniform(0.5)
                                      : codec_f64_of_bits(bits >> 12);
        const float y =
            i % 3 == 1 ? (float)(1 + uniform(0.5)) : codec_f32_of_bits((uint32_t)(bits >> (i % 3 == 0 ? 32 : 41)));
        if (x > 0 && x < INFINITY)
            twice = most(twice, ulps_f64(log_f64(x), logl(x)));
        if (y > 0 && y < INFINITY)
            single = most(single, ulps_f32(log_f32(y), logl(y)));
    }
    printf("log: at most %.3f ulp in f32, %.3f in f64\n", single, twice);
    CHECK(single < 0.51 && twice < 0.9);
}

static void exponentials_of_special_values(void)
{
    CHECK(exp_f64(0.0) == 1 && exp_f64(-0.0) == 1 && exp_f32(0.0f) == 1);
    CHECK(exp_f64(INFINITY) == INFINITY && exp_f64(-INFINITY) == 0 && isnan(exp_f64((double)NAN)));
    CHECK(exp_f32(INFINITY) == INFINITY && exp_f32(-INFINITY) == 0 && isnan(exp_f32(NAN)));
    CHECK(exp_f64(709.78) < INFINITY && exp_f64(709.79) == INFINITY && exp_f64(1e308) == INFINITY);
    CHECK(exp_f64(-745.1) == 0x1p-1074 && exp_f64(-745.2) == 0 && exp_f64(-1e308) == 0);
    CHECK(exp_f32(88.72f) < INFINITY && exp_f32(88.73f) == INFINITY && exp_f32(-103.9f) == 0x1p-149f &&
          exp_f32(-104) == 0);
    CHECK(log_f64(1) == 0 && log_f64(0.0) == -INFINITY && log_f64(-0.0) == -INFINITY && isnan(log_f64(-1)));
    CHECK(log_f64(INFINITY) == INFINITY && isnan(log_f64(-INFINITY)) && isnan(log_f64((double)NAN)));
    CHECK(log_f32(1) == 0 && log_f32(-0.0f) == -INFINITY && isnan(log_f32(-1)) && log_f32(INFINITY) == INFINITY);
    CHECK(log_f64(0x1p-1074) == (double)logl(0x1p-1074L) && log_f32(0x1p-149f) == (float)logl(0x1p-149L));
}

/*
 * Results by hand.
 */

static float of_f32(enum map_op op, float x, float by, float high)
{
    const struct map map = {.op = op, .by = by, .high = high};
    float y = 0;
    const struct map_place at = {(const char *)&x, NULL, (char *)&y, SCAND_DTYPE_F32, SCAND_DTYPE_F32, SCAND_DTYPE_F32};
    map_element_f32(&map, &at);
    return y;
}

static void values_by_hand(void)
{
    CHECK(of_f32(MAP_ADD, 2, 0.5f, 0) == 2.5f && of_f32(MAP_SUB, 2, 0.5f, 0) == 1.5f);
    CHECK(of_f32(MAP_MUL, 3, 0.5f, 0) == 1.5f && of_f32(MAP_DIV, 1, 3, 0) == 1.0f / 3);
    CHECK(of_f32(MAP_MIN, 3, 0.5f, 0) == 0.5f && of_f32(MAP_MAX, 3, 0.5f, 0) == 3);
    CHECK(of_f32(MAP_ABS, -3, 0, 0) == 3 && of_f32(MAP_NEG, 3, 0, 0) == -3 && of_f32(MAP_SQRT, 9, 0, 0) == 3);
    CHECK(of_f32(MAP_CLIP, 3, -1, 2) == 2 && of_f32(MAP_CLIP, -3, -1, 2) == -1 && of_f32(MAP_CLIP, 1, -1, 2) == 1);
    CHECK(isnan(of_f32(MAP_MIN, NAN, 1, 0)) && isnan(of_f32(MAP_MAX, 1, NAN, 0)) && isnan(of_f32(MAP_CLIP, NAN, 0, 1)));
    CHECK(signbit(of_f32(MAP_MIN, -0.0f, 0, 0)) && !signbit(of_f32(MAP_MAX, 0, -0.0f, 0)));
    CHECK(map_integer(MAP_MIN, true, (uint64_t)-1, 1, 0) == (uint64_t)-1);
    CHECK(map_integer(MAP_MIN, false, (uint64_t)-1, 1, 0) == 1);
    CHECK(map_integer(MAP_ABS, true, (uint64_t)-5, 0, 0) == 5 &&
          map_integer(MAP_ABS, false, (uint64_t)-5, 0, 0) == (uint64_t)-5);
    CHECK(map_integer(MAP_CLIP, true, (uint64_t)-5, (uint64_t)-3, 7) == (uint64_t)-3);
}

static void casts_by_hand(void)
{
    CHECK_EQ(map_integer_of(SCAND_DTYPE_I32, -2.9), -2);
    CHECK_EQ(map_integer_of(SCAND_DTYPE_I32, 3e9), INT32_MAX);
    CHECK_EQ(map_integer_of(SCAND_DTYPE_I32, -3e9), INT32_MIN);
    CHECK_EQ(map_integer_of(SCAND_DTYPE_I32, 2147483646.9), INT32_MAX - 1);
    CHECK_EQ(map_integer_of(SCAND_DTYPE_I64, 1e30), INT64_MAX);
    CHECK_EQ(map_integer_of(SCAND_DTYPE_I64, -INFINITY), INT64_MIN);
    CHECK_EQ(map_integer_of(SCAND_DTYPE_U32, -1), 0);
    CHECK_EQ(map_integer_of(SCAND_DTYPE_U32, 4294967295.5), UINT32_MAX);
    CHECK_EQ(map_integer_of(SCAND_DTYPE_U64, 0x1p63), INT64_MIN);
    CHECK_EQ(map_integer_of(SCAND_DTYPE_U64, INFINITY), -1);
    for (enum scand_dtype dtype = SCAND_DTYPE_I32; dtype <= SCAND_DTYPE_U64; dtype++)
        CHECK_EQ(map_integer_of(dtype, (double)NAN), 0);
    CHECK(map_f32_of(true, (uint64_t)-16777217) == -16777216 && map_f32_of(false, UINT64_MAX) == 0x1p64f);
    CHECK(map_f64_of(true, (uint64_t)-3) == -3 && map_f64_of(false, (UINT64_C(1) << 53) + 1) == 0x1p53);
}

/*
 * All implementations.
 */

static bool may_become(enum scand_dtype from, enum scand_dtype to, enum map_op op)
{
    if (op == MAP_CAST)
        return true;
    return codec_is_integer(from) == codec_is_integer(to) &&
           (!codec_is_integer(from) || codec_bytes(to) >= codec_bytes(from));
}

static bool takes_other(enum map_op op)
{
    return op <= MAP_MAX;
}

struct shape {
    uint64_t rows, length;
    enum step_layout given, beside, made;
};

static void check(enum map_op op, enum scand_dtype from, enum scand_dtype to, bool with_other,
                  const struct shape *shape)
{
    const struct map params = {
        .op = op, .by = op == MAP_CLIP && codec_class(from) != SCAND_CLASS_UNSIGNED ? -1 : 3, .high = 5};
    const bool in_place = from == to && shape->given == shape->made && random_next(&seed) % 2;
    struct step_case c = {
        .kernel = &map_kernel,
        .params = &params,
        .params_bytes = sizeof params,
        .row_count = shape->rows,
        .in_place = in_place,
        .input = {.dtype = from, .length = shape->length, .layout = shape->given, .fill = random_next(&seed) % 3},
        .output = {.dtype = to, .length = shape->length, .layout = shape->made},
        .further = {{.given = with_other,
                     .dtype = from,
                     .length = shape->length,
                     .layout = shape->beside,
                     .fill = random_next(&seed) % 3}}};
    CHECK(step_case_check(&c, &seed));
}

static struct shape any_shape(uint64_t rows, uint64_t length)
{
    return (struct shape){rows, length, random_next(&seed) % LAYOUT_COUNT, random_next(&seed) % LAYOUT_COUNT,
                          random_next(&seed) % LAYOUT_SHARED};
}

/* Rows that a GPU takes in packs. Where two begin 4, 8 or 16 bytes apart, packs differ in size; rows end within packs.
 */
static struct shape dense_shape(uint64_t rows, uint64_t length)
{
    const enum step_layout beside = random_next(&seed) % 2 ? LAYOUT_DENSE : LAYOUT_SHARED;
    return (struct shape){rows, length, LAYOUT_DENSE, beside, LAYOUT_DENSE};
}

static void every_op_and_dtype(void)
{
    for (enum map_op op = 0; op <= MAP_CAST; op++)
        for (unsigned from = 0; from < SCAND_DTYPE_COUNT; from++)
            for (unsigned to = 0; to < SCAND_DTYPE_COUNT; to++) {
                const struct shape shape = any_shape(3, 301);
                const struct shape dense = dense_shape(2, 592 + random_next(&seed) % 4 * 4);
                const struct shape tail = dense_shape(1, 1000 + random_next(&seed) % 32);
                if (!may_become(from, to, op))
                    continue;
                check(op, from, to, takes_other(op), &shape);
                check(op, from, to, false, &dense);
                check(op, from, to, takes_other(op), &tail);
            }
}

static void every_length(void)
{
    const uint64_t lengths[] = {0, 1, 2, 255, 256, 257, 1000, 5001, 16384, 16388, 40000};
    for (unsigned i = 0; i < sizeof lengths / sizeof lengths[0]; i++)
        for (enum step_layout layout = 0; layout < LAYOUT_SHARED; layout++) {
            const struct shape shape = {1 + random_next(&seed) % 5, lengths[i], layout, layout, layout};
            check(MAP_MUL, SCAND_DTYPE_F32, SCAND_DTYPE_F32, true, &shape);
            check(MAP_MAX, SCAND_DTYPE_F64, SCAND_DTYPE_F64, false, &shape);
            check(MAP_ADD, SCAND_DTYPE_F16, SCAND_DTYPE_F16, true, &shape);
            check(MAP_SQRT, SCAND_DTYPE_BF16, SCAND_DTYPE_BF16, false, &shape);
        }
}

/* Dense rows that whole packs of 16 bytes do not fill. */
static void packs_and_a_tail(void)
{
    static const enum scand_dtype dtypes[] = {SCAND_DTYPE_F32, SCAND_DTYPE_F64, SCAND_DTYPE_F16, SCAND_DTYPE_BF16};
    for (unsigned i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++)
        for (uint64_t length = 1003; length <= 40003; length += 39000) {
            const struct shape shape = {1, length, LAYOUT_DENSE, LAYOUT_DENSE, LAYOUT_DENSE};
            check(MAP_SUB, dtypes[i], dtypes[i], true, &shape);
            check(MAP_NEG, dtypes[i], dtypes[i], false, &shape);
            check(MAP_SQRT, dtypes[i], dtypes[i], false, &shape);
            check(MAP_DIV, dtypes[i], SCAND_DTYPE_F32, true, &shape);
            check(MAP_CAST, dtypes[i], SCAND_DTYPE_I32, false, &shape);
        }
}

/* More rows than a tile has. */
static void many_rows(void)
{
    for (enum step_layout layout = 0; layout < LAYOUT_SHARED; layout++) {
        const struct shape shape = {2500, 40, layout, random_next(&seed) % LAYOUT_COUNT, layout};
        check(MAP_SUB, SCAND_DTYPE_F32, SCAND_DTYPE_F32, true, &shape);
    }
}

static void ragged_rows(void)
{
    const uint64_t offsets[] = {3, 3, 4, 6, 400, 20000, 20001};
    for (unsigned dtype = 0; dtype < SCAND_DTYPE_COUNT; dtype++) {
        const struct map params = {.op = MAP_SUB};
        const struct step_case c = {.kernel = &map_kernel,
                                    .params = &params,
                                    .params_bytes = sizeof params,
                                    .row_count = 6,
                                    .offsets = offsets,
                                    .input = {.dtype = dtype, .fill = STEP_SPECIALS},
                                    .output = {.dtype = dtype, .layout = LAYOUT_SPACED},
                                    .further = {{.given = true, .dtype = dtype, .layout = LAYOUT_REVERSED}}};
        CHECK(step_case_check(&c, &seed));
    }
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {TEST(exponentials_are_close),
                                        TEST(logarithms_are_close),
                                        TEST(exponentials_of_special_values),
                                        TEST(values_by_hand),
                                        TEST(casts_by_hand),
                                        TEST(every_op_and_dtype),
                                        TEST(every_length),
                                        TEST(packs_and_a_tail),
                                        TEST(many_rows),
                                        TEST(ragged_rows),
                                        TEST_END};
    seed = random_seed();
    return test_main(argc, argv, tests);
}
