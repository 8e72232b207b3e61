/*
 * The list of the steps' variants, for builds with and without CUDA.
 */
#include "kernels/tutorial/steps/steps.h"

#include <string.h>

#include "kernels/steps/block_sum/block_sum.h"
#include "kernels/steps/convolve/convolve.h"
#include "kernels/steps/dot/dot.h"
#include "kernels/steps/map/map.h"
#include "kernels/steps/stack/stack.h"
#include "kernels/steps/upsample/upsample.h"

enum { VARIES = false, FIXED = true };

#define X(SYMBOL, NAME, OPERATION, KERNEL, DTYPE, ORDER, TEACHES) \
    {NAME, TEACHES, OPERATION_##OPERATION, &KERNEL##_kernel, SCAND_DTYPE_##DTYPE, ORDER},
const struct step_variant step_variant_list[STEP_VARIANT_COUNT] = {STEP_VARIANTS(X)};
#undef X

int step_variant_find(const char *name)
{
    for (int i = 0; i < STEP_VARIANT_COUNT; i++)
        if (strcmp(step_variant_list[i].name, name) == 0)
            return i;
    return -1;
}
