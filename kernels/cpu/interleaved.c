/*
 * Interleaved rows of the CPU path: short rows and columns in row groups of ORDER_FAN rows or more, which a build scans
 * side by side.
 */
#include "kernels/cpu/driver.h"

#define INTERLEAVED_ROWS_MIN     8    /* fewer rows go one by one */
#define COLUMN_GROUP_ROWS_MAX    4096 /* columns that are scanned together */
#define COLUMN_GROUPS_PER_THREAD 4    /* or more */
/* Threads that long columns by way of staging lines keep busy for what one does with column groups. */
#define COLUMN_GROUP_GAIN 4

static bool input_across(const struct scan_rows *rows)
{
    return rows->outer_rank > 0 && rows->input_outer_strides[rows->outer_rank - 1] == codec_bytes(rows->rule.input);
}

static bool output_across(const struct scan_rows *rows)
{
    return rows->outer_rank > 0 && rows->output_outer_strides[rows->outer_rank - 1] == codec_bytes(rows->rule.output);
}

/* True when rows are columns on both sides. */
static bool is_columns(const struct scan_rows *rows)
{
    return input_across(rows) && output_across(rows) && rows->outer_shape[rows->outer_rank - 1] >= INTERLEAVED_ROWS_MIN;
}

/* True when columns longer than a block can be column groups, and make so many groups that threads have something to
 * do. */
static bool column_groups_suffice(const struct scan *scan)
{
    return cpu_is_direct(&scan->rows->rule) && scan->rows->length <= CPU_LANES_LENGTH &&
           (scan->count + ORDER_FAN - 1) / ORDER_FAN * COLUMN_GROUP_GAIN >= worker_count(scan);
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

bool is_interleaved(const struct scan *scan)
{
    const struct scan_rows *rows = scan->rows;
    if (rows->rule.op == SCAND_OPERATOR_AFFINE || rows->rule.kind == SCAND_KIND_TRAPEZOID || rows->rule.demean ||
        is_reduction(scan) || rows->offsets || scan->count < INTERLEAVED_ROWS_MIN)
        return false;
    return rows->length <= ORDER_TILE ||
           (is_columns(rows) && (rows->length <= ORDER_BLOCK || column_groups_suffice(scan)));
}

/* Returns how many rows from this one on are equally far from each other, on both sides: to the end of the last axis.
 */
static uint64_t rows_in_step(const struct scan_rows *rows, uint64_t row)
{
    uint64_t shape = rows->outer_shape[rows->outer_rank - 1];
    return shape - row % shape;
}

/* Fills in the first rows of a set of interleaved rows that are not all columns; the first `in_step` rows are equally
 * far from each other. */
static void interleaved_rows(struct cpu_interleaved *interleaved, const struct scan_rows *rows, uint64_t row,
                             uint64_t in_step)
{
    const uint64_t count = interleaved->count < ORDER_FAN ? interleaved->count : ORDER_FAN,
                   near = count < in_step ? count : in_step;
    for (uint64_t r = 1; r < near; r++) {
        interleaved->input[r] = interleaved->input[0] + (int64_t)r * interleaved->input_step / ORDER_FAN;
        interleaved->output[r] = interleaved->output[0] + (int64_t)r * interleaved->output_step / ORDER_FAN;
    }
    for (uint64_t r = near; r < count; r++) {
        interleaved->input[r] = input_at(rows, row + r, 0);
        interleaved->output[r] = output_at(rows, row + r, 0);
    }
}

/* Returns how many of `rest` rows go into a set of interleaved rows: columns side by side, or rows that are equally far
 * from each other, or else the next few. */
static uint64_t interleaved_count(bool columns, uint64_t in_step, uint64_t rest)
{
    uint64_t most = columns ? in_step : in_step >= ORDER_FAN ? in_step - in_step % ORDER_FAN : ORDER_FAN;
    return most < rest ? most : rest;
}

void row_group_interleaved(const struct scan *scan, const struct row_group *row_group, unsigned worker)
{
    const struct scan_rows *rows = scan->rows;
    const bool columns = input_across(rows) && output_across(rows);
    for (uint64_t r = 0; r < row_group->count;) {
        const uint64_t row = row_group->first + r, in_step = rows_in_step(rows, row);
        struct cpu_interleaved
            interleaved; /* not initialized: its many addresses would be set to 0 for each set of rows */
        interleaved.rule = &rows->rule;
        interleaved.length = rows->length;
        interleaved.count = interleaved_count(columns, in_step, row_group->count - r);
        interleaved.input_across = input_across(rows) && in_step >= interleaved.count;
        interleaved.output_across = output_across(rows) && in_step >= interleaved.count;
        interleaved.input[0] = input_at(rows, row, 0);
        interleaved.output[0] = output_at(rows, row, 0);
        interleaved.input_stride = rows->input_stride;
        interleaved.output_stride = rows->output_stride;
        interleaved.input_step = ORDER_FAN * rows->input_outer_strides[rows->outer_rank - 1];
        interleaved.output_step = ORDER_FAN * rows->output_outer_strides[rows->outer_rank - 1];
        if (!columns)
            interleaved_rows(&interleaved, rows, row, in_step);
        scan->build->interleaved_run(scratch_of(scan, worker), &interleaved);
        r += interleaved.count;
    }
}

uint64_t interleaved_rows_max(const struct scan *scan)
{
    const uint64_t rows = CPU_ITEM_SAMPLES / (scan->rows->length * ORDER_FAN) * ORDER_FAN;
    unsigned workers = worker_count(scan);
    uint64_t column_groups = workers > 1 ? COLUMN_GROUPS_PER_THREAD * workers : 1;
    uint64_t group_rows = (scan->count / column_groups + ORDER_FAN - 1) / ORDER_FAN * ORDER_FAN;
    if (!input_across(scan->rows) || !output_across(scan->rows))
        return rows > ORDER_FAN ? rows : ORDER_FAN;
    if (group_rows < ORDER_FAN)
        return ORDER_FAN;
    return group_rows < COLUMN_GROUP_ROWS_MAX ? group_rows : COLUMN_GROUP_ROWS_MAX;
}
