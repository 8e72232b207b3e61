#include "kernels/cuda/kernels/warp_per_row.cuh"

#include "kernels/cuda/kernels/launchers.h"

#define TILES_MAX 3

template <class Sum, int Tiles, int Kind> static constexpr struct scan_resident_kernel kernel_by()
{
    const int rows = warp_per_row_rows<Sum, Tiles>;
    return {(const void *)warp_per_row_kernel<Sum, Tiles, Kind>, WARP_PER_ROW_WARPS,
            (size_t)WARP_PER_ROW_WARPS * 2 * rows * LINES_SMEM(Tiles) * VEC16_BYTES, rows * Tiles * ORDER_FAN};
}

/* Kernels by tiles. */
#define X(SUM, KIND, TILES) kernel_by<SUM, TILES, KIND>(),
static struct scan_resident_kernel kernels[TILES_MAX][SCAN_SUMS] = {
    {SUM_RULES(X, 1)}, {SUM_RULES(X, 2)}, {SUM_RULES(X, 3)}};
#undef X

cudaError_t scan_warp_per_row_load(struct scan_device *device)
{
    return scan_resident_load(device, kernels[0], TILES_MAX * SCAN_SUMS);
}

cudaError_t scan_warp_per_row(const struct scan_call *call)
{
    const struct scan_plan *scan = &call->plan;
    const int tiles = (int)scan_tiles(scan->length);
    const struct scan_resident_kernel *kernel = &kernels[tiles - 1][scan_sum_number(&call->rows->rule)];
    struct warp_per_row_plan plan = {};
    plan.input_stride = scan->input.outer_strides[0];
    plan.output_stride = scan->output.outer_strides[0];
    plan.input = scan->input.base + (int64_t)scan->first_row * plan.input_stride;
    plan.output = scan->output.base + (int64_t)scan->first_row * plan.output_stride;
    plan.rows = scan->items;
    plan.length = (int)scan->length;
    plan.pass_count = scan->pass_count;
    memcpy(plan.backward, scan->backward, sizeof(plan.backward));
    plan.intermediate_f32 = scan->intermediate_f32;
    plan.input_form = scan->input_form;
    plan.output_form = scan->output_form;
    return scan_resident_launch(call->device, kernel, &plan, &plan.queue, plan.rows,
                                kernel->leaves / (tiles * ORDER_FAN), call->stream);
}
