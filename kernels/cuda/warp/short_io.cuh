/*
 * Moves and conversions of a warp's tile of samples and results of 2 bytes of class f32, contiguous ones, of sums in
 * f32 or f64: what item_io.cuh has for 4 bytes.
 */
#ifndef KERNELS_CUDA_WARP_SHORT_IO_CUH
#define KERNELS_CUDA_WARP_SHORT_IO_CUH

#include "kernels/cuda/lane/convert16.cuh"
#include "kernels/cuda/lane/leaf.cuh"
#include "kernels/cuda/warp/item.cuh"
#include "kernels/cuda/warp/tile_words.cuh"

/* The moves of a tile that is whole and begins with a vector, which is nearly all that most rows have. */
DEVICE bool short_is_whole(const char *tile, int count)
{
    return count == ORDER_TILE && shift_of<char>(tile) == 0;
}

DEVICE void short_fetch_whole(uint4 *tile, const char *source)
{
    source = settled(source + lane_index() * VEC16_BYTES);
    uint4 *vec16 = tile + swizzle_words(lane_index(), 2);
#pragma unroll
    for (int k = 0; k < WARP * 2; k += WARP)
        __pipeline_memcpy_async(vec16 + k, source + k * VEC16_BYTES, VEC16_BYTES);
}

DEVICE void short_drain_whole(const uint4 *stage, char *target)
{
    target = settled(target + lane_index() * VEC16_BYTES);
    __builtin_assume(__isGlobal(target));
    const uint4 *vec16 = stage + swizzle_words(lane_index(), 2);
#pragma unroll
    for (int k = 0; k < WARP * 2; k += WARP)
        *(uint4 *)(target + k * VEC16_BYTES) = vec16[k];
}

template <class Sum> struct short_io {
    static const int registers = Sum::registers;
    static const int tile_vectors = WORDS_VECTORS(2), stage_vectors = WORDS_STAGE(2);
    static const bool has_bulk = false;
    struct words {
        uint32_t word[WORDS16];
    };

    DEVICE void fetch(const struct scan_item *item, int warp, uint4 *tile)
    {
        const char *source = item->input + warp * ORDER_TILE * 2;
        const int count = tile_samples(item->length, warp);
        if (short_is_whole(source, count))
            short_fetch_whole(tile, source);
        else if (count > 0)
            words_fetch_vectors<2>(tile, source, count);
        __pipeline_commit();
    }
    DEVICE void read(const struct scan_item *item, uint4 *tile, words *words)
    {
        __pipeline_wait_prior(0);
        __syncwarp();
        leaf_get<2>(tile, lane_index(), shift_of<char>(item->input), words->word);
        __syncwarp();
    }
    DEVICE void decode(enum scand_dtype form, const words *words, typename Sum::sample x[ORDER_LEAF])
    {
        float samples[ORDER_LEAF];
        if constexpr (std::is_same<Sum, sum_f64>::value)
            if (form == SCAND_DTYPE_F16) { /* one conversion, instead of two by way of f32 */
#pragma unroll
                for (int i = 0; i < WORDS16; i++)
                    f64x2_of_f16x2(words->word[i], &x[2 * i]);
                return;
            }
        convert16_decode(form, words->word, samples);
        leaf_from_f32<Sum>(samples, x);
    }
    DEVICE void write(const struct scan_plan &plan, const struct scan_item *item, int warp, uint4 *stage,
                      const typename Sum::sample x[ORDER_LEAF])
    {
        put(plan.output_form, stage, item->output + warp * ORDER_TILE * 2, tile_samples(item->length, warp), x);
    }
    DEVICE void put(enum scand_dtype form, uint4 *stage, char *target, int count,
                    const typename Sum::sample x[ORDER_LEAF])
    {
        float results[ORDER_LEAF];
        uint32_t word[WORDS16];
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            result_of<Sum>(x[i], &results[i]);
        const bool nan = results[0] != results[0] || results[ORDER_LEAF - 1] != results[ORDER_LEAF - 1];
        convert16_encode(form, results, nan, word);
        leaf_put<2>(stage, lane_index(), [&](int i) { return word[i]; });
        __syncwarp();
        if (short_is_whole(target, count))
            short_drain_whole(stage, target);
        else if (count > 0)
            words_drain_vectors<2, WARP * 2>(stage, target, count);
        __syncwarp();
    }
};

#endif
