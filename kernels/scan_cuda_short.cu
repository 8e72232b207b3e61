#include "kernels/scan_cuda_short.h"

#include "kernels/cuda/lanes.cuh"

const void *const scan_shorts[SCAN_SHORTS] = {
    (const void *)short_kernel<sum_f32, SCAND_KIND_INCLUSIVE>,
    (const void *)short_kernel<sum_f32, SCAND_KIND_EXCLUSIVE>,
    (const void *)short_kernel<sum_f64, SCAND_KIND_INCLUSIVE>,
    (const void *)short_kernel<sum_f64, SCAND_KIND_EXCLUSIVE>,
    (const void *)short_kernel<sum_f2, SCAND_KIND_INCLUSIVE>,
    (const void *)short_kernel<sum_f2, SCAND_KIND_EXCLUSIVE>,
};

const void *const scan_lanes[SCAN_SHORTS] = {
    (const void *)lanes_kernel<sum_f32, SCAND_KIND_INCLUSIVE>,
    (const void *)lanes_kernel<sum_f32, SCAND_KIND_EXCLUSIVE>,
    (const void *)lanes_kernel<sum_f64, SCAND_KIND_INCLUSIVE>,
    (const void *)lanes_kernel<sum_f64, SCAND_KIND_EXCLUSIVE>,
    (const void *)lanes_kernel<sum_f2, SCAND_KIND_INCLUSIVE>,
    (const void *)lanes_kernel<sum_f2, SCAND_KIND_EXCLUSIVE>,
};

int scan_short_of(const struct scan_rule *rule)
{
    int exclusive = rule->kind == SCAND_KIND_EXCLUSIVE;
    switch (rule->accumulator) {
    case SCAND_ACCUMULATOR_F32:
        return exclusive;
    case SCAND_ACCUMULATOR_F64:
        return 2 + exclusive;
    default:
        return rule->pass_count > 1 && rule->intermediate == SCAND_DTYPE_F64 ? -1 : 4 + exclusive;
    }
}
