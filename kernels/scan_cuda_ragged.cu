#include "kernels/scan_cuda_ragged.h"

#include "kernels/cuda/ragged.cuh"
#include "kernels/scan_cuda_short.h"

#define FIND_THREADS 256
#define BLOCKS_MAX   (ORDER_FAN * ORDER_FAN) /* of a long row: two levels of the tree */

/* In the order of scan_shorts. */
#define KERNELS(KERNEL)                                                                                           \
    (const void *)KERNEL<sum_f32, SCAND_KIND_INCLUSIVE>, (const void *)KERNEL<sum_f32, SCAND_KIND_EXCLUSIVE>,     \
        (const void *)KERNEL<sum_f64, SCAND_KIND_INCLUSIVE>, (const void *)KERNEL<sum_f64, SCAND_KIND_EXCLUSIVE>, \
        (const void *)KERNEL<sum_f2, SCAND_KIND_INCLUSIVE>, (const void *)KERNEL<sum_f2, SCAND_KIND_EXCLUSIVE>

static_assert(SCAN_RAGGEDS == SCAN_SHORTS, "a rule takes the ragged kernel of the same number");
static const void *const kernels[SCAN_RAGGEDS] = {KERNELS(ragged_kernel)};
static const void *const short_kernels[SCAN_RAGGEDS] = {KERNELS(ragged_short_kernel)};

#define SHARED_BYTES ((size_t)ORDER_FAN * RAGGED_ROOM * SLOT_BYTES)
#define SUM_BYTES    8 /* at most */

static_assert(sizeof(sum_f64::sum) <= SUM_BYTES && sizeof(sum_f2::sum) <= SUM_BYTES, "totals fit the workspace");

/* The parts of the workspace, one after the other. */
struct parts {
    uint64_t longs, items; /* at most */
    uint64_t arrived_at, longs_at, items_at, totals_at, size_bytes;
};

/* A long row has more than an order block, so at most twice as many blocks as full ones. */
static struct parts parts_of(const struct scan_rows *rows)
{
    uint64_t samples = rows->length > ORDER_BLOCK ? rows->offsets[rows->row_count] - rows->offsets[0] : 0;
    struct parts parts = {samples / ORDER_BLOCK, 2 * (samples / ORDER_BLOCK)};
    parts.arrived_at = (sizeof(struct ragged_progress) + 15) / 16 * 16;
    parts.totals_at = parts.arrived_at + parts.longs * SCAND_PASSES_MAX * sizeof(unsigned) + 15;
    parts.totals_at -= parts.totals_at % 16;
    parts.longs_at = parts.totals_at + SCAND_PASSES_MAX * parts.items * SUM_BYTES;
    parts.items_at = parts.longs_at + parts.longs * sizeof(struct ragged_long);
    parts.size_bytes = parts.items_at + parts.items * sizeof(uint32_t);
    return parts;
}

cudaError_t scan_ragged_load(struct scan_ragged_device *device, int processors)
{
    cudaError_t error = scan_kernel_load((const void *)ragged_find_kernel);
    device->processors = processors;
    for (int i = 0; i < SCAN_RAGGEDS && !error; i++) {
        /* Where a device has too little shared memory for it, resident stays 0 and the general kernel does the work. */
        scan_kernel_load_resident(kernels[i], ORDER_FAN * WARP, SHARED_BYTES, &device->resident[i]);
        error = scan_kernel_load_resident(short_kernels[i], SHORT_WARPS * WARP, 0, &device->short_resident[i]);
    }
    return error;
}

static bool is_contiguous(const void *base, int64_t stride)
{
    return (uintptr_t)base % sizeof(float) == 0 && stride == sizeof(float);
}

bool scan_ragged_takes(const struct scan_ragged_device *device, const struct scan_rows *rows)
{
    const struct scan_rule *rule = &rows->rule;
    return rule->op == SCAND_OPERATOR_SUM && rule->kind != SCAND_KIND_HALF && !rule->demean &&
           rule->input == SCAND_DTYPE_F32 && rule->output == SCAND_DTYPE_F32 && scan_short_of(rule) >= 0 &&
           device->resident[scan_short_of(rule)] > 0 && is_contiguous(rows->input, rows->input_stride) &&
           is_contiguous(rows->output, rows->output_stride);
}

