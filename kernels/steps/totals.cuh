/*
 * Totals of rows in order 1, forward and in f64, of whatever an operation makes of their samples: by a warp for each
 * row or a thread block for each row. Tiles are joined by join(), level by level.
 *
 * A Row has `words`, which wait in a warp's registers for their tile's turn; fetch(first, count, words, lane), which
 * has those of a tile on their way; and stage(words, first, count, stage, lane), which puts the tile's terms into
 * shared memory, leaf by leaf, term i at totals_place(i).
 */
#ifndef KERNELS_STEPS_TOTALS_CUH
#define KERNELS_STEPS_TOTALS_CUH

#include "kernels/steps/packs.cuh"
#include "kernels/steps/totals.h"

#define WARP       32
#define WARPS      4
#define THREADS    (WARPS * WARP)
#define ALL        0xffffffffu
#define LEAF_PITCH (ORDER_LEAF + 1) /* so that lanes that read a leaf each use different banks */
#define STAGE      (ORDER_FAN * LEAF_PITCH)
#define LEVELS     5 /* above tiles: 2^34 samples */

static __device__ __forceinline__ unsigned totals_place(unsigned i)
{
    return i / ORDER_LEAF * LEAF_PITCH + i % ORDER_LEAF;
}

/* No words: terms are read as they are staged. */
struct no_words {
};

/* The whole packs of a tile's first `count` elements, which lie one after another and aligned: a lane's are 32 packs
 * apart. */
template <enum scand_dtype DTYPE> struct tile_packs {
    static constexpr unsigned each = pack<DTYPE>::count, count = ORDER_TILE / each / WARP;
    pack<DTYPE> packs[count];

    static __device__ __forceinline__ bool has(unsigned p, unsigned lane, unsigned elements)
    {
        return (p * WARP + lane + 1) * each <= elements;
    }
    __device__ __forceinline__ void fetch(const char *from, uint64_t first, unsigned elements, unsigned lane)
    {
        const pack<DTYPE> *at = (const pack<DTYPE> *)(from + first * pack<DTYPE>::size) + lane;
#pragma unroll
        for (unsigned p = 0; p < count; p++)
            if (has(p, lane, elements))
                packs[p] = at[p * WARP];
    }
    static __device__ __forceinline__ unsigned place(unsigned p, unsigned k, unsigned lane)
    {
        return totals_place((p * WARP + lane) * each + k);
    }
    __device__ __forceinline__ double term(unsigned p, unsigned k) const
    {
        return (double)packs[p].get(k);
    }
    /* Puts the terms of the tile into shared memory, by a warp: in_pack(p, k) is that of element k of pack p, alone(i)
     * that of an element that no whole pack has. */
    template <class InPack, class Alone>
    static __device__ __forceinline__ void stage(unsigned elements, double *stage, unsigned lane, InPack in_pack,
                                                 Alone alone)
    {
#pragma unroll
        for (unsigned p = 0; p < count; p++)
#pragma unroll
            for (unsigned k = 0; k < each; k++)
                if (has(p, lane, elements))
                    stage[place(p, k, lane)] = in_pack(p, k);
        if (lane < elements % each) {
            const unsigned i = elements - elements % each + lane;
            stage[totals_place(i)] = alone(i);
        }
    }
};

/* The last prefix of the members that lanes 0 to count - 1 of a warp have, in all lanes. */
static __device__ __forceinline__ double group_total(double member, unsigned lane, unsigned count)
{
#pragma unroll
    for (unsigned distance = 1; distance < WARP; distance *= 2) {
        const double before = __shfl_up_sync(ALL, member, distance);
        if (lane >= distance)
            member = before + member;
    }
    return __shfl_sync(ALL, member, count - 1);
}

static __device__ __forceinline__ unsigned tile_samples(uint64_t first, uint64_t length)
{
    return first >= length ? 0 : length - first < ORDER_TILE ? (unsigned)(length - first) : ORDER_TILE;
}

/* The total of the tile from `first` on, by a warp: its terms, and then a leaf for each lane, while the words of the
 * tile from `next` on are on their way. */
