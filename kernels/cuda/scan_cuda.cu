/*
 * Scans on a CUDA device: which of the kernels scan rows. Sums of f32 samples have kernels of their own, as have
 * affine, reductions and ragged rows; all else takes the general ones.
 */
#include "kernels/cuda/scan_cuda.h"

#include <algorithm>

#include "kernels/cuda/exchange/spine.h"
#include "kernels/cuda/kernels/by_length.h"
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
    return error ? error : scan_by_length_load();
}

static uint64_t sum_bytes_of(const struct scan_rule *rule)
{
    const bool affine = rule->op == SCAND_OPERATOR_AFFINE;
    return (affine ? scan_affine_spine(rule) : scan_any_layout_spine(rule))->sum_bytes;
}

static uint64_t even_workspace_bytes(const struct scan_rows *rows, uint64_t count)
{
    const struct scan_rule *rule = &rows->rule;
    uint64_t sums = scan_sums(rows->length, count), bytes = 0;
    if (rows->length == 0)
        return 0;
    if (rule->operation == SCAND_OPERATION_REDUCE)
        return scan_reduce_workspace_bytes(rows, count);
    if (scan_blocks(rows->length) > 1) /* any_cluster has as many tile states as grid_per_row */
        bytes += rule->op == SCAND_OPERATOR_AFFINE ? rule->pass_count * sums * sum_bytes_of(rule)
                                                   : scan_grid_per_row_workspace_bytes(rule, sums, sum_bytes_of(rule));
    if (rule->demean)
        bytes += sums * sizeof(double);
    const struct scan_plan plan = scan_plan_of(rows, 0, count);
    bytes = std::max(bytes, scan_columns_direct_workspace_bytes(rule, &plan));
    return select_is_box_rule(rule) ? std::max(bytes, scan_columns_tma_workspace_bytes(rule, &plan)) : bytes;
}

/* The workspace of rows: for ragged ones as much as all of them need in either way, or the longest alone. */
uint64_t scan_cuda_workspace_bytes(const struct scan_rows *rows, uint64_t count)
{
    if (!rows->offsets || rows->length == 0)
        return even_workspace_bytes(rows, count);
    return std::max({scan_ragged_workspace_bytes(rows), even_workspace_bytes(rows, 1),
                     scan_by_length_bytes(rows, count, sum_bytes_of(&rows->rule))});
}

/* Launches that small jobs share, in the order of select_together_of's answers: the first one's number, the number of a
 * rule's instance, and the launcher. */
static const struct together {
    int first;
    int (*number)(const struct scan_rule *rule);
    cudaError_t (*run)(const struct scan_part *parts, unsigned count, cudaStream_t stream);
} togethers[] = {
    {},
    {1, scan_any_layout_number, scan_any_layout_together},
    {1 + ANY_LAYOUT_KERNELS, scan_affine_number, scan_affine_together},
    {1 + ANY_LAYOUT_KERNELS + SCAN_AFFINES, scan_reduce_number, scan_reduce_together},
};

int scan_cuda_group(const struct scan_rows *rows, uint64_t count)
{
    const struct together *together = &togethers[select_together_of(rows, count)];
    return together->number ? together->first + together->number(&rows->rule) : 0;
}

int scan_cuda_together(const struct scan_part *parts, unsigned count, struct CUstream_st *stream)
{
    struct scan_device *device;
    const struct together *together = &togethers[select_together_of(parts->rows, parts->count)];
    const cudaError_t error = device_current(&device);
    if (error)
        return error;
    return together->run ? together->run(parts, count, stream) : cudaErrorInvalidValue;
}

const char *scan_cuda_path(const struct scan_rows *rows, uint64_t first, uint64_t count)
{
    struct scan_device *device;
    const struct scan_plan plan = scan_plan_of(rows, first, count);
    return device_current(&device) ? "" : select_word(select_path_of(rows, &plan, device));
}

/* Ragged rows of up to `longest` samples have been queued. The others take launches of their own, one by one. */
static cudaError_t longer_run(const struct scan_call *call, uint64_t longest)
{
    const uint64_t *const offsets = call->rows->offsets, end = call->first + call->count;
    cudaError_t error = cudaSuccess;
    uint64_t row = call->rows->length > longest ? call->first : end;
    while (!error && (row = scan_longer_row(offsets, row, end, longest)) < end) {
        const struct scan_rows alone = scan_rows_joined(call->rows, row++, 1);
        error = (cudaError_t)scan_cuda(&alone, 0, 1, call->workspace, call->stream);
    }
    return error;
}

#define X(NAME, WORD, LAUNCHER) scan_##LAUNCHER,
static cudaError_t (*const launchers[SELECT_PATH_COUNT])(const struct scan_call *) = {SELECT_PATHS(X)};
#undef X

/* Runs kernels that are for ragged rows as well as for others on items of at most `longest` samples. */
static cudaError_t items_run(const struct scan_call *whole, uint64_t longest, const struct scan_ragged_rows *ragged,
                             void *workspace)
{
    struct scan_rows shorter = *whole->rows;
    struct scan_call call = *whole;
    shorter.length = scan_least(shorter.length, longest);
    call.rows = &shorter;
    call.first = 0;
    call.count = ragged->item_count;
    call.ragged = ragged;
    call.plan = scan_plan_of(&shorter, call.first, call.count);
    call.workspace = workspace;
    return launchers[call.path](&call);
}

