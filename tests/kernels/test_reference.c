/*
 * The reference itself: the tree by hand on rows small enough to write down, sums that are exact whatever the order,
 * the accuracy that each accumulator promises, and what must not depend on anything but the row.
 */
#include <float.h>
#include <math.h>

#include "kernels/order1/dtypes.h"
#include "kernels/order1/f2.h"
#include "kernels/order1/order.h"
#include "kernels/scan.h"
#include "tests/kernels/one_row.h"

static uint64_t seed;

/* Scans one contiguous row. */
static int row_scan(struct scan_rule rule, const float *input, void *output, uint64_t length)
{
    struct scan_rows rows = {.rule = rule,
                             .length = length,
                             .row_count = 1,
                             .input_stride = sizeof(float),
                             .output_stride = rule.output == SCAND_DTYPE_F64 ? sizeof(double) : sizeof(float),
                             .input = input,
                             .output = output};
    return scan_reference(&rows, 0, 1);
}

static int row_scan_f32(const char *passes, enum scand_kind kind, enum scand_accumulator accumulator,
                        const float *input, float *output, uint64_t length)
{
    return row_scan(rule_of(passes, kind, accumulator, SCAND_DTYPE_F32), input, output, length);
}

static int row_scan_f64(const char *passes, enum scand_kind kind, enum scand_accumulator accumulator,
                        const float *input, double *output, uint64_t length)
{
    return row_scan(rule_of(passes, kind, accumulator, SCAND_DTYPE_F64), input, output, length);
}

static float sum_serial(const float *x, int from, int to)
{
    float sum = x[from];
    for (int i = from + 1; i < to; i++)
        sum += x[i];
    return sum;
}

static float sum_serial_backward(const float *x, int from, int to)
{
    float sum = x[to - 1];
    for (int i = to - 2; i >= from; i--)
        sum += x[i];
    return sum;
}

/* 17 samples: a full leaf and one with a single sample. */
static void tree_of_two_leaves(void)
{
    float x[17], y[17];
    uint64_t random = seed;
    for (int i = 0; i < 17; i++)
        x[i] = noise(&random);

    REQUIRE(row_scan_f32("f", SCAND_KIND_INCLUSIVE, SCAND_ACCUMULATOR_F32, x, y, 17) == 0);
    CHECK(y[0] == x[0]);
    CHECK(y[15] == sum_serial(x, 0, 16));
    CHECK(y[16] == sum_serial(x, 0, 16) + x[16]);

    REQUIRE(row_scan_f32("b", SCAND_KIND_INCLUSIVE, SCAND_ACCUMULATOR_F32, x, y, 17) == 0);
    CHECK(y[16] == x[16]);
    CHECK(y[15] == x[16] + x[15]);
    CHECK(y[0] == sum_serial_backward(x, 0, 17));

    REQUIRE(row_scan_f32("f", SCAND_KIND_EXCLUSIVE, SCAND_ACCUMULATOR_F32, x, y, 17) == 0);
    CHECK(y[0] == 0.0f && !signbit(y[0]));
    CHECK(y[1] == x[0]);
    CHECK(y[16] == sum_serial(x, 0, 16));

    REQUIRE(row_scan_f32("b", SCAND_KIND_EXCLUSIVE, SCAND_ACCUMULATOR_F32, x, y, 17) == 0);
    CHECK(y[16] == 0.0f && !signbit(y[16]));
    CHECK(y[15] == x[16]);
    CHECK(y[14] == x[16] + x[15]);
}

/* Six leaves: the prefixes of the Kogge-Stone network, written out. */
static void tree_of_six_leaves(void)
{
    float x[96], y[96], leaf[6];
    uint64_t random = seed;
    for (int i = 0; i < 96; i++)
        x[i] = noise(&random);
    for (int l = 0; l < 6; l++)
        leaf[l] = sum_serial(x, 16 * l, 16 * (l + 1));
    const float carry[6] = {
        0,
        leaf[0],
        leaf[0] + leaf[1],
        leaf[0] + (leaf[1] + leaf[2]),
        (leaf[0] + leaf[1]) + (leaf[2] + leaf[3]),
        leaf[0] + ((leaf[1] + leaf[2]) + (leaf[3] + leaf[4])),
    };
    REQUIRE(row_scan_f32("f", SCAND_KIND_INCLUSIVE, SCAND_ACCUMULATOR_F32, x, y, 96) == 0);
    for (int l = 1; l < 6; l++)
        CHECK(y[16 * l] == carry[l] + x[16 * l]);

    for (int l = 0; l < 6; l++)
        leaf[l] = sum_serial_backward(x, 16 * l, 16 * (l + 1));
    REQUIRE(row_scan_f32("b", SCAND_KIND_INCLUSIVE, SCAND_ACCUMULATOR_F32, x, y, 96) == 0);
    CHECK(y[31] == (leaf[5] + leaf[4]) + (leaf[3] + leaf[2]) + x[31]);
    CHECK(y[15] == leaf[5] + ((leaf[4] + leaf[3]) + (leaf[2] + leaf[1])) + x[15]);
}

