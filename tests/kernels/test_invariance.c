/*
 * A row's bits depend on none of these: the rows beside it, its place among them, alignment, strides, how many are
 * scanned at once, whether the output is the input's memory, and when it runs. Each implementation is compared with
 * itself: a row alone and packed against the same row in other places.
 */
#include "kernels/order1/dtypes.h"
#include "tests/kernels/every.h"

#define COUNT(ARRAY) (sizeof(ARRAY) / sizeof((ARRAY)[0]))
#define FAILURES_MAX 5
#define MEMORY_BYTES ((size_t)16 << 20)
#define ROW_BYTES    ((size_t)2 << 20)

/* The place of a row among others. */
struct place {
    const char *name;
    uint64_t rows, at;    /* this row is the at-th; long rows are fewer */
    unsigned offset;      /* bytes before the first sample */
    unsigned element_gap; /* bytes between samples */
    unsigned gap;         /* bytes between rows; for columns, between samples of a column */
    bool columns, in_place;
    uint64_t chunk; /* rows scanned at once; 0: all */
};

static const struct place alone = {.name = "alone", .rows = 1};
static const struct place places[] = {
    {.name = "first of many", .rows = 37, .at = 0},
    {.name = "last of many", .rows = 37, .at = 36},
    {.name = "in place, one by one", .rows = 9, .at = 4, .in_place = true, .chunk = 1},
    {.name = "in chunks of four", .rows = 37, .at = 17, .chunk = 4},
    {.name = "four bytes further on", .rows = 5, .at = 2, .offset = 4},
    {.name = "at an odd address", .rows = 3, .at = 1, .offset = 1, .in_place = true},
    {.name = "between trace headers", .rows = 5, .at = 3, .offset = 240, .gap = 240},
    {.name = "between odd gaps, in chunks of three", .rows = 11, .at = 7, .offset = 8, .gap = 4, .chunk = 3},
    {.name = "samples apart", .rows = 3, .at = 1, .element_gap = 8, .gap = 8},
    {.name = "a column", .rows = 5, .at = 3, .columns = true},
    {.name = "a column of many, in place", .rows = 33, .at = 21, .columns = true, .in_place = true, .chunk = 20},
};

#define F32 SCAND_DTYPE_F32
#define FB  .passes = {SCAND_PASS_FORWARD, SCAND_PASS_BACKWARD}, .pass_count = 2
#define BF  .passes = {SCAND_PASS_BACKWARD, SCAND_PASS_FORWARD}, .pass_count = 2
static const struct scan_rule rules[] = {
    {FB, .accumulator = SCAND_ACCUMULATOR_F32},
    {FB, .accumulator = SCAND_ACCUMULATOR_F64},
    {FB, .accumulator = SCAND_ACCUMULATOR_F2},
    {BF, .accumulator = SCAND_ACCUMULATOR_F2, .kind = SCAND_KIND_EXCLUSIVE},
    {BF, .accumulator = SCAND_ACCUMULATOR_F64, .kind = SCAND_KIND_HALF, .demean = true},
    {FB, .accumulator = SCAND_ACCUMULATOR_F2, .kind = SCAND_KIND_TRAPEZOID},
    {FB, .accumulator = SCAND_ACCUMULATOR_F32, .op = SCAND_OPERATOR_PROD},
    {FB, .accumulator = SCAND_ACCUMULATOR_F2, .op = SCAND_OPERATOR_AFFINE, .coefficient = -0.998},
    {FB, .accumulator = SCAND_ACCUMULATOR_F64, .input = SCAND_DTYPE_F64, .output = SCAND_DTYPE_F64},
    {FB, .accumulator = SCAND_ACCUMULATOR_F32, .input = SCAND_DTYPE_F16, .output = SCAND_DTYPE_F16},
    {FB, .accumulator = SCAND_ACCUMULATOR_F64, .input = SCAND_DTYPE_IBM32, .output = SCAND_DTYPE_IBM32},
    {FB, .accumulator = SCAND_ACCUMULATOR_EXACT, .input = SCAND_DTYPE_I32, .output = SCAND_DTYPE_I32},
};

