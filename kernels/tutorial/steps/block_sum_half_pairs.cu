/*
 * block-sum-half-pairs: two halves at a time.
 *
 * The change from block-sum-pairs: samples are halves, and a pair is one word. A __hadd2 could add two pairs with one
 * instruction, but it would round every sum on the way to 11 bits; here halves are converted as they come, and a sum is
 * rounded once.
 *
 * Association: as block-sum-naive.
 */
#include "kernels/tutorial/steps/block_sum.cuh"

extern "C" int block_sum_half_pairs(const struct step_rows *rows, const void *params, const struct step_tiles *tiles,
                                    uint64_t begin, uint64_t end, void *stream)
{
    return block_sum_run<SCAND_DTYPE_F16>(true, rows, params, tiles, begin, end, stream);
}