/* Ones at the ends of tiles and blocks only: the carry adds the outer level first. */
static void tree_levels_from_outside(void)
{
    static float x[ORDER_BLOCK + ORDER_TILE + 2 * ORDER_LEAF], y[ORDER_BLOCK + ORDER_TILE + 2 * ORDER_LEAF];
    const uint64_t length = sizeof(x) / sizeof(x[0]), leaf = ORDER_BLOCK + ORDER_TILE, last = leaf + ORDER_LEAF;
    const float block_sum = 1.0f, tile_sum = 0x1p-24f, leaf_sum = 0x1p-24f;
    x[0] = block_sum;
    x[ORDER_BLOCK] = tile_sum;
    x[leaf] = leaf_sum;
    REQUIRE(row_scan_f32("f", SCAND_KIND_INCLUSIVE, SCAND_ACCUMULATOR_F32, x, y, length) == 0);
    /* (1 + 2^-24) + 2^-24 is 1 to even, twice; 1 + (2^-24 + 2^-24) would not be. */
    CHECK(y[last] == (block_sum + tile_sum) + leaf_sum);
    CHECK(y[last] != block_sum + (tile_sum + leaf_sum));
}

/* Integers: every order gives the same sums, and all accumulators the right ones. */
static void integers_are_exact(void)
{
    static float x[LENGTH_MAX];
    static double y[LENGTH_MAX];
    uint64_t random = seed;
    for (int i = 0; i < LENGTH_MAX; i++)
        x[i] = (float)(int)(random_next(&random) % 201) - 100.0f;
    for (unsigned accumulator = SCAND_ACCUMULATOR_F32; accumulator <= SCAND_ACCUMULATOR_F2; accumulator++)
        for (unsigned kind = 0; kind <= SCAND_KIND_EXCLUSIVE; kind++) {
            REQUIRE(row_scan_f64("f", (enum scand_kind)kind, (enum scand_accumulator)accumulator, x, y, LENGTH_MAX) ==
                    0);
            int64_t sum = 0, wrong = 0;
            for (int i = 0; i < LENGTH_MAX; i++) {
                int64_t after = sum + (int64_t)x[i];
                wrong += y[i] != (double)(kind == SCAND_KIND_INCLUSIVE ? after : sum);
                sum = after;
            }
            CHECK_EQ(wrong, 0);
            REQUIRE(row_scan_f64("b", (enum scand_kind)kind, (enum scand_accumulator)accumulator, x, y, LENGTH_MAX) ==
                    0);
            sum = wrong = 0;
            for (int i = LENGTH_MAX - 1; i >= 0; i--) {
                int64_t after = sum + (int64_t)x[i];
                wrong += y[i] != (double)(kind == SCAND_KIND_INCLUSIVE ? after : sum);
                sum = after;
            }
            CHECK_EQ(wrong, 0);
        }
}

/* Counts the results that are not the exact sum, rounded once. Samples are multiples of 2^-40 and sums fit an int64_t.
 */
static int wrongly_rounded(const float *x, const float *y, int length, double *worst)
{
    int64_t exact = 0;
    int wrong = 0;
    for (int i = 0; i < length; i++) {
        exact += (int64_t)((double)x[i] * 0x1p40);
        wrong += y[i] != (float)exact * 0x1p-40f;
        double error = fabs((double)y[i] * 0x1p40 - (double)exact) / (fabs((double)exact) + 1.0);
        *worst = fmax(*worst, error);
    }
    return wrong;
}

