#include "kernels/cuda/kernels/warp_per_rows.cuh"

#include "kernels/cuda/kernels/launchers.h"

template <class Sum, int Kind> static constexpr struct scan_resident_kernel kernel_by()
{
    const int tiles = warp_per_rows_tiles<Sum, Kind>;
    return {(const void *)warp_per_rows_kernel<Sum, Kind>, WARP_PER_ROWS_WARPS, WARP_PER_ROWS_BYTES(tiles),
            tiles * ORDER_FAN};
}

#define X(SUM, KIND, NONE) kernel_by<SUM, KIND>(),
static struct scan_resident_kernel kernels[SCAN_SUMS] = {SUM_RULES(X, )};
#undef X

cudaError_t scan_warp_per_rows_load(struct scan_device *device)
{
    return scan_resident_load(device, kernels, SCAN_SUMS);
}

cudaError_t scan_warp_per_rows(const struct scan_call *call)
{
    const struct scan_resident_kernel *kernel = &kernels[scan_sum_number(&call->rows->rule)];
    struct packed_rows plan = packed_rows_of(&call->plan);
    plan.rows_at_once = kernel->leaves / plan.leaves;
    return scan_resident_launch(call->device, kernel, &plan, &plan.queue, plan.rows, plan.rows_at_once, call->stream);
}
