/*
 * upsample-pairs: two outputs at a time.
 *
 * The change from upsample-naive: a thread makes two neighbouring outputs and stores them at once, as a float2, so that
 * there are half as many stores, each of 8 bytes. With a factor of 2 both are one sample: a load of 4 bytes then feeds
 * a store of 8. With an odd factor some pairs are of two samples, which is why each output looks up its own. Outputs
 * are counted within the tile, in 32 bits, since divisions of 64 bits take several times as long. The last output of a
 * row of an odd number is a tail of one. Where rows do not begin at multiples of 8 bytes, or elements lie apart, it
 * falls back to upsample-naive.
 */
#include "kernels/tutorial/steps/upsample.cuh"

extern "C" int upsample_pairs(const struct step_rows *rows, const void *params, const struct step_tiles *tiles,
                              uint64_t begin, uint64_t end, void *stream)
{
    return upsample_run<SCAND_DTYPE_F32>(true, rows, params, tiles, begin, end, stream);
}
