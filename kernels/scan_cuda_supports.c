#include "kernels/scan_cuda.h"

bool scan_cuda_supports(const struct scan_rule *rule)
{
    bool output = rule->output == SCAND_DTYPE_F32 || rule->output == SCAND_DTYPE_F64;
    bool kind = rule->kind == SCAND_KIND_INCLUSIVE || rule->kind == SCAND_KIND_EXCLUSIVE;
    return rule->op == SCAND_OPERATOR_SUM && kind && rule->input == SCAND_DTYPE_F32 && output && !rule->demean;
}
