#include "kernels/cuda/kernels/warp_per_rows_serial.cuh"

#include "kernels/cuda/kernels/launchers.h"

template <class Sum, int Kind> static constexpr struct scan_resident_kernel kernel_by()
{
    return {(const void *)warp_per_rows_serial_kernel<Sum, Kind>, WARP_PER_ROWS_SERIAL_WARPS,
            WARP_PER_ROWS_SERIAL_BYTES, WARP_PER_ROWS_SERIAL_TILES * ORDER_FAN};
}

/* Kernels in the order of scan_sum_number; other sums have registers for several leaves (warp_per_row.cuh). */
static struct scan_resident_kernel kernels[SCAN_SUMS] = {{},
                                                         {},
                                                         {},
                                                         kernel_by<sum_f64, SCAND_KIND_EXCLUSIVE>(),
                                                         kernel_by<sum_f2, SCAND_KIND_INCLUSIVE>(),
                                                         kernel_by<sum_f2, SCAND_KIND_EXCLUSIVE>()};

cudaError_t scan_warp_per_rows_serial_load(struct scan_device *device)
{
    return scan_resident_load(device, kernels, SCAN_SUMS);
}

cudaError_t scan_warp_per_rows_serial(const struct scan_call *call)
{
    const struct scan_resident_kernel *kernel = &kernels[scan_sum_number(&call->rows->rule)];
    struct packed_rows plan = packed_rows_of(&call->plan);
    plan.rows_at_once = scan_serial_rows(plan.leaves);
    return scan_resident_launch(call->device, kernel, &plan, &plan.queue, plan.rows, plan.rows_at_once, call->stream);
}
