/*
 * The driver of the CPU path. Rows are cut into blocks of order 1, which a build for the processor's instruction set
 * scans.
 *
 * Rows of contiguous f32 or 8-byte samples are worked on where they lie. Others go in strips of up to CPU_STRIP_ROWS
 * rows: a block of each is gathered into a line of the scratch memory, some samples of each row in turn, and scattered
 * the same way. Other dtypes are decoded and encoded on that way.
 *
 * Short rows and columns go in strips of ORDER_FAN rows or more, each a bundle that a build scans side by side.
 *
 * A row that is reduced, or of which the mean is taken, is visited once for its total. A row of several blocks that a
 * thread has for itself is walked along once for each pass, which leaves its values in the output. Where the output
 * cannot hold them, or threads share the row, it is visited once for each pass, to find the totals of the blocks in
 * that pass and from them the carries, and once more for the values; what a pass leaves is then never stored between
 * visits but computed again.
 *
 * Ragged rows are scanned one by one, each as a batch of its own. Threads take stretches of samples, and scan the rows
 * that begin there; a row that is more than a thread's share is scanned by all of them.
 */
#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/codec.h"
#include "kernels/cpu.h"
#include "kernels/reduce.h"
#include "kernels/tree.h"

#define ITEM_SAMPLES      65536 /* of the short rows that a thread takes at once */
#define BUNDLE_ROWS_MIN   8     /* fewer rows go one by one */
#define PANEL_ROWS_MAX    4096  /* columns that are scanned together */
#define PANELS_PER_THREAD 4     /* or more */
#define PANEL_GAIN        4     /* threads that long columns by way of lines keep busy for what one does with panels */
#define STRIP_SAMPLES     64    /* of a row of a strip that are moved before the next row's: neighbours in the cache */

struct scan {
    const struct scan_rows *rows;
    const struct cpu_build *build;
    struct cpu_pool *pool;       /* or NULL, with: */
    struct cpu_scratch *scratch; /* of the calling thread */
    uint64_t first, count;
    uint64_t block_count; /* of a row */
    uint64_t strip_rows, strip_count;
    bool bundled;    /* strips are bundles */
    bool paired;     /* the samples of every two rows take turns in memory */
    bool walked;     /* a thread goes along rows of several blocks, pass after pass */
    union sum *sums; /* worker_sums for each worker; NULL for rows of one block that keep their mean */
    uint64_t worker_sums;
    atomic_uint_least64_t next; /* item to be taken */
    uint64_t item_strips;
    uint64_t share; /* of ragged rows: samples of the longest that one thread scans */
};

/* Some rows, and the carries into their blocks: [pass][row][block]. */
struct strip {
    uint64_t first, count;
    double means[CPU_STRIP_ROWS]; /* for demean */
    union sum *carries[SCAND_PASSES_MAX];
    union sum *workspace;
};

/* Samples lie side by side. */
static bool input_contiguous(const struct scan_rows *rows)
{
    return rows->input_stride == codec_bytes(rows->rule.input) || rows->length == 1;
}

static bool output_contiguous(const struct scan_rows *rows)
{
    return rows->output_stride == codec_bytes(rows->rule.output) || rows->length == 1;
}

/* The dtype is what builds work on, nothing that is decoded. */
static bool is_plain(enum scand_dtype dtype)
{
    return dtype == SCAND_DTYPE_F32 || codec_bytes(dtype) == sizeof(uint64_t);
}

/* Whether builds work on integers of 4 bytes: those that pass through lines are extended, unless they are pairs. */
static bool is_narrow(const struct scan *scan)
{
    const struct scan_rows *rows = scan->rows;
    return cpu_is_narrow(&rows->rule) && !rows->rule.demean &&
           (scan->paired || (input_contiguous(rows) && output_contiguous(rows)));
}

/* Whether coefficients must pass through a line. */
static bool coefficients_gathered(const struct scan_rows *rows)
{
    enum scand_dtype dtype = rows->rule.coefficients;
    return rows->coefficients &&
           !(is_plain(dtype) && (rows->coefficient_stride == codec_bytes(dtype) || rows->length == 1));
}

/* What a sample of a dtype takes in a line, and in contiguous rows that builds work on where they lie. */
static uint64_t line_bytes(enum scand_dtype dtype)
{
    return codec_class(dtype) == SCAND_CLASS_F32 ? sizeof(float) : sizeof(uint64_t);
}

