#include "kernels/cuda/kernels/warp_per_row.cuh"

#include "kernels/cuda/kernels/launchers.h"

template <class Rows, int Kind> static constexpr struct scan_resident_kernel kernel_by()
{
    return {(const void *)warp_per_row_kernel<Rows, Kind>, WARP_PER_ROW_WARPS, warp_per_row_bytes<Rows>,
            Rows::tiles * ORDER_FAN};
}

/* Kernels of packed rows, and of others by their tiles. */
#define APART(SUM, KIND, TILES) kernel_by<rows_apart<SUM, TILES>, KIND>(),
#define PACKED(SUM, KIND, NONE) kernel_by<rows_packed<SUM, rows_packed_tiles<SUM, KIND>>, KIND>(),
static struct scan_resident_kernel kernels[4][SCAN_SUMS] = {
    {SUM_RULES(PACKED, )}, {SUM_RULES(APART, 1)}, {SUM_RULES(APART, 2)}, {SUM_RULES(APART, 3)}};
#undef APART
#undef PACKED

cudaError_t scan_warp_per_row_load(struct scan_device *device)
{
    return scan_resident_load(device, kernels[0], 4 * SCAN_SUMS);
}

cudaError_t scan_warp_per_row(const struct scan_call *call)
{
    const struct scan_plan *scan = &call->plan;
    const bool packed = call->path == SELECT_WARP_PER_ROWS;
    const int tiles = packed ? 0 : (int)scan_tiles(scan->length);
    const struct scan_resident_kernel *kernel = &kernels[tiles][scan_sum_number(&call->rows->rule)];
    struct warp_per_row_plan plan = {packed_rows_of(scan), scan->input.outer_strides[0], scan->output.outer_strides[0],
                                     scan->input_form, scan->output_form};
    plan.rows_at_once = kernel->leaves / (packed ? plan.leaves : tiles * ORDER_FAN);
    return scan_resident_launch(call->device, kernel, &plan, &plan.queue, plan.rows, plan.rows_at_once, call->stream);
}
