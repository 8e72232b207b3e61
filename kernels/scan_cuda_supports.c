#include "kernels/scan_cuda.h"

bool scan_cuda_supports(const struct scan_rule *rule)
{
    return rule->op == SCAND_OPERATOR_SUM;
}