static const char *input_at(const struct scan_rows *rows, uint64_t row, uint64_t sample)
{
    return (const char *)rows->input + scan_row_offset(rows, rows->input_outer_strides, row) +
           (int64_t)sample * rows->input_stride;
}

static const char *coefficient_at(const struct scan_rows *rows, uint64_t row, uint64_t sample)
{
    return (const char *)rows->coefficients + scan_row_offset(rows, rows->coefficient_outer_strides, row) +
           (int64_t)sample * rows->coefficient_stride;
}

static char *output_at(const struct scan_rows *rows, uint64_t row, uint64_t sample)
{
    return (char *)rows->output + scan_row_offset(rows, rows->output_outer_strides, row) +
           (int64_t)sample * rows->output_stride;
}

static uint64_t block_length(const struct scan_rows *rows, uint64_t b)
{
    uint64_t rest = rows->length - b * ORDER_BLOCK;
    return rest < ORDER_BLOCK ? rest : ORDER_BLOCK;
}

/* Whether rows of f32 lie side by side. */
static bool side_by_side(const char *const *rows, uint64_t count)
{
    for (uint64_t r = 1; r < count; r++)
        if (rows[r] - rows[0] != (ptrdiff_t)(r * sizeof(float)))
            return false;
    return count == CPU_STRIP_ROWS;
}

/* Decodes samples `i` to `length` of the strip's rows into lines, some of each row in turn. */
static void lines_decode(const struct scan *scan, enum scand_dtype dtype, char (*lines)[CPU_LINE_BYTES],
                         const char *const *from, int64_t stride, uint64_t rows, uint64_t i, uint64_t length)
{
    for (uint64_t count; i < length; i += count) {
        count = length - i < STRIP_SAMPLES ? length - i : STRIP_SAMPLES;
        for (uint64_t r = 0; r < rows; r++)
            scan->build->line_decode(dtype, lines[r] + i * line_bytes(dtype), from[r] + (int64_t)i * stride, stride,
                                     count);
    }
}

/* What a visit does with blocks: passes from `first` to before `end`, as cpu_block has it. */
struct steps {
    uint32_t first, known, end;
    union sum *walk; /* into what is met next of each of the strip's rows, if they are walked along; else NULL */
};

/* Where a visit finds a sample: where the passes before have left it. */
static const char *sample_at(const struct scan_rows *rows, uint32_t first, uint64_t row, uint64_t sample)
{
    return first > 0 ? output_at(rows, row, sample) : input_at(rows, row, sample);
}

static void pairs_gather(const struct scan *scan, struct cpu_scratch *scratch, const struct strip *strip,
                         const char *const *from, uint64_t length)
{
    for (uint64_t r = 0; r < strip->count; r += 2) {
        char *const lines[] = {scratch->lines[r], scratch->lines[r + 1]};
        scan->build->pair_gather(lines, from[r], length, codec_bytes(scan->rows->rule.input));
    }
}

static void pairs_scatter(const struct scan *scan, const struct strip *strip, char *const *to, uint64_t length,
                          char (*lines)[CPU_LINE_BYTES])
{
    for (uint64_t r = 0; r < strip->count; r += 2) {
        char *const pair[] = {lines[r], lines[r + 1]};
        scan->build->pair_scatter(to[r], pair, length, codec_bytes(scan->rows->rule.output));
    }
}

static void strip_gather(const struct scan *scan, struct cpu_scratch *scratch, const struct strip *strip, uint64_t b,
                         uint32_t first)
{
    const struct scan_rows *rows = scan->rows;
    int64_t stride = first > 0 ? rows->output_stride : rows->input_stride;
    enum scand_dtype dtype = first > 0 ? rows->rule.output : rows->rule.input;
    uint64_t length = block_length(rows, b), i = 0;
    const char *from[CPU_STRIP_ROWS];
    for (uint64_t r = 0; r < strip->count; r++)
        from[r] = sample_at(rows, first, strip->first + r, b * ORDER_BLOCK);
    if (scan->paired) {
        pairs_gather(scan, scratch, strip, from, length);
        return;
    }
    if (dtype == SCAND_DTYPE_F32 && side_by_side(from, strip->count))
        i = scan->build->strip_gather(scratch, from[0], stride, length);
    lines_decode(scan, dtype, scratch->lines, from, stride, strip->count, i, length);
}

