/*
 * block-sum-pairs: two samples at a time.
 *
 * The change from block-sum-naive: a thread reads two neighbouring samples at once, as a float2. With a factor of 2
 * that is all of a block, so that neighbours read neighbours again, and an instruction uses all that memory brings.
 * With an odd factor every other block begins in the middle of a pair, and where rows do not begin at multiples of 8
 * bytes all do: then it falls back to block-sum-naive.
 *
 * Association: as block-sum-naive.
 */
#include "kernels/tutorial/steps/block_sum.cuh"

extern "C" int block_sum_pairs(const struct step_rows *rows, const void *params, const struct step_tiles *tiles,
                               uint64_t begin, uint64_t end, void *stream)
{
    return block_sum_run<SCAND_DTYPE_F32>(true, rows, params, tiles, begin, end, stream);
}
