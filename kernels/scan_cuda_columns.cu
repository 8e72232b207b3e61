#include "kernels/scan_cuda_columns.h"

#include "kernels/cuda/columns.cuh"

#define COLUMNS_MIN     4          /* side by side: with fewer, most lanes would be idle */
#define STRIPS_MAX      (1u << 26) /* of a launch: numbers of items are 32 bits */
#define STRIPS_TOGETHER 4          /* whose tiles take turns: one strip alone took up to 5 % longer on an H200 */

/* By output and accumulator. Where the results are f64 of f2, the last pass keeps both words. */
static const void *const kernels[SCAN_COLUMNS] = {
    (const void *)columns_kernel<sum_f32, sum_f32, float>,  (const void *)columns_kernel<sum_f64, sum_f64, float>,
    (const void *)columns_kernel<sum_f2, sum_f2, float>,    (const void *)columns_kernel<sum_f32, sum_f32, double>,
    (const void *)columns_kernel<sum_f64, sum_f64, double>, (const void *)columns_kernel<sum_f2, sum_f2_pair, double>,
};

static int kernel_of(const struct scan_rule *rule)
{
    return 3 * (rule->output == SCAND_DTYPE_F64) + (int)(rule->accumulator - SCAND_ACCUMULATOR_F32);
}

cudaError_t scan_columns_load(struct scan_columns_device *columns, const struct scan_device *device)
{
    int id = 0, cooperative = 0;
    cudaError_t error = cudaGetDevice(&id);
    if (!error)
        error = cudaDeviceGetAttribute(&cooperative, cudaDevAttrCooperativeLaunch, id);
    for (int i = 0; i < SCAN_COLUMNS && !error && cooperative && device->shared_max >= COLUMNS_SHARED_ALL; i++) {
        int resident = 0;
        error = scan_kernel_load_resident(kernels[i], COLUMNS_THREADS, COLUMNS_SHARED, &resident);
        columns->grid[i] = resident * device->processors;
    }
    return scan_cleared(error);
}

static uint64_t tiles_of(const struct scan_plan *plan)
{
    return (plan->length + ORDER_TILE - 1) / ORDER_TILE;
}

/* Of the innermost outer axis. */
static uint64_t strips_per_axis(const struct scan_plan *plan)
{
    return (plan->outer_shape[plan->outer_rank - 1] + WARP - 1) / WARP;
}

static uint64_t rows_of(const struct scan_plan *plan)
{
    return plan->items / plan->blocks;
}

/* At most: rows may begin and end anywhere in an axis. */
static uint64_t strips_of(const struct scan_plan *plan)
{
    const uint64_t count = rows_of(plan), columns = plan->outer_shape[plan->outer_rank - 1];
    if (plan->outer_rank == 1)
        return (count + WARP - 1) / WARP;
    const uint64_t strips = ((count - 1) / columns + 2) * strips_per_axis(plan);
    return strips < count ? strips : count;
}

static bool side_is_columns(const struct scan_plan *plan, const struct scan_side *side, int64_t size)
{
    return side->access != ACCESS_BYTES && side->outer_strides[plan->outer_rank - 1] == size;
}

static bool is_columns(const struct scan_rule *rule, const struct scan_plan *plan)
{
    const bool wide = rule->pass_count > 1 && rule->intermediate == SCAND_DTYPE_F64;
    return plan->outer_shape[plan->outer_rank - 1] >= COLUMNS_MIN && plan->length > 1 &&
           !(wide && rule->accumulator != SCAND_ACCUMULATOR_F32) &&
           side_is_columns(plan, &plan->input, sizeof(float)) &&
           side_is_columns(plan, &plan->output, rule->output == SCAND_DTYPE_F64 ? 8 : 4);
}

bool scan_columns_takes(const struct scan_columns_device *columns, const struct scan_rule *rule,
                        const struct scan_plan *plan)
{
    return is_columns(rule, plan) && tiles_of(plan) <= (uint64_t)columns->grid[kernel_of(rule)] &&
           strips_of(plan) * tiles_of(plan) < STRIPS_MAX;
}

static uint64_t record_bytes(const struct scan_rule *rule, const struct scan_plan *plan, uint64_t strips)
{
    const uint64_t words = rule->accumulator == SCAND_ACCUMULATOR_F32 ? 1 : 2;
    return tiles_of(plan) > 1 ? strips * WARP * carries_sums(tiles_of(plan)) * words * sizeof(record) : 0;
}

uint64_t scan_columns_workspace_bytes(const struct scan_rule *rule, const struct scan_plan *plan)
{
    return is_columns(rule, plan) ? rule->pass_count * record_bytes(rule, plan, strips_of(plan)) : 0;
}

/* Whether strips begin with a slot in all their samples. */
static bool begins_slots(const struct scan_plan *plan, const struct scan_side *side)
{
    uint64_t places = (uint64_t)(uintptr_t)side->base | (uint64_t)side->stride;
    for (int axis = 0; axis < plan->outer_rank - 1; axis++)
        places |= (uint64_t)side->outer_strides[axis];
    return places % SLOT_BYTES == 0;
}

/* Which strips there are. Those of a single axis begin with the first row. */
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
    plan->strips_per_axis = (unsigned)strips_per_axis(scan);
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
    const uint64_t bytes = record_bytes(rule, scan, plan.strips);
    plan.tiles = (unsigned)tiles_of(scan);
    plan.strips_at_once =
        scan->length < ORDER_TILE ? (unsigned)(ORDER_FAN / ((scan->length + ORDER_LEAF - 1) / ORDER_LEAF)) : 1;
    plan.items = plan.tiles * ((plan.strips + plan.strips_at_once - 1) / plan.strips_at_once);
    plan.together = grid / plan.tiles < STRIPS_TOGETHER ? grid / plan.tiles : STRIPS_TOGETHER;
    plan.exclusive = rule->kind == SCAND_KIND_EXCLUSIVE;
    plan.slots = begins_slots(&plan.scan, &plan.scan.input);
    plan.records_per_column = carries_sums(plan.tiles);
    for (uint32_t pass = 0; pass < rule->pass_count; pass++)
        plan.records[pass] = (record *)((char *)workspace + pass * bytes);
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
    return scan_cleared(error);
}