static void coefficients_gather(const struct scan *scan, struct cpu_scratch *scratch, const struct strip *strip,
                                uint64_t b)
{
    const struct scan_rows *rows = scan->rows;
    const char *from[CPU_STRIP_ROWS];
    for (uint64_t r = 0; r < strip->count; r++)
        from[r] = coefficient_at(rows, strip->first + r, b * ORDER_BLOCK);
    lines_decode(scan, rows->rule.coefficients, scratch->factor_lines, from, rows->coefficient_stride, strip->count, 0,
                 block_length(rows, b));
}

/* The coefficients of a block of the strip's r-th row, as builds work on them; NULL where there are none. */
static const void *coefficients_of(const struct scan_rows *rows, const struct cpu_scratch *scratch, uint64_t row,
                                   uint64_t r, uint64_t b)
{
    if (!rows->coefficients)
        return NULL;
    return coefficients_gathered(rows) ? scratch->factor_lines[r] : coefficient_at(rows, row, b * ORDER_BLOCK);
}

static void strip_scatter(const struct scan *scan, const struct strip *strip, uint64_t b, char (*lines)[CPU_LINE_BYTES])
{
    int64_t stride = scan->rows->output_stride;
    enum scand_dtype dtype = scan->rows->rule.output;
    uint64_t length = block_length(scan->rows, b), i = 0;
    char *to[CPU_STRIP_ROWS];
    for (uint64_t r = 0; r < strip->count; r++)
        to[r] = output_at(scan->rows, strip->first + r, b * ORDER_BLOCK);
    if (scan->paired) {
        pairs_scatter(scan, strip, to, length, lines);
        return;
    }
    if (dtype == SCAND_DTYPE_F32 && side_by_side((const char *const *)to, strip->count))
        i = scan->build->strip_scatter(lines, to[0], stride, length);
    for (uint64_t count; i < length; i += count) {
        count = length - i < STRIP_SAMPLES ? length - i : STRIP_SAMPLES;
        for (uint64_t r = 0; r < strip->count; r++)
            scan->build->line_encode(dtype, lines[r] + i * line_bytes(dtype), to[r] + (int64_t)i * stride, stride,
                                     count);
    }
}

/* The carry into a block of the strip's r-th row; NULL into the one that the pass meets first. */
static const union sum *carry_into(const struct scan *scan, const struct strip *strip, uint32_t pass, uint64_t r,
                                   uint64_t b)
{
    bool backward = scan->rows->rule.passes[pass] == SCAND_PASS_BACKWARD;
    if (b == (backward ? scan->block_count - 1 : 0))
        return NULL;
    return &strip->carries[pass][r * scan->block_count + b];
}

#define FOR_TOTAL UINT32_MAX

/* Visits block b of the strip's rows: for its total in pass `known`, or, with all known before `end`, for the values;
 * or, where `known` is FOR_TOTAL, for that of the row. A walk's visit does both for its pass. */
