/*
 * A tile has its sums and folds in the scratch memory, those of a bin side by side. Samples are met in ascending order:
 * of columns a line of many rows at a time, whose next one is asked for meanwhile; of other rows one by one.
 */
#include "stack.h"

#include "kernels/steps/lines.h"

step_run STEP_CPU(stack);

#define GROUP  256 /* samples of which the bins are looked up at a time */
#define NO_BIN UINT32_MAX

struct cells {
    union {
        double sums[STACK_CELLS];
        uint64_t whole[STACK_CELLS]; /* sums of integers */
    };
    uint32_t folds[STACK_CELLS];
    uint32_t bins[GROUP]; /* bins of the next samples, from the tile's first, or NO_BIN */
    double samples[GROUP];
};

_Static_assert(sizeof(struct cells) <= STEP_SCRATCH_BYTES, "cells lie in the scratch memory");

/* Rows of a tile that are computed together, and their bins. */
struct part {
    const struct step_rows *rows;
    const struct stack *stack;
    const char *x, *index; /* sample 0, and its bin */
    uint64_t row, count;   /* first row, and number of rows */
    uint64_t begin, bins;  /* first bin, and number of bins */
    bool counts;
};

/* The bins of samples first <= i < first + count, which are few. */
static void look_up(const struct part *part, uint64_t first, uint64_t count, uint32_t *bins)
{
    const struct step_operand *index = &part->rows->further[STACK_INDEX];
    uint64_t values[GROUP];
    line_load_integers(index->dtype, part->index + (int64_t)first * index->stride, index->stride, count, values);
    for (uint64_t i = 0; i < count; i++)
        bins[i] = values[i] - part->begin < part->bins ? (uint32_t)(values[i] - part->begin) : NO_BIN;
}

/*
 * Columns.
 */

static inline void add_lines(const double *x, uint64_t count, double alpha, double *restrict sums)
{
    for (uint64_t k = 0; k < count; k++)
        sums[k] = sums[k] + alpha * x[k];
}

static inline void count_lines(const double *x, uint64_t count, uint32_t *restrict folds)
{
    for (uint64_t k = 0; k < count; k++)
        folds[k] += x[k] != 0;
}

/* A sample of each row. The dtype is a constant for those that need no further memory on their way. */
static void add_columns(const struct part *part, const char *x, double *restrict sums, uint32_t *folds)
{
    const enum scand_dtype dtype = part->rows->input.dtype;
    const double alpha = part->stack->alpha;
    double values[GROUP];
    if (dtype == SCAND_DTYPE_F32 && !part->counts && alpha == 1) {
        for (uint64_t k = 0; k < part->count; k++)
            sums[k] = sums[k] + (double)codec_decode_f32(SCAND_DTYPE_F32, x + k * sizeof(float));
        return;
    }
    if (dtype == SCAND_DTYPE_F32 && !part->counts) {
        for (uint64_t k = 0; k < part->count; k++)
            sums[k] = sums[k] + alpha * (double)codec_decode_f32(SCAND_DTYPE_F32, x + k * sizeof(float));
        return;
    }
    for (uint64_t k = 0, n; k < part->count; k += n) {
        n = part->count - k < GROUP ? part->count - k : GROUP;
        line_load_f64(dtype, x + k * codec_bytes(dtype), codec_bytes(dtype), n, values);
        add_lines(values, n, alpha, sums + k);
        if (part->counts)
            count_lines(values, n, folds + k);
    }
}

#define AHEAD_BYTES 256 /* bytes of the next line: the processor finds the rest by itself */

static void ask_for(const char *line)
{
    for (int i = 0; i < AHEAD_BYTES; i += 64)
        __builtin_prefetch(line + i);
}

static void stack_columns(const struct part *part, struct cells *cells)
{
    const struct step_operand *input = &part->rows->input;
    uint32_t hits[GROUP + 1];
    for (uint64_t first = 0, n; first < input->length; first += n) {
        uint32_t count = 0;
        n = input->length - first < GROUP ? input->length - first : GROUP;
        look_up(part, first, n, cells->bins);
        for (uint32_t i = 0; i < n; i++) {
            hits[count] = i;
            count += cells->bins[i] != NO_BIN;
        }
        for (uint32_t h = 0; h < count; h++) {
            const uint64_t cell = cells->bins[hits[h]] * part->count;
            if (h + 1 < count)
                ask_for(part->x + (int64_t)(first + hits[h + 1]) * input->stride);
            add_columns(part, part->x + (int64_t)(first + hits[h]) * input->stride, cells->sums + cell,
                        cells->folds + cell);
        }
    }
}

/*
 * A row.
 */

static inline void add_samples(struct cells *cells, uint64_t count, double alpha, bool counts)
{
    for (uint64_t i = 0; i < count; i++) {
        const uint32_t bin = cells->bins[i];
        if (bin == NO_BIN)
            continue;
        cells->sums[bin] = cells->sums[bin] + alpha * cells->samples[i];
        if (counts)
            cells->folds[bin] += cells->samples[i] != 0;
    }
}

