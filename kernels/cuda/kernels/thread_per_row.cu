#include "kernels/cuda/kernels/thread_per_row.cuh"

#include "kernels/cuda/kernels/launchers.h"

/* Kernels for rows of several leaves, and of one. */
#define X(SUM, KIND, LEAF) (const void *)thread_per_row_kernel<SUM, KIND, LEAF>,
static const void *const kernels[2][SCAN_SUMS] = {{SUM_RULES(X, false)}, {SUM_RULES(X, true)}};
#undef X

cudaError_t scan_thread_per_row_load(struct scan_device *device)
{
    cudaError_t error = cudaSuccess;
    for (int i = 0; i < 2 * SCAN_SUMS && !error; i++)
        error = scan_kernel_load_most(device, kernels[i / SCAN_SUMS][i % SCAN_SUMS]);
    return error;
}

cudaError_t scan_thread_per_row(const struct scan_call *call)
{
    struct packed_rows plan = packed_rows_of(&call->plan);
    const void *const kernel = kernels[plan.length <= ORDER_LEAF][scan_sum_number(&call->rows->rule)];
    const size_t bytes = (size_t)THREAD_PER_ROW_WARPS * THREAD_PER_ROW_SMEM(plan.length) * VEC16_BYTES;
    plan.rows_at_once = THREAD_PER_ROW_ROWS(plan.length);
    int resident = 0;
    const cudaError_t error = scan_kernel_resident(kernel, THREAD_PER_ROW_WARPS * WARP, bytes, &resident);
    return error ? error
                 : scan_rows_launch(call->device, kernel, &plan, plan.rows, THREAD_PER_ROW_WARPS, plan.rows_at_once,
                                    resident, bytes, call->stream);
}
