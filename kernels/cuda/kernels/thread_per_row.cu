#include "kernels/cuda/kernels/thread_per_row.cuh"

#include "kernels/cuda/kernels/launchers.h"

/* Kernels for rows of several leaves, and of one. */
#define THREAD_PER_ROW_VARIANT(SUM, KIND)                                                                           \
    {                                                                                                               \
        (const void *)thread_per_row_kernel<SUM, KIND, false>, (const void *)thread_per_row_kernel<SUM, KIND, true> \
    }
#define THREAD_PER_ROW_BY_KIND(SUM) \
    THREAD_PER_ROW_VARIANT(SUM, SCAND_KIND_INCLUSIVE), THREAD_PER_ROW_VARIANT(SUM, SCAND_KIND_EXCLUSIVE)
static const void *const thread_per_row_kernels[SCAN_SUMS][2] = {
    THREAD_PER_ROW_BY_KIND(sum_f32), THREAD_PER_ROW_BY_KIND(sum_f64), THREAD_PER_ROW_BY_KIND(sum_f2)};

static const void *thread_per_row_kernel_of(int number, int length)
{
    return thread_per_row_kernels[number][length <= ORDER_LEAF];
}

static size_t thread_per_row_bytes(int length, bool ahead)
{
    return (size_t)THREAD_PER_ROW_WARPS * (1 + ahead) * THREAD_PER_ROW_SMEM(length) * VEC16_BYTES;
}

/* Thread blocks that an SM holds, of each device: by kernel, by whether they fetch ahead, by the rows' length. */
static uint8_t residents[SCAN_DEVICES_MAX][SCAN_SUMS][2][THREAD_PER_ROW_LENGTH_MAX + 1];

static cudaError_t kernels_load(const struct scan_device *device, int number)
{
    size_t shared_most = 0;
    cudaError_t error = cudaSuccess;
    for (int leaf = 0; leaf < 2 && !error; leaf++)
        error = scan_kernel_load_most(thread_per_row_kernels[number][leaf], device->shared_max, &shared_most);
    for (int ahead = 0; ahead < 2; ahead++)
        for (int length = 1; length <= THREAD_PER_ROW_LENGTH_MAX && !error; length++) {
            int blocks = 0;
            if (thread_per_row_bytes(length, ahead) <= shared_most)
                error = scan_kernel_resident(thread_per_row_kernel_of(number, length), THREAD_PER_ROW_WARPS * WARP,
                                             thread_per_row_bytes(length, ahead), &blocks);
            residents[device->id][number][ahead][length] = (uint8_t)blocks;
        }
    return error;
}

cudaError_t scan_thread_per_row_load(struct scan_device *device)
{
    cudaError_t error = cudaSuccess;
    for (int i = 0; i < SCAN_SUMS && !error; i++)
        error = kernels_load(device, i);
    return error;
}

/* Warps may fetch the next rows ahead. */
cudaError_t scan_thread_per_row(const struct scan_call *call)
{
    const int number = scan_sum_number(&call->rows->rule);
    struct packed_rows plan = packed_rows_of(&call->plan);
    plan.ahead = call->path == SELECT_THREAD_PER_ROW_PREFETCH;
    plan.rows_at_once = THREAD_PER_ROW_ROWS(plan.length);
    return scan_rows_launch(call->device, thread_per_row_kernel_of(number, plan.length), &plan, plan.rows,
                            THREAD_PER_ROW_WARPS, plan.rows_at_once,
                            residents[call->device->id][number][plan.ahead][plan.length],
                            thread_per_row_bytes(plan.length, plan.ahead), call->stream);
}