static void strip_visit(const struct scan *scan, struct cpu_scratch *scratch, const struct strip *strip, uint64_t b,
                        struct steps steps)
{
    const struct scan_rows *rows = scan->rows;
    const bool for_total = steps.known == FOR_TOTAL, last = steps.known == steps.end, narrow = is_narrow(scan);
    const bool contiguous = steps.first > 0 ? output_contiguous(rows) : input_contiguous(rows);
    const enum scand_dtype dtype = steps.first > 0 ? rows->rule.output : rows->rule.input;
    const bool same = line_bytes(dtype) == line_bytes(rows->rule.output);
    char(*results)[CPU_LINE_BYTES] = steps.walk && !same ? scratch->results : scratch->lines;
    bool gather = !contiguous || !(narrow || is_plain(dtype));
    bool scatter = last && (!output_contiguous(rows) || !(narrow || is_plain(rows->rule.output)));
    if (gather)
        strip_gather(scan, scratch, strip, b, steps.first);
    if (coefficients_gathered(rows) && !for_total)
        coefficients_gather(scan, scratch, strip, b);
    for (uint64_t r = 0; r < strip->count; r++) {
        uint64_t row = strip->first + r;
        struct cpu_block block = {
            .rule = &rows->rule,
            .first = steps.first,
            .known = steps.known,
            .end = steps.end,
            .mean = rows->rule.demean && steps.first == 0 && !for_total ? &strip->means[r] : NULL,
            .narrow = narrow,
            .length = block_length(rows, b),
            .input = gather ? scratch->lines[r] : sample_at(rows, steps.first, row, b * ORDER_BLOCK),
            .walked = steps.walk,
            .row = r,
            .begin = b * ORDER_BLOCK,
            .row_length = rows->length,
            .next = gather || row + 1 == scan->first + scan->count ? NULL : input_at(rows, row + 1, b * ORDER_BLOCK),
            .output = scatter ? results[r] : output_at(rows, row, b * ORDER_BLOCK),
            .coefficients = coefficients_of(rows, scratch, row, r, b),
        };
        for (uint32_t pass = 0; !for_total && pass < steps.known; pass++)
            block.carries[pass] = steps.walk ? &steps.walk[r] : carry_into(scan, strip, pass, r, b);
        if (for_total)
            scan->build->block_total(scratch, &block);
        else
            scan->build->block_run(scratch, &block);
        if (steps.walk)
            steps.walk[r] = block.total;
        else if (!last)
            strip->carries[for_total ? 0 : steps.known][r * scan->block_count + b] = block.total;
    }
    if (scatter)
        strip_scatter(scan, strip, b, results);
}

static struct strip strip_of(const struct scan *scan, uint64_t index, unsigned worker)
{
    uint64_t rest = scan->count - index * scan->strip_rows;
    struct strip strip = {.first = scan->first + index * scan->strip_rows,
                          .count = rest < scan->strip_rows ? rest : scan->strip_rows};
    if (scan->sums) {
        union sum *sums = scan->sums + worker * scan->worker_sums;
        for (uint32_t pass = 0; pass < scan->rows->rule.pass_count;
             pass++, sums += scan->strip_rows * scan->block_count)
            strip.carries[pass] = sums;
        strip.workspace = sums;
    }
    return strip;
}

static void strip_carries(const struct scan *scan, const struct strip *strip, uint32_t pass)
{
    const struct scan_rule *rule = &scan->rows->rule;
    for (uint64_t r = 0; r < strip->count; r++)
        tree_carries(arithmetic_of(rule), rule->passes[pass] == SCAND_PASS_BACKWARD,
                     strip->carries[pass] + r * scan->block_count, scan->block_count, strip->workspace);
}

/* Of the strip's r-th row, from the totals of its blocks, which lie where the carries of the first pass will. */
static union sum row_total(const struct scan *scan, const struct strip *strip, struct arithmetic arithmetic, uint64_t r)
{
    return tree_total(arithmetic, strip->carries[0] + r * scan->block_count, scan->block_count);
}

static void strip_reduce(const struct scan *scan, const struct strip *strip)
{
    for (uint64_t r = 0; r < strip->count; r++) {
        union sum total = row_total(scan, strip, arithmetic_of(&scan->rows->rule), r);
        reduce_store(scan->rows, strip->first + r, &total);
    }
}

static void strip_means(const struct scan *scan, struct strip *strip)
{
    for (uint64_t r = 0; r < strip->count; r++) {
        double total = row_total(scan, strip, arithmetic_of_mean, r).f64;
        strip->means[r] = total / (double)scan->rows->length;
    }
}

static struct cpu_scratch *scratch_of(const struct scan *scan, unsigned worker)
{
    return scan->pool ? cpu_pool_scratch(scan->pool, worker) : scan->scratch;
}

static bool is_reduction(const struct scan *scan)
{
    return scan->rows->rule.operation == SCAND_OPERATION_REDUCE;
}

/* One visit of all blocks of a strip, by a thread or, where `worker` is ALL_WORKERS, by all of the pool. */
struct visit {
    struct scan *scan;
    const struct strip *strip;
    struct steps steps;
};

#define ALL_WORKERS UINT_MAX

/* Work for a thread: blocks of one strip, until none is left. */
static void blocks_work(void *context, unsigned worker)
{
    struct visit *visit = context;
    uint64_t b;
    while ((b = atomic_fetch_add(&visit->scan->next, 1)) < visit->scan->block_count)
        strip_visit(visit->scan, scratch_of(visit->scan, worker), visit->strip, b, visit->steps);
}