/* f64 and f2 round correctly in all but about one output in a million; f32 is wrong nearly everywhere, yet bounded. */
static void accuracy(void)
{
    static float x[10000], y[10000];
    uint64_t random = seed;
    int wrong[SCAND_ACCUMULATOR_COUNT] = {0}, rows = 50;
    double worst[SCAND_ACCUMULATOR_COUNT] = {0};
    for (int row = 0; row < rows; row++) {
        for (int i = 0; i < 10000; i++)
            x[i] = (float)((double)(random_next(&random) >> 40) * 0x1p-24 - 0.47);
        for (int i = 0; i < 10000; i++)
            x[i] = (float)(nearbyint((double)x[i] * 0x1p40) * 0x1p-40);
        for (unsigned a = SCAND_ACCUMULATOR_F32; a <= SCAND_ACCUMULATOR_F2; a++) {
            REQUIRE(row_scan_f32("f", SCAND_KIND_INCLUSIVE, (enum scand_accumulator)a, x, y, 10000) == 0);
            wrong[a] += wrongly_rounded(x, y, 10000, &worst[a]);
        }
    }
    CHECK(wrong[SCAND_ACCUMULATOR_F64] <= 5);
    CHECK(wrong[SCAND_ACCUMULATOR_F2] <= 5);
    CHECK(wrong[SCAND_ACCUMULATOR_F32] > 10000);
    CHECK(worst[SCAND_ACCUMULATOR_F64] <= FLT_EPSILON / 2 * 1.0001);
    CHECK(worst[SCAND_ACCUMULATOR_F2] <= FLT_EPSILON / 2 * 1.0001);
}

/* f64 results of f2 keep at least 40 bits of the sums of magnitudes, f64 ones 48. */
static void accuracy_of_wide_results(void)
{
    static float x[10000];
    static double f64[10000], f2[10000];
    uint64_t random = seed;
    for (int i = 0; i < 10000; i++)
        x[i] = noise(&random);
    REQUIRE(row_scan_f64("f", SCAND_KIND_INCLUSIVE, SCAND_ACCUMULATOR_F64, x, f64, 10000) == 0);
    REQUIRE(row_scan_f64("f", SCAND_KIND_INCLUSIVE, SCAND_ACCUMULATOR_F2, x, f2, 10000) == 0);
    long double sum = 0, magnitude = 0;
    for (int i = 0; i < 10000; i++) {
        sum += x[i];
        magnitude += fabsf(x[i]);
        CHECK(fabsl(f64[i] - sum) <= magnitude * 0x1p-48L);
        CHECK(fabsl(f2[i] - sum) <= magnitude * 0x1p-40L);
    }
}

/* <backward x, y> = <x, forward y>: the two passes are each other's adjoint, and so both together are their own. */
static void passes_are_adjoint(void)
{
    enum { N = 10007 };
    static float x[N], y[N];
    static double fx[N], by[N], fbx[N], fby[N];
    uint64_t random = seed;
    for (int i = 0; i < N; i++) {
        x[i] = noise(&random);
        y[i] = noise(&random);
    }
    for (unsigned kind = 0; kind <= SCAND_KIND_EXCLUSIVE; kind++) {
        REQUIRE(row_scan_f64("f", (enum scand_kind)kind, SCAND_ACCUMULATOR_F64, x, fx, N) == 0);
        REQUIRE(row_scan_f64("b", (enum scand_kind)kind, SCAND_ACCUMULATOR_F64, y, by, N) == 0);
        REQUIRE(row_scan_f64("fb", (enum scand_kind)kind, SCAND_ACCUMULATOR_F64, x, fbx, N) == 0);
        REQUIRE(row_scan_f64("fb", (enum scand_kind)kind, SCAND_ACCUMULATOR_F64, y, fby, N) == 0);
        double left = 0, right = 0, size = 0, left_both = 0, right_both = 0, size_both = 0;
        for (int i = 0; i < N; i++) {
            left += fx[i] * (double)y[i];
            right += (double)x[i] * by[i];
            size += fabs(fx[i] * (double)y[i]);
            left_both += fbx[i] * (double)y[i];
            right_both += (double)x[i] * fby[i];
            size_both += fabs(fbx[i] * (double)y[i]);
        }
        CHECK(fabs(left - right) <= 1e-12 * size);
        if (kind == SCAND_KIND_INCLUSIVE)
            CHECK(fabs(left_both - right_both) <= 1e-11 * size_both);
    }
}

