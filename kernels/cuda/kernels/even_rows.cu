#include "kernels/cuda/kernels/even_rows.cuh"

#include "kernels/cuda/kernels/launchers.h"
#include "kernels/cuda/select/instance.h"

#define BOX_LINES 256 /* of a box, at most */

/* Of code for 12.0, which has not been measured, f2 spills registers. */
static bool has_kernels(const struct scan_device *device)
{
    return device->code >= 90 && device->code < 120;
}

struct variant {
    const void *kernel;
    size_t warp_bytes;
};

template <class Sum, int Bytes> static constexpr struct variant variant_of()
{
    return {(const void *)even_rows_kernel<Sum, Bytes>,
            (size_t)(WARP * Bytes + even_io<Sum, Bytes>::stage_vectors) * VEC16_BYTES};
}

/* For samples of 2 bytes in f32 and f64, of 4 in f64. */
static const struct variant variants[] = {variant_of<sum_f32, 2>(), variant_of<sum_f64, 2>(), variant_of<sum_f64, 4>()};
static const void *const f2 = (const void *)even_f2_kernel;

cudaError_t scan_even_rows_load(struct scan_device *device)
{
    cudaError_t error = cudaSuccess;
    if (has_kernels(device))
        error = scan_kernel_load_most(device, f2);
    for (const struct variant &variant : variants)
        if (!error && has_kernels(device))
            error = scan_kernel_load_most(device, variant.kernel);
    return error;
}

/* The first row becomes row 0. */
static void start_at_first(struct scan_plan *plan)
{
    for (struct scan_side *side : {&plan->input, &plan->output})
        side->base += (int64_t)plan->first_row * side->outer_strides[0];
    plan->first_row = 0;
}

/* True where 32 bits hold the distance between rows. */
static bool is_near(const struct scan_side *side)
{
    return side->outer_strides[0] >= 0 && side->outer_strides[0] <= UINT32_MAX;
}

bool scan_even_rows_can(const struct scan_call *call)
{
    const struct scan_rule *rule = &call->rows->rule;
    const struct scan_plan *plan = &call->plan;
    const bool plain = rule->input == SCAND_DTYPE_F32 && rule->output == SCAND_DTYPE_F32;
    if (!has_kernels(call->device) || call->range || call->ragged || plan->blocks > 1 || plan->outer_rank > 1 ||
        plan->items >= INT32_MAX || rule->kind != SCAND_KIND_INCLUSIVE || !scan_plan_is_aligned(plan) ||
        !is_near(&plan->input) || !is_near(&plan->output))
        return false;
    if (call->path == SELECT_BLOCK_PER_ROW_SHORT)
        return true;
    if (rule->accumulator == SCAND_ACCUMULATOR_F2)
        return plain && call->device->encode && plan->length % ORDER_LEAF == 0 && plan->input.outer_strides[0] > 0 &&
               plan->output.outer_strides[0] > 0;
    return rule->accumulator == SCAND_ACCUMULATOR_F64 && !plain;
}

/* The map of a side by {samples of a leaf, leaves, rows}. */
static cudaError_t map_side(void *encode, const struct scan_plan *scan, const struct scan_side *side, int lines,
                            CUtensorMap *map)
{
    const cuuint64_t shape[] = {ORDER_LEAF, scan->length / ORDER_LEAF, scan->items};
    const cuuint64_t strides[] = {EVEN_LINE, (cuuint64_t)side->outer_strides[0]};
    const cuuint32_t box[] = {ORDER_LEAF, (cuuint32_t)lines, 1}, steps[] = {1, 1, 1};
    return (cudaError_t)((decltype(&cuTensorMapEncodeTiled))encode)(
        map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 3, side->base + (int64_t)scan->first_row * side->outer_strides[0], shape,
        strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_64B,
        CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

static cudaError_t launch(const struct scan_call *call, const void *kernel, struct scan_plan *scan, void *plan,
                          size_t shared_bytes)
{
    const int warps = scan_warps(scan->length);
    int resident = 0;
    uint64_t grid;
    cudaError_t error = scan_kernel_resident(kernel, warps * WARP, shared_bytes, &resident);
    const uint64_t all = (uint64_t)call->device->processors * resident;
    if (error || all == 0)
        return error ? error : SCAN_NO_ROOM;
    error = scan_grid_of(call->device, scan, all, warps, call->stream, &grid);
    return error ? error : scan_kernel_launch(kernel, grid, warps * WARP, &plan, shared_bytes, call->stream);
}

static cudaError_t launch_f2(const struct scan_call *call)
{
    const int warps = scan_warps(call->plan.length);
    struct even_plan plan = {};
    plan.scan = call->plan;
    plan.boxes = (int)scan_parts((uint64_t)(warps * WARP), BOX_LINES);
    plan.lines = (int)scan_parts((uint64_t)(warps * WARP), (uint64_t)(plan.boxes * 8)) * 8;
    cudaError_t error = map_side(call->device->encode, &plan.scan, &plan.scan.input, plan.lines, &plan.input);
    if (!error)
        error = map_side(call->device->encode, &plan.scan, &plan.scan.output, WARP / 2, &plan.output);
    const size_t bytes = (size_t)(plan.boxes * plan.lines * EVEN_LINE + warps * EVEN_STAGE * VEC16_BYTES);
    return error ? error : launch(call, f2, &plan.scan, &plan, bytes);
}

cudaError_t scan_even_rows(const struct scan_call *call)
{
    const struct scan_rule *rule = &call->rows->rule;
    const bool is_short = call->path == SELECT_BLOCK_PER_ROW_SHORT;
    const struct variant *variant = &variants[is_short ? rule->accumulator == SCAND_ACCUMULATOR_F64 : 2];
    struct scan_plan plan = call->plan;
    start_at_first(&plan);
    if (rule->accumulator == SCAND_ACCUMULATOR_F2)
        return launch_f2(call);
    return launch(call, variant->kernel, &plan, &plan, scan_warps(plan.length) * variant->warp_bytes);
}
