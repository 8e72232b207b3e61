/*
 * The variants of the scan (kernels/tutorial), each in the list with each accumulator that it offers: results against
 * an f64 serial sum, exact ones where every order of additions is exact; two runs; what must not be touched. A test's
 * name begins with where its variants run: without a GPU those that begin with cuda are skipped.
 */
#include <float.h>
#include <math.h>

#include "kernels/tutorial/scan/variants.h"
#include "tests/check.h"

#ifdef SCAND_HAVE_CUDA
#include <cuda_runtime.h>

#include "tests/kernels/workspace.h"
#endif

#define COUNT(ARRAY) (sizeof(ARRAY) / sizeof((ARRAY)[0]))
#define ARENA_MAX    (8 << 20) /* floats */
#define GUARD        64        /* floats at both ends of an arena */
#define FAILURES_MAX 10        /* failures that one test prints */

/* The places of rows in their arenas, in floats. */
struct place {
    const char *name;
    uint64_t input_offset, input_gap, output_offset, output_gap;
    bool in_place;
};

static const struct place places[] = {
    {.name = "packed"},
    {.name = "packed, in place", .in_place = true},
    {.name = "unaligned, odd pitch", .input_offset = 1, .input_gap = 3, .output_offset = 3, .output_gap = 2},
    {.name = "unaligned, odd pitch, in place", .input_offset = 3, .input_gap = 1, .in_place = true},
};

/* INTEGERS: every sum of neighbouring samples is a small integer, and so is every sum of those up to 2^24. */
enum fill { INTEGERS, NOISE, FILL_COUNT };

struct sample_case {
    uint64_t rows, length;
    const char *passes; /* the passes: "f", "b", "fb", "bf" */
    const struct place *place;
    enum fill fill;
};

/* Host memory of all cases: arenas with the rows, and packed rows of what is expected. */
static struct rig {
    float *input, *before; /* the output arena before a run */
    float *got, *again, *serial;
    double *exact, *bound;
} rig;
static uint64_t seed;
static bool on_gpu; /* the variants under test are the GPU's, not the CPU's */

static void rig_init(void)
{
    if (rig.input)
        return;
    float **arenas[] = {&rig.input, &rig.before, &rig.got, &rig.again, &rig.serial};
    for (size_t i = 0; i < COUNT(arenas); i++)
        if (!(*arenas[i] = malloc(ARENA_MAX * sizeof(float))))
            abort();
    rig.exact = malloc(ARENA_MAX * sizeof(double));
    rig.bound = malloc(ARENA_MAX * sizeof(double));
    if (!rig.exact || !rig.bound)
        abort();
}

static uint64_t input_pitch(const struct sample_case *c)
{
    return c->length + c->place->input_gap;
}

static uint64_t output_pitch(const struct sample_case *c)
{
    return c->place->in_place ? input_pitch(c) : c->length + c->place->output_gap;
}

static uint64_t input_first(const struct sample_case *c)
{
    return GUARD + c->place->input_offset;
}

static uint64_t output_first(const struct sample_case *c)
{
    return GUARD + (c->place->in_place ? c->place->input_offset : c->place->output_offset);
}

/* Returns the floats of either arena that a case uses. */
static uint64_t arena_floats(const struct sample_case *c)
{
    return 2 * GUARD + 4 + c->rows * (c->length + 3);
}

/* Samples whose sums of neighbours are differences of values below 8. */
static void integers_make(float *row, uint64_t length, uint64_t *random)
{
    float last = 0;
    for (uint64_t i = 0; i < length; i++) {
        float next = (float)(random_next(random) % 8);
        row[i] = next - last;
        last = next;
    }
}

