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

/* What an instance is compiled for: of affine terms travel alone, and sums in f2 are the same of f32 as of f2. */
template <class Sum> struct packed {
    using sum = Sum;
};
template <> struct packed<any_f2<SCAND_OPERATOR_SUM, false>> {
    using sum = any_f2<SCAND_OPERATOR_SUM, true>;
};
template <class T> struct packed<affine_sum<T>> {
    using sum = affine_of<typename affine_samples<T>::sum>;
};

template <class Narrow, class Wide = Narrow> static constexpr const void *packed_by()
{
    return (const void *)any_packed_kernel<typename packed<Narrow>::sum, typename packed<Wide>::sum>;
}

/* The last one is affine in f2 of which every pass leaves f32. */
#define X(NAME, LOWER, RESULT, EMPTY_REAL, EMPTY_WHOLE, RULE) packed_by<RULE(SCAND_OPERATOR_##NAME)>(),
static const void *const kernels[ANY_OPERATORS + 1] = {ANY_OPERATOR_RULES(X, packed_by)
                                                           packed_by<affine_of<any_f2_of_f32>>()};
#undef X

static const void *kernel_of(const struct scan_rule *rule)
{
    const bool affine = rule->op == SCAND_OPERATOR_AFFINE;
    return kernels[affine ? ANY_OPERATOR_AFFINE + scan_affine_number(rule) : scan_any_operator_number(rule)];
}

cudaError_t scan_any_packed_load(struct scan_device *device)
{
    cudaError_t error = cudaSuccess;
    for (const void *kernel : kernels)
        error = error ? error : scan_kernel_load_most(device, kernel);
    return error;
}

cudaError_t scan_any_packed(const struct scan_call *call)
{
    const void *const kernel = kernel_of(&call->rows->rule);
    struct any_packed_plan plan = {scan_any_operator_plan_of(&call->rows->rule, &call->plan, call->ragged),
                                   packed_rows_of(&call->plan)};
    if (call->rows->rule.op == SCAND_OPERATOR_AFFINE)
        plan.powers = scan_affine_powers(&call->rows->rule);
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
