#include "kernels/cuda/kernels/thread_per_row.h"

#include "kernels/cuda/kernels/thread_per_row.cuh"

/* For rows of several leaves, and of one. */
#define LANES_VARIANT(SUM, KIND)                                                                  \
    {                                                                                             \
        (const void *)lanes_kernel<SUM, KIND, false>, (const void *)lanes_kernel<SUM, KIND, true> \
    }
#define LANES_BY_KIND(SUM) LANES_VARIANT(SUM, SCAND_KIND_INCLUSIVE), LANES_VARIANT(SUM, SCAND_KIND_EXCLUSIVE)
static const void *const lanes_kernels[SCAN_SUMS][2] = {LANES_BY_KIND(sum_f32), LANES_BY_KIND(sum_f64),
                                                        LANES_BY_KIND(sum_f2)};

static const void *lanes_kernel_of(int number, int length)
{
    return lanes_kernels[number][length <= ORDER_LEAF];
}

static size_t lanes_bytes(int length, bool ahead)
{
    return (size_t)SHORT_WARPS * (1 + ahead) * LANES_ROOM(length) * SLOT_BYTES;
}

static cudaError_t lanes_load(struct scan_lanes_device *lanes, int number, int shared_max)
{
    size_t shared_most = 0;
    cudaError_t error = cudaSuccess;
    for (int leaf = 0; leaf < 2 && !error; leaf++)
        error = scan_kernel_load_most(lanes_kernels[number][leaf], shared_max, &shared_most);
    for (int ahead = 0; ahead < 2; ahead++)
        for (int length = 1; length <= LANES_LENGTH_MAX && !error; length++) {
            int blocks = 0;
            if (lanes_bytes(length, ahead) <= shared_most)
                error = scan_kernel_resident(lanes_kernel_of(number, length), SHORT_WARPS * WARP,
                                             lanes_bytes(length, ahead), &blocks);
            lanes->resident[number][ahead][length] = (uint8_t)blocks;
        }
    return error;
}

cudaError_t scan_lanes_load(struct scan_lanes_device *lanes, int shared_max)
{
    cudaError_t error = cudaSuccess;
    for (int i = 0; i < SCAN_SUMS && !error; i++)
        error = lanes_load(lanes, i, shared_max);
    return error;
}

cudaError_t scan_lanes(const struct scan_device *device, const struct scan_lanes_device *lanes,
                       const struct scan_rule *rule, const struct scan_plan *scan, bool ahead, cudaStream_t stream)
{
    const int number = scan_sum_number(rule);
    struct short_plan plan = short_plan_of(scan);
    plan.ahead = ahead;
    plan.rows_at_once = LANES_ROWS(plan.length);
    return scan_rows_launch(device, lanes_kernel_of(number, plan.length), &plan, plan.rows, SHORT_WARPS,
                            plan.rows_at_once, lanes->resident[number][ahead][plan.length],
                            lanes_bytes(plan.length, ahead), stream);
}
