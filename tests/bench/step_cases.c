#include "tests/bench/step_cases.h"

#include "kernels/steps/block_sum/block_sum.h"
#include "kernels/steps/convolve/convolve.h"
#include "kernels/steps/demean/demean.h"
#include "kernels/steps/diff/diff.h"
#include "kernels/steps/dot/dot.h"
#include "kernels/steps/map/map.h"
#include "kernels/steps/pick/pick.h"
#include "kernels/steps/stack/stack.h"
#include "kernels/steps/triangle/triangle.h"
#include "kernels/steps/upsample/upsample.h"

#define F16 SCAND_DTYPE_F16
#define F32 SCAND_DTYPE_F32
#define F64 SCAND_DTYPE_F64
#define I32 SCAND_DTYPE_I32

#define UPSAMPLE(...)  &upsample_kernel, &(const struct upsample){__VA_ARGS__}, sizeof(struct upsample)
#define BLOCK_SUM(...) &block_sum_kernel, &(const struct block_sum){__VA_ARGS__}, sizeof(struct block_sum)
#define CONVOLVE(...)  &convolve_kernel, &(const struct convolve){__VA_ARGS__}, sizeof(struct convolve)
#define DIFF(...)      &diff_kernel, &(const struct diff){__VA_ARGS__}, sizeof(struct diff)
#define MAP(...)       &map_kernel, &(const struct map){__VA_ARGS__}, sizeof(struct map)
#define TRIANGLE(K)                                                                                            \
    &triangle_kernel,                                                                                          \
        &(const struct triangle){K, TRIANGLE_TRIANGLE, BOUNDARY_REFLECT, 1.0 / ((K) * (K)), WINDOW_NORM_AREA}, \
        sizeof(struct triangle)
#define BOX(K)                                                                                            \
    &triangle_kernel,                                                                                     \
        &(const struct triangle){K, TRIANGLE_BOX, BOUNDARY_REFLECT, 1.0 / (2 * (K)-1), WINDOW_NORM_AREA}, \
        sizeof(struct triangle)
#define DOT    &dot_kernel, "", 0
#define DEMEAN &demean_kernel, "", 0
#define BINS   500
#define STACK  &stack_kernel, &(const struct stack){.bins = BINS, .alpha = 1}, sizeof(struct stack)
#define ONTO   &stack_kernel, &(const struct stack){.bins = BINS, .alpha = 0.5}, sizeof(struct stack)

#define PICK &pick_kernel, "", 0

#define OTHER STEP_CASE_SAMPLES

