#include "kernels/cuda/kernels/warp_per_rows.cuh"

#include "kernels/cuda/kernels/launchers.h"

struct warp_per_rows_variant {
    const void *kernel;
    int tiles; /* tiles that a warp takes at once */
};

#define VARIANT(SUM, KIND)                                                            \
    {                                                                                 \
        (const void *)warp_per_rows_kernel<SUM, KIND>, warp_per_rows_tiles<SUM, KIND> \
    }
#define BY_KIND(SUM) VARIANT(SUM, SCAND_KIND_INCLUSIVE), VARIANT(SUM, SCAND_KIND_EXCLUSIVE)
static const struct warp_per_rows_variant variants[SCAN_SUMS] = {BY_KIND(sum_f32), BY_KIND(sum_f64), BY_KIND(sum_f2)};

/* Thread blocks that an SM holds, of each device. */
static int residents[SCAN_DEVICES_MAX][SCAN_SUMS];

cudaError_t scan_warp_per_rows_load(struct scan_device *device)
{
    cudaError_t error = cudaSuccess;
    for (int i = 0; i < SCAN_SUMS && !error; i++)
        error = scan_kernel_load_resident(variants[i].kernel, WARP_PER_ROWS_WARPS * WARP,
                                          WARP_PER_ROWS_BYTES(variants[i].tiles), &residents[device->id][i]);
    return error;
}

cudaError_t scan_warp_per_rows(const struct scan_call *call)
{
    const int number = scan_sum_number(&call->rows->rule);
    struct packed_rows plan = packed_rows_of(&call->plan);
    const int tiles = variants[number].tiles;
    plan.rows_at_once = tiles * ORDER_FAN / plan.leaves;
    cudaError_t error = scan_work_queue_of(call->device, call->stream, &plan.queue);
    if (error)
        return error;
    return scan_rows_launch(call->device, variants[number].kernel, &plan, plan.rows, WARP_PER_ROWS_WARPS,
                            plan.rows_at_once, residents[call->device->id][number], WARP_PER_ROWS_BYTES(tiles),
                            call->stream);
}