/* Two passes are one pass over the rounded result of the other. */
static void passes_compose(void)
{
    static float x[5000], once[5000], twice[5000], both[5000];
    uint64_t random = seed;
    for (int i = 0; i < 5000; i++)
        x[i] = noise(&random);
    for (unsigned a = SCAND_ACCUMULATOR_F32; a <= SCAND_ACCUMULATOR_F2; a++)
        for (unsigned kind = 0; kind <= SCAND_KIND_EXCLUSIVE; kind++) {
            enum scand_accumulator accumulator = (enum scand_accumulator)a;
            REQUIRE(row_scan_f32("f", (enum scand_kind)kind, accumulator, x, once, 5000) == 0);
            REQUIRE(row_scan_f32("b", (enum scand_kind)kind, accumulator, once, twice, 5000) == 0);
            REQUIRE(row_scan_f32("fb", (enum scand_kind)kind, accumulator, x, both, 5000) == 0);
            CHECK(memcmp(twice, both, sizeof(both)) == 0);
        }
}

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static void zeros_and_denormals_are_kept(void)
{
    const float x[3] = {-0.0f, -0.0f, 0x1p-149f};
    float y[3];
    for (unsigned a = SCAND_ACCUMULATOR_F32; a <= SCAND_ACCUMULATOR_F2; a++) {
        REQUIRE(row_scan_f32("f", SCAND_KIND_INCLUSIVE, (enum scand_accumulator)a, x, y, 3) == 0);
        CHECK_EQ(bits_of(y[0]), 0x80000000);
        CHECK_EQ(bits_of(y[2]), 1);
        REQUIRE(row_scan_f32("f", SCAND_KIND_EXCLUSIVE, (enum scand_accumulator)a, x, y, 3) == 0);
        CHECK_EQ(bits_of(y[0]), 0);
        CHECK_EQ(bits_of(y[1]), 0x80000000);
    }
}

static void nan_is_always_the_same(void)
{
    float x[4] = {1.0f, 0.0f, 2.0f, 3.0f}, y[4];
    double wide[4];
    const uint32_t strange = 0xff812345; /* negative and signalling */
    memcpy(&x[1], &strange, sizeof(strange));
    for (unsigned a = SCAND_ACCUMULATOR_F32; a <= SCAND_ACCUMULATOR_F2; a++) {
        REQUIRE(row_scan_f32("f", SCAND_KIND_INCLUSIVE, (enum scand_accumulator)a, x, y, 4) == 0);
        CHECK(y[0] == 1.0f);
        CHECK_EQ(bits_of(y[1]), 0x7fc00000);
        CHECK_EQ(bits_of(y[3]), 0x7fc00000);
        REQUIRE(row_scan_f64("f", SCAND_KIND_INCLUSIVE, (enum scand_accumulator)a, x, wide, 4) == 0);
        uint64_t bits;
        memcpy(&bits, &wide[3], sizeof(bits));
        CHECK_EQ(bits, 0x7ff8000000000000);
    }
}

static void infinities(void)
{
    const float x[3] = {INFINITY, 1.0f, 2.0f};
    float y[3];
    REQUIRE(row_scan_f32("f", SCAND_KIND_INCLUSIVE, SCAND_ACCUMULATOR_F64, x, y, 3) == 0);
    CHECK(y[0] == INFINITY && y[1] == INFINITY && y[2] == INFINITY);
    REQUIRE(row_scan_f32("f", SCAND_KIND_INCLUSIVE, SCAND_ACCUMULATOR_F2, x, y, 3) == 0);
    CHECK(y[0] == INFINITY && isnan(y[1]) && isnan(y[2]));
}

/* f2 at work: what a float would lose. */
static void f2_keeps_small_parts(void)
{
    const float x[4] = {0x1p24f, 1.0f, 0x1p-20f, -0x1p24f};
    float y[4];
    REQUIRE(row_scan_f32("f", SCAND_KIND_INCLUSIVE, SCAND_ACCUMULATOR_F2, x, y, 4) == 0);
    CHECK(y[3] == 1.0f + 0x1p-20f);
    struct f2 split = f2_from_f64(1.0 + 0x1p-40);
    CHECK(split.high == 1.0f && split.low == 0x1p-40f && f2_to_f64(split) == 1.0 + 0x1p-40);
}

