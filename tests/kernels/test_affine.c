/*
 * The reference of affine: the recurrence by a plain loop, the tree by hand, and the accuracy of each accumulator.
 */
#include <math.h>

#include "tests/kernels/one_row.h"

static uint64_t seed;

/* Scans one contiguous row with its coefficients; f32 in, f64 out. */
static int affine_scan(const char *passes, enum scand_kind kind, enum scand_accumulator accumulator, const float *x,
                       const float *coefficients, double *y, uint64_t length)
{
    struct scan_rows rows = {.rule = rule_of(passes, kind, accumulator, SCAND_DTYPE_F64),
                             .length = length,
                             .row_count = 1,
                             .input_stride = sizeof(float),
                             .output_stride = sizeof(double),
                             .coefficient_stride = sizeof(float),
                             .input = x,
                             .output = y,
                             .coefficients = coefficients};
    rows.rule.op = SCAND_OPERATOR_AFFINE;
    return scan_reference(&rows, 0, 1);
}

/* The recurrence itself. */
static void recur(bool backward, bool exclusive, const float *x, const float *a, long double *y, uint64_t length)
{
    long double value = 0;
    for (uint64_t j = 0; j < length; j++) {
        uint64_t i = backward ? length - 1 - j : j;
        long double before = value;
        value = j > 0 ? a[i] * value + x[i] : x[i];
        y[i] = exclusive ? before : value;
    }
}

/* Small whole numbers, which every order and accumulator keeps exactly: after a factor 2 comes a 0 before the next 2.
 * What the coefficient of the sample is that a pass meets first, makes no difference. */
static void affine_is_the_recurrence(void)
{
    static const uint64_t lengths[] = {1, 2, 16, 17, 530, 16385, LENGTH_MAX};
    static float x[LENGTH_MAX], a[LENGTH_MAX];
    static double y[LENGTH_MAX];
    static long double expected[LENGTH_MAX];
    uint64_t random = seed;
    for (unsigned i = 0; i < 12 * sizeof(lengths) / sizeof(lengths[0]); i++) {
        bool backward = i % 2, exclusive = i / 2 % 2;
        uint64_t length = lengths[i / 12], first = backward ? length - 1 : 0, wrong = 0;
        for (uint64_t k = 0, twos = 0; k < length; k++) {
            uint64_t dice = random_next(&random) % 100;
            x[k] = (float)(int)(random_next(&random) % 201) - 100.0f;
            a[k] = dice > 0 ? (dice % 2 ? 1.0f : -1.0f) : twos++ % 2 ? 0.0f : 2.0f;
        }
        a[first] = NAN;
        REQUIRE(affine_scan(backward ? "b" : "f", exclusive ? SCAND_KIND_EXCLUSIVE : SCAND_KIND_INCLUSIVE,
                            SCAND_ACCUMULATOR_F32 + i / 4 % 3, x, a, y, length) == 0);
        recur(backward, exclusive, x, a, expected, length);
        for (uint64_t k = 0; k < length; k++)
            wrong += y[k] != (double)expected[k];
        CHECK_EQ(wrong, 0);
    }
}

/* Integers wrap, so any coefficients can be told exactly. */
static void affine_of_integers(void)
{
    enum { N = 16384 + 512 + 17 };
    static uint32_t x[N], a[N];
    static uint64_t y[N];
    uint64_t random = seed;
    for (int i = 0; i < N; i++) {
        x[i] = (uint32_t)random_next(&random);
        a[i] = (uint32_t)random_next(&random);
    }
    for (unsigned constant = 0; constant < 2; constant++) {
        struct scan_rows rows = {.rule = rule_of("b", SCAND_KIND_INCLUSIVE, SCAND_ACCUMULATOR_EXACT, SCAND_DTYPE_F32),
                                 .length = N,
                                 .row_count = 1,
                                 .input_stride = sizeof(x[0]),
                                 .output_stride = sizeof(y[0]),
                                 .coefficient_stride = sizeof(a[0]),
                                 .input = x,
                                 .output = y,
                                 .coefficients = constant ? NULL : a};
        rows.rule.op = SCAND_OPERATOR_AFFINE;
        rows.rule.input = rows.rule.coefficients = SCAND_DTYPE_U32;
        rows.rule.output = SCAND_DTYPE_U64;
        rows.rule.coefficient = -3;
        REQUIRE(scan_reference(&rows, 0, 1) == 0);
        uint64_t value = 0, wrong = 0;
        for (int i = N - 1; i >= 0; i--) {
            value = (constant ? -UINT64_C(3) : a[i]) * value + x[i];
            wrong += y[i] != value;
        }
        CHECK_EQ(wrong, 0);
    }
}

