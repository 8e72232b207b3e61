#include "tests/kernels/case.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/order1/dtypes.h"
#include "tests/check.h"

#define GUARD_BYTES 192

/* An array of a shape, somewhere in a region between guards. */
struct array {
    uint32_t rank;
    uint64_t shape[SCAND_RANK_MAX];
    int64_t strides[SCAND_RANK_MAX];
    uint64_t origin; /* offset of element 0, 0, ... in the region */
    uint64_t region_bytes;
};

struct scan_rule rule_of(const char *passes, enum scand_kind kind, enum scand_accumulator accumulator,
                         enum scand_dtype intermediate, enum scand_dtype output)
{
    struct scan_rule rule = {.pass_count = (uint32_t)strlen(passes),
                             .kind = kind,
                             .accumulator = accumulator,
                             .intermediate = intermediate,
                             .output = output};
    for (uint32_t i = 0; i < rule.pass_count; i++)
        rule.passes[i] = passes[i] == 'b' ? SCAND_PASS_BACKWARD : SCAND_PASS_FORWARD;
    return rule;
}

struct scan_rule rule_with_op(struct scan_rule rule, enum scand_operator op)
{
    rule.op = op;
    return rule;
}

static float noise(uint64_t *random)
{
    return (float)((double)(int64_t)random_next(random) * 0x1p-63 + 0.034);
}

static float float_of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static float special(uint64_t *random)
{
    static const uint32_t bits[] = {0x7fc00000, 0xffc00001, 0x7f800001, 0xff923456, 0x7f800000,
                                    0xff800000, 0x80000000, 0x00000001, 0x807fffff, 0x00800000};
    return float_of_bits(bits[random_next(random) % (sizeof(bits) / sizeof(bits[0]))]);
}

static float fill_sample(enum fill fill, uint64_t *random)
{
    uint64_t dice = random_next(random);
    switch (fill) {
    case FILL_EXPONENTS:
        return float_of_bits((uint32_t)(dice & 0x807fffff) | (uint32_t)(dice >> 32) % 0xf0 << 23);
    case FILL_SPECIALS:
        return dice % 1499 == 0 ? special(random) : noise(random);
    case FILL_ENDS:
        return dice % 8 == 0 ? special(random) : noise(random);
    case FILL_INFINITIES:
        return dice % 2999 == 0 ? float_of_bits(0x7f800000 | (uint32_t)(dice >> 63) << 31) : noise(random);
    case FILL_HUGE_VALUES:
        return noise(random) * 0x1p125f;
    case FILL_DENORMALS:
        return float_of_bits((uint32_t)(dice & 0x8001ffff));
    case FILL_ZEROS:
        return dice % 97 == 0 ? 0.0f : -0.0f;
    case FILL_NEAR_ONE:
        return (dice & 1 ? -1.0f : 1.0f) + 0x1p-6f * noise(random);
    case FILL_SPREAD:
        return noise(random) * float_of_bits((uint32_t)(127 - dice % 8) << 23);
    case FILL_STEPS:
        return (float)((int)(dice % 5) - 2) * (dice & 64 ? 1.0f : -1.0f);
    default:
        return noise(random);
    }
}

void fill_samples(enum fill fill, uint64_t *random, float *samples, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        samples[i] = fill_sample(fill, random);
}

static struct array array_of(const struct scan_case *c, const struct layout *layout, size_t element_bytes)
{
    struct array array = {.rank = c->rank, .origin = GUARD_BYTES + layout->offset};
    uint64_t stride = element_bytes + layout->element_gap;
    for (uint32_t i = 0; i < c->rank; i++) {
        uint32_t axis = layout->columns_first ? i : c->rank - 1 - i;
        array.shape[axis] = c->shape[axis];
        array.strides[axis] = (int64_t)stride;
        if (layout->negative >> axis & 1) {
            array.strides[axis] = -array.strides[axis];
            array.origin += stride * (c->shape[axis] ? c->shape[axis] - 1 : 0);
        }
        stride = stride * c->shape[axis] + layout->axis_gap;
    }
    array.region_bytes = stride + layout->offset + 2 * GUARD_BYTES;
    return array;
}

/* Visits all elements in C order: `element` counts them, the return value is the offset in the region. */
static uint64_t array_at(const struct array *array, uint64_t element)
{
    int64_t offset = (int64_t)array->origin;
    for (uint32_t axis = array->rank; axis-- > 0;) {
        offset += (int64_t)(element % array->shape[axis]) * array->strides[axis];
        element /= array->shape[axis];
    }
    return (uint64_t)offset;
}

static uint64_t array_elements(const struct array *array)
{
    uint64_t count = 1;
    for (uint32_t axis = 0; axis < array->rank; axis++)
        count *= array->shape[axis];
    return count;
}

