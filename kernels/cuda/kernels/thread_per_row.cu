#include "kernels/cuda/kernels/thread_per_row.h"

#include "kernels/cuda/kernels/thread_per_row.cuh"

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

static cudaError_t thread_per_row_load(struct scan_thread_per_row_device *thread_per_row, int number, int shared_max)
{
    size_t shared_most = 0;
    cudaError_t error = cudaSuccess;
    for (int leaf = 0; leaf < 2 && !error; leaf++)
        error = scan_kernel_load_most(thread_per_row_kernels[number][leaf], shared_max, &shared_most);
    for (int ahead = 0; ahead < 2; ahead++)
        for (int length = 1; length <= THREAD_PER_ROW_LENGTH_MAX && !error; length++) {
            int blocks = 0;
            if (thread_per_row_bytes(length, ahead) <= shared_most)
                error = scan_kernel_resident(thread_per_row_kernel_of(number, length), THREAD_PER_ROW_WARPS * WARP,
                                             thread_per_row_bytes(length, ahead), &blocks);
            thread_per_row->resident[number][ahead][length] = (uint8_t)blocks;
        }
    return error;
}

cudaError_t scan_thread_per_row_load(struct scan_thread_per_row_device *thread_per_row, int shared_max)
{
    cudaError_t error = cudaSuccess;
    for (int i = 0; i < SCAN_SUMS && !error; i++)
        error = thread_per_row_load(thread_per_row, i, shared_max);
    return error;
}

cudaError_t scan_thread_per_row(const struct scan_device *device,
                                const struct scan_thread_per_row_device *thread_per_row, const struct scan_rule *rule,
                                const struct scan_plan *scan, bool ahead, cudaStream_t stream)
{
    const int number = scan_sum_number(rule);
    struct packed_rows plan = packed_rows_of(scan);
    plan.ahead = ahead;
    plan.rows_at_once = THREAD_PER_ROW_ROWS(plan.length);
    return scan_rows_launch(device, thread_per_row_kernel_of(number, plan.length), &plan, plan.rows,
                            THREAD_PER_ROW_WARPS, plan.rows_at_once,
                            thread_per_row->resident[number][ahead][plan.length],
                            thread_per_row_bytes(plan.length, ahead), stream);
}
