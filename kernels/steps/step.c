#include "step.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/cpu.h"

#define X(NAME) extern const struct step_kernel NAME##_kernel;
STEP_KERNELS(X)
#undef X

const struct step_kernel *const step_kernels[STEP_KERNEL_COUNT] = {
#define X(NAME) &NAME##_kernel,
    STEP_KERNELS(X)
#undef X
};

static void count_tiles(struct step_tiles *tiles)
{
    const struct step_tiling *tiling = &tiles->tiling;
    tiles->per_row = tiles->length / tiling->elements + (tiles->length % tiling->elements > 0);
    tiles->tile_count = (tiles->count + tiling->rows - 1) / tiling->rows * tiles->per_row;
}

struct step_tiles step_tiles_of(const struct step_kernel *kernel, const struct step_rows *rows, const void *params,
                                uint64_t first, uint64_t count)
{
    struct step_tiles tiles = {.first = first, .count = count, .tiling = kernel->tiling(rows, params)};
    if (rows->offsets)
        tiles.tiling.elements = UINT64_MAX;
    tiles.length = rows->offsets ? UINT64_MAX : rows->output.length;
    count_tiles(&tiles);
    return tiles;
}

/* Makes tiles smaller: of fewer rows, then of fewer elements. Returns false when they can be no smaller. */
static bool halve(struct step_tiling *tiling, uint64_t length, uint64_t least)
{
    const uint64_t along = tiling->elements < length ? tiling->elements : length;
    if (tiling->rows > 1 && tiling->rows * along >= 2 * least)
        tiling->rows = (tiling->rows + 1) / 2;
    else if (tiling->rows == 1 && tiling->elements < UINT64_MAX && tiling->elements >= 2 * least)
        tiling->elements /= 2;
    else
        return false;
    return true;
}

struct step_tiles step_tiles_halved(const struct step_kernel *kernel, struct step_tiles tiles, uint64_t least)
{
    const bool whole = kernel->least_elements == 0 || tiles.length == UINT64_MAX;
    while (!whole && tiles.tile_count < least && halve(&tiles.tiling, tiles.length, kernel->least_elements))
        count_tiles(&tiles);
    return tiles;
}

uint64_t step_workspace_bytes(const struct step_kernel *kernel, const struct step_rows *rows, const void *params,
                              uint64_t count)
{
    return kernel->workspace_bytes ? kernel->workspace_bytes(rows, params, count) : 0;
}

/*
 * Parts of rows.
 */

const struct step_parts *step_parts_of(const struct step_kernel *kernel, const struct step_rows *rows)
{
    return kernel->parts && !rows->offsets && kernel->parts->divides(rows) ? kernel->parts : NULL;
}

static uint64_t part_count(const struct step_parts *parts, const struct step_rows *rows)
{
    return rows->input.length / parts->samples + (rows->input.length % parts->samples > 0);
}

uint64_t step_parts_bytes(const struct step_parts *parts, const struct step_rows *rows, uint64_t count)
{
    return count * part_count(parts, rows) * sizeof(double);
}

/* The numbers between the two, row after row. Those before the first row have no memory, and are not touched. */
static struct step_operand between(const struct step_parts *parts, const struct step_rows *rows, uint64_t first,
                                   void *memory)
{
    const uint64_t pitch = part_count(parts, rows) * sizeof(double);
    struct step_operand operand = {
        .origin = (char *)((uintptr_t)memory - first * pitch),
        .length = part_count(parts, rows),
        .stride = sizeof(double),
        .dtype = codec_is_integer(rows->input.dtype) ? SCAND_DTYPE_I64 : SCAND_DTYPE_F64,
    };
    uint64_t step = pitch;
    for (uint32_t k = rows->outer_rank; k-- > 0; step *= rows->outer_shape[k])
        operand.outer_strides[k] = (int64_t)step;
    return operand;
}

struct step_rows step_each_rows(const struct step_parts *parts, const struct step_rows *rows, uint64_t first,
                                void *memory)
{
    struct step_rows each = *rows;
    each.output = between(parts, rows, first, memory);
    return each;
}