static void case_fill(const struct sample_case *c)
{
    uint64_t random = seed;
    for (uint64_t i = 0; i < arena_floats(c); i++)
        rig.input[i] = (float)((double)random_next(&random) / 0x1p63 - 0.9);
    if (c->fill == INTEGERS)
        for (uint64_t row = 0; row < c->rows; row++)
            integers_make(rig.input + input_first(c) + row * input_pitch(c), c->length, &random);
    if (c->place->in_place)
        memcpy(rig.before, rig.input, arena_floats(c) * sizeof(float));
    else
        memset(rig.before, 0xa5, arena_floats(c) * sizeof(float));
}

/* Returns the largest relative error of one addition: twice what is proven, for terms of second order. */
static double addition_error(enum scand_accumulator accumulator)
{
    static const double errors[SCAND_ACCUMULATOR_COUNT] = {
        [SCAND_ACCUMULATOR_F32] = 0x1p-23, [SCAND_ACCUMULATOR_F64] = 0x1p-52, [SCAND_ACCUMULATOR_F2] = 0x1p-45};
    return errors[accumulator];
}

/* One pass over exact values and how far off the samples may be: in any order, n additions of those magnitudes. */
static void row_expect(double *exact, double *bound, uint64_t length, bool backward, enum scand_accumulator accumulator)
{
    double sum = 0, magnitude = 0, inherited = 0;
    for (uint64_t i = 0; i < length; i++) {
        uint64_t at = backward ? length - 1 - i : i;
        sum += exact[at];
        magnitude += fabs(exact[at]) + bound[at];
        inherited += bound[at];
        exact[at] = sum;
        bound[at] = inherited + (double)(i + 1) * (addition_error(accumulator) + 0x1p-52) * magnitude +
                    0x1p-24 * (fabs(sum) + inherited) + FLT_TRUE_MIN;
    }
}

static void case_expect(const struct sample_case *c, enum scand_accumulator accumulator)
{
    for (uint64_t row = 0; row < c->rows; row++) {
        double *exact = rig.exact + row * c->length, *bound = rig.bound + row * c->length;
        for (uint64_t i = 0; i < c->length; i++) {
            exact[i] = (double)rig.input[input_first(c) + row * input_pitch(c) + i];
            bound[i] = 0;
        }
        for (const char *pass = c->passes; *pass; pass++)
            row_expect(exact, bound, c->length, *pass == 'b', accumulator);
    }
}

static struct variant_scan scan_of(const struct sample_case *c, enum scand_accumulator accumulator, float *input,
                                   float *output)
{
    struct variant_scan scan = {
        .input = input + input_first(c),
        .output = output + output_first(c),
        .rows = c->rows,
        .length = c->length,
        .input_pitch = (int64_t)(input_pitch(c) * sizeof(float)),
        .output_pitch = (int64_t)(output_pitch(c) * sizeof(float)),
        .pass_count = (uint32_t)strlen(c->passes),
        .accumulator = accumulator,
    };
    for (uint32_t i = 0; i < scan.pass_count; i++)
        scan.passes[i] = c->passes[i] == 'b' ? SCAND_PASS_BACKWARD : SCAND_PASS_FORWARD;
    return scan;
}

static void run_on_cpu(const struct sample_case *c, enum scand_accumulator accumulator, float *got)
{
    memcpy(got, rig.before, arena_floats(c) * sizeof(float));
    struct variant_scan scan = scan_of(c, accumulator, c->place->in_place ? got : rig.input, got);
    serial_cpu(&scan, NULL, NULL);
}

#ifdef SCAND_HAVE_CUDA
/* Device memory of all cases. */
static struct {
    float *input, *output;
} gpu;

static bool gpu_available(void)
{
    static int usable = -1;
    int count = 0;
    if (usable < 0)
        usable = cudaGetDeviceCount(&count) == cudaSuccess && count > 0 &&
                 cudaMalloc((void **)&gpu.input, ARENA_MAX * sizeof(float)) == cudaSuccess &&
                 cudaMalloc((void **)&gpu.output, ARENA_MAX * sizeof(float)) == cudaSuccess;
    return usable;
}

