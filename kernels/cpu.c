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

#include "kernels/cpu_scan.h"
#include "kernels/reduce.h"
#include "kernels/tree.h"

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
    scan->item_strips = strip_samples < CPU_ITEM_SAMPLES ? CPU_ITEM_SAMPLES / strip_samples : 1;
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
    while ((item = atomic_fetch_add(&scan->next, CPU_ITEM_SAMPLES)) < offsets[end])
        for (uint64_t r = ragged_row_from(scan, item); r < end && offsets[r] < item + CPU_ITEM_SAMPLES; r++)
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