/* max and min by their definition, a plain loop: of equal values the one met first stays, and so does a NaN. */
static void extremes(void)
{
    const float x[8] = {-1.0f, 0.0f, -0.0f, 2.0f, NAN, 3.0f, INFINITY, -INFINITY};
    float y[8];
    for (unsigned a = SCAND_ACCUMULATOR_F32; a <= SCAND_ACCUMULATOR_F2; a++) {
        struct scan_rule rule = rule_of("f", SCAND_KIND_INCLUSIVE, (enum scand_accumulator)a, SCAND_DTYPE_F32);
        rule.op = SCAND_OPERATOR_MAX;
        REQUIRE(row_scan(rule, x, y, 8) == 0);
        CHECK(y[0] == -1.0f && y[1] == 0.0f && y[3] == 2.0f);
        CHECK_EQ(bits_of(y[2]), 0); /* +0 came first */
        for (int i = 4; i < 8; i++)
            CHECK_EQ(bits_of(y[i]), 0x7fc00000);
        rule.op = SCAND_OPERATOR_MIN;
        rule.passes[0] = SCAND_PASS_BACKWARD;
        REQUIRE(row_scan(rule, x, y, 8) == 0);
        CHECK(y[7] == -INFINITY && y[6] == -INFINITY && y[5] == -INFINITY && isnan(y[4]) && isnan(y[0]));
        REQUIRE(row_scan(rule, x, y, 4) == 0);
        CHECK(y[3] == 2.0f && y[0] == -1.0f);
        CHECK_EQ(bits_of(y[1]), 0x80000000); /* from the right, -0 came first */
    }
}

static void identities(void)
{
    static const double expected[SCAND_OPERATOR_COUNT] = {
        [SCAND_OPERATOR_PROD] = 1, [SCAND_OPERATOR_MAX] = -INFINITY, [SCAND_OPERATOR_MIN] = INFINITY};
    const float x[2] = {5.0f, 7.0f};
    double y[2];
    for (unsigned op = 0; op < SCAND_OPERATOR_COUNT; op++)
        for (unsigned a = SCAND_ACCUMULATOR_F32; a <= SCAND_ACCUMULATOR_F2; a++) {
            struct scan_rule rule = rule_of("f", SCAND_KIND_EXCLUSIVE, (enum scand_accumulator)a, SCAND_DTYPE_F64);
            rule.op = (enum scand_operator)op;
            rule.coefficient = 3;
            REQUIRE(row_scan(rule, x, y, 2) == 0);
            CHECK(y[0] == expected[op] && y[1] == 5.0);
        }
}

/* Powers of two: every order gives the same products; and how far f64 and f2 are from exact ones elsewhere. */
static void products(void)
{
    static float x[1000];
    static double y[1000];
    uint64_t random = seed;
    for (unsigned a = SCAND_ACCUMULATOR_F32; a <= SCAND_ACCUMULATOR_F2; a++) {
        struct scan_rule rule = rule_of("f", SCAND_KIND_INCLUSIVE, (enum scand_accumulator)a, SCAND_DTYPE_F64);
        rule.op = SCAND_OPERATOR_PROD;
        for (int i = 0; i < 1000; i++)
            x[i] = i % 2 ? -0.5f : 2.0f;
        REQUIRE(row_scan(rule, x, y, 1000) == 0);
        for (int i = 0; i < 1000; i++)
            CHECK(y[i] == (i % 2 ? 1.0 : 2.0) * ((i + 1) / 2 % 2 ? -1 : 1));
        for (int i = 0; i < 1000; i++)
            x[i] = 1.0f + 0x1p-8f * noise(&random);
        REQUIRE(row_scan(rule, x, y, 1000) == 0);
        /* 1000 roundings of 2^-24, 2^-53, 5 x 2^-48. */
        const long double bounds[] = {
            [SCAND_ACCUMULATOR_F32] = 0x1p-14L, [SCAND_ACCUMULATOR_F64] = 0x1p-43L, [SCAND_ACCUMULATOR_F2] = 0x1p-35L};
        long double product = 1;
        for (int i = 0; i < 1000; i++) {
            product *= x[i];
            CHECK(fabsl(y[i] - product) <= bounds[a] * fabsl(product));
        }
    }
}

