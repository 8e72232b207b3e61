#include "kernels/cuda/kernels/columns_shared.h"

#include "kernels/cuda/kernels/columns_shared.cuh"
#include "kernels/cuda/select/instance.h"

static_assert(SCAN_STRIP == WARP, "a lane takes a column");
static_assert(COLUMNS_SHARED_ALL + 1024 <= SELECT_COLUMNS_SHARED_BYTES &&
                  COLUMNS_RESIDENT == SELECT_COLUMNS_SHARED_RESIDENT,
              "as many thread blocks as select.c takes for granted, of which each has a KiB that it cannot use");

/* Kernels by output and accumulator. Where the results are f64 of f2, the last pass keeps both words. */
static const void *const kernels[SCAN_COLUMNS] = {
    (const void *)columns_kernel<sum_f32, sum_f32, float>,  (const void *)columns_kernel<sum_f64, sum_f64, float>,
    (const void *)columns_kernel<sum_f2, sum_f2, float>,    (const void *)columns_kernel<sum_f32, sum_f32, double>,
    (const void *)columns_kernel<sum_f64, sum_f64, double>, (const void *)columns_kernel<sum_f2, sum_f2_pair, double>,
};

static int kernel_of(const struct scan_rule *rule)
{
    return 3 * (rule->output == SCAND_DTYPE_F64) + scan_float_number(rule->accumulator);
}

cudaError_t scan_columns_load(struct scan_columns_device *columns, const struct scan_device *device)
{
    cudaError_t error = cudaSuccess;
    for (int i = 0; i < SCAN_COLUMNS && !error && device->shared_max >= SELECT_COLUMNS_SHARED_BYTES; i++) {
        int resident = 0;
        error = scan_kernel_load_resident(kernels[i], COLUMNS_THREADS, COLUMNS_SHARED, &resident);
        columns->grid[i] = resident * device->processors;
    }
    return error;
}

static uint64_t rows_of(const struct scan_plan *plan)
{
    return plan->items / plan->blocks;
}

static uint64_t state_bytes(const struct scan_rule *rule, const struct scan_plan *plan, uint64_t strips)
{
    const uint64_t words = rule->accumulator == SCAND_ACCUMULATOR_F32 ? 1 : 2;
    return scan_tiles(plan->length) > 1
               ? strips * WARP * scan_tree_sums(scan_tiles(plan->length)) * words * sizeof(tile_state)
               : 0;
}

uint64_t scan_columns_workspace_bytes(const struct scan_rule *rule, const struct scan_plan *plan)
{
    return scan_plan_is_columns(plan) ? rule->pass_count * state_bytes(rule, plan, scan_plan_strips(plan)) : 0;
}

/* True when strips begin with a vector in all their samples. */
static bool begins_slots(const struct scan_plan *plan, const struct scan_side *side)
{
    uint64_t places = (uint64_t)(uintptr_t)side->base | (uint64_t)side->stride;
    for (int axis = 0; axis < plan->outer_rank - 1; axis++)
        places |= (uint64_t)side->outer_strides[axis];
    return places % VEC16_BYTES == 0;
}

/* Counts the strips. Strips of a single axis begin with the first row. */
static void plan_strips(struct columns_plan *plan)
{
    struct scan_plan *scan = &plan->scan;
    const uint64_t count = rows_of(scan);
    const int last = scan->outer_rank - 1;
    plan->first = scan->first_row;
    if (last == 0) {
        scan->input.base += (int64_t)plan->first * scan->input.outer_strides[0];
        scan->output.base += (int64_t)plan->first * scan->output.outer_strides[0];
        scan->outer_shape[0] = count;
        plan->first = 0;
    }
    plan->end = plan->first + count;
    plan->columns = scan->outer_shape[last];
    plan->strips_per_axis = (unsigned)scan_plan_strips_per_axis(scan);
    const uint64_t end =
        (plan->end - 1) / plan->columns * plan->strips_per_axis + (plan->end - 1) % plan->columns / WARP;
    plan->first_strip = plan->first / plan->columns * plan->strips_per_axis + plan->first % plan->columns / WARP;
    plan->strips = (unsigned)(end + 1 - plan->first_strip);
}

cudaError_t scan_columns(const struct scan_columns_device *columns, const struct scan_rule *rule,
                         const struct scan_plan *scan, void *workspace, cudaStream_t stream)
{
    struct columns_plan plan = {};
    const unsigned grid = (unsigned)columns->grid[kernel_of(rule)];
    plan.scan = *scan;
    plan_strips(&plan);
    const uint64_t bytes = state_bytes(rule, scan, plan.strips);
    plan.tiles = (unsigned)scan_tiles(scan->length);
    plan.strips_at_once =
        scan->length < ORDER_TILE ? (unsigned)(ORDER_FAN / ((scan->length + ORDER_LEAF - 1) / ORDER_LEAF)) : 1;
    plan.items = plan.tiles * ((plan.strips + plan.strips_at_once - 1) / plan.strips_at_once);
    plan.together = instance_strips_together(scan->pass_count, plan.strips, plan.strips_per_axis, plan.tiles, grid);
    plan.exclusive = rule->kind == SCAND_KIND_EXCLUSIVE;
    plan.vectors = begins_slots(&plan.scan, &plan.scan.input);
    plan.states_per_column = scan_tree_sums(plan.tiles);
    for (uint32_t pass = 0; pass < rule->pass_count; pass++)
        plan.states[pass] = (tile_state *)((char *)workspace + pass * bytes);
    if (plan.tiles > grid)
        return SCAN_NO_ROOM;
    void *arguments[] = {&plan};
    const dim3 blocks(grid < plan.items ? grid : plan.items);
    cudaError_t error = cudaSuccess;
    if (plan.tiles > 1)
        error = cudaMemsetAsync(workspace, 0, rule->pass_count * bytes, stream);
    if (!error && plan.tiles > 1)
        error = cudaLaunchCooperativeKernel(kernels[kernel_of(rule)], blocks, dim3(COLUMNS_THREADS), arguments,
                                            COLUMNS_SHARED, stream);
    else if (!error)
        error = cudaLaunchKernel(kernels[kernel_of(rule)], blocks, dim3(COLUMNS_THREADS), arguments, COLUMNS_SHARED,
                                 stream);
    return scan_launched(error);
}