static uint64_t seed;

/* Memory of all runs, and the row's samples and values. */
static struct rig {
    unsigned char *noise, *input, *output, *again;
    unsigned char *row, *expected;
} rig;

static void rig_init(void)
{
    if (rig.noise)
        return;
    unsigned char **regions[] = {&rig.noise, &rig.input, &rig.output, &rig.again, &rig.row, &rig.expected};
    for (size_t i = 0; i < COUNT(regions); i++)
        if (!(*regions[i] = malloc(i < 4 ? MEMORY_BYTES : ROW_BYTES)))
            abort();
    uint64_t random = seed;
    for (size_t i = 0; i < MEMORY_BYTES / sizeof(random); i++)
        ((uint64_t *)rig.noise)[i] = random_next(&random);
}

/* Noise around 1 and -1: products stay in range too. */
static void row_fill(enum scand_dtype dtype, uint64_t length)
{
    uint64_t random = seed + length;
    for (uint64_t i = 0; i < length; i++) {
        uint64_t dice = random_next(&random);
        double sample = (dice & 1 ? -1.0 : 1.0) + 0x1p-70 * (double)(int64_t)dice;
        unsigned char *at = rig.row + i * codec_bytes(dtype);
        if (codec_is_integer(dtype))
            codec_encode_integer(dtype, dice, at);
        else if (codec_class(dtype) == SCAND_CLASS_F64)
            codec_encode_f64(dtype, sample, at);
        else
            codec_encode_f32(dtype, (float)sample, at);
    }
}

static uint64_t rows_of_place(const struct place *place, uint64_t length)
{
    return place->rows > 3 && length > 4000 ? 3 : place->rows;
}

static uint64_t row_of_place(const struct place *place, uint64_t length)
{
    uint64_t rows = rows_of_place(place, length);
    return place->at < rows ? place->at : rows - 1;
}

struct strides {
    int64_t outer, inner;
};

static struct strides strides_of(const struct place *place, enum scand_dtype dtype, uint64_t length)
{
    int64_t element = codec_bytes(dtype) + place->element_gap;
    int64_t across = (int64_t)(place->columns ? rows_of_place(place, length) : length) * element + place->gap;
    return place->columns ? (struct strides){element, across} : (struct strides){across, element};
}

static struct scan_rows rows_of(const struct scan_rule *rule, const struct place *place, uint64_t length)
{
    struct strides input = strides_of(place, rule->input, length), output = strides_of(place, rule->output, length);
    uint64_t rows = rows_of_place(place, length);
    return (struct scan_rows){
        .rule = *rule,
        .length = length,
        .row_count = rows,
        .outer_rank = 1,
        .outer_shape = {rows},
        .input_outer_strides = {input.outer},
        .output_outer_strides = {output.outer},
        .input_stride = input.inner,
        .output_stride = output.inner,
        .input = rig.input + place->offset,
        .output = (place->in_place ? rig.input : rig.output) + place->offset,
    };
}

/* Bytes from the beginning of a region that rows may touch. */
static size_t region_bytes(const struct place *place, enum scand_dtype dtype, uint64_t length)
{
    struct strides strides = strides_of(place, dtype, length);
    uint64_t last =
        (rows_of_place(place, length) - 1) * (uint64_t)strides.outer + (length - 1) * (uint64_t)strides.inner;
    size_t bytes = place->offset + last + codec_bytes(dtype);
    if (bytes > MEMORY_BYTES)
        abort();
    return bytes;
}

/* The row among rows of noise, scanned with them. */
static bool place_run(const struct implementation *implementation, const struct scan_rule *rule,
                      const struct place *place, uint64_t length)
{
    struct scan_rows rows = rows_of(rule, place, length);
    struct scan_memory memory = {.input = rig.input,
                                 .output = place->in_place ? rig.input : rig.output,
                                 .input_bytes = region_bytes(place, rule->input, length),
                                 .output_bytes = region_bytes(place, rule->output, length)};
    uint64_t chunk = place->chunk ? place->chunk : rows.row_count, size = codec_bytes(rule->input);
    memcpy(rig.input, rig.noise, memory.input_bytes);
    memset(rig.output, 0xa5, memory.output_bytes);
    unsigned char *row =
        rig.input + place->offset + row_of_place(place, length) * (uint64_t)rows.input_outer_strides[0];
    for (uint64_t i = 0; i < length; i++)
        memcpy(row + i * (uint64_t)rows.input_stride, rig.row + i * size, size);
    for (uint64_t first = 0; first < rows.row_count; first += chunk) {
        uint64_t left = rows.row_count - first;
        if (implementation->run(&rows, first, left < chunk ? left : chunk, &memory))
            return false;
    }
    return true;
}

