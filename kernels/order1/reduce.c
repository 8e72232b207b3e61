/*
 * Parts that all reductions on a processor share.
 */
#include "kernels/order1/reduce.h"

#include "kernels/order1/accumulator.h"

static enum scand_operator operator_of(enum scand_reduction reduction)
{
    switch (reduction) {
    case SCAND_REDUCTION_MIN:
        return SCAND_OPERATOR_MIN;
    case SCAND_REDUCTION_MAX:
        return SCAND_OPERATOR_MAX;
    case SCAND_REDUCTION_NONE: /* scans have an operator of their own */
    case SCAND_REDUCTION_SUM:
    case SCAND_REDUCTION_MEAN:
    case SCAND_REDUCTION_RMS:
    case SCAND_REDUCTION_NORM:
    case SCAND_REDUCTION_COUNT:
        break;
    }
    return SCAND_OPERATOR_SUM;
}

struct scan_rule reduce_rule(enum scand_reduction reduction, enum scand_dtype input, enum scand_dtype output)
{
    struct scan_rule rule = {
        .operation = SCAND_OPERATION_REDUCE,
        .reduction = reduction,
        .passes = {SCAND_PASS_FORWARD},
        .pass_count = 1,
        .op = operator_of(reduction),
        .accumulator = codec_is_integer(input) ? SCAND_ACCUMULATOR_EXACT : SCAND_ACCUMULATOR_F64,
        .input = input,
        .output = output,
    };
    return rule;
}

void reduce_store(const struct scan_rows *rows, uint64_t row, const union sum *total)
{
    const struct scan_rule *rule = &rows->rule;
    char *output = (char *)rows->output + scan_row_offset(rows, rows->output_outer_strides, row);
    union sample value = total ? sum_value(arithmetic_of(rule), *total, true) : operator_identity(rule);
    if (codec_is_integer(rule->input)) {
        codec_encode_integer(rule->output, value.whole, output);
        return;
    }
    double result = total && reduce_squares(rule->reduction)
                        ? reduce_finish_squares(rule->reduction, total->squares, rows->length)
                        : reduce_finish(rule->reduction, value.real, rows->length);
    if (codec_class(rule->output) == SCAND_CLASS_F64)
        codec_encode_f64(rule->output, result, output);
    else
        codec_encode_f32(rule->output, (float)result, output);
}