// clang-format off
/* name                 kernel and parameters                        input output times parts further shared target bins */
const struct step_bench step_benches[] = {
    {"upsample 2",       UPSAMPLE(.factor = 2),                       F32, F32, 2, 1, 0,     false, 0.90, 0},
    {"block-sum 2",      BLOCK_SUM(.factor = 2),                      F32, F32, 1, 2, 0,     false, 0.90, 0},
    {"block-sum 10",     BLOCK_SUM(.factor = 10),                     F32, F32, 1, 10, 0,    false, 0, 0},
    {"convolve 31",      CONVOLVE(.taps = 31, .first = 15),           F32, F32, 1, 1, 31,    true,  0.80, 0},
    {"convolve 31 in f64", CONVOLVE(.taps = 31, .first = 15, .wide = true), F32, F32, 1, 1, 31, true, 0, 0},
    {"convolve 255",     CONVOLVE(.taps = 255, .first = 127),         F32, F32, 1, 1, 255,   true,  0, 0},
    {"convolve 255 in f64", CONVOLVE(.taps = 255, .first = 127, .wide = true), F32, F32, 1, 1, 255, true, 0, 0},
    {"convolve 31 of f64", CONVOLVE(.taps = 31, .first = 15, .wide = true), F64, F64, 1, 1, 31, true, 0, 0},
    {"convolve 255 of f64", CONVOLVE(.taps = 255, .first = 127, .wide = true), F64, F64, 1, 1, 255, true, 0, 0},
    {"diff first",       DIFF(.kind = DIFF_FIRST),                    F32, F32, 1, 1, 0,     false, 0, 0},
    {"diff derivative",  DIFF(.kind = DIFF_DERIVATIVE, .dt = 0.004),  F32, F32, 1, 1, 0,     false, 0, 0},
    {"map add other",    MAP(.op = MAP_ADD),                          F32, F32, 1, 1, OTHER, false, 0.95, 0},
    {"map add other",    MAP(.op = MAP_ADD),                          F64, F64, 1, 1, OTHER, false, 0.95, 0},
    {"map add other",    MAP(.op = MAP_ADD),                          F16, F16, 1, 1, OTHER, false, 0.95, 0},
    {"map mul a vector", MAP(.op = MAP_MUL),                          F32, F32, 1, 1, OTHER, true,  0.95, 0},
    {"map mul by",       MAP(.op = MAP_MUL, .by = 3),                 F32, F32, 1, 1, 0,     false, 0.95, 0},
    {"map mul by",       MAP(.op = MAP_MUL, .by = 3),                 I32, I32, 1, 1, 0,     false, 0, 0},
    {"map div by",       MAP(.op = MAP_DIV, .by = 3),                 F32, F32, 1, 1, 0,     false, 0.95, 0},
    {"map clip",         MAP(.op = MAP_CLIP, .by = -1, .high = 0.5),  F32, F32, 1, 1, 0,     false, 0.95, 0},
    {"map sqrt",         MAP(.op = MAP_SQRT),                         F32, F32, 1, 1, 0,     false, 0.95, 0},
    {"map exp",          MAP(.op = MAP_EXP),                          F32, F32, 1, 1, 0,     false, 0, 0},
    {"map exp",          MAP(.op = MAP_EXP),                          F64, F64, 1, 1, 0,     false, 0, 0},
    {"map log",          MAP(.op = MAP_LOG),                          F32, F32, 1, 1, 0,     false, 0, 0},
    {"map log",          MAP(.op = MAP_LOG),                          F64, F64, 1, 1, 0,     false, 0, 0},
    {"map cast",         MAP(.op = MAP_CAST),                         F32, I32, 1, 1, 0,     false, 0, 0},
    {"map cast",         MAP(.op = MAP_CAST),                         F16, F32, 1, 1, 0,     false, 0, 0},
    {"triangle 2",       TRIANGLE(2),                                 F32, F32, 1, 1, 0,     false, 0.85, 0},
    {"triangle 100",     TRIANGLE(100),                               F32, F32, 1, 1, 0,     false, 0.85, 0},
    {"triangle 101",     TRIANGLE(101),                               F32, F32, 1, 1, 0,     false, 0, 0},
    {"triangle 1000",    TRIANGLE(1000),                              F32, F32, 1, 1, 0,     false, 0.85, 0},
    {"box 2",            BOX(2),                                      F32, F32, 1, 1, 0,     false, 0.85, 0},
    {"box 100",          BOX(100),                                    F32, F32, 1, 1, 0,     false, 0.85, 0},
    {"box 1000",         BOX(1000),                                   F32, F32, 1, 1, 0,     false, 0.85, 0},
    {"demean",           DEMEAN,                                      F32, F32, 1, 1, 0,     false, 0, 0},
    {"dot",              DOT,                                         F32, F64, 0, 0, OTHER, false, 0.92, 0},
    {"triangle to 100",  TRIANGLE(100),                               F32, F32, 1, 1, OTHER, true,  0, 0},
    {"pick",             PICK,                                        F32, F32, 1, 1, OTHER, true,  0, 0},
    {"stack 500 bins",  STACK,                                       F32, F32, 0, 0, OTHER, true,  0.80, BINS},
    {"index-add 500 bins", ONTO,                                     F32, F32, 0, 0, OTHER, true,  0.80, BINS},
};
// clang-format on
const size_t step_bench_count = sizeof step_benches / sizeof step_benches[0];

static bool has_part(const struct step_kernel *kernel, const struct step_kernel *part)
{
    return kernel == part || (kernel->parts && (kernel->parts->each == part || kernel->parts->joined == part));
}

void step_benches_complain(void)
{
    for (unsigned id = 0; id < STEP_KERNEL_COUNT; id++) {
        bool found = false;
        for (size_t i = 0; i < step_bench_count; i++)
            found = found || has_part(step_benches[i].kernel, step_kernels[id]);
        if (!found)
            fprintf(stderr, "scand-bench: steps: there is no case of %s in step_cases.c\n", step_kernels[id]->name);
    }
}