static void strip_visit_all(struct scan *scan, const struct strip *strip, uint32_t known, unsigned worker)
{
    const struct steps steps = {0, known, scan->rows->rule.pass_count, NULL};
    struct visit visit = {scan, strip, steps};
    if (worker == ALL_WORKERS) {
        atomic_store(&scan->next, 0);
        cpu_pool_run(scan->pool, blocks_work, &visit);
        return;
    }
    for (uint64_t b = 0; b < scan->block_count; b++)
        strip_visit(scan, scratch_of(scan, worker), strip, b, steps);
}

static unsigned worker_count(const struct scan *scan)
{
    return scan->pool ? cpu_pool_threads(scan->pool) : 1;
}

/* Bundles. */

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

/* Rows that are two columns on both sides, of the same words: every two from the first on. */
static bool is_paired(const struct scan *scan)
{
    const struct scan_rows *rows = scan->rows;
    const int64_t bytes = codec_bytes(rows->rule.input);
    return !is_reduction(scan) && cpu_is_direct(&rows->rule) && bytes == codec_bytes(rows->rule.output) &&
           input_across(rows) && output_across(rows) && rows->outer_shape[rows->outer_rank - 1] == 2 &&
           rows->input_stride == 2 * bytes && rows->output_stride == 2 * bytes && scan->first % 2 == 0 &&
           scan->count % 2 == 0;
}

/* Whether there are rows enough to go side by side, and they are short, or columns. */
static bool is_bundled(const struct scan *scan)
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

static void strip_bundles(const struct scan *scan, const struct strip *strip, unsigned worker)
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

/* Each pass in its order: a carry depends on totals of blocks that have been met. What it leaves is stored in the
 * output, which the next one reads. */
static void strip_walk(const struct scan *scan, const struct strip *strip, unsigned worker)
{
    const struct scan_rule *rule = &scan->rows->rule;
    const union sum identity = sum_first(arithmetic_of(rule), operator_identity(rule), false);
    union sum carries[CPU_STRIP_ROWS];
    for (uint32_t pass = 0; pass < rule->pass_count; pass++) {
        for (uint64_t r = 0; r < strip->count; r++)
            carries[r] = identity;
        for (uint64_t i = 0; i < scan->block_count; i++) {
            uint64_t b = rule->passes[pass] == SCAND_PASS_BACKWARD ? scan->block_count - 1 - i : i;
            strip_visit(scan, scratch_of(scan, worker), strip, b, (struct steps){pass, pass + 1, pass + 1, carries});
        }
    }
}

static void strip_work(struct scan *scan, struct strip *strip, unsigned worker)
{
    if (scan->bundled) {
        strip_bundles(scan, strip, worker);
        return;
    }
    uint32_t pass_count = scan->rows->rule.pass_count;
    if (scan->rows->rule.demean || is_reduction(scan))
        strip_visit_all(scan, strip, FOR_TOTAL, worker);
    if (is_reduction(scan)) {
        strip_reduce(scan, strip);
        return;
    }
    if (scan->rows->rule.demean)
        strip_means(scan, strip);
    if (scan->walked) {
        strip_walk(scan, strip, worker);
        return;
    }
    for (uint32_t known = scan->block_count > 1 ? 0 : pass_count; known <= pass_count; known++) {
        strip_visit_all(scan, strip, known, worker);
        if (known < pass_count)
            strip_carries(scan, strip, known);
    }
}

/* Work for a thread: strips, until none is left. */
static void strips_work(void *context, unsigned worker)
{
    struct scan *scan = context;
    uint64_t item;
    while ((item = atomic_fetch_add(&scan->next, scan->item_strips)) < scan->strip_count) {
        for (uint64_t s = item; s < item + scan->item_strips && s < scan->strip_count; s++) {
            struct strip strip = strip_of(scan, s, worker);
            strip_work(scan, &strip, worker);
        }
    }
}

static void scan_by_blocks(struct scan *scan)
{
    for (uint64_t s = 0; s < scan->strip_count; s++) {
        struct strip strip = strip_of(scan, s, 0);
        strip_work(scan, &strip, ALL_WORKERS);
    }
}

/* Rows that go into a bundle at most: those that a thread takes at once; of columns about as many as give each thread
 * some of them, and whole vectors. */