/* The input as it was; uses `scratch`. */
static bool input_untouched(const struct sample_case *c, float *scratch)
{
    size_t bytes = arena_floats(c) * sizeof(float);
    return c->place->in_place || (cudaMemcpy(scratch, gpu.input, bytes, cudaMemcpyDeviceToHost) == cudaSuccess &&
                                  memcmp(scratch, rig.input, bytes) == 0);
}

static bool run_on_gpu(enum variant_id id, const struct sample_case *c, enum scand_accumulator accumulator, float *got)
{
    size_t bytes = arena_floats(c) * sizeof(float);
    struct variant_scan scan = scan_of(c, accumulator, c->place->in_place ? gpu.output : gpu.input, gpu.output);
    uint64_t workspace_bytes = variant_workspace_bytes(id, &scan);
    cudaMemcpy(gpu.input, rig.input, bytes, cudaMemcpyHostToDevice);
    cudaMemcpy(gpu.output, rig.before, bytes, cudaMemcpyHostToDevice);
    if (!workspace_prepare(workspace_bytes))
        return false;
    int error = variant_run(id, &scan, workspace, NULL);
    if (!error)
        error = cudaDeviceSynchronize();
    if (error)
        fprintf(stderr, "CUDA: %s\n", cudaGetErrorString((cudaError_t)error));
    return !error && input_untouched(c, got) && workspace_guarded(workspace_bytes) &&
           cudaMemcpy(got, gpu.output, bytes, cudaMemcpyDeviceToHost) == cudaSuccess;
}
#else
static bool gpu_available(void)
{
    return false;
}
#endif

static bool is_wanted(enum variant_id id)
{
    return variant_list[id].on_cpu != on_gpu;
}

static bool run(enum variant_id id, const struct sample_case *c, enum scand_accumulator accumulator, float *got)
{
#ifdef SCAND_HAVE_CUDA
    if (!variant_list[id].on_cpu)
        return run_on_gpu(id, c, accumulator, got);
#endif
    (void)id;
    run_on_cpu(c, accumulator, got);
    return true;
}

/* The samples of a row that are wrong: not exactly the integers, or outside the bound. */
static uint64_t row_wrong(const struct sample_case *c, uint64_t row, const float *got)
{
    const double *exact = rig.exact + row * c->length, *bound = rig.bound + row * c->length;
    uint64_t wrong = 0;
    for (uint64_t i = 0; i < c->length; i++) {
        float integer = (float)exact[i];
        bool right = c->fill == INTEGERS ? memcmp(&got[i], &integer, sizeof integer) == 0
                                         : fabs((double)got[i] - exact[i]) <= bound[i];
        wrong += !right;
    }
    return wrong;
}

/* All rows, and everything around them; leaves `got` as the arena was before. */
static const char *arena_complaint(const struct sample_case *c, float *got)
{
    uint64_t wrong = 0;
    for (uint64_t row = 0; row < c->rows; row++) {
        uint64_t at = output_first(c) + row * output_pitch(c);
        wrong += row_wrong(c, row, got + at);
        memcpy(got + at, rig.before + at, c->length * sizeof(float));
    }
    if (wrong)
        return "wrong values";
    return memcmp(got, rig.before, arena_floats(c) * sizeof(float)) ? "memory around the rows was written" : NULL;
}

/* True when a variant promises the bits of serial-cpu: the variants in which one thread scans a row. */
static bool is_serial(enum variant_id id)
{
    return strncmp(variant_list[id].name, "smem", 4) == 0;
}

static const char *case_complaint(enum variant_id id, const struct sample_case *c, enum scand_accumulator accumulator)
{
    size_t bytes = arena_floats(c) * sizeof(float);
    if (!run(id, c, accumulator, rig.got))
        return "did not run";
    if (is_serial(id) && memcmp(rig.got, rig.serial, bytes) != 0)
        return "not the bits of serial-cpu";
    if (variant_list[id].fixed_order && c->fill == NOISE) {
        if (!run(id, c, accumulator, rig.again))
            return "did not run again";
        if (memcmp(rig.got, rig.again, bytes) != 0)
            return "two runs differ";
    }
    return arena_complaint(c, rig.got);
}

