/*
 * Scans on a CUDA device: which of the kernels scan rows. Sums of f32 samples have kernels of their own, as have
 * affine, reductions and ragged rows; all else takes the general ones.
 */
#include "kernels/cuda/scan_cuda.h"

#include "kernels/cuda/exchange/spine.h"
#include "kernels/cuda/kernels/affine.h"
#include "kernels/cuda/kernels/any_layout.h"
#include "kernels/cuda/kernels/block_per_row.h"
#include "kernels/cuda/kernels/cluster_per_row.h"
#include "kernels/cuda/kernels/columns_direct.h"
#include "kernels/cuda/kernels/columns_tma.h"
#include "kernels/cuda/kernels/grid_per_row.h"
#include "kernels/cuda/kernels/ragged.h"
#include "kernels/cuda/kernels/reduce.h"
#include "kernels/cuda/kernels/thread_per_row.h"
#include "kernels/cuda/kernels/warp_per_row.h"
#include "kernels/cuda/kernels/warp_per_rows.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/scan_cuda_by.h"
#include "kernels/cuda/select/plan.h"
#include "kernels/cuda/select/ranges.h"
#include "kernels/cuda/select/select.h"
#include "kernels/order1/order.h"

#define DEVICES_MAX 64

/* A device as scan_cuda_init has found it. */
struct device {
    struct scan_device base;
    struct scan_block_per_row_device block_per_row;
    struct scan_thread_per_row_device thread_per_row;
    struct scan_warp_per_rows_device warp_per_rows;
    struct scan_warp_per_row_device warp_per_row;
    struct scan_cluster_device cluster;
    struct scan_grid_per_row_device grid_per_row;
    struct scan_columns_tma_device columns_tma;
    struct scan_ragged_device ragged;
};
static struct device devices[DEVICES_MAX];

/* Finds the device of this thread. */
static cudaError_t device_current(struct device **device)
{
    int id = 0;
    cudaError_t error = scan_cleared(cudaGetDevice(&id));
    if (!error && id >= DEVICES_MAX)
        error = cudaErrorInvalidDevice;
    *device = &devices[error ? 0 : id];
    return error;
}

int scan_cuda_init(void)
{
    struct device *device;
    cudaError_t error = device_current(&device);
    if (!error)
        error = scan_device_find(&device->base);
    if (!error)
        error = scan_block_per_row_load(&device->block_per_row, device->base.shared_max);
    if (!error)
        error = scan_thread_per_row_load(&device->thread_per_row, device->base.shared_max);
    if (!error)
        error = scan_warp_per_rows_load(&device->warp_per_rows);
    if (!error)
        error = scan_warp_per_row_load(&device->warp_per_row);
    if (!error)
        error = scan_ragged_load(&device->ragged, &device->base);
    if (!error)
        error = scan_cluster_load(&device->cluster, &device->base);
    if (!error)
        error = scan_grid_per_row_load(&device->base, &device->grid_per_row);
    if (!error)
        error = scan_columns_tma_load(&device->columns_tma, &device->base);
    if (!error)
        error = scan_columns_direct_load();
    if (!error)
        error = scan_affine_load(device->base.shared_max);
    if (!error)
        error = scan_reduce_load(&device->base);
    if (!error)
        error = scan_any_layout_load(device->base.shared_max);
    return error ? error : scan_spine_load_sums();
}

static uint64_t sum_bytes_of(const struct scan_rule *rule)
{
    return rule->op == SCAND_OPERATOR_AFFINE ? scan_affine_sum_bytes(rule)
           : select_is_sum(rule)             ? scan_spine_of(rule->accumulator)->sum_bytes
                                             : scan_any_layout_sum_bytes(rule);
}