uint64_t scan_ragged_length_max(const struct scan_ragged_device *device)
{
    return (uint64_t)(device->processors < BLOCKS_MAX ? device->processors : BLOCKS_MAX) * ORDER_BLOCK;
}

uint64_t scan_ragged_workspace_bytes(const struct scan_rows *rows)
{
    return parts_of(rows).size_bytes;
}

static struct ragged_plan plan_of(const struct scan_ragged_device *device, const struct scan_rows *rows, uint64_t first,
                                  uint64_t count, const struct parts *parts, void *workspace)
{
    const struct scan_rule *rule = &rows->rule;
    char *base = (char *)workspace;
    struct ragged_plan plan = {};
    plan.input = (const char *)rows->input;
    plan.output = (char *)rows->output;
    plan.offsets = rows->device_offsets + first;
    plan.rows = count;
    plan.pass_count = (int)rule->pass_count;
    for (int pass = 0; pass < plan.pass_count; pass++) {
        plan.backward[pass] = rule->passes[pass] == SCAND_PASS_BACKWARD;
        plan.totals[pass] = base + parts->totals_at + pass * parts->items * SUM_BYTES;
    }
    plan.intermediate_f32 = rule->intermediate == SCAND_DTYPE_F32;
    plan.length_max = scan_ragged_length_max(device);
    plan.takers = parts->longs > 0 ? device->processors : 0;
    plan.progress = (struct ragged_progress *)base;
    plan.arrived = (unsigned int *)(base + parts->arrived_at);
    plan.longs = (struct ragged_long *)(base + parts->longs_at);
    plan.items = (uint32_t *)(base + parts->items_at);
    return plan;
}

static cudaError_t launch(const void *kernel, uint64_t grid, int threads, struct ragged_plan *plan, size_t shared_bytes,
                          cudaStream_t stream)
{
    void *arguments[] = {plan};
    return scan_kernel_launch(kernel, grid, threads, arguments, shared_bytes, stream);
}

static cudaError_t packs_launch(const struct scan_ragged_device *device, int number, struct ragged_plan *plan,
                                const struct parts *parts, cudaStream_t stream)
{
    const uint64_t find = scan_least((plan->rows + FIND_THREADS - 1) / FIND_THREADS, device->processors);
    const uint64_t grid = (uint64_t)device->processors * device->resident[number];
    cudaError_t error = scan_cleared(cudaMemsetAsync(plan->progress, 0, parts->totals_at, stream));
    if (!error && plan->takers > 0)
        error = launch((const void *)ragged_find_kernel, find, FIND_THREADS, plan, 0, stream);
    /* All takers must be there, and no thread block has less than a row to do. */
    return error ? error
                 : launch(kernels[number], plan->takers > 0 ? grid : scan_least(grid, plan->rows), ORDER_FAN * WARP,
                          plan, SHARED_BYTES, stream);
}

cudaError_t scan_ragged(const struct scan_ragged_device *device, const struct scan_rows *rows, uint64_t first,
                        uint64_t count, void *workspace, cudaStream_t stream)
{
    const struct parts parts = parts_of(rows);
    const int number = scan_short_of(&rows->rule);
    const uint64_t batches = (count + SHORT_WARPS * WARP - 1) / (SHORT_WARPS * WARP);
    struct ragged_plan plan = plan_of(device, rows, first, count, &parts, workspace);
    cudaError_t error = cudaSuccess;
    if (rows->length > ORDER_TILE)
        error = packs_launch(device, number, &plan, &parts, stream);
    if (!error)
        error = launch(short_kernels[number],
                       scan_least((uint64_t)device->processors * device->short_resident[number], batches),
                       SHORT_WARPS * WARP, &plan, 0, stream);
    return error;
}
