/*
 * map-packs: 16 bytes at a time, and what is done with them as a functor.
 *
 * The changes from map-naive: a load brings four neighbouring samples, so there are a quarter of the loads, stores and
 * addresses, and four times as many bytes on their way. The kernel moves packs and knows nothing of the operation: that
 * is a functor, a struct with the constants that is called with the samples, and that the compiler puts in place. The
 * one to three samples after the last pack of a row are done one by one. Where an operand has elements that do not lie
 * side by side, or a row that does not begin at a multiple of 16 bytes, it falls back to map-naive.
 */
#include "kernels/tutorial/steps/map.cuh"

#define COUNT 4 /* samples of a pack */

struct alignas(COUNT * sizeof(float)) pack {
    float samples[COUNT];
};

template <class Functor> GPU_INLINE struct pack pack_apply(Functor apply, struct pack x, struct pack b)
{
#pragma unroll
    for (int k = 0; k < COUNT; k++)
        x.samples[k] = codec_f32_of_bits(codec_one_nan_f32(apply(x.samples[k], b.samples[k])));
    return x;
}

template <enum map_op OP>
static __global__ void __launch_bounds__(THREADS)
    map_packs_kernel(const __grid_constant__ struct step_rows rows, const __grid_constant__ struct map map,
                     const __grid_constant__ struct step_tiles tiles, uint64_t begin)
{
    const struct step_tile tile = step_block_tile(tiles, begin);
    const struct functor<OP> apply = functor_of<OP>(rows, map);
    const uint32_t packs = (uint32_t)(tile.end - tile.begin) / COUNT;
    for (uint64_t row = tile.first_row; row < tile.first_row + tile.row_count; row++) {
        const struct pack *x = (const struct pack *)step_row(&rows, &rows.input, row) + tile.begin / COUNT;
        const struct pack *b =
            apply.with_other ? (const struct pack *)step_row(&rows, &rows.further[MAP_OTHER], row) + tile.begin / COUNT
                             : x;
        struct pack *y = (struct pack *)step_row(&rows, &rows.output, row) + tile.begin / COUNT;
        for (uint32_t p = threadIdx.x; p < packs; p += THREADS)
            y[p] = pack_apply(apply, x[p], b[p]);
    }
    map_rest<OP, SCAND_DTYPE_F32>(rows, apply, tile, packs * COUNT);
}

#define X(OP, WORD) map_packs_kernel<MAP_##OP>,
static map_kernel_function *const kernels[] = {MAP_OPS(X)};
#undef X

extern "C" int map_packs(const struct step_rows *rows, const void *params, const struct step_tiles *tiles,
                         uint64_t begin, uint64_t end, void *stream)
{
    if (!map_is_dense(rows, tiles, SCAND_DTYPE_F32, sizeof(struct pack)))
        return map_naive(rows, params, tiles, begin, end, stream);
    return map_run(kernels[((const struct map *)params)->op], rows, params, tiles, begin, end, stream);
}
