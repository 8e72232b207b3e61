/*
 * Strips of the CPU path, block by block: their samples are gathered into lines where they are not contiguous, scanned
 * by a build for the processor, and scattered.
 */
#include "kernels/cpu/driver.h"
#include "kernels/order1/reduce.h"
#include "kernels/order1/tree.h"

#define STRIP_SAMPLES 64 /* of a row of a strip that are moved before the next row's: neighbours in the cache */

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

bool coefficients_gathered(const struct scan_rows *rows)
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

static const char *coefficient_at(const struct scan_rows *rows, uint64_t row, uint64_t sample)
{
    return (const char *)rows->coefficients + scan_row_offset(rows, rows->coefficient_outer_strides, row) +
           (int64_t)sample * rows->coefficient_stride;
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

void strip_visit(const struct scan *scan, struct cpu_scratch *scratch, const struct strip *strip, uint64_t b,
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

void strip_carries(const struct scan *scan, const struct strip *strip, uint32_t pass)
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

void strip_reduce(const struct scan *scan, const struct strip *strip)
{
    for (uint64_t r = 0; r < strip->count; r++) {
        union sum total = row_total(scan, strip, arithmetic_of(&scan->rows->rule), r);
        reduce_store(scan->rows, strip->first + r, &total);
    }
}

void strip_means(const struct scan *scan, struct strip *strip)
{
    for (uint64_t r = 0; r < strip->count; r++) {
        double total = row_total(scan, strip, arithmetic_of_mean, r).f64;
        strip->means[r] = total / (double)scan->rows->length;
    }
}
