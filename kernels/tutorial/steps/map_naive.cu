/*
 * map-naive: a thread per element.
 *
 * Each thread finds its element in every operand, by the strides of any layout, reads it, applies the operation and
 * writes the result. Neighbouring threads have neighbouring elements, so where these lie side by side a warp moves 128
 * bytes at a time; but each thread has only four of them on their way, and more instructions for finding its element
 * than for the operation.
 */
#include "kernels/tutorial/steps/map.cuh"

template <enum map_op OP>
static __global__ void __launch_bounds__(THREADS)
    map_naive_kernel(const __grid_constant__ struct step_rows rows, const __grid_constant__ struct map map,
                     const __grid_constant__ struct step_tiles tiles, uint64_t begin)
{
    map_rest<OP, SCAND_DTYPE_F32>(rows, functor_of<OP>(rows, map), step_block_tile(tiles, begin), 0);
}

#define X(OP, WORD) map_naive_kernel<MAP_##OP>,
static map_kernel_function *const kernels[] = {MAP_OPS(X)};
#undef X

extern "C" int map_naive(const struct step_rows *rows, const void *params, const struct step_tiles *tiles,
                         uint64_t begin, uint64_t end, void *stream)
{
    return map_run(kernels[((const struct map *)params)->op], rows, params, tiles, begin, end, stream);
}
