/*
 * The reductions of rows (kernels/tutorial/reduce/reduce.h), each in the list with each operation that it offers:
 * against an f64 serial sum, exactly where every order of additions is exact; two runs; what must not be touched. A
 * test's name begins with where it runs.
 */
#include <math.h>

#include "kernels/tutorial/reduce/reduce.h"
#include "tests/check.h"

static void cpu_names(void)
{
    for (int i = 0; i < REDUCTION_COUNT; i++) {
        CHECK_EQ(reduction_find(reduction_list[i].name), i);
        CHECK(strlen(reduction_list[i].teaches) > 20 && strlen(reduction_list[i].teaches) < 100);
    }
    CHECK_EQ(reduction_find("reduce"), -1);
}

static unsigned long long cases_run;

#ifdef SCAND_HAVE_CUDA
#include <cuda_runtime.h>

#include "tests/kernels/workspace.h"

#define COUNT(ARRAY) (sizeof(ARRAY) / sizeof((ARRAY)[0]))
#define ARENA_MAX    (8 << 20) /* floats */
#define RESULTS_MAX  300000
#define GUARD        8  /* guarded results on both sides */
#define FAILURES_MAX 10 /* failures that one test prints */

/* INTEGERS: from -2 to 2, so that sums and sums of squares are exact in any order. NAN_ONE: noise with one NaN per row.
 */
enum fill { INTEGERS, NOISE, NAN_ONE, FILL_COUNT };

struct reduce_case {
    uint64_t rows, length;
    uint64_t offset, gap; /* floats: before the first row, and between rows */
    enum scand_reduction op;
    enum fill fill;
};

static float *samples; /* memory on the host */
static double expected[RESULTS_MAX], bound[RESULTS_MAX], got[RESULTS_MAX + 2 * GUARD], again[RESULTS_MAX + 2 * GUARD];
static uint64_t seed;

static struct {
    float *samples;
    double *results;
} gpu;

static bool gpu_available(void)
{
    static int usable = -1;
    int count = 0;
    if (usable < 0)
        usable = cudaGetDeviceCount(&count) == cudaSuccess && count > 0 && (samples = malloc(ARENA_MAX * 4)) &&
                 cudaMalloc((void **)&gpu.samples, ARENA_MAX * sizeof(float)) == cudaSuccess &&
                 cudaMalloc((void **)&gpu.results, sizeof got) == cudaSuccess;
    return usable;
}

static uint64_t pitch_of(const struct reduce_case *c)
{
    return c->length + c->gap;
}

static void case_fill(const struct reduce_case *c)
{
    uint64_t random = seed;
    for (uint64_t i = 0; i < c->offset + c->rows * pitch_of(c); i++)
        samples[i] = c->fill == INTEGERS ? (float)(random_next(&random) % 5) - 2
                                         : (float)((double)random_next(&random) / 0x1p63 - 0.9);
    if (c->fill == NAN_ONE && c->length > 0)
        for (uint64_t row = 0; row < c->rows; row++)
            samples[c->offset + row * pitch_of(c) + random_next(&random) % c->length] = NAN;
    cudaMemcpy(gpu.samples, samples, (c->offset + c->rows * pitch_of(c)) * sizeof(float), cudaMemcpyHostToDevice);
}

/* The definition. `magnitude` becomes the sum of what is added, without signs. */
static double row_combined(const float *x, uint64_t length, enum scand_reduction op, double *magnitude)
{
    double value = op == SCAND_REDUCTION_MIN ? INFINITY : op == SCAND_REDUCTION_MAX ? -INFINITY : 0;
    *magnitude = 0;
    for (uint64_t i = 0; i < length; i++) {
        double sample = (double)x[i];
        if (op == SCAND_REDUCTION_RMS || op == SCAND_REDUCTION_NORM)
            sample *= sample;
        *magnitude += fabs(sample);
        if (op == SCAND_REDUCTION_MIN || op == SCAND_REDUCTION_MAX)
            value = isnan(value) || (op == SCAND_REDUCTION_MIN ? value < sample : value > sample) ? value : sample;
        else
            value += sample;
    }
    return value;
}

/* The root halves a relative error, and there is nothing to round in a minimum. */
static void row_expect(const struct reduce_case *c, uint64_t row)
{
    double magnitude, n = (double)c->length;
    double value = row_combined(samples + c->offset + row * pitch_of(c), c->length, c->op, &magnitude);
    bool root = c->op == SCAND_REDUCTION_RMS || c->op == SCAND_REDUCTION_NORM,
         exact = c->op == SCAND_REDUCTION_MIN || c->op == SCAND_REDUCTION_MAX;
    if (c->op == SCAND_REDUCTION_MEAN || c->op == SCAND_REDUCTION_RMS) {
        value /= n;
        magnitude /= n;
    }
    expected[row] = root ? sqrt(value) : value;
    bound[row] = exact || c->fill == INTEGERS ? 0 : 4 * n * 0x1p-53 * (root ? expected[row] : magnitude);
}