template <class Row>
static __device__ __forceinline__ double tile_total(const Row &row, typename Row::words *words, uint64_t first,
                                                    uint64_t next, uint64_t length, double *stage, unsigned lane)
{
    const unsigned count = tile_samples(first, length);
    const unsigned begin = lane * ORDER_LEAF, rest = count > begin ? count - begin : 0;
    row.stage(words, first, count, stage, lane);
    __syncwarp();
    row.fetch(next, tile_samples(next, length), words, lane);
    const double *leaf = stage + lane * LEAF_PITCH;
    double sum = rest > 0 ? leaf[0] : 0.0;
#pragma unroll
    for (unsigned j = 1; j < ORDER_LEAF; j++)
        if (j < rest)
            sum = sum + leaf[j];
    __syncwarp();
    return group_total(sum, lane, (count + ORDER_LEAF - 1) / ORDER_LEAF);
}

/*
 * Levels above tiles, or above blocks. members[level]: of the group of each level that is not complete.
 */

/* Takes the total of member `number` of `count`, in their order; by a whole warp. True with the last one: *total is
 * then that of all. */
static __device__ bool join(double (*members)[ORDER_FAN], uint64_t number, uint64_t count, double *total, unsigned lane)
{
    for (int level = 0; count > 1; level++) {
        if (lane == 0)
            members[level][number % ORDER_FAN] = *total;
        __syncwarp();
        if (number % ORDER_FAN != ORDER_FAN - 1 && number + 1 != count)
            return false;
        const unsigned group = (unsigned)(number % ORDER_FAN) + 1;
        *total = group_total(lane < group ? members[level][lane] : 0.0, lane, group);
        number /= ORDER_FAN;
        count = (count + ORDER_FAN - 1) / ORDER_FAN;
    }
    return true;
}

/* A row, by a warp. */
template <class Row>
static __device__ double warp_total(const Row &row, uint64_t length, double *stage, double (*members)[ORDER_FAN],
                                    unsigned lane)
{
    const uint64_t tiles = (length + ORDER_TILE - 1) / ORDER_TILE;
    typename Row::words words;
    double total = 0;
    row.fetch(0, tile_samples(0, length), &words, lane);
    for (uint64_t tile = 0; tile < tiles; tile++) {
        total = tile_total(row, &words, tile * ORDER_TILE, (tile + 1) * ORDER_TILE, length, stage, lane);
        join(members, tile, tiles, &total, lane);
    }
    return total;
}

static_assert(ORDER_FAN % WARPS == 0, "a warp's next tile is always so many tiles on, also in the next block");

/* A row, by a thread block: warps take the tiles of a block of order 1 in turns, and the first one joins them while the
 * others are at the next. The total is the first warp's. */
template <class Row>
static __device__ double block_total(const Row &row, uint64_t length, double *stage, double (*members)[ORDER_FAN],
                                     double (*tile_totals)[ORDER_FAN], unsigned warp, unsigned lane)
{
    const uint64_t blocks = (length + ORDER_BLOCK - 1) / ORDER_BLOCK;
    typename Row::words words;
    double total = 0;
    row.fetch(warp * ORDER_TILE, tile_samples(warp * ORDER_TILE, length), &words, lane);
    for (uint64_t block = 0; block < blocks; block++) {
        const uint64_t begin = block * ORDER_BLOCK;
        const uint64_t left = length - begin < ORDER_BLOCK ? length - begin : ORDER_BLOCK;
        const unsigned tiles = (unsigned)((left + ORDER_TILE - 1) / ORDER_TILE);
        double *totals = tile_totals[block % 2];
        for (unsigned tile = warp; tile < tiles; tile += WARPS) {
            const uint64_t first = begin + tile * ORDER_TILE;
            const double of_tile = tile_total(row, &words, first, first + WARPS * ORDER_TILE, length, stage, lane);
            if (lane == 0)
                totals[tile] = of_tile;
        }
        __syncthreads();
        if (warp > 0)
            continue;
        total = group_total(lane < tiles ? totals[lane] : 0.0, lane, tiles);
        join(members, block, blocks, &total, lane);
    }
    __syncthreads(); /* before another row's totals */
    return total;
}

#endif