static void stack_row(const struct part *part, struct cells *cells)
{
    const struct step_operand *input = &part->rows->input;
    for (uint64_t first = 0, n; first < input->length; first += n) {
        n = input->length - first < GROUP ? input->length - first : GROUP;
        look_up(part, first, n, cells->bins);
        line_load_f64(input->dtype, part->x + (int64_t)first * input->stride, input->stride, n, cells->samples);
        if (part->counts)
            add_samples(cells, n, part->stack->alpha, true);
        else
            add_samples(cells, n, part->stack->alpha, false);
    }
}

static void stack_integers(const struct part *part, struct cells *cells)
{
    const struct step_operand *input = &part->rows->input;
    const uint64_t alpha = (uint64_t)(int64_t)part->stack->alpha;
    for (uint64_t first = 0, n; first < input->length; first += n) {
        n = input->length - first < GROUP ? input->length - first : GROUP;
        look_up(part, first, n, cells->bins);
        for (uint64_t i = 0; i < n; i++) {
            const uint64_t x = codec_decode_integer(input->dtype, part->x + (int64_t)(first + i) * input->stride);
            if (cells->bins[i] == NO_BIN)
                continue;
            cells->whole[cells->bins[i]] += alpha * x;
            cells->folds[cells->bins[i]] += x != 0;
        }
    }
}

/*
 * Cells.
 */

static char *element_of(const struct part *part, const struct step_operand *operand, uint64_t row, uint64_t bin)
{
    return step_row(part->rows, operand, row) + (int64_t)bin * operand->stride;
}

/* The distance from one row of the part to the next. */
static int64_t across_rows(const struct part *part, const struct step_operand *operand)
{
    return part->count > 1 ? operand->outer_strides[part->rows->outer_rank - 1] : 0;
}

/* Loads what the bins have before the rows are added. */
static void get_cells(const struct part *part, bool integers, struct cells *cells)
{
    const struct step_operand *onto = &part->rows->further[STACK_ONTO];
    for (uint64_t bin = 0; bin < part->bins; bin++) {
        const char *at = element_of(part, onto, part->row, part->begin + bin);
        if (integers)
            cells->whole[bin] = codec_decode_integer(onto->dtype, at);
        else
            line_load_f64(onto->dtype, at, across_rows(part, onto), part->count, cells->sums + bin * part->count);
    }
}

/* Stores a bin of all rows. Neighbours in the input are mostly neighbours in the output. */
static void put_bin(const struct part *part, struct cells *cells, uint64_t bin)
{
    const struct step_operand *output = &part->rows->output;
    double *sums = cells->sums + bin * part->count;
    const uint32_t *folds = cells->folds + bin * part->count;
    char *at = element_of(part, output, part->row, part->begin + bin);
    if (part->stack->norm != STACK_NORM_NONE)
        for (uint64_t k = 0; k < part->count; k++)
            sums[k] = stack_value(part->stack, sums[k], folds[k]);
    line_store_f64(output->dtype, sums, part->count, at, across_rows(part, output));
}

static void put_folds(const struct part *part, const struct cells *cells)
{
    const struct step_operand *fold = &part->rows->further[STACK_FOLD];
    for (uint64_t bin = 0; bin < part->bins; bin++)
        for (uint64_t k = 0; k < part->count; k++)
            codec_encode_integer(fold->dtype, cells->folds[bin * part->count + k],
                                 element_of(part, fold, part->row + k, part->begin + bin));
}

static void run_part(const struct part *part, struct cells *cells)
{
    const bool integers = codec_is_integer(part->rows->input.dtype);
    if (part->rows->further[STACK_ONTO].origin)
        get_cells(part, integers, cells);
    else
        memset(cells->sums, 0, part->bins * part->count * sizeof cells->sums[0]);
    memset(cells->folds, 0, part->bins * part->count * sizeof cells->folds[0]);
    if (integers)
        stack_integers(part, cells);
    else if (part->count > 1)
        stack_columns(part, cells);
    else
        stack_row(part, cells);
    for (uint64_t bin = 0; bin < part->bins; bin++)
        if (integers)
            codec_encode_integer(part->rows->output.dtype, cells->whole[bin],
                                 element_of(part, &part->rows->output, part->row, part->begin + bin));
        else
            put_bin(part, cells, bin);
    if (part->rows->further[STACK_FOLD].origin)
        put_folds(part, cells);
}

/* Rows from here on that are one part: of columns those along the last dimension. */
static uint64_t part_rows(const struct step_rows *rows, uint64_t row, uint64_t left)
{
    if (codec_is_integer(rows->input.dtype) || !stack_is_columns(rows))
        return 1;
    const uint64_t along = rows->outer_shape[rows->outer_rank - 1], rest = along - row % along;
    return rest < left ? rest : left;
}

void STEP_CPU(stack)(const struct step_rows *rows, const void *params, const struct step_tile *tile, void *scratch)
{
    const uint64_t end = tile->first_row + tile->row_count;
    struct part part = {.rows = rows, .stack = params, .begin = tile->begin, .bins = tile->end - tile->begin};
    part.counts = stack_counts(rows, params);
    for (part.row = tile->first_row; part.row < end; part.row += part.count) {
        part.count = part_rows(rows, part.row, end - part.row);
        part.x = step_row(rows, &rows->input, part.row);
        part.index = step_row(rows, &rows->further[STACK_INDEX], part.row);
        run_part(&part, scratch);
    }
}