static uint64_t bundle_rows_max(const struct scan *scan)
{
    const uint64_t rows = ITEM_SAMPLES / (scan->rows->length * ORDER_FAN) * ORDER_FAN;
    unsigned workers = worker_count(scan);
    uint64_t panels = workers > 1 ? PANELS_PER_THREAD * workers : 1;
    uint64_t share = (scan->count / panels + ORDER_FAN - 1) / ORDER_FAN * ORDER_FAN;
    if (!input_across(scan->rows) || !output_across(scan->rows))
        return rows > ORDER_FAN ? rows : ORDER_FAN;
    if (share < ORDER_FAN)
        return ORDER_FAN;
    return share < PANEL_ROWS_MAX ? share : PANEL_ROWS_MAX;
}

/* Whether strips are for a thread each. */
static bool has_strips(const struct scan *scan)
{
    return worker_count(scan) == 1 || scan->block_count == 1 || scan->bundled ||
           scan->strip_count >= worker_count(scan);
}

/* A row of several blocks by one thread, where the output can hold what passes leave. */
static bool is_walked(const struct scan *scan)
{
    const struct scan_rule *rule = &scan->rows->rule;
    return scan->block_count > 1 && scan->rows->length <= CPU_LANES_LENGTH && has_strips(scan) && !is_reduction(scan) &&
           rule->op != SCAND_OPERATOR_AFFINE && cpu_is_direct(rule);
}

static void scan_plan(struct scan *scan)
{
    const struct scan_rows *rows = scan->rows;
    scan->block_count = (rows->length + ORDER_BLOCK - 1) / ORDER_BLOCK;
    bool contiguous =
        input_contiguous(rows) && (is_reduction(scan) || output_contiguous(rows)) && !coefficients_gathered(rows);
    scan->bundled = is_bundled(scan);
    scan->paired = !scan->bundled && is_paired(scan);
    scan->strip_rows = scan->bundled ? bundle_rows_max(scan) : contiguous ? 1 : CPU_STRIP_ROWS;
    scan->strip_count = (scan->count + scan->strip_rows - 1) / scan->strip_rows;
    uint64_t strip_samples = scan->strip_rows * rows->length;
    scan->item_strips = strip_samples < ITEM_SAMPLES ? ITEM_SAMPLES / strip_samples : 1;
    scan->walked = is_walked(scan);
    scan->worker_sums =
        rows->rule.pass_count * scan->strip_rows * scan->block_count + tree_workspace(scan->block_count);
}

static int scan_allocate(struct scan *scan)
{
    if (scan->block_count == 1 && !scan->rows->rule.demean && !is_reduction(scan))
        return 0;
    scan->sums = calloc(worker_count(scan) * scan->worker_sums, sizeof(*scan->sums));
    return scan->sums ? 0 : -ENOMEM;
}

static void scan_share_out(struct scan *scan)
{
    unsigned workers = worker_count(scan);
    if (!has_strips(scan))
        scan_by_blocks(scan);
    else if (workers > 1 && scan->strip_count > scan->item_strips)
        cpu_pool_run(scan->pool, strips_work, scan);
    else
        strips_work(scan, 0);
}

static uint64_t ragged_length(const struct scan *scan, uint64_t row)
{
    return scan->rows->offsets[row + 1] - scan->rows->offsets[row];
}

/* A ragged row by one thread, or, with the pool, by all. The sums suffice for the longest. */
static void ragged_scan(const struct scan *ragged, uint64_t row, struct cpu_pool *pool, unsigned worker)
{
    struct scan_rows alone = scan_rows_joined(ragged->rows, row, 1);
    struct scan scan = {.rows = &alone, .build = ragged->build, .pool = pool, .count = 1};
    if (alone.length == 0)
        return;
    scan.scratch = scratch_of(ragged, worker);
    scan.sums = ragged->sums ? ragged->sums + worker * ragged->worker_sums : NULL;
    scan_plan(&scan);
    scan_share_out(&scan);
}

