/*
 * map-pairs: halves by twos.
 *
 * The change from map-packs: samples are halves, of which one word has two. Apply2 takes a word of each operand, has
 * the functor called with both samples, and makes one word of what it returns; a row of an odd number of samples has a
 * tail of one, which is done alone. Arithmetic is in f32, as everywhere here, so the bits are those of the reference.
 * Four bytes per load are a quarter of what map-packs has: with two operands of 10,000 x 10,000 this reaches half of
 * the speed of a copy, where map-packs, of floats, reaches nearly all. Where rows do not begin at multiples of 4 bytes,
 * or elements lie apart, all are done one by one.
 */
#include "kernels/tutorial/steps/map.cuh"

#define F16 SCAND_DTYPE_F16

/* Applies a functor to both halves of a word. */
template <class Functor> struct Apply2 {
    Functor apply;

    __device__ __forceinline__ uint32_t operator()(uint32_t x, uint32_t b) const
    {
        return half(x & 0xffff, b & 0xffff) | half(x >> 16, b >> 16) << 16;
    }

  private:
    __device__ __forceinline__ uint32_t half(uint32_t x, uint32_t b) const
    {
        return codec_encoded_f32(F16, apply(codec_decode_f32(F16, &x), codec_decode_f32(F16, &b))) & 0xffff;
    }
};

template <enum map_op OP>
static __global__ void __launch_bounds__(THREADS)
    map_pairs_kernel(const __grid_constant__ struct step_rows rows, const __grid_constant__ struct map map,
                     const __grid_constant__ struct step_tiles tiles, uint64_t begin)
{
    const struct step_tile tile = step_block_tile(tiles, begin);
    const Apply2<struct functor<OP>> apply = {
        functor_of<OP>(rows, map)
    };
    const bool with_other = apply.apply.with_other;
    const uint32_t pairs = (uint32_t)(tile.end - tile.begin) / 2;
    for (uint64_t row = tile.first_row; row < tile.first_row + tile.row_count; row++) {
        const uint32_t *x = (const uint32_t *)step_row(&rows, &rows.input, row) + tile.begin / 2;
        const uint32_t *b =
            with_other ? (const uint32_t *)step_row(&rows, &rows.further[MAP_OTHER], row) + tile.begin / 2 : x;
        uint32_t *y = (uint32_t *)step_row(&rows, &rows.output, row) + tile.begin / 2;
        for (uint32_t p = threadIdx.x; p < pairs; p += THREADS)
            y[p] = apply(x[p], b[p]);
    }
    map_rest<OP, F16>(rows, apply.apply, tile, pairs * 2);
}

template <enum map_op OP>
static __global__ void __launch_bounds__(THREADS)
    map_halves_kernel(const __grid_constant__ struct step_rows rows, const __grid_constant__ struct map map,
                      const __grid_constant__ struct step_tiles tiles, uint64_t begin)
{
    map_rest<OP, F16>(rows, functor_of<OP>(rows, map), step_block_tile(tiles, begin), 0);
}

#define X(OP, WORD) {map_halves_kernel<MAP_##OP>, map_pairs_kernel<MAP_##OP>},
static map_kernel_function *const kernels[][2] = {MAP_OPS(X)};
#undef X

extern "C" int map_pairs(const struct step_rows *rows, const void *params, const struct step_tiles *tiles,
                         uint64_t begin, uint64_t end, void *stream)
{
    const bool in_pairs = map_is_dense(rows, tiles, F16, sizeof(uint32_t));
    return map_run(kernels[((const struct map *)params)->op][in_pairs], rows, params, tiles, begin, end, stream);
}
