#include "kernels/cuda/kernels/warp_per_rows_serial.cuh"

#include "kernels/cuda/kernels/launchers.h"

/* Kernels in the order of scan_sum_number; other sums have registers for several leaves (warp_per_rows.cuh). */
static const void *const kernels[SCAN_SUMS] = {
    NULL,
    NULL,
    NULL,
    (const void *)warp_per_rows_serial_kernel<sum_f64, SCAND_KIND_EXCLUSIVE>,
    (const void *)warp_per_rows_serial_kernel<sum_f2, SCAND_KIND_INCLUSIVE>,
    (const void *)warp_per_rows_serial_kernel<sum_f2, SCAND_KIND_EXCLUSIVE>,
};

/* Thread blocks that an SM holds, of each device. */
static int residents[SCAN_DEVICES_MAX][SCAN_SUMS];

cudaError_t scan_warp_per_rows_serial_load(struct scan_device *device)
{
    cudaError_t error = cudaSuccess;
    for (int i = 0; i < SCAN_SUMS && !error; i++)
        if (kernels[i])
            error = scan_kernel_load_resident(kernels[i], WARP_PER_ROWS_SERIAL_WARPS * WARP, WARP_PER_ROWS_SERIAL_BYTES,
                                              &residents[device->id][i]);
    return error;
}

cudaError_t scan_warp_per_rows_serial(const struct scan_call *call)
{
    const int number = scan_sum_number(&call->rows->rule);
    struct packed_rows plan = packed_rows_of(&call->plan);
    plan.rows_at_once = scan_serial_rows(plan.leaves);
    cudaError_t error = scan_work_queue_of(call->device, call->stream, &plan.queue);
    if (error)
        return error;
    return scan_rows_launch(call->device, kernels[number], &plan, plan.rows, WARP_PER_ROWS_SERIAL_WARPS,
                            plan.rows_at_once, residents[call->device->id][number], WARP_PER_ROWS_SERIAL_BYTES,
                            call->stream);
}
