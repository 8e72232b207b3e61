#include "kernels/cuda/kernels/warp_per_row.cuh"

#include "kernels/cuda/kernels/launchers.h"

#define TILES_MAX 3

struct warp_per_row_variant {
    const void *kernel;
    int rows; /* rows that a warp takes at once */
};

#define VARIANT(SUM, TILES, KIND)                                                          \
    {                                                                                      \
        (const void *)warp_per_row_kernel<SUM, TILES, KIND>, warp_per_row_rows<SUM, TILES> \
    }
#define BY_KIND(SUM, TILES) VARIANT(SUM, TILES, SCAND_KIND_INCLUSIVE), VARIANT(SUM, TILES, SCAND_KIND_EXCLUSIVE)
#define BY_SUM(TILES)                                                            \
    {                                                                            \
        BY_KIND(sum_f32, TILES), BY_KIND(sum_f64, TILES), BY_KIND(sum_f2, TILES) \
    }

/* Kernels by tiles, then in the order of scan_sum_number. */
static const struct warp_per_row_variant variants[TILES_MAX][SCAN_SUMS] = {BY_SUM(1), BY_SUM(2), BY_SUM(3)};

static size_t shared_bytes(int tiles, int rows)
{
    return (size_t)WARP_PER_ROW_WARPS * 2 * rows * LINES_SMEM(tiles) * VEC16_BYTES;
}

/* Thread blocks that an SM holds, of each device. */
static int residents[SCAN_DEVICES_MAX][TILES_MAX][SCAN_SUMS];

cudaError_t scan_warp_per_row_load(struct scan_device *device)
{
    cudaError_t error = cudaSuccess;
    for (int tiles = 1; tiles <= TILES_MAX; tiles++)
        for (int i = 0; i < SCAN_SUMS && !error; i++) {
            const struct warp_per_row_variant *variant = &variants[tiles - 1][i];
            error = scan_kernel_load_resident(variant->kernel, WARP_PER_ROW_WARPS * WARP,
                                              shared_bytes(tiles, variant->rows), &residents[device->id][tiles - 1][i]);
        }
    return error;
}

cudaError_t scan_warp_per_row(const struct scan_call *call)
{
    const struct scan_plan *scan = &call->plan;
    const int number = scan_sum_number(&call->rows->rule), tiles = (int)scan_tiles(scan->length);
    const struct warp_per_row_variant *variant = &variants[tiles - 1][number];
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
    cudaError_t error = scan_work_queue_of(call->device, call->stream, &plan.queue);
    if (error)
        return error;
    return scan_rows_launch(call->device, variant->kernel, &plan, plan.rows, WARP_PER_ROW_WARPS, variant->rows,
                            residents[call->device->id][tiles - 1][number], shared_bytes(tiles, variant->rows),
                            call->stream);
}
