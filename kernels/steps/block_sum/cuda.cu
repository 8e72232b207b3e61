#include "block_sum.h"
#include "kernels/steps/packs.cuh"

#define THREADS 256

/*
 * Floats of one dtype, one after another. Neighbouring threads read neighbouring blocks, so that all of a cache line is
 * used while it is there, as long as the factor is small.
 */

/* Each: samples that a thread reads as one word, of which the factor is a multiple. */
template <class Number, unsigned Each> struct alignas(sizeof(Number) * Each) word {
    Number numbers[Each];
};

template <enum scand_dtype DTYPE, unsigned Each>
static __global__ void __launch_bounds__(THREADS)
    block_sum_dense(const __grid_constant__ struct step_rows rows, const __grid_constant__ struct block_sum block_sum,
                    const __grid_constant__ struct step_tiles tiles, uint64_t begin)
{
    typedef word<typename pack<DTYPE>::number, Each> word;
    const struct step_tile tile = step_block_tile(tiles, begin);
    const uint64_t words = block_sum.factor / Each;
    for (uint64_t row = tile.first_row; row < tile.first_row + tile.row_count; row++) {
        const word *from = (const word *)step_row(&rows, &rows.input, row);
        char *to = step_row(&rows, &rows.output, row);
        for (uint64_t j = tile.begin + threadIdx.x; j < tile.end; j += THREADS) {
            double sum = -0.0; /* to which any number adds as it is */
#pragma unroll 4
            for (uint64_t k = 0; k < words; k++) {
                const word some = from[j * words + k];
#pragma unroll
                for (unsigned e = 0; e < Each; e++)
                    sum += (double)some.numbers[e];
            }
            step_put_f64(DTYPE, sum, (char *)step_aligned(true, DTYPE, to + (int64_t)j * rows.output.stride));
        }
    }
}

/* Pairs, of whose outputs a thread makes half a pack. */
template <enum scand_dtype DTYPE>
static __global__ void __launch_bounds__(THREADS, STEP_BLOCKS(THREADS, 6))
    block_sum_pairs(const __grid_constant__ struct step_rows rows, const __grid_constant__ struct block_sum block_sum,
                    const __grid_constant__ struct step_tiles tiles, uint64_t begin)
{
    typedef pack<DTYPE> pack;
    typedef typename pack::number number;
    constexpr unsigned outputs = pack::count / 2;
    struct alignas(PACK_BYTES / 2) half_pack {
        uint32_t words[PACK_WORDS / 2];
    };
    const struct step_tile tile = step_block_tile(tiles, begin);
    const uint32_t count = (uint32_t)(tile.end - tile.begin), packs = count / outputs;
    for (uint64_t row = tile.first_row; row < tile.first_row + tile.row_count; row++) {
        const pack *from = (const pack *)(step_row(&rows, &rows.input, row) + 2 * tile.begin * pack::size);
        half_pack *to = (half_pack *)(step_row(&rows, &rows.output, row) + tile.begin * pack::size);
#pragma unroll 4
        for (uint32_t p = threadIdx.x; p < packs; p += THREADS) {
            const pack some = from[p];
            pack made;
#pragma unroll
            for (unsigned k = 0; k < outputs; k++)
                made.put(k, (number)((double)some.get(2 * k) + (double)some.get(2 * k + 1)));
            to[p] = half_pack{made.words[0], made.words[1]};
        }
#pragma unroll 1
        for (uint32_t i = packs * outputs + threadIdx.x; i < count; i += THREADS) {
            const number *pair = (const number *)from + 2 * i;
            step_put_f64(DTYPE, (double)pair[0] + (double)pair[1],
                         (char *)step_aligned(true, DTYPE, (char *)((number *)to + i)));
        }
    }
}

/* Anything else: a thread for each block. */
static __global__ void block_sum_tiles(const __grid_constant__ struct step_rows rows,
                                       const __grid_constant__ struct block_sum block_sum,
                                       const __grid_constant__ struct step_tiles tiles, uint64_t begin)
{
    const struct step_tile tile = step_block_tile(tiles, begin);
    for (uint64_t row = tile.first_row; row < tile.first_row + tile.row_count; row++) {
        const uint64_t end = step_end(&rows, &tile, row);
        const char *from = step_row(&rows, &rows.input, row);
        char *to = step_row(&rows, &rows.output, row);
        for (uint64_t j = tile.begin + threadIdx.x; j < end; j += THREADS)
            block_sum_element(&rows, &block_sum, from, to, j);
    }
}

typedef void block_sum_kernel_function(struct step_rows rows, struct block_sum block_sum, struct step_tiles tiles,
                                       uint64_t begin);

template <enum scand_dtype DTYPE>
static block_sum_kernel_function *dense_kernel(const struct step_rows *rows, uint64_t factor, bool even)
{
    const uint32_t size = codec_bytes(DTYPE);
    if (rows->output.dtype != DTYPE || !step_is_aligned(rows, &rows->output))
        return block_sum_tiles;
    if (factor == 2 && even && step_is_dense(rows, &rows->input, DTYPE, PACK_BYTES) &&
        step_is_dense(rows, &rows->output, DTYPE, PACK_BYTES))
        return block_sum_pairs<DTYPE>;
    if (factor % 2 == 0 && step_is_dense(rows, &rows->input, DTYPE, 2 * size))
        return block_sum_dense<DTYPE, 2>;
    return step_is_dense(rows, &rows->input, DTYPE, size) ? block_sum_dense<DTYPE, 1> : block_sum_tiles;
}

static block_sum_kernel_function *choose_kernel(const struct step_rows *rows, uint64_t factor,
                                                const struct step_tiles *tiles)
{
    const bool even = tiles->tiling.elements % PACK_BYTES == 0;
    if (rows->offsets)
        return block_sum_tiles;
    return rows->input.dtype == SCAND_DTYPE_F32   ? dense_kernel<SCAND_DTYPE_F32>(rows, factor, even)
           : rows->input.dtype == SCAND_DTYPE_F64 ? dense_kernel<SCAND_DTYPE_F64>(rows, factor, even)
                                                  : block_sum_tiles;
}

extern "C" int block_sum_launch(const struct step_rows *rows, const void *params, const struct step_tiles *tiles,
                                uint64_t begin, uint64_t end, void *stream)
{
    const struct block_sum block_sum = *(const struct block_sum *)params;
    block_sum_kernel_function *const kernel = choose_kernel(rows, block_sum.factor, tiles);
    return step_launch_each(begin, end, [&](uint64_t first, unsigned grid) {
        kernel<<<grid, THREADS, 0, (cudaStream_t)stream>>>(*rows, block_sum, *tiles, first);
    });
}
