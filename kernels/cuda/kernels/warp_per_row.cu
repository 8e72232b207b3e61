#include "kernels/cuda/kernels/warp_per_row.h"

#include "kernels/cuda/kernels/warp_per_row.cuh"

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
static const struct warp_per_row_variant variants[WARP_PER_ROW_TILES_MAX][SCAN_SUMS] = {BY_SUM(1), BY_SUM(2),
                                                                                        BY_SUM(3)};

static size_t shared_bytes(int tiles, int rows)
{
    return (size_t)WARP_PER_ROW_WARPS * 2 * rows * LINES_SMEM(tiles) * VEC16_BYTES;
}

cudaError_t scan_warp_per_row_load(struct scan_warp_per_row_device *warp_per_row)
{
    cudaError_t error = cudaSuccess;
    for (int tiles = 1; tiles <= WARP_PER_ROW_TILES_MAX; tiles++)
        for (int i = 0; i < SCAN_SUMS && !error; i++) {
            const struct warp_per_row_variant *variant = &variants[tiles - 1][i];
            error =
                scan_kernel_load_resident(variant->kernel, WARP_PER_ROW_WARPS * WARP,
                                          shared_bytes(tiles, variant->rows), &warp_per_row->resident[tiles - 1][i]);
        }
    return error;
}

cudaError_t scan_warp_per_row(struct scan_device *device, const struct scan_warp_per_row_device *warp_per_row,
                              const struct scan_rule *rule, const struct scan_plan *scan, cudaStream_t stream)
{
    const int number = scan_sum_number(rule), tiles = (int)scan_tiles(scan->length);
    const struct warp_per_row_variant *variant = &variants[tiles - 1][number];
    const uint64_t rows = WARP_PER_ROW_WARPS * variant->rows;
    const uint64_t grid = (uint64_t)device->processors * warp_per_row->resident[tiles - 1][number];
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
    plan.input_form = rule->input;
    plan.output_form = rule->output;
    cudaError_t error = grid > 0 ? scan_work_queue_of(device, stream, &plan.queue) : SCAN_NO_ROOM;
    if (error)
        return error;
    void *arguments[] = {&plan};
    return scan_kernel_launch(variant->kernel, scan_least(grid, (plan.rows + rows - 1) / rows),
                              WARP_PER_ROW_WARPS * WARP, arguments, shared_bytes(tiles, variant->rows), stream);
}