static struct scan_rows rows_of(const struct scan_case *c, const struct array *input, const struct array *output,
                                const struct array *coefficients)
{
    struct scan_rows rows = {.rule = c->rule,
                             .length = c->shape[c->axis],
                             .row_count = 1,
                             .input_stride = input->strides[c->axis],
                             .output_stride = output->strides[c->axis],
                             .coefficient_stride = coefficients->strides[c->axis]};
    for (uint32_t axis = 0; axis < c->rank; axis++) {
        if (axis == c->axis)
            continue;
        rows.outer_shape[rows.outer_rank] = c->shape[axis];
        rows.input_outer_strides[rows.outer_rank] = input->strides[axis];
        rows.output_outer_strides[rows.outer_rank] = output->strides[axis];
        rows.coefficient_outer_strides[rows.outer_rank] = coefficients->strides[axis];
        rows.row_count *= c->shape[axis];
        rows.outer_rank++;
    }
    if (c->offsets) {
        rows.offsets = c->offsets;
        rows.row_count = c->row_count;
        rows.length = 0;
    }
    if (c->offsets && c->rule.operation == SCAND_OPERATION_REDUCE) {
        rows.outer_rank = 1;
        rows.outer_shape[0] = c->row_count;
        rows.output_outer_strides[0] = rows.output_stride;
    }
    for (uint64_t r = 0; c->offsets && r < c->row_count; r++) {
        uint64_t length = c->offsets[r + 1] - c->offsets[r];
        rows.length = length > rows.length ? length : rows.length;
    }
    return rows;
}

static double f64_sample(enum fill fill, uint64_t *random)
{
    uint64_t dice = random_next(random), sign = dice & UINT64_C(1) << 63;
    if (fill == FILL_F64_RANGE)
        return codec_f64_of_bits((dice & UINT64_C(0x800fffffffffffff)) | random_next(random) % 0x7ff << 52);
    if (fill == FILL_F64_DENORMALS)
        return codec_f64_of_bits(sign | (dice & UINT64_C(0xfffffffffffff)) >> random_next(random) % 52);
    double scale = dice % 3001 == 0 ? 0x1p1000 : dice % 301 == 0 ? 1 : dice % 31 == 0 ? 0x1p-1060 : 0x1p-560;
    return scale * (double)noise(random);
}

/* Returns a factor that makes samples whole numbers, for dtypes that hold no others. */
static float integer_scale(enum scand_dtype dtype)
{
    switch (dtype) {
    case SCAND_DTYPE_I8:
    case SCAND_DTYPE_U8:
        return 49.7f;
    case SCAND_DTYPE_I16:
    case SCAND_DTYPE_I16BE:
    case SCAND_DTYPE_U16:
    case SCAND_DTYPE_U16BE:
        return 999.7f;
    default:
        return 1;
    }
}

/* Writes a sample of any dtype; some are any bytes at all. */
static void sample_write(enum scand_dtype dtype, enum fill fill, uint64_t *random, unsigned char *to)
{
    if (codec_class(dtype) == SCAND_CLASS_F64 && codec_bytes(dtype) == 8 && fill >= FILL_COUNT) {
        codec_encode_f64(dtype, f64_sample(fill, random), to);
        return;
    }
    float sample = fill_sample(fill, random);
    if (dtype == SCAND_DTYPE_F32)
        memcpy(to, &sample, sizeof(sample));
    if (dtype == SCAND_DTYPE_F32 || random_next(random) % 32 == 0)
        return;
    if (codec_is_integer(dtype))
        codec_encode_integer(dtype, (uint64_t)((int64_t)random_next(random) >> random_next(random) % 64), to);
    else if (codec_class(dtype) == SCAND_CLASS_F64)
        codec_encode_f64(dtype,
                         (double)sample * (codec_bytes(dtype) == 4 ? 0x1p24 : 1) *
                             (1 + 0x1p-40 * (double)(random_next(random) % 4096)),
                         to);
    else
        codec_encode_f32(dtype, sample * integer_scale(dtype), to);
}

/* A region of random bytes; with samples of a dtype, if there is a fill. */
static unsigned char *region_create(const struct array *array, enum scand_dtype dtype, const enum fill *fill,
                                    uint64_t *random)
{
    unsigned char *region = malloc(array->region_bytes);
    for (uint64_t i = 0; region && i < array->region_bytes; i += sizeof(uint64_t)) {
        const uint64_t bytes = random_next(random), left = array->region_bytes - i;
        memcpy(region + i, &bytes, left < sizeof bytes ? left : sizeof bytes);
    }
    const uint64_t elements = region && fill ? array_elements(array) : 0, row = array->shape[array->rank - 1];
    for (uint64_t i = 0; i < elements; i += row) { /* array_at divides, which takes longer than all else here */
        unsigned char *at = region + array_at(array, i);
        for (uint64_t j = 0; j < row; j++, at += array->strides[array->rank - 1])
            sample_write(dtype, *fill, random, at);
    }
    return region;
}