static uint64_t even_workspace_bytes(const struct scan_rows *rows, uint64_t count)
{
    const struct scan_rule *rule = &rows->rule;
    uint64_t sums = scan_sums(rows->length, count), bytes = 0;
    if (rows->length == 0)
        return 0;
    if (rule->operation == SCAND_OPERATION_REDUCE)
        return scan_reduce_workspace_bytes(rows, count);
    if (scan_blocks(rows->length) > 1)
        bytes += select_is_sum(rule) ? scan_grid_per_row_workspace_bytes(rule, sums, sum_bytes_of(rule))
                                     : rule->pass_count * sums * sum_bytes_of(rule);
    if (rule->demean)
        bytes += sums * sizeof(double);
    const struct scan_plan plan = scan_plan_of(rows, 0, count);
    const uint64_t direct = scan_columns_direct_workspace_bytes(rule, &plan);
    bytes = direct > bytes ? direct : bytes;
    if (select_is_sum(rule)) {
        const uint64_t tma = scan_columns_tma_workspace_bytes(rule, &plan);
        bytes = tma > bytes ? tma : bytes;
    }
    return bytes;
}

/* The workspace of rows: for ragged ones as much as all of them need, or the longest alone. */
uint64_t scan_cuda_workspace_bytes(const struct scan_rows *rows, uint64_t count)
{
    if (!rows->offsets || rows->length == 0)
        return even_workspace_bytes(rows, count);
    uint64_t together = scan_ragged_workspace_bytes(rows), alone = even_workspace_bytes(rows, 1);
    return alone > together ? alone : together;
}

static cudaError_t block_per_row_run(struct device *device, const struct scan_rule *rule, struct scan_plan plan,
                                     const struct scan_range *range, void *workspace, cudaStream_t stream)
{
    return scan_with_spine(scan_spine_of(rule->accumulator), &plan, workspace, range, stream, [&] {
        return scan_block_per_row(&device->base, &device->block_per_row, rule, &plan, stream);
    });
}

int scan_cuda_group(const struct scan_rows *rows, uint64_t count)
{
    switch (select_together_of(rows, count)) {
    case SELECT_ALONE:
        return 0;
    case SELECT_SCANS:
        return 1 + scan_any_layout_number(&rows->rule);
    case SELECT_AFFINES:
        return 1 + ANY_LAYOUT_KERNELS + scan_affine_number(rows);
    case SELECT_REDUCTIONS:
        return 1 + ANY_LAYOUT_KERNELS + SCAN_AFFINES + scan_reduce_number(&rows->rule);
    }
    return 0;
}

int scan_cuda_together(const struct scan_part *parts, unsigned count, struct CUstream_st *stream)
{
    struct device *device;
    cudaError_t error = device_current(&device);
    if (error)
        return error;
    switch (select_together_of(parts->rows, parts->count)) {
    case SELECT_ALONE:
        break;
    case SELECT_SCANS:
        return scan_any_layout_together(parts, count, stream);
    case SELECT_AFFINES:
        return scan_affine_together(parts, count, stream);
    case SELECT_REDUCTIONS:
        return scan_reduce_together(parts, count, stream);
    }
    return cudaErrorInvalidValue;
}

const char *scan_cuda_path(const struct scan_rows *rows, uint64_t first, uint64_t count)
{
    struct device *device;
    const struct scan_plan plan = scan_plan_of(rows, first, count);
    return device_current(&device) ? "" : select_word(select_path_of(rows, &plan, &device->base));
}

/* The arguments of one scan_cuda or, with `range`, of one range of its only row. */
struct call {
    struct device *device;
    const struct scan_rows *rows;
    uint64_t first, count;
    const struct scan_range *range;
    struct scan_plan plan;
    void *workspace;
    cudaStream_t stream;
};

/* Runs the kernels that are for ragged rows as well as for others, on rows of at most an order block, each an item. */
static cudaError_t shorter_run(enum select_path path, const struct call *call)
{
    struct scan_device *base = &call->device->base;
    const struct scan_rows *rows = call->rows;
    struct scan_rows shorter = *rows;
    shorter.length = scan_least(rows->length, ORDER_BLOCK);
    if (path == SELECT_RAGGED_AFFINE_PREFETCH || path == SELECT_RAGGED_AFFINE)
        return scan_affine(base, path, &shorter, call->first, call->count, NULL, call->workspace, call->stream);
    struct scan_plan plan = scan_plan_of(&shorter, call->first, call->count);
    plan.ahead = path == SELECT_RAGGED_ANY_LAYOUT_PREFETCH;
    return scan_any_layout(base, &rows->rule, &plan, rows->device_offsets + call->first, NULL, call->workspace,
                           call->stream);
}