/* half is the mean of inclusive and exclusive, where that can be said exactly. */
static void halves(void)
{
    static float x[LENGTH_MAX];
    static double inclusive[LENGTH_MAX], exclusive[LENGTH_MAX], half[LENGTH_MAX];
    uint64_t random = seed;
    for (int i = 0; i < LENGTH_MAX; i++)
        x[i] = (float)(int)(random_next(&random) % 201) - 100.0f;
    for (unsigned a = SCAND_ACCUMULATOR_F32; a <= SCAND_ACCUMULATOR_F2; a++)
        for (int backward = 0; backward < 2; backward++) {
            const char *passes = backward ? "b" : "f";
            enum scand_accumulator accumulator = (enum scand_accumulator)a;
            REQUIRE(row_scan_f64(passes, SCAND_KIND_INCLUSIVE, accumulator, x, inclusive, LENGTH_MAX) == 0);
            REQUIRE(row_scan_f64(passes, SCAND_KIND_EXCLUSIVE, accumulator, x, exclusive, LENGTH_MAX) == 0);
            REQUIRE(row_scan_f64(passes, SCAND_KIND_HALF, accumulator, x, half, LENGTH_MAX) == 0);
            int wrong = 0;
            for (int i = 0; i < LENGTH_MAX; i++)
                wrong += half[i] != (inclusive[i] + exclusive[i]) / 2;
            CHECK_EQ(wrong, 0);
        }
}

/* trapezoid is half less half of the first sample that the pass meets, where that can be said exactly, of every length
 * that begins or ends a leaf, and over a block; what that sample is does not matter to its own value. */
static void trapezoids(void)
{
    static const int lengths[] = {1, 2, 15, 16, 17, 32, 511, 513, LENGTH_MAX};
    static float x[LENGTH_MAX];
    static double half[LENGTH_MAX], trapezoid[LENGTH_MAX];
    uint64_t random = seed;
    for (int i = 0; i < LENGTH_MAX; i++)
        x[i] = (float)(int)(random_next(&random) % 201) - 100.0f;
    for (unsigned a = SCAND_ACCUMULATOR_F32; a <= SCAND_ACCUMULATOR_F2; a++)
        for (size_t l = 0; l < 2 * sizeof lengths / sizeof lengths[0]; l++) {
            const int length = lengths[l / 2], first = l % 2 ? length - 1 : 0;
            const char *passes = l % 2 ? "b" : "f";
            REQUIRE(row_scan_f64(passes, SCAND_KIND_HALF, (enum scand_accumulator)a, x, half, length) == 0);
            REQUIRE(row_scan_f64(passes, SCAND_KIND_TRAPEZOID, (enum scand_accumulator)a, x, trapezoid, length) == 0);
            int wrong = 0;
            for (int i = 0; i < length; i++)
                wrong += trapezoid[i] != half[i] - (double)x[first] / 2;
            CHECK_EQ(wrong, 0);
            CHECK(trapezoid[first] == 0 && !signbit(trapezoid[first]));
            const float kept = x[first];
            x[first] = l % 3 ? INFINITY : NAN;
            REQUIRE(row_scan_f64(passes, SCAND_KIND_TRAPEZOID, (enum scand_accumulator)a, x, trapezoid, length) == 0);
            CHECK(trapezoid[first] == 0 && !signbit(trapezoid[first]));
            CHECK(length == 1 || !isfinite(trapezoid[l % 2 ? 0 : length - 1]));
            x[first] = kept;
        }
}

/* A mean that can be said exactly: what is left sums to zero, and to what a row without it gives. */
static void means(void)
{
    enum { N = 16384 + 512 + 16 + 4 }; /* a partial leaf, and 2^2 x 4229 */
    static float x[N], without[N];
    static double demeaned[N], expected[N];
    uint64_t random = seed;
    for (int i = 0; i < N; i++)
        without[i] = i % 2 ? -without[i - 1] : (float)(int)(random_next(&random) % 201) - 100.0f;
    for (int i = 0; i < N; i++)
        x[i] = without[i] + 37.25f;
    for (unsigned a = SCAND_ACCUMULATOR_F32; a <= SCAND_ACCUMULATOR_F2; a++) {
        struct scan_rule rule = rule_of("fb", SCAND_KIND_INCLUSIVE, (enum scand_accumulator)a, SCAND_DTYPE_F64);
        REQUIRE(row_scan(rule, without, expected, N) == 0);
        rule.demean = true;
        REQUIRE(row_scan(rule, x, demeaned, N) == 0);
        CHECK(memcmp(demeaned, expected, sizeof(expected)) == 0);
    }
    /* The mean of -0 is -0, and the difference +0. */
    const float zeros[3] = {-0.0f, -0.0f, -0.0f};
    float y[3];
    struct scan_rule rule = rule_of("f", SCAND_KIND_INCLUSIVE, SCAND_ACCUMULATOR_F32, SCAND_DTYPE_F32);
    rule.demean = true;
    REQUIRE(row_scan(rule, zeros, y, 3) == 0);
    CHECK_EQ(bits_of(y[0]), 0);
}