static bool run(enum reduction_id id, const struct reduce_case *c, double *results)
{
    struct reduce_rows rows = {gpu.samples + c->offset,
                               gpu.results + GUARD,
                               c->rows,
                               c->length,
                               (int64_t)(pitch_of(c) * sizeof(float)),
                               c->op};
    uint64_t workspace_bytes = reduction_workspace_bytes(id, &rows);
    size_t bytes = (c->rows + 2 * GUARD) * sizeof(double);
    if (!workspace_prepare(workspace_bytes) || cudaMemset(gpu.results, 0xa5, bytes) != cudaSuccess)
        return false;
    int error = reduction_run(id, &rows, workspace, NULL);
    if (!error)
        error = cudaMemcpy(results, gpu.results, bytes, cudaMemcpyDeviceToHost);
    if (error)
        fprintf(stderr, "CUDA: %s\n", cudaGetErrorString((cudaError_t)error));
    return !error && workspace_guarded(workspace_bytes);
}

static bool guards_whole(const struct reduce_case *c, const double *results)
{
    unsigned char whole[GUARD * sizeof(double)];
    memset(whole, 0xa5, sizeof whole);
    return memcmp(results, whole, sizeof whole) == 0 && memcmp(results + GUARD + c->rows, whole, sizeof whole) == 0;
}

static const char *case_complaint(enum reduction_id id, const struct reduce_case *c)
{
    if (!run(id, c, got) || !run(id, c, again))
        return "did not run";
    if (reduction_list[id].fixed_order && memcmp(got, again, (c->rows + 2 * GUARD) * sizeof(double)) != 0)
        return "two runs differ";
    if (!guards_whole(c, got))
        return "memory around the results was written";
    for (uint64_t row = 0; row < c->rows; row++) {
        double value = got[GUARD + row], right = expected[row];
        if (!(isnan(right) ? isnan(value) : value == right || fabs(value - right) <= bound[row]))
            return "wrong values";
    }
    return NULL;
}

static void case_check(const struct reduce_case *c)
{
    case_fill(c);
    for (uint64_t row = 0; row < c->rows; row++)
        row_expect(c, row);
    for (enum reduction_id id = 0; id < REDUCTION_COUNT && check_failures < FAILURES_MAX; id++) {
        if (!(reduction_list[id].ops >> c->op & 1))
            continue;
        const char *complaint = case_complaint(id, c);
        cases_run++;
        if (complaint) {
            fprintf(stderr, "%s: %s: op %d, %llu x %llu, offset %llu, gap %llu, fill %d\n", reduction_list[id].name,
                    complaint, (int)c->op, (unsigned long long)c->rows, (unsigned long long)c->length,
                    (unsigned long long)c->offset, (unsigned long long)c->gap, (int)c->fill);
            check_failures++;
        }
    }
}

/* All operations, fills, and places. */
static void cases_check(uint64_t rows, uint64_t length)
{
    for (enum scand_reduction op = SCAND_REDUCTION_SUM; op < SCAND_REDUCTION_COUNT; op++)
        for (enum fill fill = 0; fill < FILL_COUNT; fill++)
            for (uint64_t place = 0; place < 2; place++) {
                struct reduce_case c = {rows, length, place * 3, place * (1 + length % 2), op, fill};
                case_check(&c);
            }
}

static void cuda_small(void)
{
    if (!gpu_available())
        SKIP("no GPU");
    cases_check(3, 33);
    cases_check(35, 700);
    cases_check(2, 20000);
}

static void cuda_lengths(void)
{
    static const uint64_t list[] = {0,  1,   2,   3,   4,   5,   15,  16,   17,   31,   32,   33,   63,   64,
                                    65, 255, 256, 257, 511, 512, 513, 1000, 1023, 1024, 1025, 4095, 4096, 4097};
    if (!gpu_available())
        SKIP("no GPU");
    for (size_t i = 0; i < COUNT(list); i++)
        cases_check(37, list[i]);
}

static void cuda_long_rows(void)
{
    if (!gpu_available())
        SKIP("no GPU");
    cases_check(5, 9999);
    cases_check(5, 10007);
    cases_check(5, 16385);
    cases_check(3, 65537);
    cases_check(2, 1000000);
    cases_check(1, 8000000);
}

/* More rows than a grid has thread blocks. */
static void cuda_many_rows(void)
{
    if (!gpu_available())
        SKIP("no GPU");
    cases_check(0, 5);
    cases_check(1, 5);
    cases_check(70000, 3);
    cases_check(270001, 1);
    cases_check(1000, 4611);
}

static void cuda_refusals(void)
{
    struct reduce_rows rows = {.rows = 1, .length = 1, .op = SCAND_REDUCTION_SUM};
    if (!gpu_available())
        SKIP("no GPU");
    CHECK_EQ(reduction_run(REDUCTION_norm_1, &rows, NULL, NULL), cudaErrorNotSupported);
}
#else
static void cuda_reductions(void)
{
    SKIP("built without CUDA");
}
#endif

static const struct test tests[] = {
    TEST(cpu_names),
#ifdef SCAND_HAVE_CUDA
    TEST(cuda_small), TEST(cuda_lengths), TEST(cuda_long_rows), TEST(cuda_many_rows), TEST(cuda_refusals),
#else
    TEST(cuda_reductions),
#endif
    TEST_END,
};

int main(int argc, char **argv)
{
#ifdef SCAND_HAVE_CUDA
    seed = random_seed();
#endif
    int r = test_main(argc, argv, tests);
    printf("%llu reductions compared\n", cases_run);
    return r;
}