/* Ragged rows of up to `longest` samples have been queued. The others are scanned one by one. */
static cudaError_t longer_run(const struct call *call, uint64_t longest)
{
    cudaError_t error = cudaSuccess;
    for (uint64_t r = call->first; r < call->first + call->count && call->rows->length > longest && !error; r++) {
        const struct scan_rows row = scan_rows_joined(call->rows, r, 1);
        if (row.length > longest)
            error = (cudaError_t)scan_cuda(&row, 0, 1, call->workspace, call->stream);
    }
    return error;
}

static cudaError_t ragged_run(enum select_path path, const struct call *call)
{
    const struct scan_ragged_device *ragged = &call->device->ragged;
    const bool tiles = path == SELECT_RAGGED;
    const cudaError_t error =
        tiles ? scan_ragged(ragged, call->rows, call->first, call->count, call->workspace, call->stream)
              : shorter_run(path, call);
    return error ? error : longer_run(call, tiles ? scan_ragged_length_max(ragged) : ORDER_BLOCK);
}

static cudaError_t any_layout_run(bool ahead, const struct call *call)
{
    struct scan_plan plan = call->plan;
    plan.ahead = ahead;
    return scan_any_layout(&call->device->base, &call->rows->rule, &plan, NULL, call->range, call->workspace,
                           call->stream);
}

static cudaError_t path_run(enum select_path path, const struct call *call)
{
    struct device *device = call->device;
    struct scan_device *base = &device->base;
    const struct scan_plan *plan = &call->plan;
    const struct scan_rule *rule = &call->rows->rule;
    void *const workspace = call->workspace;
    const cudaStream_t stream = call->stream;
    switch (path) {
    case SELECT_REDUCE_RAGGED:
    case SELECT_REDUCE_WARP_PER_ROWS:
    case SELECT_REDUCE:
    case SELECT_REDUCE_TOTALS:
    case SELECT_REDUCE_EMPTY:
        return scan_reduce(base, path, call->rows, call->first, call->count, call->range, workspace, stream);
    case SELECT_RAGGED:
    case SELECT_RAGGED_AFFINE_PREFETCH:
    case SELECT_RAGGED_AFFINE:
    case SELECT_RAGGED_ANY_LAYOUT_PREFETCH:
    case SELECT_RAGGED_ANY_LAYOUT:
        return ragged_run(path, call);
    case SELECT_AFFINE_GRID:
    case SELECT_AFFINE_PREFETCH:
    case SELECT_AFFINE:
        return scan_affine(base, path, call->rows, call->first, call->count, call->range, workspace, stream);
    case SELECT_THREAD_PER_ROW_PREFETCH:
    case SELECT_THREAD_PER_ROW:
        return scan_thread_per_row(base, &device->thread_per_row, rule, plan, path == SELECT_THREAD_PER_ROW_PREFETCH,
                                   stream);
    case SELECT_WARP_PER_ROWS:
        return scan_warp_per_rows(base, &device->warp_per_rows, rule, plan, stream);
    case SELECT_WARP_PER_ROW:
        return scan_warp_per_row(base, &device->warp_per_row, rule, plan, stream);
    case SELECT_BLOCK_PER_ROW:
    case SELECT_BLOCK_PER_ROW_SPINE:
        return block_per_row_run(device, rule, *plan, call->range, workspace, stream);
    case SELECT_COLUMNS_TMA:
        return scan_columns_tma(&device->columns_tma, rule, plan, workspace, stream);
    case SELECT_COLUMNS_DIRECT:
    case SELECT_COLUMNS_DIRECT_AFFINE:
        return scan_columns_direct(base, rule, plan, workspace, stream);
    case SELECT_CLUSTER_PER_ROW:
        return scan_cluster(&device->cluster, rule, plan, stream);
    case SELECT_GRID_PER_ROW_ONE_LAUNCH:
    case SELECT_GRID_PER_ROW_THREE_LAUNCHES:
        return scan_grid_per_row(base, &device->grid_per_row, rule, plan, path == SELECT_GRID_PER_ROW_THREE_LAUNCHES,
                                 workspace, stream);
    case SELECT_ANY_LAYOUT_PREFETCH:
    case SELECT_ANY_LAYOUT:
        return any_layout_run(path == SELECT_ANY_LAYOUT_PREFETCH, call);
    case SELECT_PATH_COUNT:
        break;
    }
    return cudaErrorInvalidValue;
}