static uint64_t cases_run;

static void variant_check(enum variant_id id, const struct sample_case *c, enum scand_accumulator accumulator)
{
    static const char *const words[] = {
        [SCAND_ACCUMULATOR_F32] = "f32", [SCAND_ACCUMULATOR_F64] = "f64", [SCAND_ACCUMULATOR_F2] = "f2"};
    const char *complaint = case_complaint(id, c, accumulator);
    cases_run++;
    if (!complaint)
        return;
    fprintf(stderr, "%s %s: %s: passes %s, %llu x %llu, %s, %s\n", variant_list[id].name, words[accumulator], complaint,
            c->passes, (unsigned long long)c->rows, (unsigned long long)c->length, c->place->name,
            c->fill == INTEGERS ? "integers" : "noise");
    check_failures++;
}

/* One lane takes a second for a row of millions. */
static bool takes_long(enum variant_id id, const struct sample_case *c)
{
    return is_serial(id) && c->length > 2000000;
}

/* Every variant that runs here, with every accumulator that it offers. */
static void case_check(const struct sample_case *c)
{
    case_fill(c);
    for (enum scand_accumulator accumulator = 0; accumulator < SCAND_ACCUMULATOR_COUNT; accumulator++) {
        if (!(VARIANT_ALL >> accumulator & 1))
            continue;
        case_expect(c, accumulator);
        run_on_cpu(c, accumulator, rig.serial);
        for (enum variant_id id = 0; id < VARIANT_COUNT && check_failures < FAILURES_MAX; id++)
            if (variant_list[id].accumulators >> accumulator & 1 && is_wanted(id) && !takes_long(id, c))
                variant_check(id, c, accumulator);
    }
}

static const char *const pass_lists[] = {"f", "b", "fb", "bf"};

/* All passes, places and fills. */
static void cases_check(uint64_t rows, uint64_t length)
{
    rig_init();
    for (size_t p = 0; p < COUNT(pass_lists); p++)
        for (size_t place = 0; place < COUNT(places); place++)
            for (enum fill fill = 0; fill < FILL_COUNT; fill++) {
                struct sample_case c = {rows, length, pass_lists[p], &places[place], fill};
                case_check(&c);
            }
}

/* 37 rows: more than a warp holds where a lane takes one. */
static void lengths(void)
{
    static const uint64_t list[] = {0,   1,   2,   15,  16,   17,   31,   32,   33,   63,   64,   65,   255,  256,
                                    257, 511, 512, 513, 1000, 1023, 1024, 1025, 2047, 2048, 2049, 2303, 2304, 2305};
    for (size_t i = 0; i < COUNT(list); i++)
        cases_check(37, list[i]);
}

/* Both passes in both orders, in two places: for shapes that take long, and tools that slow a program down. */
static void few_cases_check(uint64_t rows, uint64_t length)
{
    const struct sample_case list[] = {
        {rows, length, "fb", &places[3], INTEGERS},
        {rows, length, "bf", &places[2], NOISE},
    };
    rig_init();
    for (size_t i = 0; i < COUNT(list); i++)
        case_check(&list[i]);
}

static void long_rows(void)
{
    cases_check(5, 9999);
    cases_check(5, 10007);
    few_cases_check(3, 65537);
    few_cases_check(2, 1000000);
    /* The rows have so many tiles that the tiles' totals fill more than one tile. Sums of sums would no longer be
     * exact. */
    static const struct sample_case forward = {1, 6000000, "f", &places[2], INTEGERS};
    static const struct sample_case backward = {1, 6000000, "b", &places[3], NOISE};
    case_check(&forward);
    case_check(&backward);
}

