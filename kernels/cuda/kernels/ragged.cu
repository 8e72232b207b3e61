#include "kernels/cuda/kernels/ragged.cuh"

#include "kernels/cuda/kernels/launchers.h"

static_assert(RAGGED_SHARED + sizeof(ragged_shared<sum_f2>) <= SELECT_RAGGED_BYTES, "what select.c takes for granted");

#define X(SUM, KIND, NONE) {(const void *)ragged_kernel<SUM, KIND>, RAGGED_WARPS, RAGGED_SHARED},
static struct scan_resident_kernel kernels[SCAN_SUMS] = {SUM_RULES(X, )};
#undef X

/* Offsets of the regions of the workspace, which lie one after the other. */
struct regions {
    uint64_t longs_at, states_at, states_bytes; /* offsets and bytes of one pass */
    uint64_t items_at[RAGGED_CLASSES], size_bytes;
};

/* A long row has more than an order block, so at most twice as many items as whole ones. */
static struct regions regions_of(const struct scan_rows *rows)
{
    const uint64_t samples = rows->offsets[rows->row_count] - rows->offsets[0];
    const uint64_t longs = rows->length > ORDER_BLOCK ? samples / ORDER_BLOCK : 0;
    struct regions regions = {RAGGED_CLASSES * sizeof(struct ragged_counts)};
    regions.states_at = regions.longs_at + longs * sizeof(struct ragged_long);
    regions.states_bytes = 2 * longs * RAGGED_STATES * sizeof(tile_state);
    regions.size_bytes = (regions.states_at + SCAND_PASSES_MAX * regions.states_bytes + 15) / 16 * 16;
    for (int kind = RAGGED_ALONE; kind < RAGGED_CLASSES; kind++) {
        /* All rows of a class have more samples than so many. */
        const uint64_t more_than = kind == RAGGED_ALONE ? ORDER_TILE : RAGGED_ALONE_MAX << (kind - 1);
        const uint64_t items = kind == RAGGED_LONG   ? 2 * longs
                               : kind == RAGGED_TILE ? rows->row_count
                                                     : samples / more_than;
        regions.items_at[kind] = regions.size_bytes;
        regions.size_bytes += items * sizeof(struct ragged_item);
    }
    return regions;
}

cudaError_t scan_ragged_load(struct scan_device *device)
{
    cudaError_t error = cudaSuccess;
    if (device->shared_max >= SELECT_RAGGED_BYTES)
        error = scan_resident_load(device, kernels, SCAN_SUMS);
    return error ? error : scan_kernel_load((const void *)ragged_plan_kernel);
}

uint64_t scan_ragged_length_max(const struct scan_device *device)
{
    return (uint64_t)device->processors * ORDER_BLOCK;
}

uint64_t scan_ragged_workspace_bytes(const struct scan_rows *rows)
{
    return regions_of(rows).size_bytes;
}

static struct ragged_plan plan_of(const struct scan_call *call)
{
    const struct scan_rows *rows = call->rows;
    const struct scan_rule *rule = &rows->rule;
    const struct regions regions = regions_of(rows);
    char *base = (char *)call->workspace;
    struct ragged_plan plan = {};
    plan.input = (const char *)rows->input;
    plan.output = (char *)rows->output;
    plan.offsets = rows->device_offsets + call->first;
    plan.rows = call->count;
    plan.pass_count = (int)rule->pass_count;
    for (int pass = 0; pass < plan.pass_count; pass++) {
        plan.backward[pass] = rule->passes[pass] == SCAND_PASS_BACKWARD;
        plan.states[pass] = (tile_state *)(base + regions.states_at + pass * regions.states_bytes);
    }
    plan.length_max = scan_ragged_length_max(call->device);
    plan.counts = (struct ragged_counts *)base;
    plan.longs = (struct ragged_long *)(base + regions.longs_at);
    for (int kind = 0; kind < RAGGED_CLASSES; kind++)
        plan.items[kind] = (struct ragged_item *)(base + regions.items_at[kind]);
    return plan;
}

cudaError_t scan_ragged(const struct scan_call *call)
{
    const struct scan_rows *rows = call->rows;
    const struct scan_resident_kernel *kernel = &kernels[scan_sum_number(&rows->rule)];
    struct ragged_plan plan = plan_of(call);
    void *arguments[] = {&plan};
    const uint64_t resident = (uint64_t)call->device->processors * kernel->resident[call->device->id];
    if (resident == 0)
        return SCAN_NO_ROOM;
    cudaError_t error =
        scan_cleared(cudaMemsetAsync(plan.counts, 0, RAGGED_CLASSES * sizeof(*plan.counts), call->stream));
    if (!error)
        error = scan_kernel_launch((const void *)ragged_plan_kernel,
                                   scan_least(scan_parts(call->count, RAGGED_THREADS), resident), RAGGED_THREADS,
                                   arguments, 0, call->stream);
    if (error)
        return error;
    const uint64_t grid = rows->length <= ORDER_BLOCK ? scan_least(resident, call->count) : resident;
    if (rows->length <= ORDER_BLOCK)
        return scan_kernel_launch(kernel->kernel, grid, RAGGED_THREADS, arguments, RAGGED_SHARED, call->stream);
    return scan_launched(cudaLaunchCooperativeKernel(kernel->kernel, dim3((unsigned)grid), dim3(RAGGED_THREADS),
                                                     arguments, RAGGED_SHARED, call->stream));
}
