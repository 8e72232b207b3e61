/*
 * The general kernels. Four operators each for f32, f64 and integers, in the order of the vocabulary, then sums and
 * products of f2, which the others do not need.
 */
#include "kernels/scan_cuda_general.h"

#include "kernels/cuda/carries.cuh"
#include "kernels/cuda/general.cuh"

template <class Narrow, class Wide = Narrow> static constexpr struct scan_general general()
{
    return {{(const void *)general_kernel<Narrow, Wide, false>, (const void *)general_kernel<Narrow, Wide, true>},
            {(const void *)carries_kernel<Narrow, false>, (const void *)carries_kernel<Narrow, true>},
            sizeof(typename Narrow::sum)};
}

#define OPERATORS(KEPT)                                                                                             \
    general<KEPT(SCAND_OPERATOR_SUM)>(), general<KEPT(SCAND_OPERATOR_PROD)>(), general<KEPT(SCAND_OPERATOR_MAX)>(), \
        general<KEPT(SCAND_OPERATOR_MIN)>()
#define F32(OP)   general_real<float, OP>
#define F64(OP)   general_real<double, OP>
#define WHOLE(OP) general_whole<OP>

enum { GENERAL_F32 = 0, GENERAL_F64 = 4, GENERAL_WHOLE = 8, GENERAL_F2 = 12 };

const struct scan_general scan_generals[SCAN_GENERALS] = {
    OPERATORS(F32),
    OPERATORS(F64),
    OPERATORS(WHOLE),
    general<general_f2<SCAND_OPERATOR_SUM, false>, general_f2<SCAND_OPERATOR_SUM, true>>(),
    general<general_f2<SCAND_OPERATOR_PROD, false>, general_f2<SCAND_OPERATOR_PROD, true>>(),
};

/* max and min change no value: they work in the type of the samples, whatever the accumulator. */
const struct scan_general *scan_general_of(const struct scan_rule *rule)
{
    bool compares = rule->op == SCAND_OPERATOR_MAX || rule->op == SCAND_OPERATOR_MIN;
    bool f64 = compares ? codec_class(rule->input) == SCAND_CLASS_F64 : rule->accumulator == SCAND_ACCUMULATOR_F64;
    if (codec_is_integer(rule->input))
        return &scan_generals[GENERAL_WHOLE + rule->op];
    if (!compares && rule->accumulator == SCAND_ACCUMULATOR_F2)
        return &scan_generals[GENERAL_F2 + rule->op];
    return &scan_generals[(f64 ? GENERAL_F64 : GENERAL_F32) + rule->op];
}

const struct scan_general *scan_general_of_mean(void)
{
    return &scan_generals[GENERAL_F64 + SCAND_OPERATOR_SUM];
}
