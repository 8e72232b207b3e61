/*
 * Tiles of dense rows go into shared memory past registers, 16 bytes at a time, as they are. There a lane reads its
 * leaf; lanes that read at once use different banks.
 */
#ifndef KERNELS_STEPS_STAGED_CUH
#define KERNELS_STEPS_STAGED_CUH

#include <cuda_pipeline.h>

#include "kernels/steps/totals.cuh"

/* Has the first `bytes` of 16 on their way, and zeros for the others. */
static __device__ __forceinline__ void staged_copy(void *to, const char *from, unsigned bytes)
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :
                 : "r"((unsigned)__cvta_generic_to_shared(to)), "l"(from), "r"(bytes)
                 : "memory");
#else
    for (unsigned k = 0; k < PACK_BYTES; k++)
        ((char *)to)[k] = k < bytes ? from[k] : 0;
#endif
}

template <enum scand_dtype DTYPE> struct staged_tile {
    typedef pack<DTYPE> pack;
    static constexpr unsigned vectors = ORDER_TILE / pack::count;      /* of a tile */
    static constexpr unsigned leaf_vectors = ORDER_LEAF / pack::count; /* of a leaf: 2, 4 or 8 */

    /* Where vector v of a tile lies. Those at the same place of eight leaves, which eight lanes read at once, and eight
     * neighbours, which eight lanes write at once, lie in different banks. */
    static __device__ __forceinline__ unsigned place(unsigned v) { return v ^ (v / 8 % leaf_vectors); }

    /* Has the tile's first `count` elements on their way, by a warp; what is missing from the last vector is 0. */
    static __device__ __forceinline__ void fetch(pack *stage, const char *from, unsigned count, unsigned lane)
    {
        const unsigned bytes = count * pack::size;
#pragma unroll
        for (unsigned v = lane; v < vectors; v += WARP) {
            const unsigned at = v * PACK_BYTES;
            if (at < bytes)
                staged_copy(stage + place(v), from + at, bytes - at < PACK_BYTES ? bytes - at : PACK_BYTES);
        }
    }

    static __device__ __forceinline__ void leaf(const pack *stage, unsigned lane, pack leaf[leaf_vectors])
    {
#pragma unroll
        for (unsigned j = 0; j < leaf_vectors; j++)
            leaf[j] = stage[place(lane * leaf_vectors + j)];
    }
};

/* The samples of a tile of which `left` are left in its row. */
static __device__ __forceinline__ unsigned staged_count(uint64_t left)
{
    return left < ORDER_TILE ? (unsigned)left : ORDER_TILE;
}

/* Samples of a lane's leaf. */
static __device__ __forceinline__ unsigned staged_rest(unsigned count, unsigned lane)
{
    return count > lane * ORDER_LEAF ? count - lane * ORDER_LEAF : 0;
}

/* The sum of a leaf whose first `rest` terms are there: first() is the first one, more(sum, j) adds term j. */
template <class First, class More>
static __device__ __forceinline__ double staged_sum(unsigned rest, First first, More more)
{
    double sum = rest > 0 ? first() : 0.0;
    if (rest >= ORDER_LEAF) {
#pragma unroll
        for (unsigned j = 1; j < ORDER_LEAF; j++)
            sum = more(sum, j);
    } else {
#pragma unroll
        for (unsigned j = 1; j < ORDER_LEAF; j++)
            sum = j < rest ? more(sum, j) : sum;
    }
    return sum;
}

static __device__ __forceinline__ double staged_total(double leaf, unsigned count, unsigned lane)
{
    return group_total(leaf, lane, (count + ORDER_LEAF - 1) / ORDER_LEAF);
}

/* Rows first <= r < first + count of a launch, whose tiles are whole rows. */
struct staged_rows {
    uint64_t first, count;
};

static inline struct staged_rows staged_rows_of(const struct step_tiles *tiles, uint64_t begin, uint64_t end)
{
    const uint64_t first = begin * tiles->tiling.rows, last = end * tiles->tiling.rows;
    return {tiles->first + first, (last < tiles->count ? last : tiles->count) - first};
}

#endif
