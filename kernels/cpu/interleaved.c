/*
 * Bundles of the CPU path: short rows and columns in strips of ORDER_FAN rows or more, which a build scans side by
 * side.
 */
#include "kernels/cpu/driver.h"

#define BUNDLE_ROWS_MIN   8    /* fewer rows go one by one */
#define PANEL_ROWS_MAX    4096 /* columns that are scanned together */
#define PANELS_PER_THREAD 4    /* or more */
#define PANEL_GAIN        4    /* threads that long columns by way of lines keep busy for what one does with panels */

static bool input_across(const struct scan_rows *rows)
{
    return rows->outer_rank > 0 && rows->input_outer_strides[rows->outer_rank - 1] == codec_bytes(rows->rule.input);
}

static bool output_across(const struct scan_rows *rows)
{
    return rows->outer_rank > 0 && rows->output_outer_strides[rows->outer_rank - 1] == codec_bytes(rows->rule.output);
}

/* Rows that are columns on both sides. */
static bool is_columns(const struct scan_rows *rows)
{
    return input_across(rows) && output_across(rows) && rows->outer_shape[rows->outer_rank - 1] >= BUNDLE_ROWS_MIN;
}

/* Whether columns over a block can be panels, and make so many that threads have something to do. */
static bool panels_suffice(const struct scan *scan)
{
    return cpu_is_direct(&scan->rows->rule) && scan->rows->length <= CPU_LANES_LENGTH &&
           (scan->count + ORDER_FAN - 1) / ORDER_FAN * PANEL_GAIN >= worker_count(scan);
}

bool is_paired(const struct scan *scan)
{
    const struct scan_rows *rows = scan->rows;
    const int64_t bytes = codec_bytes(rows->rule.input);
    return !is_reduction(scan) && cpu_is_direct(&rows->rule) && bytes == codec_bytes(rows->rule.output) &&
           input_across(rows) && output_across(rows) && rows->outer_shape[rows->outer_rank - 1] == 2 &&
           rows->input_stride == 2 * bytes && rows->output_stride == 2 * bytes && scan->first % 2 == 0 &&
           scan->count % 2 == 0;
}

bool is_bundled(const struct scan *scan)
{
    const struct scan_rows *rows = scan->rows;
    if (rows->rule.op == SCAND_OPERATOR_AFFINE || rows->rule.demean || is_reduction(scan) || rows->offsets ||
        scan->count < BUNDLE_ROWS_MIN)
        return false;
    return rows->length <= ORDER_TILE || (is_columns(rows) && (rows->length <= ORDER_BLOCK || panels_suffice(scan)));
}

/* How many rows from this one on are equally far from each other, on both sides: to the end of the last axis. */
static uint64_t rows_in_step(const struct scan_rows *rows, uint64_t row)
{
    uint64_t shape = rows->outer_shape[rows->outer_rank - 1];
    return shape - row % shape;
}

/* The first rows of a bundle that are not all columns; the first `in_step` are equally far from each other. */
static void bundle_rows(struct cpu_bundle *bundle, const struct scan_rows *rows, uint64_t row, uint64_t in_step)
{
    const uint64_t count = bundle->count < ORDER_FAN ? bundle->count : ORDER_FAN,
                   near = count < in_step ? count : in_step;
    for (uint64_t r = 1; r < near; r++) {
        bundle->input[r] = bundle->input[0] + (int64_t)r * bundle->input_step / ORDER_FAN;
        bundle->output[r] = bundle->output[0] + (int64_t)r * bundle->output_step / ORDER_FAN;
    }
    for (uint64_t r = near; r < count; r++) {
        bundle->input[r] = input_at(rows, row + r, 0);
        bundle->output[r] = output_at(rows, row + r, 0);
    }
}

/* How many of `rest` rows go into a bundle: columns side by side, or rows that are equally far from each other, or else
 * the next few. */
static uint64_t bundle_count(bool columns, uint64_t in_step, uint64_t rest)
{
    uint64_t most = columns ? in_step : in_step >= ORDER_FAN ? in_step - in_step % ORDER_FAN : ORDER_FAN;
    return most < rest ? most : rest;
}

void strip_bundles(const struct scan *scan, const struct strip *strip, unsigned worker)
{
    const struct scan_rows *rows = scan->rows;
    const bool columns = input_across(rows) && output_across(rows);
    for (uint64_t r = 0; r < strip->count;) {
        const uint64_t row = strip->first + r, in_step = rows_in_step(rows, row);
        struct cpu_bundle bundle; /* whose addresses are many to be set to 0 for each bundle */
        bundle.rule = &rows->rule;
        bundle.length = rows->length;
        bundle.count = bundle_count(columns, in_step, strip->count - r);
        bundle.input_across = input_across(rows) && in_step >= bundle.count;
        bundle.output_across = output_across(rows) && in_step >= bundle.count;
        bundle.input[0] = input_at(rows, row, 0);
        bundle.output[0] = output_at(rows, row, 0);
        bundle.input_stride = rows->input_stride;
        bundle.output_stride = rows->output_stride;
        bundle.input_step = ORDER_FAN * rows->input_outer_strides[rows->outer_rank - 1];
        bundle.output_step = ORDER_FAN * rows->output_outer_strides[rows->outer_rank - 1];
        if (!columns)
            bundle_rows(&bundle, rows, row, in_step);
        scan->build->bundle_run(scratch_of(scan, worker), &bundle);
        r += bundle.count;
    }
}

uint64_t bundle_rows_max(const struct scan *scan)
{
    const uint64_t rows = CPU_ITEM_SAMPLES / (scan->rows->length * ORDER_FAN) * ORDER_FAN;
    unsigned workers = worker_count(scan);
    uint64_t panels = workers > 1 ? PANELS_PER_THREAD * workers : 1;
    uint64_t share = (scan->count / panels + ORDER_FAN - 1) / ORDER_FAN * ORDER_FAN;
    if (!input_across(scan->rows) || !output_across(scan->rows))
        return rows > ORDER_FAN ? rows : ORDER_FAN;
    if (share < ORDER_FAN)
        return ORDER_FAN;
    return share < PANEL_ROWS_MAX ? share : PANEL_ROWS_MAX;
}
