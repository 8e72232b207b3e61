/*
 * The driver of the CPU path. Rows are cut into blocks of order 1, which a build for the processor's instruction set
 * scans.
 *
 * Rows of contiguous f32 or 8-byte samples are scanned where they lie. Other rows go in row groups of up to
 * CPU_GROUP_ROWS rows: a block of each row is gathered into a staging line of the scratch memory, some samples of each
 * row in turn, and scattered the same way. Other dtypes are decoded and encoded on that way.
 *
 * Short rows and columns go in row groups of ORDER_FAN rows or more, each a set of interleaved rows that a build scans
 * side by side.
 *
 * A row that is reduced, or whose mean is needed, is visited once for its total. A row of several blocks that one
 * thread scans is streamed: the thread scans its blocks in order, once for each pass, and each pass leaves its values
 * in the output. Where the output cannot hold these values, or all threads scan the row, the row is visited once for
 * each pass, which finds the totals of its blocks and from these the carries, and once more for the values. The values
 * of a pass are then never stored between visits but computed again.
 *
 * Ragged rows are scanned one by one, each as a batch of its own. Threads get stretches of samples, and scan the rows
 * that begin there. Stretches of short rows are shorter, since each row takes time to begin. All threads together scan
 * a row that is longer than an equal part of all samples.
 *
 * A scan can be left off and go on later: between items that threads work off, and between the blocks of a row group
 * that all threads scan, for example a single row of several blocks. Carries are kept meanwhile, so bits do not depend
 * on where a scan is left off.
 */
#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/driver.h"
#include "kernels/order1/reduce.h"
#include "kernels/order1/tree.h"

#define AFFINE_COST     16  /* times other operators' cost: items are smaller, so that none takes longer */
#define RAGGED_ROW_COST 256 /* samples that are scanned while a ragged row begins: some 0.2 us */

static struct row_group row_group_of(const struct scan *scan, uint64_t index, unsigned worker)
{
    uint64_t rest = scan->count - index * scan->group_rows;
    struct row_group row_group = {.first = scan->first + index * scan->group_rows,
                                  .count = rest < scan->group_rows ? rest : scan->group_rows};
    if (scan->sums) {
        union sum *sums = scan->sums + worker * scan->worker_sums;
        for (uint32_t pass = 0; pass < scan->rows->rule.pass_count;
             pass++, sums += scan->group_rows * scan->block_count)
            row_group.carries[pass] = sums;
        row_group.workspace = sums;
    }
    return row_group;
}

/* True while the turn goes on, for the calling thread and all others. */
static bool goes_on(struct scan *scan)
{
    if (atomic_load_explicit(&scan->left_off, memory_order_relaxed))
        return false;
    if (!scan->over || !scan->over(scan->context))
        return true;
    atomic_store(&scan->left_off, true);
    return false;
}

/* Runs work on each thread of the scan. */
static void run_all(struct scan *scan, cpu_work *work, void *context)
{
    if (worker_count(scan) > 1)
        cpu_pool_run(scan->pool, work, context);
    else
        work(context, 0);
}

/* One visit of all blocks of a row group by all threads. */
struct visit {
    struct scan *scan;
    const struct row_group *row_group;
    struct passes passes;
};

#define ALL_WORKERS UINT_MAX /* in place of a worker that has a row group for itself */

/* Visits, on one thread, blocks of one row group until none is left. */
static void blocks_work(void *context, unsigned worker)
{
    struct visit *visit = context;
    uint64_t b;
    while ((b = atomic_fetch_add(&visit->scan->next, 1)) < visit->scan->block_count) {
        row_group_visit(visit->scan, scratch_of(visit->scan, worker), visit->row_group, b, visit->passes);
        if (!goes_on(visit->scan))
            return;
    }
}

/* Visits all blocks of a row group. True when all have been visited. */
static bool row_group_visit_all(struct scan *scan, const struct row_group *row_group, uint32_t known, unsigned worker)
{
    const struct passes passes = {0, known, scan->rows->rule.pass_count, NULL};
    struct visit visit = {scan, row_group, passes};
    if (worker == ALL_WORKERS) {
        run_all(scan, blocks_work, &visit);
        return atomic_load(&scan->next) >= scan->block_count;
    }
    for (uint64_t b = 0; b < scan->block_count; b++)
        row_group_visit(scan, scratch_of(scan, worker), row_group, b, passes);
    return true;
}

