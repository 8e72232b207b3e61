#include "kernels/cuda/kernels/any_packed.cuh"

#include "kernels/cuda/kernels/launchers.h"
#include "kernels/cuda/select/instance.h"

int scan_any_operator_number(const struct scan_rule *rule)
{
    if (rule->op == SCAND_OPERATOR_AFFINE)
        return codec_is_integer(rule->input) ? ANY_OPERATOR_AFFINE_WHOLE
                                             : ANY_OPERATOR_AFFINE + scan_float_number(rule->accumulator);
    if (instance_is_short(rule))
        return ANY_OPERATOR_SHORT + (int)rule->op;
    if (rule->op == SCAND_OPERATOR_SUM && rule->accumulator == SCAND_ACCUMULATOR_F2 && instance_is_narrow(rule))
        return ANY_OPERATOR_F2_OF_F32;
    return scan_any_layout_number(rule);
}

struct any_operator_plan scan_any_operator_plan_of(const struct scan_rule *rule, const struct scan_plan *scan,
                                                   const struct scan_ragged_rows *ragged)
{
    return {scan_any_layout_plan_of(rule, scan, ragged), rule->coefficient,
            codec_is_integer(rule->input) ? (uint64_t)(int64_t)rule->coefficient : 0};
}

/* NULL in f2, which select_is_packed_rule leaves out. */
template <class Sum, class Wide = Sum> static constexpr const void *packed_by()
{
    if constexpr (std::is_same<typename any_arithmetic<Sum>::samples::sum, struct f2>::value)
        return NULL;
    else
        return (const void *)any_packed_kernel<Sum>;
}

#define X(NAME, LOWER, RESULT, EMPTY_REAL, EMPTY_WHOLE, RULE) packed_by<RULE(SCAND_OPERATOR_##NAME)>(),
static const void *const kernels[ANY_OPERATORS] = {ANY_OPERATOR_RULES(X, packed_by)};
#undef X

cudaError_t scan_any_packed_load(struct scan_device *device)
{
    cudaError_t error = cudaSuccess;
    for (int i = 0; i < ANY_OPERATORS && !error; i++)
        if (kernels[i])
            error = scan_kernel_load_most(device, kernels[i]);
    return error;
}

cudaError_t scan_any_packed(const struct scan_call *call)
{
    const void *const kernel = kernels[scan_any_operator_number(&call->rows->rule)];
    struct any_packed_plan plan = {scan_any_operator_plan_of(&call->rows->rule, &call->plan, call->ragged),
                                   packed_rows_of(&call->plan)};
    plan.rows.rows_at_once = call->ragged ? 1 : ORDER_FAN / plan.rows.leaves;
    plan.any.scan.smem = WORDS_VECTORS(any_widest(plan.any));
    const size_t shared_bytes = (size_t)ANY_PACKED_WARPS * 2 * plan.any.scan.smem * VEC16_BYTES;
    int resident = 0;
    cudaError_t error = scan_work_queue_of(call->device, call->stream, &plan.rows.queue);
    if (!error)
        error = scan_kernel_resident(kernel, ANY_PACKED_WARPS * WARP, shared_bytes, &resident);
    return error ? error
                 : scan_rows_launch(call->device, kernel, &plan, plan.rows.rows, ANY_PACKED_WARPS,
                                    plan.rows.rows_at_once, resident, shared_bytes, call->stream);
}
