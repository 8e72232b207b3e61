/*
 * Row groups of the CPU path, block by block: their samples are gathered into staging lines where they are not
 * contiguous, scanned by a build for the processor, and scattered.
 */
#include "kernels/cpu/driver.h"
#include "kernels/order1/reduce.h"
#include "kernels/order1/tree.h"

#define GROUP_SAMPLES 64 /* samples of a row that are moved before the next row's: neighbours in the cache */

/* True for a dtype that builds work on without decoding. */
static bool is_plain(enum scand_dtype dtype)
{
    return dtype == SCAND_DTYPE_F32 || (codec_is_plain(dtype) && codec_bytes(dtype) == sizeof(uint64_t));
}

/* True when builds work on integers of 4 bytes: integers that pass through staging lines are extended, unless they are
 * pairs. */
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

/* Returns the size of a dtype's sample in a staging line, and in contiguous rows that builds work on where they lie. */
static uint64_t staging_bytes(enum scand_dtype dtype)
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

/* True when rows of f32 lie side by side. */
static bool side_by_side(const char *const *rows, uint64_t count)
{
    for (uint64_t r = 1; r < count; r++)
        if (rows[r] - rows[0] != (ptrdiff_t)(r * sizeof(float)))
            return false;
    return count == CPU_GROUP_ROWS;
}

/* Samples or coefficients of a block of a row group, where they lie. */
struct scattered {
    const char *rows[CPU_GROUP_ROWS];
    uint64_t count, length;
    int64_t stride;
    enum scand_dtype dtype;
};

/* Decodes samples from the `i`-th on into staging lines, some of each row in turn. */
static void scattered_decode(const struct cpu_build *build, const struct scattered *from, uint64_t i,
                             char (*staging)[CPU_STAGING_BYTES])
{
    for (uint64_t count; i < from->length; i += count) {
        count = from->length - i < GROUP_SAMPLES ? from->length - i : GROUP_SAMPLES;
        for (uint64_t r = 0; r < from->count; r++)
            build->staging_decode(from->dtype, staging[r] + i * staging_bytes(from->dtype),
                                  from->rows[r] + (int64_t)i * from->stride, from->stride, count);
    }
}

/* Returns the address of a sample as the passes before `first` have left it. */
static const char *sample_at(const struct scan_rows *rows, uint32_t first, uint64_t row, uint64_t sample)
{
    return first > 0 ? output_at(rows, row, sample) : input_at(rows, row, sample);
}

static void pairs_gather(const struct scan *scan, struct cpu_scratch *scratch, const struct row_group *row_group,
                         const char *const *from, uint64_t length)
{
    for (uint64_t r = 0; r < row_group->count; r += 2) {
        char *const staging[] = {scratch->staging[r], scratch->staging[r + 1]};
        scan->build->pair_gather(staging, from[r], length, codec_bytes(scan->rows->rule.input));
    }
}

static void pairs_scatter(const struct scan *scan, const struct row_group *row_group, char *const *to, uint64_t length,
                          char (*staging)[CPU_STAGING_BYTES])
{
    for (uint64_t r = 0; r < row_group->count; r += 2) {
        char *const pair[] = {staging[r], staging[r + 1]};
        scan->build->pair_scatter(to[r], pair, length, codec_bytes(scan->rows->rule.output));
    }
}

static void staging_gather(const struct scan *scan, struct cpu_scratch *scratch, const struct row_group *row_group,
                           uint64_t b, uint32_t first)
{
    const struct scan_rows *rows = scan->rows;
    struct scattered from = {.count = row_group->count,
                             .length = block_length(rows, b),
                             .stride = first > 0 ? rows->output_stride : rows->input_stride,
                             .dtype = first > 0 ? rows->rule.output : rows->rule.input};
    uint64_t i = 0;
    for (uint64_t r = 0; r < row_group->count; r++)
        from.rows[r] = sample_at(rows, first, row_group->first + r, b * ORDER_BLOCK);
    if (scan->paired) {
        pairs_gather(scan, scratch, row_group, from.rows, from.length);
        return;
    }
    if (from.dtype == SCAND_DTYPE_F32 && side_by_side(from.rows, row_group->count))
        i = scan->build->staging_gather(scratch, from.rows[0], from.stride, from.length);
    scattered_decode(scan->build, &from, i, scratch->staging);
}

static void coefficients_gather(const struct scan *scan, struct cpu_scratch *scratch, const struct row_group *row_group,
                                uint64_t b)
{
    const struct scan_rows *rows = scan->rows;
    struct scattered from = {.count = row_group->count,
                             .length = block_length(rows, b),
                             .stride = rows->coefficient_stride,
                             .dtype = rows->rule.coefficients};
    for (uint64_t r = 0; r < row_group->count; r++)
        from.rows[r] = coefficient_at(rows, row_group->first + r, b * ORDER_BLOCK);
    scattered_decode(scan->build, &from, 0, scratch->factor_staging);
}

/* Returns the coefficients of a block of the row group's r-th row, as builds work on them; NULL where there are none.
 */
static const void *coefficients_of(const struct scan_rows *rows, const struct cpu_scratch *scratch, uint64_t row,
                                   uint64_t r, uint64_t b)
{
    if (!rows->coefficients)
        return NULL;
    return coefficients_gathered(rows) ? scratch->factor_staging[r] : coefficient_at(rows, row, b * ORDER_BLOCK);
}

