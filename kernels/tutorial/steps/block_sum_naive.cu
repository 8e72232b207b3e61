/*
 * block-sum-naive: a thread per sum.
 *
 * Upsampling backward. Each thread adds the samples of its block one after the other. Now neighbours read what lies a
 * block apart: of the 32 bytes that memory brings at a time, an instruction uses a share of 1 in the factor, up to 8,
 * and the caches have to keep the rest until the next ones come for it. No atomic addition is needed, as each sample is
 * part of one sum: the forward kernel scatters nothing, if it is written as one output per thread.
 *
 * Association: from the first sample of the block to the last, in f64.
 */
#include "kernels/tutorial/steps/block_sum.cuh"

extern "C" int block_sum_naive(const struct step_rows *rows, const void *params, const struct step_tiles *tiles,
                               uint64_t begin, uint64_t end, void *stream)
{
    return block_sum_run<SCAND_DTYPE_F32>(false, rows, params, tiles, begin, end, stream);
}