/* Scans blocks in the order of each pass, since a carry depends on the totals of earlier blocks. A pass stores its
 * values in the output, which the next pass reads. With ALL_WORKERS the calling thread does all. True when all passes
 * are done. */
static bool row_group_stream(struct scan *scan, struct row_group *row_group, unsigned worker)
{
    const struct scan_rule *rule = &scan->rows->rule;
    const union sum identity = sum_first(arithmetic_of(rule), operator_identity(rule), false);
    struct cpu_scratch *scratch = scratch_of(scan, worker == ALL_WORKERS ? 0 : worker);
    union sum own[CPU_GROUP_ROWS], *carries = worker == ALL_WORKERS ? scan->running : own;
    const uint64_t blocks = scan->block_count * rule->pass_count;
    while (row_group->streamed_blocks < blocks) {
        uint32_t pass = (uint32_t)(row_group->streamed_blocks / scan->block_count);
        uint64_t i = row_group->streamed_blocks % scan->block_count;
        uint64_t b = rule->passes[pass] == SCAND_PASS_BACKWARD ? scan->block_count - 1 - i : i;
        for (uint64_t r = 0; i == 0 && r < row_group->count; r++)
            carries[r] = identity;
        row_group_visit(scan, scratch, row_group, b, (struct passes){pass, pass + 1, pass + 1, carries});
        row_group->streamed_blocks++;
        if (worker == ALL_WORKERS && !goes_on(scan))
            break;
    }
    return row_group->streamed_blocks == blocks;
}

/* Returns the number of a row group's phases: a visit for the total; then one phase for all passes where rows are
 * streamed, or else a visit for each pass and one for the values. */
static uint32_t phase_count(const struct scan *scan)
{
    if (is_reduction(scan))
        return 1;
    return scan->streamed ? 2 : scan->rows->rule.pass_count + 2;
}

/* Runs a phase of a row group; many rules need none of some phases. True when the phase is over. */
static bool phase_run(struct scan *scan, struct row_group *row_group, unsigned worker)
{
    const uint32_t known = row_group->phase - 1, pass_count = scan->rows->rule.pass_count;
    if (row_group->phase == 0)
        return !(scan->rows->rule.demean || is_reduction(scan)) ||
               row_group_visit_all(scan, row_group, FOR_TOTAL, worker);
    if (scan->streamed)
        return row_group_stream(scan, row_group, worker);
    return (scan->block_count == 1 && known < pass_count) || row_group_visit_all(scan, row_group, known, worker);
}

/* Turns totals into what the next phase needs, or into results. */
static void phase_close(const struct scan *scan, struct row_group *row_group)
{
    if (row_group->phase == 0 && is_reduction(scan))
        row_group_reduce(scan, row_group);
    else if (row_group->phase == 0 && scan->rows->rule.demean)
        row_group_means(scan, row_group);
    else if (row_group->phase > 0 && !scan->streamed && row_group->phase <= scan->rows->rule.pass_count &&
             scan->block_count > 1)
        row_group_carries(scan, row_group, row_group->phase - 1);
}

/* Works on a row group. True when the row group is done, as it always is when one worker has it for itself. */
static bool row_group_work(struct scan *scan, struct row_group *row_group, unsigned worker)
{
    const uint32_t phases = phase_count(scan);
    if (scan->interleaved) {
        row_group_interleaved(scan, row_group, worker);
        return true;
    }
    while (phase_run(scan, row_group, worker)) {
        phase_close(scan, row_group);
        row_group->phase++;
        if (worker == ALL_WORKERS)
            atomic_store(&scan->next, 0);
        if (row_group->phase == phases)
            return true;
        if (worker == ALL_WORKERS && atomic_load(&scan->left_off))
            return false;
    }
    return false;
}