static void staging_scatter(const struct scan *scan, const struct row_group *row_group, uint64_t b,
                            char (*staging)[CPU_STAGING_BYTES])
{
    int64_t stride = scan->rows->output_stride;
    enum scand_dtype dtype = scan->rows->rule.output;
    uint64_t length = block_length(scan->rows, b), i = 0;
    char *to[CPU_GROUP_ROWS];
    for (uint64_t r = 0; r < row_group->count; r++)
        to[r] = output_at(scan->rows, row_group->first + r, b * ORDER_BLOCK);
    if (scan->paired) {
        pairs_scatter(scan, row_group, to, length, staging);
        return;
    }
    if (dtype == SCAND_DTYPE_F32 && side_by_side((const char *const *)to, row_group->count))
        i = scan->build->staging_scatter(staging, to[0], stride, length);
    for (uint64_t count; i < length; i += count) {
        count = length - i < GROUP_SAMPLES ? length - i : GROUP_SAMPLES;
        for (uint64_t r = 0; r < row_group->count; r++)
            scan->build->staging_encode(dtype, staging[r] + i * staging_bytes(dtype), to[r] + (int64_t)i * stride,
                                        stride, count);
    }
}

/* Returns the carry into a block of the row group's r-th row; NULL into the block that the pass meets first. */
static const union sum *carry_into(const struct scan *scan, const struct row_group *row_group, uint32_t pass,
                                   uint64_t r, uint64_t b)
{
    bool backward = scan->rows->rule.passes[pass] == SCAND_PASS_BACKWARD;
    if (b == (backward ? scan->block_count - 1 : 0))
        return NULL;
    return &row_group->carries[pass][r * scan->block_count + b];
}

void row_group_visit(const struct scan *scan, struct cpu_scratch *scratch, const struct row_group *row_group,
                     uint64_t b, struct passes passes)
{
    const struct scan_rows *rows = scan->rows;
    const bool for_total = passes.known == FOR_TOTAL, last = passes.known == passes.end, narrow = is_narrow(scan);
    const bool contiguous = passes.first > 0 ? output_contiguous(rows) : input_contiguous(rows);
    const enum scand_dtype dtype = passes.first > 0 ? rows->rule.output : rows->rule.input;
    const bool same = staging_bytes(dtype) == staging_bytes(rows->rule.output);
    char(*results)[CPU_STAGING_BYTES] = passes.running && !same ? scratch->results : scratch->staging;
    bool gather = !contiguous || !(narrow || is_plain(dtype));
    bool scatter = last && (!output_contiguous(rows) || !(narrow || is_plain(rows->rule.output)));
    if (gather)
        staging_gather(scan, scratch, row_group, b, passes.first);
    if (coefficients_gathered(rows) && !for_total)
        coefficients_gather(scan, scratch, row_group, b);
    for (uint64_t r = 0; r < row_group->count; r++) {
        uint64_t row = row_group->first + r;
        struct cpu_block block = {
            .rule = &rows->rule,
            .first = passes.first,
            .known = passes.known,
            .end = passes.end,
            .mean = rows->rule.demean && passes.first == 0 && !for_total ? &row_group->means[r] : NULL,
            .narrow = narrow,
            .length = block_length(rows, b),
            .input = gather ? scratch->staging[r] : sample_at(rows, passes.first, row, b * ORDER_BLOCK),
            .streamed = passes.running,
            .row = r,
            .begin = b * ORDER_BLOCK,
            .row_length = rows->length,
            .next = gather || row + 1 == scan->first + scan->count ? NULL : input_at(rows, row + 1, b * ORDER_BLOCK),
            .output = scatter ? results[r] : output_at(rows, row, b * ORDER_BLOCK),
            .coefficients = coefficients_of(rows, scratch, row, r, b),
        };
        for (uint32_t pass = 0; !for_total && pass < passes.known; pass++)
            block.carries[pass] = passes.running ? &passes.running[r] : carry_into(scan, row_group, pass, r, b);
        if (for_total)
            scan->build->block_total(scratch, &block);
        else
            scan->build->block_run(scratch, &block);
        if (passes.running)
            passes.running[r] = block.total;
        else if (!last)
            row_group->carries[for_total ? 0 : passes.known][r * scan->block_count + b] = block.total;
    }
    if (scatter)
        staging_scatter(scan, row_group, b, results);
}

void row_group_carries(const struct scan *scan, const struct row_group *row_group, uint32_t pass)
{
    const struct scan_rule *rule = &scan->rows->rule;
    for (uint64_t r = 0; r < row_group->count; r++)
        tree_carries(arithmetic_of(rule), rule->passes[pass] == SCAND_PASS_BACKWARD,
                     row_group->carries[pass] + r * scan->block_count, scan->block_count, row_group->workspace);
}

/* Returns the total of the row group's r-th row from the totals of its blocks, which lie where the carries of the first
 * pass will. */
static union sum row_total(const struct scan *scan, const struct row_group *row_group, struct arithmetic arithmetic,
                           uint64_t r)
{
    return tree_total(arithmetic, row_group->carries[0] + r * scan->block_count, scan->block_count);
}

void row_group_reduce(const struct scan *scan, const struct row_group *row_group)
{
    for (uint64_t r = 0; r < row_group->count; r++) {
        union sum total = row_total(scan, row_group, arithmetic_of(&scan->rows->rule), r);
        reduce_store(scan->rows, row_group->first + r, &total);
    }
}

void row_group_means(const struct scan *scan, struct row_group *row_group)
{
    for (uint64_t r = 0; r < row_group->count; r++) {
        double total = row_total(scan, row_group, arithmetic_of_mean, r).f64;
        row_group->means[r] = total / (double)scan->rows->length;
    }
}