/* The longest rows that can share launches. What takes a row's mean, or half of its first sample, needs to know more of
 * a row than a launch for many has of those of several order blocks. */
static uint64_t shared_longest(const struct scan_call *call)
{
    const struct scan_rule *rule = &call->rows->rule;
    const bool is_alone = rule->demean || rule->kind == SCAND_KIND_TRAPEZOID;
    if (call->path == SELECT_RAGGED)
        return scan_ragged_length_max(call->device);
    if (call->path == SELECT_REDUCE)
        return ORDER_BLOCK;
    return call->count < BY_LENGTH_LEAST || is_alone ? ORDER_BLOCK : BY_LENGTH_LONGEST;
}

static bool is_packed(const struct scan_call *call)
{
    const bool prefetches = call->path == SELECT_ANY_LAYOUT_PREFETCH || call->path == SELECT_AFFINE_PREFETCH;
    return prefetches && select_is_packed_rule(call->rows);
}

/* Runs them on many rows, longer ones later: the host counts these while the device is at work. Those of up to a tile
 * go by any_packed, where that can. */
static cudaError_t sorted_run(const struct scan_call *call, uint64_t first, uint64_t count)
{
    struct by_length sorted;
    struct scan_call tiles = *call;
    const bool packed = is_packed(call);
    tiles.path = packed ? SELECT_ANY_PACKED : call->path;
    cudaError_t error = scan_by_length(call->rows, first, count, call->workspace, packed, &sorted, call->stream);
    for (int kind = BY_LENGTH_CLASSES - 1; kind >= 0 && !error; kind--)
        if (call->rows->length > by_length_longest(kind + 1) && sorted.classes[kind].item_count > 0)
            error = items_run(kind + 1 < BY_LENGTH_CLASSES ? call : &tiles, by_length_longest(kind),
                              &sorted.classes[kind], NULL);
    scan_by_length_longs(call->rows, first, count, &sorted);
    if (!error && sorted.longs.item_count > 0 && shared_longest(call) > ORDER_BLOCK)
        error = items_run(call, ORDER_BLOCK, &sorted.longs, sorted.sums);
    return error;
}

/* Runs them on rows that can share launches. */
static cudaError_t shorter_run(const struct scan_call *call)
{
    const struct scan_ragged_rows all = {call->rows->device_offsets + call->first, call->count};
    cudaError_t error = cudaSuccess;
    if (call->count < BY_LENGTH_LEAST || (call->rows->length <= ORDER_TILE && !is_packed(call)))
        return items_run(call, ORDER_BLOCK, &all, NULL);
    for (uint64_t done = 0; done < call->count && !error; done += BY_LENGTH_MOST)
        error = sorted_run(call, call->first + done, scan_least(call->count - done, BY_LENGTH_MOST));
    return error;
}

static cudaError_t ragged_run(const struct scan_call *call)
{
    const bool all = call->path == SELECT_RAGGED || call->path == SELECT_REDUCE;
    const cudaError_t error = all ? launchers[call->path](call) : shorter_run(call);
    return error ? error : longer_run(call, shared_longest(call));
}

static int path_try(enum select_path path, void *context)
{
    struct scan_call call = *(const struct scan_call *)context;
    call.path = path;
    return call.rows->offsets ? ragged_run(&call) : launchers[path](&call);
}

static bool is_nothing(const struct scan_rows *rows, uint64_t count)
{
    return count == 0 || (rows->length == 0 && rows->rule.operation != SCAND_OPERATION_REDUCE);
}

/* cudaErrorInitializationError: no scan_cuda_init. */
static cudaError_t call_init(struct scan_call *call, const struct scan_rows *rows, uint64_t first, uint64_t count,
                             const struct scan_range *range, void *workspace, cudaStream_t stream)
{
    *call = {NULL,  SELECT_PATH_COUNT, rows, first, count, NULL, range, scan_plan_of(rows, first, count), workspace,
             stream};
    const cudaError_t error = device_current(&call->device);
    return error || call->device->processors > 0 ? error : cudaErrorInitializationError;
}

int scan_cuda_by(const struct scan_choice *choice, const struct scan_rows *rows, uint64_t first, uint64_t count,
                 void *workspace, struct CUstream_st *stream)
{
    if (is_nothing(rows, count))
        return cudaSuccess;
    struct scan_call call;
    const cudaError_t error = call_init(&call, rows, first, count, NULL, workspace, stream);
    if (error)
        return error;
    const struct select_device *base = call.device;
    const struct select_device device = choice->capability ? select_device_as(base, choice->capability) : *base;
    return choice->path == SCAN_BY_TABLE ? select_run(rows, &call.plan, &device, false, path_try, &call)
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
    struct scan_call call;
    const cudaError_t error = call_init(&call, &alone, first, 1, &range, workspace, stream);
    if (error)
        return error;
    const int result = select_run(&alone, &call.plan, call.device, true, path_try, &call);
    return result == SCAN_NO_ROOM ? cudaErrorNotSupported : result;
}