/* Scans, on one thread, row groups until none is left. */
static void row_groups_work(void *context, unsigned worker)
{
    struct scan *scan = context;
    uint64_t item;
    while ((item = atomic_fetch_add(&scan->next, scan->item_groups)) < scan->group_count) {
        for (uint64_t s = item; s < item + scan->item_groups && s < scan->group_count; s++) {
            struct row_group row_group = row_group_of(scan, s, worker);
            row_group_work(scan, &row_group, worker);
        }
        if (!goes_on(scan))
            return;
    }
}

/* Returns the size of what a streamed scan keeps in the scratch memory, which other scans use between its turns. */
static uint64_t lanes_bytes(const struct scan *scan)
{
    uint64_t rows = scan->count < scan->group_rows ? scan->count : scan->group_rows;
    return scan->by_blocks && scan->streamed && scan->over ? rows * CPU_LANES_BYTES(1) : 0;
}

/* Scans row groups by blocks, with all threads. True when all row groups are done. */
static bool scan_by_blocks(struct scan *scan)
{
    if (scan->lanes)
        memcpy(scratch_of(scan, 0)->lanes, scan->lanes, lanes_bytes(scan));
    while (scan->at_group < scan->group_count) {
        if (scan->row_group.count == 0)
            scan->row_group = row_group_of(scan, scan->at_group, 0);
        if (!row_group_work(scan, &scan->row_group, ALL_WORKERS))
            break;
        scan->at_group++;
        scan->row_group.count = 0;
        if (!goes_on(scan))
            break;
    }
    if (scan->lanes)
        memcpy(scan->lanes, scratch_of(scan, 0)->lanes, lanes_bytes(scan));
    return scan->at_group == scan->group_count;
}

/* True when each row group is scanned by one thread. */
static bool has_groups(const struct scan *scan)
{
    return worker_count(scan) == 1 || scan->block_count == 1 || scan->interleaved ||
           scan->group_count >= worker_count(scan);
}

/* True when one thread scans a row of several blocks, and the output can hold what passes leave. */
static bool is_streamed(const struct scan *scan)
{
    const struct scan_rule *rule = &scan->rows->rule;
    return scan->block_count > 1 && scan->rows->length <= CPU_LANES_LENGTH && has_groups(scan) && !is_reduction(scan) &&
           rule->op != SCAND_OPERATOR_AFFINE && cpu_is_direct(rule);
}

static void scan_plan(struct scan *scan)
{
    const struct scan_rows *rows = scan->rows;
    scan->block_count = (rows->length + ORDER_BLOCK - 1) / ORDER_BLOCK;
    bool contiguous =
        input_contiguous(rows) && (is_reduction(scan) || output_contiguous(rows)) && !coefficients_gathered(rows);
    scan->interleaved = is_interleaved(scan);
    scan->paired = !scan->interleaved && is_paired(scan);
    scan->group_rows = scan->interleaved ? interleaved_rows_max(scan) : contiguous ? 1 : CPU_GROUP_ROWS;
    scan->group_count = (scan->count + scan->group_rows - 1) / scan->group_rows;
    uint64_t row_group_samples = scan->group_rows * rows->length;
    scan->item_samples = rows->rule.op == SCAND_OPERATOR_AFFINE ? CPU_ITEM_SAMPLES / AFFINE_COST : CPU_ITEM_SAMPLES;
    scan->item_groups = row_group_samples < scan->item_samples ? scan->item_samples / row_group_samples : 1;
    scan->streamed = is_streamed(scan);
    scan->by_blocks = !has_groups(scan) || (scan->group_count == 1 && scan->block_count > 1 && !scan->interleaved);
    scan->worker_sums =
        rows->rule.pass_count * scan->group_rows * scan->block_count + tree_workspace(scan->block_count);
}

static int scan_allocate(struct scan *scan)
{
    if (scan->block_count == 1 && !scan->rows->rule.demean && !is_reduction(scan))
        return 0;
    scan->sums = calloc(worker_count(scan) * scan->worker_sums, sizeof(*scan->sums));
    if (lanes_bytes(scan) > 0)
        scan->lanes = calloc(1, lanes_bytes(scan));
    return scan->sums && (scan->lanes || lanes_bytes(scan) == 0) ? 0 : -ENOMEM;
}

