/*
 * upsample-naive: a thread per output.
 *
 * Each thread divides the number of its output by the factor, which is the number of the sample, reads it and writes
 * it. Neighbours write neighbours, so a warp's stores are of 128 bytes; the threads that read one sample read it in one
 * instruction, and memory is asked for it once. What costs is finding it: a division of 64 bits for four bytes.
 */
#include "kernels/tutorial/steps/upsample.cuh"

extern "C" int upsample_naive(const struct step_rows *rows, const void *params, const struct step_tiles *tiles,
                              uint64_t begin, uint64_t end, void *stream)
{
    return upsample_run<SCAND_DTYPE_F32>(false, rows, params, tiles, begin, end, stream);
}