static int path_try(enum select_path path, void *call)
{
    return path_run(path, (const struct call *)call);
}

static bool is_nothing(const struct scan_rows *rows, uint64_t count)
{
    return count == 0 || (rows->length == 0 && rows->rule.operation != SCAND_OPERATION_REDUCE);
}

/* cudaErrorInitializationError: no scan_cuda_init. */
static cudaError_t call_init(struct call *call)
{
    const cudaError_t error = device_current(&call->device);
    return error || call->device->base.processors > 0 ? error : cudaErrorInitializationError;
}

int scan_cuda(const struct scan_rows *rows, uint64_t first, uint64_t count, void *workspace, struct CUstream_st *stream)
{
    if (is_nothing(rows, count))
        return cudaSuccess;
    struct call call = {NULL, rows, first, count, NULL, scan_plan_of(rows, first, count), workspace, stream};
    const cudaError_t error = call_init(&call);
    if (error)
        return error;
    const int result = select_run(rows, &call.plan, &call.device->base, path_try, &call);
    return result == SCAN_NO_ROOM ? cudaErrorNotSupported : result;
}

int scan_cuda_by(const struct scan_choice *choice, const struct scan_rows *rows, uint64_t first, uint64_t count,
                 void *workspace, struct CUstream_st *stream)
{
    if (is_nothing(rows, count))
        return cudaSuccess;
    struct call call = {NULL, rows, first, count, NULL, scan_plan_of(rows, first, count), workspace, stream};
    const cudaError_t error = call_init(&call);
    if (error)
        return error;
    const struct select_device *base = &call.device->base;
    const struct select_device device = choice->capability ? select_device_as(base, choice->capability) : *base;
    return choice->path == SCAN_BY_TABLE ? select_run(rows, &call.plan, &device, path_try, &call)
                                         : select_run_path(choice->path, rows, &call.plan, &device, path_try, &call);
}

static int path_none(enum select_path, void *)
{
    return cudaSuccess;
}

bool scan_cuda_can(enum select_path path, const struct scan_rows *rows, uint64_t first, uint64_t count)
{
    struct device *device;
    const struct scan_plan plan = scan_plan_of(rows, first, count);
    return !is_nothing(rows, count) && !device_current(&device) &&
           select_run_path(path, rows, &plan, &device->base, path_none, NULL) == cudaSuccess;
}

/* A ragged row as one of those that are not. */
static struct scan_rows row_alone(const struct scan_rows *rows, uint64_t row)
{
    return rows->offsets ? scan_rows_joined(rows, row, 1) : *rows;
}

uint64_t scan_cuda_row_us(const struct scan_rows *rows, uint64_t row, bool mapped)
{
    struct device *device;
    const struct scan_rows alone = row_alone(rows, row);
    return device_current(&device) ? 0 : ranges_row_us(&alone, mapped, device->base.processors);
}

uint64_t scan_cuda_range_blocks(const struct scan_rows *rows, uint64_t row, bool mapped)
{
    struct device *device;
    const struct scan_rows alone = row_alone(rows, row);
    return device_current(&device) ? 1 : ranges_blocks(&alone, mapped, device->base.processors);
}

uint64_t scan_cuda_range_count(const struct scan_rows *rows, uint64_t row, uint64_t blocks)
{
    return ranges_count(&rows->rule, row_alone(rows, row).length, blocks);
}

int scan_cuda_range(const struct scan_rows *rows, uint64_t row, uint64_t blocks, uint64_t number, void *workspace,
                    struct CUstream_st *stream)
{
    const struct scan_rows alone = row_alone(rows, row);
    const uint64_t first = rows->offsets ? 0 : row;
    const struct scan_range range = ranges_at(&rows->rule, alone.length, blocks, number);
    struct call call = {NULL, &alone, first, 1, &range, scan_plan_of(&alone, first, 1), workspace, stream};
    const cudaError_t error = call_init(&call);
    if (error)
        return error;
    const int result = select_run_ranges(&alone, &call.plan, &call.device->base, path_try, &call);
    return result == SCAN_NO_ROOM ? cudaErrorNotSupported : result;
}
