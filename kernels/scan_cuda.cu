/*
 * Scans on a CUDA device: which of the kernels scan rows. Sums of f32 samples have kernels of their own, as have
 * affine, reductions and ragged rows; all else takes the general ones.
 */
#include "kernels/scan_cuda.h"

#include "kernels/codec.h"
#include "kernels/scan_cuda_affine.h"
#include "kernels/scan_cuda_carries.h"
#include "kernels/scan_cuda_columns.h"
#include "kernels/scan_cuda_general.h"
#include "kernels/scan_cuda_launch.h"
#include "kernels/scan_cuda_long.h"
#include "kernels/scan_cuda_plan.h"
#include "kernels/scan_cuda_ragged.h"
#include "kernels/scan_cuda_reduce.h"
#include "kernels/scan_cuda_short.h"
#include "kernels/scan_cuda_tuned.h"

#define DEVICES_MAX 64

/* What scan_cuda_init finds out about a device. */
struct device {
    struct scan_device base;
    struct scan_tuned_device tuned;
    struct scan_short_device shorts;
    struct scan_long_device longer;
    struct scan_columns_device columns;
    struct scan_ragged_device ragged;
};
static struct device devices[DEVICES_MAX];

/* That of this thread. */
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
        error = scan_tuned_load(&device->tuned, device->base.shared_max);
    if (!error)
        error = scan_short_load(&device->shorts);
    if (!error)
        error = scan_ragged_load(&device->ragged, device->base.processors);
    if (!error)
        error = scan_long_load(&device->longer, device->base.processors);
    if (!error)
        error = scan_columns_load(&device->columns, &device->base);
    if (!error)
        error = scan_affine_load();
    if (!error)
        error = scan_reduce_load(&device->base);
    if (!error)
        error = scan_general_load(device->base.shared_max);
    return error ? error : scan_carries_load_sums();
}

/* f32, or what files have instead of it. */
static bool is_form(enum scand_dtype dtype)
{
    return codec_class(dtype) == SCAND_CLASS_F32 && codec_bytes(dtype) == sizeof(float);
}

static bool is_general(const struct scan_rule *rule)
{
    return rule->op != SCAND_OPERATOR_SUM || rule->kind == SCAND_KIND_HALF || rule->demean || !is_form(rule->input) ||
           (!is_form(rule->output) && rule->output != SCAND_DTYPE_F64);
}

static uint64_t sum_bytes_of(const struct scan_rule *rule)
{
    return rule->op == SCAND_OPERATOR_AFFINE ? scan_affine_sum_bytes(rule)
           : is_general(rule)                ? scan_general_sum_bytes(rule)
                                             : scan_carries_of(rule->accumulator)->sum_bytes;
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
        bytes += is_general(rule) ? rule->pass_count * sums * sum_bytes_of(rule)
                                  : scan_long_workspace_bytes(rule, sums, sum_bytes_of(rule));
    if (rule->demean)
        bytes += sums * sizeof(double);
    if (!is_general(rule) && rule->op != SCAND_OPERATOR_AFFINE) {
        struct scan_plan plan = scan_plan_of(rows, 0, count);
        uint64_t columns = scan_columns_workspace_bytes(rule, &plan);
        bytes = columns > bytes ? columns : bytes;
    }
    return bytes;
}

/* Of ragged rows: what all of them need, or the longest alone. */
uint64_t scan_cuda_workspace_bytes(const struct scan_rows *rows, uint64_t count)
{
    if (!rows->offsets || rows->length == 0)
        return even_workspace_bytes(rows, count);
    uint64_t together = scan_ragged_workspace_bytes(rows), alone = even_workspace_bytes(rows, 1);
    if (together < count * sizeof(double))
        together = count * sizeof(double); /* for means */
    return alone > together ? alone : together;
}

/* Sums of f32 forms in rows that no other kernel takes. */
static cudaError_t tuned_run(struct device *device, const struct scan_rule *rule, bool aligned, struct scan_plan *plan,
                             void *workspace, cudaStream_t stream)
{
    return scan_with_carries(scan_carries_of(rule->accumulator), plan, workspace, stream, [&] {
        return scan_tuned_launch(&device->base, &device->tuned, rule, aligned, plan, stream);
    });
}

