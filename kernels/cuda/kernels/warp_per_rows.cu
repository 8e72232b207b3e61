#include "kernels/cuda/kernels/warp_per_rows.h"

#include "kernels/cuda/kernels/warp_per_rows.cuh"
#include "kernels/cuda/select/plan.h"

struct short_variant {
    const void *kernel;
    int tiles; /* that a warp takes at once */
};

#define VARIANT(SUM, KIND)                                            \
    {                                                                 \
        (const void *)short_kernel<SUM, KIND>, short_tiles<SUM, KIND> \
    }
#define BY_KIND(SUM) VARIANT(SUM, SCAND_KIND_INCLUSIVE), VARIANT(SUM, SCAND_KIND_EXCLUSIVE)
static const struct short_variant variants[SCAN_SUMS] = {BY_KIND(sum_f32), BY_KIND(sum_f64), BY_KIND(sum_f2)};

cudaError_t scan_short_load(struct scan_short_device *shorts)
{
    cudaError_t error = cudaSuccess;
    for (int i = 0; i < SCAN_SUMS && !error; i++)
        error = scan_kernel_load_resident(variants[i].kernel, STRETCH_WARPS * WARP, SHORT_BYTES(variants[i].tiles),
                                          &shorts->resident[i]);
    return error;
}

cudaError_t scan_short(struct scan_device *device, const struct scan_short_device *shorts, const struct scan_rule *rule,
                       const struct scan_plan *scan, cudaStream_t stream)
{
    const int number = scan_sum_number(rule);
    struct short_plan plan = short_plan_of(scan);
    const int tiles = variants[number].tiles;
    plan.rows_at_once = tiles * ORDER_FAN / plan.leaves;
    cudaError_t error = scan_shares_of(device, stream, &plan.shares);
    if (error)
        return error;
    return scan_rows_launch(device, variants[number].kernel, &plan, plan.rows, STRETCH_WARPS, plan.rows_at_once,
                            shorts->resident[number], SHORT_BYTES(tiles), stream);
}
