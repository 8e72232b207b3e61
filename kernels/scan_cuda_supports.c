#include "kernels/scan_cuda.h"

bool scan_cuda_supports(const struct scan_rule *rule)
{
    bool output = rule->output == SCAND_DTYPE_F32 || rule->output == SCAND_DTYPE_F64;
    return rule->op == SCAND_OPERATOR_SUM && rule->input == SCAND_DTYPE_F32 && output;
}
