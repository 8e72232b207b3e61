/*
 * d = backward after forward is its own adjoint: <d(x), y> = <x, d(y)> for all x and y. For integers both sides are
 * equal, whatever wraps; for floats they differ by no more than the accumulators may lose.
 */
#include <math.h>

#include "kernels/order1/dtypes.h"
#include "tests/kernels/every.h"

#define COUNT(ARRAY) (sizeof(ARRAY) / sizeof((ARRAY)[0]))
#define LENGTH_MAX   20000

static uint64_t seed;
static const uint64_t lengths[] = {1, 2, 16, 17, 100, 512, 1000, 10000, 10007, LENGTH_MAX};

/* Scans both vectors, as two rows. */
static bool double_integral(const struct implementation *implementation, enum scand_dtype dtype,
                            enum scand_accumulator accumulator, const void *in, void *out, uint64_t length)
{
    int64_t size = codec_bytes(dtype), line = (int64_t)length * size;
    const struct scan_rows rows = {
        .rule = {.passes = {SCAND_PASS_FORWARD, SCAND_PASS_BACKWARD},
                 .pass_count = 2,
                 .accumulator = accumulator,
                 .input = dtype,
                 .output = dtype},
        .length = length,
        .row_count = 2,
        .outer_rank = 1,
        .outer_shape = {2},
        .input_outer_strides = {line},
        .output_outer_strides = {line},
        .input_stride = size,
        .output_stride = size,
        .input = in,
        .output = out,
    };
    const size_t bytes = 2 * (size_t)line;
    const struct scan_memory memory = {.input = (void *)in, .output = out, .input_bytes = bytes, .output_bytes = bytes};
    return implementation->run(&rows, 0, 2, &memory) == 0;
}

/* Integers of 64 bits that wrap are a ring, in which the two sides are equal. */
static void integers(const struct implementation *implementation)
{
    static uint64_t in[2 * LENGTH_MAX], out[2 * LENGTH_MAX];
    uint64_t random = seed;
    for (size_t l = 0; l < COUNT(lengths); l++) {
        uint64_t n = lengths[l], left = 0, right = 0;
        for (uint64_t i = 0; i < 2 * n; i++)
            in[i] = random_next(&random);
        REQUIRE(double_integral(implementation, SCAND_DTYPE_I64, SCAND_ACCUMULATOR_EXACT, in, out, n));
        for (uint64_t i = 0; i < n; i++) {
            left += out[i] * in[n + i];
            right += in[i] * out[n + i];
        }
        CHECK(left == right);
    }
}

/*
 * Sets the largest error that each output may have against the exact double integral. With a tree of additions each
 * relative error is at most u, so a sum that each sample enters through at most D additions is off by at most ((1 +
 * u)^D - 1) < 1.001 D u times the sum of magnitudes, and what a pass was given off by adds up too. In order 1 a sample
 * meets at most 15 additions in its leaf, 5 in the network and one carry per level, of which 20,000 samples have 3, and
 * 16 in the leaf of the output: D < 50. u is 2^-24 and 2^-53; of f2 a bound on both of its additions is 3 * 2^-48 / (1
 * - 2^-22) < 2^-46. Then the value is rounded to f32: 2^-24 of itself. The doubles of this function round too: by less
 * than 1.001.
 */
static void bounds_make(const float *x, double *bound, uint64_t n, enum scand_accumulator accumulator)
{
    static const double units[] = {
        [SCAND_ACCUMULATOR_F32] = 0x1p-24, [SCAND_ACCUMULATOR_F64] = 0x1p-53, [SCAND_ACCUMULATOR_F2] = 0x1p-46};
    static double sums[LENGTH_MAX];
    const double lost = 1.001 * 50 * units[accumulator];
    double sum = 0, magnitudes = 0, off = 0;
    for (uint64_t i = 0; i < n; i++) {
        sum += (double)x[i];
        magnitudes += fabs((double)x[i]);
        sums[i] = sum;
        bound[i] = lost * magnitudes + 0x1p-24 * (fabs(sum) + lost * magnitudes);
    }
    sum = magnitudes = 0;
    for (uint64_t i = n; i-- > 0;) {
        sum += sums[i];
        magnitudes += fabs(sums[i]) + bound[i];
        off += bound[i];
        bound[i] = 1.001 * (off + lost * magnitudes + 0x1p-24 * (fabs(sum) + off + lost * magnitudes));
    }
}

static void floats_check(const struct implementation *implementation, enum scand_accumulator accumulator, uint64_t n,
                         uint64_t *random)
{
    static float in[2 * LENGTH_MAX], out[2 * LENGTH_MAX];
    static double bounds[2][LENGTH_MAX];
    long double left = 0, right = 0, allowed = 0;
    for (uint64_t i = 0; i < 2 * n; i++)
        in[i] = (float)((double)(int64_t)random_next(random) * 0x1p-63 + 0.034);
    REQUIRE(double_integral(implementation, SCAND_DTYPE_F32, accumulator, in, out, n));
    bounds_make(in, bounds[0], n, accumulator);
    bounds_make(in + n, bounds[1], n, accumulator);
    for (uint64_t i = 0; i < n; i++) {
        long double x = (long double)in[i], y = (long double)in[n + i];
        left += (long double)out[i] * y;
        right += x * (long double)out[n + i];
        allowed += fabsl(y) * (long double)bounds[0][i] + fabsl(x) * (long double)bounds[1][i];
    }
    if (!(fabsl(left - right) <= allowed))
        fprintf(stderr, "%s, accumulator %d, %llu samples: %.17Lg and %.17Lg differ by more than %Lg\n",
                implementation->name, (int)accumulator, (unsigned long long)n, left, right, allowed);
    CHECK(fabsl(left - right) <= allowed);
}

static void floats(const struct implementation *implementation)
{
    uint64_t random = seed;
    for (size_t l = 0; l < COUNT(lengths); l++)
        for (int a = SCAND_ACCUMULATOR_F32; a <= SCAND_ACCUMULATOR_F2; a++)
            floats_check(implementation, (enum scand_accumulator)a, lengths[l], &random);
}

EVERY_CPU(integers)
EVERY_CPU(floats)
EVERY_CUDA(integers)
EVERY_CUDA(floats)

int main(int argc, char **argv)
{
    static const struct test tests[] = {TEST(cpu_integers), TEST(cpu_floats), TEST(cuda_integers), TEST(cuda_floats),
                                        TEST_END};
    seed = random_seed();
    return test_main(argc, argv, tests);
}