static bool row_is_expected(const struct scan_rule *rule, const struct place *place, uint64_t length)
{
    struct scan_rows rows = rows_of(rule, place, length);
    uint64_t size = codec_bytes(rule->output);
    const unsigned char *row =
        (unsigned char *)rows.output + row_of_place(place, length) * (uint64_t)rows.output_outer_strides[0];
    for (uint64_t i = 0; i < length; i++)
        if (memcmp(row + i * (uint64_t)rows.output_stride, rig.expected + i * size, size) != 0)
            return false;
    return true;
}

static void place_check(const struct implementation *implementation, size_t rule, const struct place *place,
                        uint64_t length)
{
    bool ran = place_run(implementation, &rules[rule], place, length);
    bool same = ran && row_is_expected(&rules[rule], place, length);
    if (!same)
        fprintf(stderr, "%s, rule %zu, a row of %llu samples, %s: %s\n", implementation->name, rule,
                (unsigned long long)length, place->name, ran ? "other bits than alone" : "failed");
    CHECK(same);
}

static void length_check(const struct implementation *implementation, uint64_t length)
{
    rig_init();
    for (size_t r = 0; r < COUNT(rules) && check_failures < FAILURES_MAX; r++) {
        row_fill(rules[r].input, length);
        CHECK(place_run(implementation, &rules[r], &alone, length));
        memcpy(rig.expected, rig.output, length * codec_bytes(rules[r].output));
        for (size_t p = 0; p < COUNT(places); p++)
            place_check(implementation, r, &places[p], length);
    }
}

static void places_of_rows(const struct implementation *implementation)
{
    static const uint64_t lengths[] = {1, 7, 16, 33, 130, 512, 1000, 2047, 10007, 20000};
    for (size_t i = 0; i < COUNT(lengths); i++)
        length_check(implementation, lengths[i]);
}

/* Places of rows that more than one thread block shares. */
static void places_of_long_rows(const struct implementation *implementation)
{
    length_check(implementation, 57001);
    length_check(implementation, 140000);
}

/* The whole output of two runs. */
static void repeated_runs(const struct implementation *implementation)
{
    static const uint64_t lengths[] = {8, 100, 1000, 5000, 10007, 60000};
    static const struct place batch = {.name = "a batch", .rows = 37, .offset = 4, .gap = 12};
    rig_init();
    for (size_t i = 0; i < COUNT(lengths); i++)
        for (size_t r = 0; r < COUNT(rules); r++) {
            size_t bytes = region_bytes(&batch, rules[r].output, lengths[i]);
            row_fill(rules[r].input, lengths[i]);
            REQUIRE(place_run(implementation, &rules[r], &batch, lengths[i]));
            memcpy(rig.again, rig.output, bytes);
            REQUIRE(place_run(implementation, &rules[r], &batch, lengths[i]));
            CHECK(memcmp(rig.again, rig.output, bytes) == 0);
        }
}

EVERY_CPU(places_of_rows)
EVERY_CPU(repeated_runs)
EVERY_CUDA(places_of_rows)
EVERY_CUDA(places_of_long_rows)
EVERY_CUDA(repeated_runs)

int main(int argc, char **argv)
{
    static const struct test tests[] = {TEST(cpu_places_of_rows),  TEST(cpu_repeated_runs),
                                        TEST(cuda_places_of_rows), TEST(cuda_places_of_long_rows),
                                        TEST(cuda_repeated_runs),  TEST_END};
    seed = random_seed();
    return test_main(argc, argv, tests);
}
