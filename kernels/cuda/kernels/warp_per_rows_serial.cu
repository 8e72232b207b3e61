#include "kernels/cuda/kernels/warp_per_rows_serial.cuh"

#include "kernels/cuda/kernels/launchers.h"

template <class Sum, int Kind, bool Long> static constexpr struct scan_resident_kernel kernel_by()
{
    return {(const void *)warp_per_rows_serial_kernel<Sum, Kind, Long>, WARP_PER_ROWS_SERIAL_WARPS,
            WARP_PER_ROWS_SERIAL_BYTES, WARP_PER_ROWS_SERIAL_TILES * ORDER_FAN};
}

/* Kernels in the order of scan_sum_number, for rows of up to two tiles and of more; other sums have registers for
 * several leaves (warp_per_row.cuh). */
static struct scan_resident_kernel kernels[2][SCAN_SUMS] = {{{},
                                                             {},
                                                             {},
                                                             kernel_by<sum_f64, SCAND_KIND_EXCLUSIVE, false>(),
                                                             kernel_by<sum_f2, SCAND_KIND_INCLUSIVE, false>(),
                                                             kernel_by<sum_f2, SCAND_KIND_EXCLUSIVE, false>()},
                                                            {{},
                                                             {},
                                                             {},
                                                             kernel_by<sum_f64, SCAND_KIND_EXCLUSIVE, true>(),
                                                             kernel_by<sum_f2, SCAND_KIND_INCLUSIVE, true>(),
                                                             kernel_by<sum_f2, SCAND_KIND_EXCLUSIVE, true>()}};

cudaError_t scan_warp_per_rows_serial_load(struct scan_device *device)
{
    return scan_resident_load(device, kernels[0], 2 * SCAN_SUMS);
}

cudaError_t scan_warp_per_rows_serial(const struct scan_call *call)
{
    struct packed_rows plan = packed_rows_of(&call->plan);
    const bool is_long = plan.leaves > 2 * ORDER_FAN;
    const struct scan_resident_kernel *kernel = &kernels[is_long][scan_sum_number(&call->rows->rule)];
    plan.rows_at_once = scan_serial_rows(plan.leaves);
    return scan_resident_launch(call->device, kernel, &plan, &plan.queue, plan.rows, plan.rows_at_once, call->stream);
}