/* Rows of several blocks in one launch, or where they are too long for that, three. */
static cudaError_t long_run(struct device *device, const struct scan_rule *rule, bool aligned, struct scan_plan *plan,
                            void *workspace, cudaStream_t stream)
{
    const bool fits = scan_long_fits(&device->longer, plan);
    cudaError_t error = scan_long_run(&device->longer, rule, plan, aligned, workspace, stream);
    if (!error && !fits)
        error = scan_carries_of_pass(scan_carries_of(rule->accumulator), plan, 1, stream);
    return error || fits ? error : scan_tuned_launch(&device->base, &device->tuned, rule, aligned, plan, stream);
}

/* The means are made of totals that the general kernel finds. `rows->length` of ragged ones is an order block at most.
 */
static cudaError_t affine_run(struct scan_device *device, const struct scan_rows *rows, uint64_t first, uint64_t count,
                              void *workspace, cudaStream_t stream)
{
    double *totals = NULL;
    cudaError_t error = cudaSuccess;
    if (rows->rule.demean) {
        const uint64_t *offsets = rows->offsets ? rows->device_offsets + first : NULL;
        struct scan_plan plan = scan_plan_of(rows, rows->offsets ? 0 : first, count);
        totals = (double *)workspace;
        workspace = totals + scan_sums(rows->length, count);
        error = scan_general_totals(device, &rows->rule, &plan, offsets, totals, stream);
    }
    return error ? error : scan_affine(rows, first, count, device->processors, totals, workspace, stream);
}

/* All ragged rows of at most an order block, an item each. */
static cudaError_t ragged_general_run(struct scan_device *device, const struct scan_rows *rows, uint64_t first,
                                      uint64_t count, void *workspace, cudaStream_t stream)
{
    struct scan_rows shorter = *rows;
    shorter.length = scan_least(rows->length, ORDER_BLOCK);
    if (rows->rule.op == SCAND_OPERATOR_AFFINE)
        return affine_run(device, &shorter, first, count, workspace, stream);
    struct scan_plan plan = scan_plan_of(&shorter, 0, count);
    return scan_general(device, &rows->rule, &plan, rows->device_offsets + first, workspace, stream);
}

static cudaError_t ragged_run(struct device *device, const struct scan_rows *rows, uint64_t first, uint64_t count,
                              void *workspace, cudaStream_t stream)
{
    bool fast = scan_ragged_takes(&device->ragged, rows);
    uint64_t length_max = fast ? scan_ragged_length_max(&device->ragged) : ORDER_BLOCK;
    cudaError_t error = fast ? scan_ragged(&device->ragged, rows, first, count, workspace, stream)
                             : ragged_general_run(&device->base, rows, first, count, workspace, stream);
    for (uint64_t r = first; r < first + count && rows->length > length_max && !error; r++) {
        struct scan_rows row = scan_rows_joined(rows, r, 1);
        if (row.length > length_max)
            error = (cudaError_t)scan_cuda(&row, 0, 1, workspace, stream);
    }
    return error;
}

int scan_cuda(const struct scan_rows *rows, uint64_t first, uint64_t count, void *workspace, struct CUstream_st *stream)
{
    const struct scan_rule *rule = &rows->rule;
    const bool reduces = rule->operation == SCAND_OPERATION_REDUCE;
    if (count == 0 || (rows->length == 0 && !reduces))
        return cudaSuccess;
    struct device *device;
    cudaError_t error = device_current(&device);
    if (error)
        return error;
    if (reduces)
        return scan_reduce(&device->base, rows, first, count, workspace, stream);
    if (rows->offsets)
        return ragged_run(device, rows, first, count, workspace, stream);
    if (rule->op == SCAND_OPERATOR_AFFINE)
        return affine_run(&device->base, rows, first, count, workspace, stream);
    struct scan_plan plan = scan_plan_of(rows, first, count);
    if (is_general(rule))
        return scan_general(&device->base, rule, &plan, NULL, workspace, stream);
    if (scan_short_takes(rule, &plan))
        return scan_short(&device->base, &device->shorts, rule, &plan, stream);
    if (scan_columns_takes(&device->columns, rule, &plan))
        return scan_columns(&device->columns, rule, &plan, workspace, stream);
    const bool aligned = scan_plan_is_aligned(&plan);
    if (plan.blocks > 1 && scan_long_takes(&device->longer, rule, &plan))
        return long_run(device, rule, aligned, &plan, workspace, stream);
    return tuned_run(device, rule, aligned, &plan, workspace, stream);
}