struct step_rows step_joined_rows(const struct step_parts *parts, const struct step_rows *rows, uint64_t first,
                                  void *memory)
{
    struct step_rows joined = *rows;
    joined.input = between(parts, rows, first, memory);
    memset(joined.further, 0, sizeof joined.further);
    return joined;
}

/*
 * Tasks.
 */

struct step_task {
    struct cpu_pool *pool;
    const struct step_parts *parts; /* parts whose second kernel is yet to come; NULL: the last kernel is running */
    void *numbers;                  /* between the two */
    struct step_rows joined;        /* rows of the second */
    uint64_t first, count;
    step_run *run;
    struct step_rows rows;
    struct step_tiles tiles;
    cpu_over *over;
    void *context;
    atomic_uint_fast64_t next; /* the first tile that no thread has */
    atomic_bool left_off;
    _Alignas(16) unsigned char params[];
};

_Static_assert(sizeof(struct cpu_scratch) >= STEP_SCRATCH_BYTES, "tiles use the scratch memory of scans");

/* Has a kernel be run next. */
static void task_kernel(struct step_task *task, const struct step_kernel *kernel, const struct step_rows *rows)
{
    task->run = kernel->cpu[cpu_set_best()];
    task->rows = *rows;
    task->tiles = step_tiles_of(kernel, &task->rows, task->params, task->first, task->count);
    atomic_store(&task->next, 0);
}

struct step_task *step_task_create(struct cpu_pool *pool, const struct step_kernel *kernel,
                                   const struct step_rows *rows, const void *params, size_t params_bytes,
                                   uint64_t first, uint64_t count)
{
    struct step_task *task = calloc(1, sizeof *task + params_bytes);
    if (!task)
        return NULL;
    task->pool = pool;
    task->first = first;
    task->count = count;
    memcpy(task->params, params, params_bytes);
    task->parts = step_parts_of(kernel, rows);
    if (!task->parts) {
        task_kernel(task, kernel, rows);
        return task;
    }
    task->numbers = malloc(step_parts_bytes(task->parts, rows, count));
    if (!task->numbers) {
        free(task);
        return NULL;
    }
    const struct step_rows each = step_each_rows(task->parts, rows, first, task->numbers);
    task->joined = step_joined_rows(task->parts, rows, first, task->numbers);
    task_kernel(task, task->parts->each, &each);
    return task;
}

/* Each thread does at least one tile in a turn, if there is one. */
static void task_work(void *context, unsigned worker)
{
    struct step_task *task = context;
    void *scratch = cpu_pool_scratch(task->pool, worker);
    do {
        const uint64_t number = atomic_fetch_add(&task->next, 1);
        if (number >= task->tiles.tile_count)
            return;
        const struct step_tile tile = step_tile_at(&task->tiles, number);
        task->run(&task->rows, task->params, &tile, scratch);
        if (task->over && task->over(task->context))
            atomic_store(&task->left_off, true);
    } while (!atomic_load(&task->left_off));
}

/* Runs tiles until all of the kernel are done, or the turn is over. True: some are left. */
static bool run_tiles(struct step_task *task)
{
    if (task->tiles.tile_count == 1 || cpu_pool_threads(task->pool) == 1)
        task_work(task, 0);
    else if (task->tiles.tile_count > 0)
        cpu_pool_run(task->pool, task_work, task);
    return atomic_load(&task->next) < task->tiles.tile_count;
}

int step_task_run(struct step_task *task, cpu_over *over, void *context)
{
    task->over = over;
    task->context = context;
    atomic_store(&task->left_off, false);
    if (run_tiles(task))
        return 1;
    if (!task->parts)
        return 0;
    task_kernel(task, task->parts->joined, &task->joined);
    task->parts = NULL;
    return atomic_load(&task->left_off) || run_tiles(task);
}

void step_task_destroy(struct step_task *task)
{
    if (task)
        free(task->numbers);
    free(task);
}
