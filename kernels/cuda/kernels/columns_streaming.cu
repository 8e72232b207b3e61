#include "kernels/cuda/kernels/columns_streaming.h"

#include "kernels/cuda/kernels/columns_streaming.cuh"

#define SUMS 3

static_assert(sizeof(streaming_smem<sum_f64>) <= SELECT_COLUMNS_STREAMING_BYTES &&
                  STREAMING_RESIDENT == SELECT_COLUMNS_STREAMING_RESIDENT,
              "what select.c takes for granted");

/* Kernels by output and accumulator. Where the results are f64 of f2, the pass keeps both words. */
static const void *const kernels[COLUMNS_STREAMING_KERNELS] = {
    (const void *)streaming_kernel<sum_f32, sum_f32, float>,
    (const void *)streaming_kernel<sum_f64, sum_f64, float>,
    (const void *)streaming_kernel<sum_f2, sum_f2, float>,
    (const void *)streaming_kernel<sum_f32, sum_f32, double>,
    (const void *)streaming_kernel<sum_f64, sum_f64, double>,
    (const void *)streaming_kernel<sum_f2, sum_f2_pair, double>,
};

static int kernel_of(const struct scan_rule *rule)
{
    return SUMS * (rule->output == SCAND_DTYPE_F64) + scan_float_number(rule->accumulator);
}

static size_t shared_bytes(int kernel)
{
    return kernel % SUMS == 0   ? sizeof(streaming_smem<sum_f32>)
           : kernel % SUMS == 1 ? sizeof(streaming_smem<sum_f64>)
                                : sizeof(streaming_smem<sum_f2>);
}

cudaError_t scan_columns_streaming_load(struct scan_columns_streaming_device *streaming,
                                        const struct scan_device *device)
{
    cudaError_t error = cudaSuccess;
    streaming->processors = (uint64_t)device->processors;
    for (int i = 0; i < COLUMNS_STREAMING_KERNELS && !error && device->shared_max >= SELECT_COLUMNS_STREAMING_BYTES;
         i++)
        error = scan_kernel_load_resident(kernels[i], STREAMING_WARPS * WARP, shared_bytes(i), &streaming->resident[i]);
    return error;
}

static uint64_t strips_of(const struct scan_plan *plan)
{
    return (plan->items / plan->blocks + WARP - 1) / WARP;
}

/* Bytes of the tile states of so many tiles or order blocks. */
static uint64_t state_bytes(const struct scan_rule *rule, const struct scan_plan *plan, uint64_t members)
{
    return members * strips_of(plan) * WARP * (rule->accumulator == SCAND_ACCUMULATOR_F32 ? 1 : 2) * sizeof(tile_state);
}

uint64_t scan_columns_streaming_workspace_bytes(const struct scan_rule *rule, const struct scan_plan *plan)
{
    const uint64_t tiles = scan_tiles(plan->length);
    return rule->pass_count == 1 && scan_plan_is_columns(plan) && tiles > 1
               ? state_bytes(rule, plan, tiles + scan_blocks(plan->length))
               : 0;
}

cudaError_t scan_columns_streaming(const struct scan_columns_streaming_device *streaming, const struct scan_rule *rule,
                                   const struct scan_plan *scan, void *workspace, cudaStream_t stream)
{
    struct streaming_plan plan = {};
    const int kernel = kernel_of(rule);
    plan.scan = *scan;
    plan.rows = scan->items / scan->blocks;
    plan.strips = (unsigned)strips_of(scan);
    plan.tiles = (unsigned)scan_tiles(scan->length);
    plan.items = plan.strips * plan.tiles;
    plan.leaves = (unsigned)((scan->length + ORDER_LEAF - 1) / ORDER_LEAF);
    plan.last = (int)(scan->length - (plan.leaves - 1) * (uint64_t)ORDER_LEAF);
    plan.backward = scan->backward[0];
    plan.exclusive = rule->kind == SCAND_KIND_EXCLUSIVE;
    plan.tile_states = (tile_state *)workspace;
    plan.block_states = (tile_state *)((char *)workspace + state_bytes(rule, scan, plan.tiles));
    /* Equally many thread blocks on all SMs, and no more than strips: a tile would wait for the one before. */
    uint64_t grid =
        scan_least(streaming->resident[kernel], plan.strips / streaming->processors) * streaming->processors;
    grid = grid == 0 ? scan_least(plan.strips, streaming->processors) : grid;
    if (streaming->resident[kernel] == 0)
        return SCAN_NO_ROOM;
    void *arguments[] = {&plan};
    cudaError_t error = cudaSuccess;
    if (plan.tiles > 1)
        error = cudaMemsetAsync(workspace, 0, scan_columns_streaming_workspace_bytes(rule, scan), stream);
    if (!error)
        error = cudaLaunchCooperativeKernel(kernels[kernel], dim3((unsigned)grid), dim3(STREAMING_WARPS * WARP),
                                            arguments, shared_bytes(kernel), stream);
    return scan_launched(error);
}