/* Scans one contiguous row of class f64, whose samples have so many bytes; f64 out. */
static int wide_scan(struct scan_rule rule, const void *input, int64_t bytes, double *output, uint64_t length)
{
    struct scan_rows rows = {.rule = rule,
                             .length = length,
                             .row_count = 1,
                             .input_stride = bytes,
                             .output_stride = sizeof(double),
                             .input = input,
                             .output = output};
    return scan_reference(&rows, 0, 1);
}

/* Sums, and what they are written as, have all digits that big-endian integers have. */
static void long_integers_keep_their_digits(void)
{
    enum { N = 700 };
    static unsigned char x[N][4], written[N][4];
    static double y[N];
    int64_t sum = 0, samples[N];
    uint64_t random = seed;
    for (int i = 0; i < N; i++) {
        samples[i] = (int32_t)random_next(&random) / 2;
        codec_encode_f64(SCAND_DTYPE_I32BE, (double)samples[i], x[i]);
    }
    for (unsigned a = SCAND_ACCUMULATOR_F64; a <= SCAND_ACCUMULATOR_F2; a++) {
        struct scan_rule rule = rule_of("f", SCAND_KIND_INCLUSIVE, (enum scand_accumulator)a, SCAND_DTYPE_F64);
        rule.input = SCAND_DTYPE_I32BE;
        REQUIRE(wide_scan(rule, x, 4, y, N) == 0);
        sum = 0;
        for (int i = 0; i < N; i++) {
            sum += samples[i];
            CHECK(y[i] == (double)sum);
        }
        rule.op = SCAND_OPERATOR_MAX;
        rule.output = SCAND_DTYPE_I32BE;
        struct scan_rows rows = {.rule = rule, .length = N, .row_count = 1, .input_stride = 4, .output_stride = 4};
        rows.input = x;
        rows.output = written;
        REQUIRE(scan_reference(&rows, 0, 1) == 0);
        int64_t most = samples[0];
        for (int i = 0; i < N; i++) {
            most = samples[i] > most ? samples[i] : most;
            CHECK_EQ(codec_decode_f64(SCAND_DTYPE_I32BE, written[i]) == (double)most, 1);
        }
    }
}

/* Numbers that two floats do not hold overflow in f2 as in f32. */
static void f2_has_the_range_of_f32(void)
{
    const struct scan_rule rule = rule_of("f", SCAND_KIND_INCLUSIVE, SCAND_ACCUMULATOR_F2, SCAND_DTYPE_F64);
    struct scan_rule wide = rule, narrow = rule;
    wide.input = narrow.input = SCAND_DTYPE_F64;
    narrow.output = SCAND_DTYPE_F32;
    const double large[] = {1e39, 1}, tiny[] = {0x1.000001p-130, 0x1p-149, 0x1p-151};
    const float sum[] = {3e38f, 3e38f, -3e38f};
    double y[3];
    float single;
    REQUIRE(wide_scan(wide, large, 8, y, 2) == 0);
    CHECK(isnan(y[0]) && isnan(y[1]));
    struct scan_rows rows = {.rule = narrow, .length = 1, .row_count = 1, .input_stride = 8, .output_stride = 4};
    rows.input = large;
    rows.output = &single;
    REQUIRE(scan_reference(&rows, 0, 1) == 0);
    CHECK(isinf(single));
    REQUIRE(wide_scan(wide, tiny, 8, y, 3) == 0);
    CHECK(y[0] == 0x1p-130 && y[1] == 0x1p-130 + 0x1p-149 && y[2] == y[1]);
    REQUIRE(row_scan(rule, sum, y, 3) == 0);
    CHECK(y[0] == 3e38f && isnan(y[1]) && isnan(y[2]));
}

