/*
 * upsample-half-pairs: two halves at a time.
 *
 * The change from upsample-pairs: samples are halves, so a pair is one word of 4 bytes. Stored one by one, halves would
 * use half of what a warp can write with one instruction. Nothing is computed: a half is a pattern of 16 bits, but for
 * NaNs, of which the results have one.
 */
#include "kernels/tutorial/steps/upsample.cuh"

extern "C" int upsample_half_pairs(const struct step_rows *rows, const void *params, const struct step_tiles *tiles,
                                   uint64_t begin, uint64_t end, void *stream)
{
    return upsample_run<SCAND_DTYPE_F16>(true, rows, params, tiles, begin, end, stream);
}