/* Three leaves, the network written out: terms are joined with the later factor, rounded apart. */
static void affine_tree(void)
{
    enum { N = 48 };
    static float x[N], a[N];
    static double y[N];
    float factor[3], term[3];
    uint64_t random = seed;
    for (int i = 0; i < N; i++) {
        x[i] = noise(&random);
        a[i] = noise(&random) + 1;
    }
    for (int l = 0; l < 3; l++) {
        factor[l] = a[16 * l];
        term[l] = x[16 * l];
        for (int i = 16 * l + 1; i < 16 * l + 16; i++) {
            factor[l] = a[i] * factor[l];
            term[l] = a[i] * term[l] + x[i];
        }
    }
    REQUIRE(affine_scan("f", SCAND_KIND_INCLUSIVE, SCAND_ACCUMULATOR_F32, x, a, y, N) == 0);
    CHECK(y[0] == x[0] && y[15] == term[0]);
    CHECK(y[16] == a[16] * term[0] + x[16]);
    CHECK(y[32] == a[32] * (factor[1] * term[0] + term[1]) + x[32]);
    REQUIRE(affine_scan("f", SCAND_KIND_EXCLUSIVE, SCAND_ACCUMULATOR_F32, x, a, y, N) == 0);
    CHECK(y[0] == 0 && y[1] == x[0] && y[32] == factor[1] * term[0] + term[1]);
}

/* Against the recurrence in long double, in units of what the same recurrence makes of magnitudes. */
static void affine_accuracy(void)
{
    enum { N = 10000 };
    static const double unit[] = {
        [SCAND_ACCUMULATOR_F32] = 0x1p-24, [SCAND_ACCUMULATOR_F64] = 0x1p-53, [SCAND_ACCUMULATOR_F2] = 0x1p-44};
    static float x[N], a[N], x_size[N], a_size[N];
    static double y[N];
    static long double expected[N], size[N];
    uint64_t random = seed;
    for (int i = 0; i < N; i++) {
        x[i] = noise(&random);
        a[i] = 0.999f + 0.001f * noise(&random);
        x_size[i] = fabsf(x[i]);
        a_size[i] = fabsf(a[i]);
    }
    for (unsigned backward = 0; backward < 2; backward++) {
        recur(backward, false, x, a, expected, N);
        recur(backward, false, x_size, a_size, size, N);
        for (unsigned accumulator = SCAND_ACCUMULATOR_F32; accumulator <= SCAND_ACCUMULATOR_F2; accumulator++) {
            int wrong = 0;
            REQUIRE(affine_scan(backward ? "b" : "f", SCAND_KIND_INCLUSIVE, accumulator, x, a, y, N) == 0);
            for (int i = 0; i < N; i++)
                wrong += !(fabsl(y[i] - expected[i]) <= 128 * unit[accumulator] * size[i]);
            CHECK_EQ(wrong, 0);
        }
    }
}

static const struct test tests[] = {
    TEST(affine_is_the_recurrence), TEST(affine_of_integers), TEST(affine_tree), TEST(affine_accuracy), TEST_END,
};

int main(int argc, char **argv)
{
    seed = random_seed();
    return test_main(argc, argv, tests);
}