/* A row alone, in a batch, and at an odd address. */
static void rows_do_not_depend_on_company(void)
{
    enum { N = 3001, ROWS = 7 };
    static float x[ROWS][N], batch[ROWS][N], alone[N];
    static char odd[sizeof(alone) + 1];
    uint64_t random = seed;
    for (int i = 0; i < ROWS * N; i++)
        x[i / N][i % N] = noise(&random);
    struct scan_rows rows = {.rule = rule_of("fb", SCAND_KIND_INCLUSIVE, SCAND_ACCUMULATOR_F32, SCAND_DTYPE_F32),
                             .length = N,
                             .row_count = ROWS,
                             .outer_rank = 1,
                             .outer_shape = {ROWS},
                             .input_outer_strides = {sizeof(x[0])},
                             .output_outer_strides = {sizeof(batch[0])},
                             .input_stride = sizeof(float),
                             .output_stride = sizeof(float),
                             .input = x,
                             .output = batch};
    REQUIRE(scan_reference(&rows, 0, ROWS) == 0);
    for (int r = 0; r < ROWS; r++) {
        REQUIRE(row_scan(rows.rule, x[r], alone, N) == 0);
        CHECK(memcmp(alone, batch[r], sizeof(alone)) == 0);
        memcpy(odd + 1, x[r], sizeof(x[r]));
        struct scan_rows shifted = rows;
        shifted.row_count = 1;
        shifted.outer_rank = 0;
        shifted.input = shifted.output = odd + 1;
        REQUIRE(scan_reference(&shifted, 0, 1) == 0);
        CHECK(memcmp(odd + 1, alone, sizeof(alone)) == 0);
    }
}

static void row_offsets(void)
{
    const struct scan_rows rows = {.outer_rank = 3, .outer_shape = {2, 3, 5}, .row_count = 30};
    const int64_t strides[SCAN_OUTER_MAX] = {1000, -100, 7};
    CHECK_EQ(scan_row_offset(&rows, strides, 0), 0);
    CHECK_EQ(scan_row_offset(&rows, strides, 4), 28);
    CHECK_EQ(scan_row_offset(&rows, strides, 5), -100);
    CHECK_EQ(scan_row_offset(&rows, strides, 29), 1000 - 200 + 28);
    const struct scan_rows one = {.outer_rank = 0, .row_count = 1};
    CHECK_EQ(scan_row_offset(&one, strides, 0), 0);
}

/* Each ragged row has the bits that it has on its own; samples of no row stay. */
static void ragged_rows_are_rows(void)
{
    static float x[LENGTH_MAX], y[LENGTH_MAX], alone[LENGTH_MAX];
    const uint64_t offsets[] = {3, 3, 4, 21, 21, 533, 1100, 1100, 18000, LENGTH_MAX - 1};
    const struct scan_rule rule = rule_of("fb", SCAND_KIND_INCLUSIVE, SCAND_ACCUMULATOR_F32, SCAND_DTYPE_F32);
    uint64_t random = seed, count = sizeof(offsets) / sizeof(offsets[0]) - 1;
    for (uint64_t i = 0; i < LENGTH_MAX; i++)
        x[i] = y[i] = noise(&random);
    struct scan_rows rows = {.rule = rule, .length = LENGTH_MAX, .row_count = count, .offsets = offsets};
    rows.input_stride = rows.output_stride = sizeof(float);
    rows.input = rows.output = y;
    CHECK(scan_reference(&rows, 1, count - 1) == 0);
    CHECK(memcmp(x, y, 3 * sizeof(float)) == 0 && memcmp(&x[LENGTH_MAX - 1], &y[LENGTH_MAX - 1], sizeof(float)) == 0);
    for (uint64_t r = 0; r < count; r++) {
        CHECK(row_scan(rule, x + offsets[r], alone, offsets[r + 1] - offsets[r]) == 0);
        CHECK(memcmp(alone, y + offsets[r], (offsets[r + 1] - offsets[r]) * sizeof(float)) == 0);
    }
}

static const struct test tests[] = {
    TEST(tree_of_two_leaves),
    TEST(ragged_rows_are_rows),
    TEST(tree_of_six_leaves),
    TEST(tree_levels_from_outside),
    TEST(integers_are_exact),
    TEST(accuracy),
    TEST(accuracy_of_wide_results),
    TEST(passes_are_adjoint),
    TEST(passes_compose),
    TEST(zeros_and_denormals_are_kept),
    TEST(nan_is_always_the_same),
    TEST(infinities),
    TEST(f2_keeps_small_parts),
    TEST(extremes),
    TEST(identities),
    TEST(products),
    TEST(halves),
    TEST(trapezoids),
    TEST(means),
    TEST(long_integers_keep_their_digits),
    TEST(f2_has_the_range_of_f32),
    TEST(rows_do_not_depend_on_company),
    TEST(row_offsets),
    TEST_END,
};

int main(int argc, char **argv)
{
    seed = random_seed();
    return test_main(argc, argv, tests);
}