/* Divides a scan among threads. True when all is done. */
static bool scan_share_out(struct scan *scan)
{
    if (scan->by_blocks)
        return scan_by_blocks(scan);
    if (scan->group_count > scan->item_groups)
        run_all(scan, row_groups_work, scan);
    else
        row_groups_work(scan, 0);
    return atomic_load(&scan->next) >= scan->group_count;
}

static uint64_t ragged_length(const struct scan *scan, uint64_t row)
{
    return scan->rows->offsets[row + 1] - scan->rows->offsets[row];
}

/* Scans a ragged row by one thread or, with the pool, by all. The sums suffice for the longest row. */
static void ragged_scan(const struct scan *ragged, uint64_t row, struct cpu_pool *pool, unsigned worker)
{
    struct scan_rows single = scan_rows_joined(ragged->rows, row, 1);
    struct scan scan = {.rows = &single, .build = ragged->build, .pool = pool, .count = 1};
    if (single.length == 0)
        return;
    scan.scratch = scratch_of(ragged, worker);
    scan.sums = ragged->sums ? ragged->sums + worker * ragged->worker_sums : NULL;
    scan_plan(&scan);
    scan_share_out(&scan);
}

/* Returns where a row begins in the samples, each row counting as RAGGED_ROW_COST more. */
static uint64_t ragged_place(const struct scan *scan, uint64_t row)
{
    return scan->rows->offsets[row] - scan->rows->offsets[scan->first] + (row - scan->first) * RAGGED_ROW_COST;
}