/* More rows than a grid has thread blocks; several rows each where a block scans several. */
static void many_rows(void)
{
    cases_check(0, 5);
    cases_check(1, 5);
    cases_check(70000, 3);
    cases_check(270001, 1);
    cases_check(200, 4611);
    static const struct sample_case c = {1500000, 2, "fb", &places[3], INTEGERS};
    case_check(&c);
}

/* Samples of which sums with a zero differ: minus zeros, an infinity, or its opposite, first, and later ones. */
static void specials_fill(const struct sample_case *c)
{
    static const float list[] = {-0.0f, INFINITY, -INFINITY, 0x1p-149f, -0x1p127f};
    case_fill(c);
    for (uint64_t row = 0; row < c->rows; row++) {
        float *samples = rig.input + input_first(c) + row * input_pitch(c);
        for (uint64_t i = 0; i < c->length && row % 3 == 0; i++)
            samples[i] = -0.0f;
        for (uint64_t i = 0; i < c->length && row % 3 == 1; i += c->length - 1)
            samples[i] = list[row / 3 % COUNT(list)];
        if (row % 3 == 2)
            samples[c->length / 2] = list[row / 3 % COUNT(list)];
    }
    if (c->place->in_place)
        memcpy(rig.before, rig.input, arena_floats(c) * sizeof(float));
}

/* Bits that differ, a NaN being as good as another: processors make different ones. */
static uint64_t bits_different(const float *a, const float *b, uint64_t count)
{
    uint64_t different = 0;
    for (uint64_t i = 0; i < count; i++)
        different += memcmp(&a[i], &b[i], sizeof a[i]) != 0 && !(isnan(a[i]) && isnan(b[i]));
    return different;
}

/* Bits of special values, by variants of is_serial, of rows whose first sample may not be added to a zero. */
static void specials(void)
{
    rig_init();
    for (uint64_t length = 2; length < 200; length += length < 66 ? 1 : 33)
        for (size_t i = 0; i < COUNT(pass_lists) * COUNT(places); i++) {
            const struct sample_case c = {70, length, pass_lists[i % COUNT(pass_lists)], &places[i / COUNT(places)],
                                          NOISE};
            specials_fill(&c);
            for (enum scand_accumulator a = SCAND_ACCUMULATOR_F32; a <= SCAND_ACCUMULATOR_F2; a++) {
                run_on_cpu(&c, a, rig.serial);
                for (enum variant_id id = 0; id < VARIANT_COUNT; id++)
                    if (is_serial(id) && is_wanted(id)) {
                        CHECK(run(id, &c, a, rig.got));
                        CHECK_EQ(bits_different(rig.got, rig.serial, arena_floats(&c)), 0);
                        cases_run++;
                    }
            }
        }
}

static void small(void)
{
    few_cases_check(3, 33);
    few_cases_check(35, 100);
    few_cases_check(2, 5000);
}

static void names(void)
{
    for (int i = 0; i < VARIANT_COUNT; i++) {
        CHECK_EQ(variant_find(variant_list[i].name), i);
        CHECK(strlen(variant_list[i].teaches) > 20 && strlen(variant_list[i].teaches) < 100);
    }
    CHECK_EQ(variant_find("serial"), -1);
    CHECK_EQ(variant_find(""), -1);
}

#ifdef SCAND_HAVE_CUDA
/* Bytes of 1 all over: what is left of a row that begins with such a sample and goes on in zeros. */
static bool window_is_ones(const char *at)
{
    static unsigned char window[1 << 20], expected[1 << 20];
    memset(expected, 1, sizeof expected);
    return cudaMemcpy(window, at, sizeof window, cudaMemcpyDeviceToHost) == cudaSuccess &&
           memcmp(window, expected, sizeof window) == 0;
}

