/*
 * Scans on a CUDA device: which of the kernels scan rows. Sums of f32 samples have kernels of their own, as have
 * affine, reductions and ragged rows; all else takes the general ones.
 */
#include "kernels/cuda/scan_cuda.h"

#include "kernels/cuda/exchange/spine.h"
#include "kernels/cuda/kernels/launchers.h"
#include "kernels/cuda/scan_cuda_by.h"
#include "kernels/cuda/select/plan.h"
#include "kernels/order1/order.h"

/* Devices as scan_cuda_init has found them. */
static struct scan_device devices[SCAN_DEVICES_MAX];

/* Finds the device of this thread. */
static cudaError_t device_current(struct scan_device **device)
{
    int id = 0;
    cudaError_t error = scan_cleared(cudaGetDevice(&id));
    if (!error && id >= SCAN_DEVICES_MAX)
        error = cudaErrorInvalidDevice;
    *device = &devices[error ? 0 : id];
    return error;
}

#define X(NAME) scan_##NAME##_load,
static cudaError_t (*const loads[])(struct scan_device *) = {SCAN_LAUNCHERS(X)};
#undef X

int scan_cuda_init(void)
{
    struct scan_device *device;
    cudaError_t error = device_current(&device);
    if (!error)
        error = scan_device_find(device);
    for (size_t i = 0; i < sizeof(loads) / sizeof(loads[0]) && !error; i++)
        error = loads[i](device);
    return error;
}

static uint64_t sum_bytes_of(const struct scan_rule *rule)
{
    const bool affine = rule->op == SCAND_OPERATOR_AFFINE; /* tile states take twice as much as sums */
    return affine ? 2 * scan_affine_spine(rule)->sum_bytes : scan_any_layout_spine(rule)->sum_bytes;
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
    struct scan_device *device;
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
    struct scan_device *device;
    const struct scan_plan plan = scan_plan_of(rows, first, count);
    return device_current(&device) ? "" : select_word(select_path_of(rows, &plan, device));
}

/* Ragged rows of up to `longest` samples have been queued. The others are scanned one by one. */
static cudaError_t longer_run(const struct scan_call *call, uint64_t longest)
{
    cudaError_t error = cudaSuccess;
    for (uint64_t r = call->first; r < call->first + call->count && call->rows->length > longest && !error; r++) {
        const struct scan_rows row = scan_rows_joined(call->rows, r, 1);
        if (row.length > longest)
            error = (cudaError_t)scan_cuda(&row, 0, 1, call->workspace, call->stream);
    }
    return error;
}

#define X(NAME, WORD, LAUNCHER) scan_##LAUNCHER,
static cudaError_t (*const launchers[SELECT_PATH_COUNT])(const struct scan_call *) = {SELECT_PATHS(X)};
#undef X

/* Scans ragged rows, by kernels that are for others as well on rows of at most an order block, each an item. */
static cudaError_t ragged_run(struct scan_call call)
{
    const struct scan_call whole = call;
    struct scan_rows shorter = *call.rows;
    const bool all = call.path == SELECT_RAGGED;
    if (!all) {
        shorter.length = scan_least(shorter.length, ORDER_BLOCK);
        call.rows = &shorter;
        call.plan = scan_plan_of(&shorter, call.first, call.count);
    }
    const cudaError_t error = launchers[call.path](&call);
    return error ? error : longer_run(&whole, all ? scan_ragged_length_max(call.device) : ORDER_BLOCK);
}

static int path_try(enum select_path path, void *context)
{
    struct scan_call call = *(const struct scan_call *)context;
    call.path = path;
    return call.rows->offsets && path != SELECT_REDUCE_RAGGED ? ragged_run(call) : launchers[path](&call);
}

static bool is_nothing(const struct scan_rows *rows, uint64_t count)
{
    return count == 0 || (rows->length == 0 && rows->rule.operation != SCAND_OPERATION_REDUCE);
}

/* cudaErrorInitializationError: no scan_cuda_init. */
static cudaError_t call_init(struct scan_call *call)
{
    const cudaError_t error = device_current(&call->device);
    return error || call->device->processors > 0 ? error : cudaErrorInitializationError;
}

int scan_cuda_by(const struct scan_choice *choice, const struct scan_rows *rows, uint64_t first, uint64_t count,
                 void *workspace, struct CUstream_st *stream)
{
    if (is_nothing(rows, count))
        return cudaSuccess;
    struct scan_call call = {
        NULL, SELECT_PATH_COUNT, rows, first, count, NULL, scan_plan_of(rows, first, count), workspace, stream};
    const cudaError_t error = call_init(&call);
    if (error)
        return error;
    const struct select_device *base = call.device;
    const struct select_device device = choice->capability ? select_device_as(base, choice->capability) : *base;
    return choice->path == SCAN_BY_TABLE ? select_run(rows, &call.plan, &device, path_try, &call)
                                         : select_run_path(choice->path, rows, &call.plan, &device, path_try, &call);
}

int scan_cuda(const struct scan_rows *rows, uint64_t first, uint64_t count, void *workspace, struct CUstream_st *stream)
{
    const struct scan_choice choice = {SCAN_BY_TABLE, 0};
    const int result = scan_cuda_by(&choice, rows, first, count, workspace, stream);
    return result == SCAN_NO_ROOM ? cudaErrorNotSupported : result;
}

static int path_none(enum select_path, void *)
{
    return cudaSuccess;
}

bool scan_cuda_can(enum select_path path, const struct scan_rows *rows, uint64_t first, uint64_t count)
{
    struct scan_device *device;
    const struct scan_plan plan = scan_plan_of(rows, first, count);
    return !is_nothing(rows, count) && !device_current(&device) &&
           select_run_path(path, rows, &plan, device, path_none, NULL) == cudaSuccess;
}

/* A ragged row as one of those that are not. */
static struct scan_rows row_alone(const struct scan_rows *rows, uint64_t row)
{
    return rows->offsets ? scan_rows_joined(rows, row, 1) : *rows;
}

uint64_t scan_cuda_row_us(const struct scan_rows *rows, uint64_t row, bool mapped)
{
    struct scan_device *device;
    const struct scan_rows alone = row_alone(rows, row);
    return device_current(&device) ? 0 : ranges_row_us(&alone, mapped, device->processors);
}

uint64_t scan_cuda_range_blocks(const struct scan_rows *rows, uint64_t row, bool mapped)
{
    struct scan_device *device;
    const struct scan_rows alone = row_alone(rows, row);
    return device_current(&device) ? 1 : ranges_blocks(&alone, mapped, device->processors);
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
    struct scan_call call = {
        NULL, SELECT_PATH_COUNT, &alone, first, 1, &range, scan_plan_of(&alone, first, 1), workspace, stream};
    const cudaError_t error = call_init(&call);
    if (error)
        return error;
    const int result = select_run_ranges(&alone, &call.plan, call.device, path_try, &call);
    return result == SCAN_NO_ROOM ? cudaErrorNotSupported : result;
}
