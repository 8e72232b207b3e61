/*
 * The code of the steps' variants, by their place in the list.
 */
#include <cuda_runtime.h>

#include "kernels/tutorial/steps/steps.h"

#define X(SYMBOL, ...) SYMBOL,
static step_launch *const codes[STEP_VARIANT_COUNT] = {STEP_VARIANTS(X)};
#undef X

/* True when an operand's elements lie at multiples of their size, which atomic additions need. */
static bool is_aligned(const struct step_rows *rows, const struct step_operand *operand)
{
    uint64_t misaligned = (uint64_t)(uintptr_t)operand->origin | (uint64_t)operand->stride;
    for (uint32_t k = 0; k < rows->outer_rank; k++)
        misaligned |= rows->outer_shape[k] > 1 ? (uint64_t)operand->outer_strides[k] : 0;
    return (misaligned & (codec_bytes(operand->dtype) - 1)) == 0;
}

static bool takes(const struct step_variant *variant, const struct step_rows *rows)
{
    bool all = rows->input.dtype == variant->dtype && rows->output.dtype == variant->dtype && !rows->offsets;
    for (int i = 0; i < STEP_FURTHER_MAX; i++) {
        const enum scand_dtype dtype = rows->further[i].dtype;
        all = all && (!rows->further[i].origin || dtype == variant->dtype || codec_is_integer(dtype));
    }
    return all && is_aligned(rows, &rows->output);
}

int step_variant_launch(enum step_variant_id id, const struct step_rows *rows, const void *params,
                        const struct step_tiles *tiles, uint64_t begin, uint64_t end, void *stream)
{
    if (!takes(&step_variant_list[id], rows))
        return cudaErrorNotSupported;
    return begin < end ? codes[id](rows, params, tiles, begin, end, stream) : cudaSuccess;
}