static void layout_print(const char *what, const struct layout *layout)
{
    fprintf(stderr, "  %s: %s (offset %u, gaps %u and %u%s, negative axes 0x%x)\n", what, layout->name, layout->offset,
            layout->element_gap, layout->axis_gap, layout->columns_first ? ", columns first" : "", layout->negative);
}

static void case_print(const struct scan_case *c)
{
#define X(NAME) #NAME,
    static const char *const fills[] = {FILLS(X) FILLS_F64(X)};
#undef X
#define X(NAME, WORD, ...) WORD,
    static const char *const kinds[] = {SCAND_KINDS(X)}, *const accumulators[] = {SCAND_ACCUMULATORS(X)};
    static const char *const operators[] = {SCAND_OPERATORS(X)}, *const reductions[] = {SCAND_REDUCTIONS(X)};
    static const char *const dtypes[] = {SCAND_DTYPES(X)}, *const passes[] = {SCAND_PASSES(X)};
#undef X
    const struct scan_rule *rule = &c->rule;
    if (rule->operation == SCAND_OPERATION_REDUCE)
        fprintf(stderr, "  reduction %s:\n", reductions[rule->reduction]);
    fprintf(stderr, "  %s, %s%s%s, %s, accumulator %s, intermediate %s, %s%s to %s\n", operators[rule->op],
            passes[rule->passes[0]], rule->pass_count > 1 ? " then " : "",
            rule->pass_count > 1 ? passes[rule->passes[1]] : "", kinds[rule->kind], accumulators[rule->accumulator],
            dtypes[rule->intermediate], rule->demean ? "demeaned " : "", dtypes[rule->input], dtypes[rule->output]);
    fprintf(stderr, "  shape");
    for (uint32_t i = 0; i < c->rank; i++)
        fprintf(stderr, " %" PRIu64, c->shape[i]);
    fprintf(stderr, ", %" PRIu64 " ragged rows", c->offsets ? c->row_count : 0);
    fprintf(stderr, ", axis %u, %s, fill %s, rows %" PRIu64 " + %" PRIu64 "\n", c->axis,
            c->in_place ? "in place" : "not in place", fills[c->fill], c->first, c->count);
    layout_print("input", &c->input);
    if (!c->in_place)
        layout_print("output", &c->output);
    if (c->has_coefficients)
        fprintf(stderr, "  coefficients %s, fill %s, broadcast axes 0x%x\n", dtypes[rule->coefficients],
                fills[c->coefficient_fill], c->broadcast);
    if (c->has_coefficients)
        layout_print("coefficients", &c->coefficients);
    else if (rule->op == SCAND_OPERATOR_AFFINE)
        fprintf(stderr, "  coefficient %a\n", rule->coefficient);
}

/* Prints the first difference: an element, or else a byte that belongs to none. */
static void difference_print(const struct array *array, const unsigned char *got, const unsigned char *expected,
                             size_t element_bytes)
{
    uint64_t differing = 0, first = 0, count = array_elements(array);
    for (uint64_t i = count; i-- > 0;)
        if (memcmp(got + array_at(array, i), expected + array_at(array, i), element_bytes) != 0) {
            first = i;
            differing++;
        }
    uint64_t a = 0, b = 0;
    memcpy(&a, got + array_at(array, first), differing ? element_bytes : 0);
    memcpy(&b, expected + array_at(array, first), differing ? element_bytes : 0);
    if (differing) {
        fprintf(stderr,
                "  element %" PRIu64 " is %0*" PRIx64 ", not %0*" PRIx64 "; %" PRIu64 " of %" PRIu64 " differ\n", first,
                (int)element_bytes * 2, a, (int)element_bytes * 2, b, differing, count);
        return;
    }
    uint64_t i = 0;
    while (i < array->region_bytes && got[i] == expected[i])
        i++;
    fprintf(stderr, "  byte %" PRIu64 " of the region was touched and belongs to no element\n", i);
}

/* The shape of the results: of a reduction one element for each row. Ragged rows lie along the axis. */
static struct scan_case results_of(const struct scan_case *c)
{
    struct scan_case results = *c;
    if (c->rule.operation == SCAND_OPERATION_REDUCE)
        results.shape[c->axis] = c->offsets ? c->row_count : 1;
    return results;
}

/* The regions of one case. `input` and `output` are what each implementation gets, `input_before` and `output_before`
 * how they were. In place, output is input. */