static struct step_operand operand_of(void *origin, enum scand_dtype dtype, uint64_t length, bool is_shared)
{
    const int64_t size = codec_bytes(dtype);
    return (struct step_operand){.origin = origin,
                                 .length = length,
                                 .stride = size,
                                 .outer_strides = {is_shared ? 0 : size * (int64_t)length},
                                 .dtype = dtype};
}

/* Turns rows into columns; there are `rows` columns. */
static void turn(struct step_operand *operand, uint64_t rows)
{
    operand->outer_strides[0] = operand->stride;
    operand->stride *= (int64_t)rows;
}

static uint64_t further_length(const struct step_bench *bench, uint64_t length)
{
    return bench->further == STEP_CASE_SAMPLES ? length : bench->further;
}

static uint64_t output_length(const struct step_bench *bench, uint64_t length)
{
    return bench->bins > 0 ? bench->bins : bench->parts > 0 ? length * bench->times / bench->parts : 1;
}

static bool has_half_widths(const struct step_bench *bench)
{
    return bench->kernel == &triangle_kernel && bench->further > 0;
}

/* True when bins have values before the step, which lie where the output goes: index-add. */
static bool adds_onto(const struct step_bench *bench)
{
    return bench->kernel == &stack_kernel && ((const struct stack *)bench->params)->alpha != 1;
}

struct step_rows step_bench_rows(const struct step_bench *bench, uint64_t rows, uint64_t length, void *input,
                                 void *further, void *output)
{
    struct step_rows made = {.row_count = rows,
                             .outer_rank = 1,
                             .outer_shape = {rows},
                             .input = operand_of(input, bench->dtype, length, false),
                             .output = operand_of(output, bench->made, output_length(bench, length), false)};
    if (bench->further > 0)
        made.further[0] =
            operand_of(further, bench->bins > 0 || has_half_widths(bench) ? SCAND_DTYPE_U32 : bench->dtype,
                       further_length(bench, length), bench->is_shared);
    if (bench->kernel == &pick_kernel)
        made.further[PICK_HALF_WIDTH] =
            operand_of((char *)further + length * sizeof(float), SCAND_DTYPE_F32, length, true);
    if (bench->bins > 0) {
        turn(&made.input, rows);
        turn(&made.output, rows);
    }
    if (adds_onto(bench))
        made.further[STACK_ONTO] = made.output;
    return made;
}

uint64_t step_bench_words(const struct step_bench *bench, uint64_t length)
{
    if (bench->kernel == &pick_kernel)
        return 2 * length;
    return bench->bins > 0 || has_half_widths(bench) ? length : 0;
}

static void fill_index(uint64_t bins, uint64_t count, uint32_t *index)
{
    uint64_t state = 1;
    for (uint64_t i = 0; i < count; i++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        index[i] = (uint32_t)((state >> 33) % bins);
    }
}

/* Picks between all samples, the wider the later, as of traces whose slopes grow. */
static void fill_picks(uint64_t length, uint32_t *words)
{
    for (uint64_t i = 0; i < length; i++) {
        const float position = (float)i + 0.25f, half_width = 100.0f * (float)i / (float)length;
        memcpy(&words[i], &position, sizeof position);
        memcpy(&words[length + i], &half_width, sizeof half_width);
    }
}

void step_bench_fill(const struct step_bench *bench, uint64_t length, uint32_t *words)
{
    if (bench->kernel == &pick_kernel)
        fill_picks(length, words);
    else if (bench->bins > 0)
        fill_index(bench->bins, length, words);
    else if (has_half_widths(bench))
        for (uint64_t i = 0; i < length; i++)
            words[i] = (uint32_t)(1 + i * ((const struct triangle *)bench->params)->half_width / length);
}

uint64_t step_bench_bytes(const struct step_bench *bench, uint64_t rows, uint64_t length)
{
    const uint64_t further = further_length(bench, length) * (bench->is_shared ? 1 : rows);
    const uint64_t output = rows * output_length(bench, length);
    return (rows * length + further) * codec_bytes(bench->dtype) +
           output * codec_bytes(bench->made) * (adds_onto(bench) ? 2 : 1);
}

const char *step_bench_dtypes(const struct step_bench *bench)
{
    static const char *const words[] = {
#define X(NAME, WORD, ...) WORD,
        SCAND_DTYPES(X)
#undef X
    };
    static char text[24];
    snprintf(text, sizeof text, bench->made == bench->dtype ? "%s" : "%s to %s", words[bench->dtype],
             words[bench->made]);
    return text;
}