/* The first row that begins at this sample or later. */
static uint64_t ragged_row_from(const struct scan *scan, uint64_t sample)
{
    uint64_t low = scan->first, high = scan->first + scan->count;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (scan->rows->offsets[middle] < sample)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Work for a thread: the rows that begin in one stretch of samples after another. */
static void ragged_work(void *context, unsigned worker)
{
    struct scan *scan = context;
    const uint64_t *offsets = scan->rows->offsets, end = scan->first + scan->count;
    uint64_t item;
    while ((item = atomic_fetch_add(&scan->next, ITEM_SAMPLES)) < offsets[end])
        for (uint64_t r = ragged_row_from(scan, item); r < end && offsets[r] < item + ITEM_SAMPLES; r++)
            if (ragged_length(scan, r) <= scan->share)
                ragged_scan(scan, r, NULL, worker);
}

/* The result of a ragged row without samples. */
static void empty_store(const struct scan_rows *rows, uint64_t row)
{
    const struct scan_rows alone = scan_rows_joined(rows, row, 1);
    reduce_store(&alone, 0, NULL);
}

static void ragged_run(struct scan *scan)
{
    const uint64_t *offsets = scan->rows->offsets, end = scan->first + scan->count;
    uint64_t share = (offsets[end] - offsets[scan->first]) / worker_count(scan);
    scan->share = worker_count(scan) == 1 ? UINT64_MAX : share < ORDER_BLOCK ? ORDER_BLOCK : share;
    for (uint64_t r = scan->first; r < end && scan->rows->length > scan->share; r++)
        if (ragged_length(scan, r) > scan->share)
            ragged_scan(scan, r, scan->pool, 0);
    for (uint64_t r = scan->first; r < end && is_reduction(scan); r++)
        if (ragged_length(scan, r) == 0) /* it may begin where no samples do */
            empty_store(scan->rows, r);
    atomic_store(&scan->next, offsets[scan->first]);
    if (worker_count(scan) > 1)
        cpu_pool_run(scan->pool, ragged_work, scan);
    else
        ragged_work(scan, 0);
}

/* Rows without samples have reductions too, and nothing else. */
static int empty_run(const struct scan *scan)
{
    for (uint64_t r = 0; r < scan->count && is_reduction(scan); r++)
        reduce_store(scan->rows, scan->first + r, NULL);
    return 0;
}

static int scan_run(struct scan *scan)
{
    if (scan->rows->length == 0 || scan->count == 0)
        return empty_run(scan);
    scan_plan(scan);
    int error = scan_allocate(scan);
    if (error)
        return error;
    (scan->rows->offsets ? ragged_run : scan_share_out)(scan);
    free(scan->sums);
    return 0;
}

static int build_run(const struct cpu_build *build, const struct scan_rows *rows, uint64_t first, uint64_t count)
{
    struct scan scan = {.rows = rows, .build = build, .first = first, .count = count, .scratch = cpu_scratch_create()};
    if (!scan.scratch)
        return -ENOMEM;
    int error = scan_run(&scan);
    cpu_scratch_destroy(scan.scratch);
    return error;
}

/* The builds. */

#ifdef __x86_64__
static int avx512_available(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
}

static int avx512_run(const struct scan_rows *rows, uint64_t first, uint64_t count)
{
    return build_run(&cpu_build_avx512, rows, first, count);
}

static int avx2_available(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

static int avx2_run(const struct scan_rows *rows, uint64_t first, uint64_t count)
{
    return build_run(&cpu_build_avx2, rows, first, count);
}
#endif

static int portable_available(void)
{
    return 1;
}

static int portable_run(const struct scan_rows *rows, uint64_t first, uint64_t count)
{
    return build_run(&cpu_build_portable, rows, first, count);
}

const struct scan_cpu_build scan_cpu_builds[] = {
#ifdef __x86_64__
    {"avx512", avx512_available, avx512_run},
    {"avx2", avx2_available, avx2_run},
#endif
    {"portable", portable_available, portable_run},
};
const size_t scan_cpu_build_count = sizeof(scan_cpu_builds) / sizeof(scan_cpu_builds[0]);

static const struct cpu_build *best_build(void)
{
#ifdef __x86_64__
    if (avx512_available())
        return &cpu_build_avx512;
    if (avx2_available())
        return &cpu_build_avx2;
#endif
    return &cpu_build_portable;
}

int scan_cpu(struct cpu_pool *pool, const struct scan_rows *rows, uint64_t first, uint64_t count)
{
    struct scan scan = {.rows = rows, .build = best_build(), .first = first, .count = count, .pool = pool};
    return scan_run(&scan);
}