static void large_check(enum variant_id id, char *samples, uint64_t rows, uint64_t length)
{
    uint64_t pitch = length * sizeof(float), bytes = rows * pitch;
    struct variant_scan scan = {
        (float *)samples,     (float *)samples, rows, length, (int64_t)pitch, (int64_t)pitch, {SCAND_PASS_FORWARD}, 1,
        SCAND_ACCUMULATOR_F32};
    cudaMemset(samples, 0, bytes);
    cudaMemset2D(samples, pitch, 1, sizeof(float), rows);
    REQUIRE(workspace_prepare(variant_workspace_bytes(id, &scan)));
    CHECK_EQ(variant_run(id, &scan, workspace, NULL), 0);
    CHECK_EQ(cudaDeviceSynchronize(), 0);
    cases_run++;
    for (uint64_t i = 0; i < 64; i++)
        if (!window_is_ones(samples + (bytes - (1 << 20)) / 63 * i)) {
            fprintf(stderr, "%s: %llu x %llu: window %llu is wrong\n", variant_list[id].name, (unsigned long long)rows,
                    (unsigned long long)length, (unsigned long long)i);
            check_failures++;
            return;
        }
}

/* More than 2^32 samples, in many rows for all variants, and in two rows of 2^31 for variants that divide a row. */
static void large(void)
{
    static const enum variant_id sharing[] = {VARIANT_hillis_steele_global, VARIANT_hierarchical, VARIANT_single_pass,
                                              VARIANT_cub_by_key};
    const uint64_t needed = UINT64_C(2) * sizeof(float) * 43000 * 100003 + (UINT64_C(1) << 30);
    size_t free_bytes, total;
    char *samples;
    if (cudaMemGetInfo(&free_bytes, &total) != cudaSuccess || free_bytes < needed)
        SKIP("needs a GPU with 36 GB of free memory");
    REQUIRE(cudaMalloc((void **)&samples, sizeof(float) * UINT64_C(43000) * 100003) == cudaSuccess);
    for (enum variant_id id = 0; id < VARIANT_COUNT; id++)
        if (!variant_list[id].on_cpu)
            large_check(id, samples, 43000, 100003);
    for (size_t i = 0; i < COUNT(sharing); i++)
        large_check(sharing[i], samples, 2, UINT64_C(1) << 31);
    cudaFree(samples);
}

/* Calls that are refused before anything is touched. */
static void refusals(void)
{
    struct variant_scan scan = {.rows = 1, .length = 1, .pass_count = 1, .accumulator = SCAND_ACCUMULATOR_F64};
    CHECK_EQ(variant_run(VARIANT_single_pass, &scan, NULL, NULL), cudaErrorNotSupported);
    scan.length = VARIANT_LENGTH_MAX + 1;
    CHECK_EQ(variant_run(VARIANT_warp_v0, &scan, NULL, NULL), cudaErrorInvalidValue);
}
#endif

/* Every test is of the CPU's variants or of the GPU's. */
#define OF_CPU(NAME)             \
    static void cpu_##NAME(void) \
    {                            \
        on_gpu = false;          \
        NAME();                  \
    }
#define OF_GPU(NAME)              \
    static void cuda_##NAME(void) \
    {                             \
        if (!gpu_available())     \
            SKIP("no GPU");       \
        on_gpu = true;            \
        NAME();                   \
    }

OF_CPU(names)
OF_CPU(small)
OF_CPU(lengths)
OF_GPU(small)
OF_GPU(lengths)
OF_GPU(specials)
OF_GPU(long_rows)
OF_GPU(many_rows)
#ifdef SCAND_HAVE_CUDA
OF_GPU(large)
OF_GPU(refusals)
#endif

static const struct test tests[] = {
    TEST(cpu_names),    TEST(cpu_small),     TEST(cpu_lengths),    TEST(cuda_small),
    TEST(cuda_lengths), TEST(cuda_specials), TEST(cuda_long_rows), TEST(cuda_many_rows),
#ifdef SCAND_HAVE_CUDA
    TEST(cuda_large),   TEST(cuda_refusals),
#endif
    TEST_END,
};

int main(int argc, char **argv)
{
    seed = random_seed();
    int r = test_main(argc, argv, tests);
    printf("%llu scans by variants compared\n", (unsigned long long)cases_run);
    return r;
}