struct regions {
    struct array input_array, output_array, coefficient_array;
    unsigned char *input, *input_before, *output, *output_before, *expected, *coefficients;
};

/* Creates the coefficients; without any, an array that nothing is read from. */
static bool coefficients_create(struct regions *regions, const struct scan_case *c, uint64_t *random)
{
    if (!c->has_coefficients)
        return true;
    regions->coefficient_array = array_of(c, &c->coefficients, codec_bytes(c->rule.coefficients));
    regions->coefficients =
        region_create(&regions->coefficient_array, c->rule.coefficients, &c->coefficient_fill, random);
    for (uint32_t axis = 0; axis < c->rank; axis++)
        if (c->broadcast >> axis & 1)
            regions->coefficient_array.strides[axis] = 0;
    return regions->coefficients;
}

static bool regions_create(struct regions *regions, const struct scan_case *c, uint64_t *random)
{
    size_t output_bytes = codec_bytes(c->rule.output);
    regions->input_array = array_of(c, &c->input, codec_bytes(c->rule.input));
    const struct scan_case results = results_of(c);
    regions->output_array = c->in_place ? regions->input_array : array_of(&results, &c->output, output_bytes);
    const struct array *input = &regions->input_array, *output = &regions->output_array;
    regions->input_before = region_create(input, c->rule.input, &c->fill, random);
    regions->input = malloc(input->region_bytes);
    regions->output_before = c->in_place ? regions->input_before : region_create(output, c->rule.output, NULL, random);
    regions->output = c->in_place ? regions->input : malloc(output->region_bytes);
    regions->expected = malloc(output->region_bytes);
    if (!regions->input_before || !regions->input || !regions->output_before || !regions->output ||
        !regions->expected || !coefficients_create(regions, c, random))
        return false;
    memcpy(regions->expected, regions->output_before, output->region_bytes);
    return true;
}

static void regions_destroy(struct regions *regions)
{
    if (regions->output != regions->input) {
        free(regions->output);
        free(regions->output_before);
    }
    free(regions->input_before);
    free(regions->input);
    free(regions->expected);
    free(regions->coefficients);
}

/* Restores the regions as they were before a scan. */
static void regions_restore(struct regions *regions)
{
    memcpy(regions->input, regions->input_before, regions->input_array.region_bytes);
    if (regions->output != regions->input)
        memcpy(regions->output, regions->output_before, regions->output_array.region_bytes);
}

static bool regions_compare(const struct regions *regions, const struct scan_case *c, const char *name)
{
    const struct array *input = &regions->input_array, *output = &regions->output_array;
    bool same = memcmp(regions->output, regions->expected, output->region_bytes) == 0;
    bool read_only = c->in_place || memcmp(regions->input, regions->input_before, input->region_bytes) == 0;
    if (same && read_only)
        return true;
    fprintf(stderr, "%s: %s\n", name, same ? "the input was written to" : "not the bits of the reference");
    case_print(c);
    if (!same)
        difference_print(output, regions->output, regions->expected, codec_bytes(c->rule.output));
    return false;
}

/* Runs one implementation on rows that the reference has scanned. */
static bool regions_check(struct regions *regions, const struct scan_case *c, const struct scan_rows *rows,
                          uint64_t count, const struct implementation *implementation)
{
    struct scan_memory memory = {.input = regions->input,
                                 .output = regions->output,
                                 .coefficients = regions->coefficients,
                                 .input_bytes = regions->input_array.region_bytes,
                                 .output_bytes = regions->output_array.region_bytes,
                                 .coefficient_bytes = regions->coefficient_array.region_bytes};
    regions_restore(regions);
    int error = implementation->run(rows, c->first, count, &memory);
    if (error)
        fprintf(stderr, "%s: failed with %d\n", implementation->name, error);
    return !error && regions_compare(regions, c, implementation->name);
}

bool case_check(const struct scan_case *c, const struct implementation *const list[], unsigned implementation_count,
                uint64_t *random)
{
    struct regions regions = {0};
    bool good = regions_create(&regions, c, random);
    if (good) {
        const struct array *input = &regions.input_array, *output = &regions.output_array;
        struct scan_rows rows = rows_of(c, input, output, &regions.coefficient_array);
        uint64_t count = c->count ? c->count : rows.row_count - c->first;
        if (regions.coefficients)
            rows.coefficients = regions.coefficients + regions.coefficient_array.origin;
        rows.input = regions.input_before + input->origin;
        rows.output = regions.expected + output->origin;
        good = scan_reference(&rows, c->first, count) == 0;
        rows.input = regions.input + input->origin;
        rows.output = regions.output + output->origin;
        for (unsigned i = 0; i < implementation_count; i++)
            good &= regions_check(&regions, c, &rows, count, list[i]);
    }
    regions_destroy(&regions);
    return good;
}