/* Returns the first row with this place or a later one. */
static uint64_t ragged_row_from(const struct scan *scan, uint64_t place)
{
    uint64_t low = scan->first, high = scan->first + scan->count;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (ragged_place(scan, middle) < place)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Scans, on one thread, the rows that begin in one stretch of places after another. */
static void ragged_work(void *context, unsigned worker)
{
    struct scan *scan = context;
    const uint64_t end = scan->first + scan->count;
    uint64_t item;
    while ((item = atomic_fetch_add(&scan->next, scan->item_samples)) < ragged_place(scan, end)) {
        for (uint64_t r = ragged_row_from(scan, item); r < end && ragged_place(scan, r) < item + scan->item_samples;
             r++)
            if (ragged_length(scan, r) <= scan->thread_samples)
                ragged_scan(scan, r, NULL, worker);
        if (!goes_on(scan))
            return;
    }
}

/* Stores the results of ragged rows without samples, which may lie behind the last stretch. */
static void ragged_store_empty(const struct scan *scan)
{
    for (uint64_t r = scan->first; r < scan->first + scan->count && is_reduction(scan); r++)
        if (ragged_length(scan, r) == 0) {
            const struct scan_rows single = scan_rows_joined(scan->rows, r, 1);
            reduce_store(&single, 0, NULL);
        }
}

static void ragged_plan(struct scan *scan)
{
    const uint64_t *offsets = scan->rows->offsets, end = scan->first + scan->count;
    uint64_t samples = (offsets[end] - offsets[scan->first]) / worker_count(scan);
    scan->thread_samples = worker_count(scan) == 1 ? UINT64_MAX : samples < ORDER_BLOCK ? ORDER_BLOCK : samples;
    scan->longer = scan->rows->length > scan->thread_samples ? scan->first : end;
    atomic_store(&scan->next, 0);
    ragged_store_empty(scan);
}

/* Scans ragged rows: first those that all threads scan together, after each of which a turn may end. True when all rows
 * are done. */
static bool ragged_run(struct scan *scan)
{
    const uint64_t end = scan->first + scan->count;
    while (scan->longer < end) {
        uint64_t row = scan->longer++;
        if (ragged_length(scan, row) <= scan->thread_samples)
            continue;
        ragged_scan(scan, row, scan->pool, 0);
        if (!goes_on(scan))
            return false;
    }
    if (ragged_place(scan, end) > scan->item_samples)
        run_all(scan, ragged_work, scan);
    else
        ragged_work(scan, 0);
    return atomic_load(&scan->next) >= ragged_place(scan, end);
}

/* Stores the results of rows without samples, which only reductions have. */
static void empty_run(const struct scan *scan)
{
    for (uint64_t r = 0; r < scan->count && is_reduction(scan); r++)
        reduce_store(scan->rows, scan->first + r, NULL);
}

/* Begins a scan. A single ragged row is scanned as any other row. */
static int scan_begin(struct scan *scan)
{
    if (scan->rows->offsets && scan->count == 1) {
        scan->single = scan_rows_joined(scan->rows, scan->first, 1);
        scan->rows = &scan->single;
        scan->first = 0;
    }
    if (scan->rows->length == 0 || scan->count == 0)
        return 0;
    scan_plan(scan);
    int error = scan_allocate(scan);
    if (!error && scan->rows->offsets)
        ragged_plan(scan);
    return error;
}

/* Runs a turn. Returns 0 when all is done, 1 when some is left, or -ENOMEM before anything is written. */
static int scan_run(struct scan *scan)
{
    int error = scan->begun ? 0 : scan_begin(scan);
    if (error)
        return error;
    scan->begun = true;
    atomic_store(&scan->left_off, false);
    if (scan->rows->length == 0 || scan->count == 0) {
        empty_run(scan);
        return 0;
    }
    return (scan->rows->offsets ? ragged_run : scan_share_out)(scan) ? 0 : 1;
}

static void scan_finish(struct scan *scan)
{
    free(scan->lanes);
    free(scan->sums);
}

static int build_run(const struct cpu_build *build, const struct scan_rows *rows, uint64_t first, uint64_t count)
{
    struct scan scan = {.rows = rows, .build = build, .first = first, .count = count, .scratch = cpu_scratch_create()};
    if (!scan.scratch)
        return -ENOMEM;
    int error = scan_run(&scan);
    scan_finish(&scan);
    cpu_scratch_destroy(scan.scratch);
    return error;
}

/* The builds. */

#define X(SET, OF)                                                                     \
    static int SET##_run(const struct scan_rows *rows, uint64_t first, uint64_t count) \
    {                                                                                  \
        return build_run(&OF##_##SET, rows, first, count);                             \
    }
CPU_SETS(X, cpu_build)
#undef X

const struct scan_cpu_build scan_cpu_builds[] = {
#define X(SET, OF) {#SET, OF##_##SET##_available, SET##_run},
    CPU_SETS(X, cpu)
#undef X
};
const size_t scan_cpu_build_count = CPU_SET_COUNT;

static const struct cpu_build *best_build(void)
{
    static const struct cpu_build *const builds[] = {
#define X(SET, OF) &OF##_##SET,
        CPU_SETS(X, cpu_build)
#undef X
    };
    return builds[cpu_set_best()];
}

int scan_cpu(struct cpu_pool *pool, const struct scan_rows *rows, uint64_t first, uint64_t count)
{
    struct scan scan = {.rows = rows, .build = best_build(), .first = first, .count = count, .pool = pool};
    int error = scan_run(&scan);
    scan_finish(&scan);
    return error;
}

/* Scans in turns. */

struct cpu_task {
    struct scan scan;
    struct scan_rows rows;
};

struct cpu_task *cpu_task_create(struct cpu_pool *pool, const struct scan_rows *rows, uint64_t first, uint64_t count)
{
    struct cpu_task *task = calloc(1, sizeof(*task));
    if (!task)
        return NULL;
    task->rows = *rows;
    task->scan.rows = &task->rows;
    task->scan.build = best_build();
    task->scan.pool = pool;
    task->scan.first = first;
    task->scan.count = count;
    return task;
}

int cpu_task_run(struct cpu_task *task, cpu_over *over, void *context)
{
    task->scan.over = over;
    task->scan.context = context;
    return scan_run(&task->scan);
}

void cpu_task_destroy(struct cpu_task *task)
{
    if (task)
        scan_finish(&task->scan);
    free(task);
}
