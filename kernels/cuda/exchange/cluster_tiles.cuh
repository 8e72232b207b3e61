/*
 * A row whose tiles the thread blocks of a cluster share: how the tiles' totals become the carries into them.
 *
 * Every warp sends its tiles' totals to all thread blocks of the cluster, by stores into their shared memory that are
 * counted as they arrive. When all of a row have, a warp of every thread block for each order block of the row makes
 * carries of them. So a pass waits once, and nobody for an answer.
 *
 * There is shared memory for the totals and carries of two passes, which take turns: who sends a total has had those of
 * the pass before from everyone, so everyone has read those of the one before that.
 */
#ifndef KERNELS_CUDA_EXCHANGE_CLUSTER_TILES_CUH
#define KERNELS_CUDA_EXCHANGE_CLUSTER_TILES_CUH

#include <string.h>
#include <type_traits>

#include "kernels/cuda/exchange/mbarrier.cuh"
#include "kernels/cuda/lane/shuffle.cuh"
#include "kernels/cuda/warp/kogge_stone.cuh"

/* Stores a sum of 4 bytes, or of 8 or 16, in any thread block's shared memory, and counts its bytes at the mbarrier
 * there. */
template <class T> DEVICE void cluster_store_sum(unsigned address, unsigned barrier, T sum)
{
    typename std::conditional<sizeof(T) == 4, uint32_t, uint64_t>::type words[(sizeof(T) + 4) / 8];
    memcpy(words, &sum, sizeof(sum));
#pragma unroll
    for (int i = 0; i < (int)(sizeof(words) / sizeof(words[0])); i++)
        cluster_store(address + i * (int)sizeof(words[0]), words[i], barrier);
}

/* An mbarrier that opens when so many bytes have come as are announced each time. By one thread. */
DEVICE void mbarrier_init_cluster(mbarrier *barrier)
{
    mbarrier_init(smem_address(barrier), 1);
    fence_mbarrier_init();
}

/* Waits as mbarrier_wait does, for arrivals from other thread blocks. */
DEVICE void mbarrier_wait_cluster(mbarrier *barrier, int parity)
{
    while (!mbarrier_try_wait_cluster(smem_address(barrier), parity))
        ;
}

/* A carry that one thread block of a cluster finds for all, again and again. There is memory for one: nobody finds the
 * next carry before all have read this one. Its mbarrier is known to the cluster when it has met. */
template <class Sum> struct cluster_carry {
    mbarrier come;
    typename Sum::sum sum;
};

template <class Sum> DEVICE void cluster_carry_init(cluster_carry<Sum> *carry)
{
    mbarrier_init_cluster(&carry->come);
    mbarrier_expect(&carry->come, (int)sizeof(carry->sum));
}

template <class Sum> DEVICE void cluster_carry_tell(cluster_carry<Sum> *carry, typename Sum::sum sum)
{
    const int rank = lane_index();
    if (rank < cluster_size())
        cluster_store_sum(cluster_address(smem_address(&carry->sum), rank),
                          cluster_address(smem_address(&carry->come), rank), sum);
}

/* The carry of that number, by a warp of each thread block. */
template <class Sum> DEVICE typename Sum::sum cluster_carry_await(cluster_carry<Sum> *carry, unsigned number)
{
    mbarrier_wait_cluster(&carry->come, number % 2);
    if (lane_index() == 0)
        mbarrier_expect(&carry->come, (int)sizeof(carry->sum));
    return carry->sum;
}

#define CLUSTER_EXCHANGES 2

/* A row: its tiles and order blocks, and how many of its tiles a thread block has, the last one perhaps fewer; and the
 * bytes of totals that come to each in a pass. */
struct cluster_row {
    int tiles, blocks, here, bytes;
};

/* Shared memory of each thread block. */
#define CLUSTER_HERE_MAX 64
template <class Sum> struct cluster_tiles {
    mbarrier published[CLUSTER_EXCHANGES]; /* the totals of all tiles of a row */
    mbarrier summed;                       /* and of its order blocks, which are: */
    typename Sum::sum blocks[ORDER_FAN];
    typename Sum::sum carries[CLUSTER_EXCHANGES][CLUSTER_HERE_MAX]; /* into the tiles here */
    alignas(16) typename Sum::sum totals[1];                        /* of two passes, whole order blocks each */
};

/* Bytes of it at most, for rows of so many order blocks. */
#define CLUSTER_TILES_BYTES(BLOCKS, SUM)          \
    ((CLUSTER_EXCHANGES + 2) * sizeof(mbarrier) + \
     (ORDER_FAN + CLUSTER_EXCHANGES * (CLUSTER_HERE_MAX + ORDER_FAN * (BLOCKS))) * (SUM))

/* Makes the mbarriers, by one thread. They are known to the cluster when it has met. */
template <class Sum> DEVICE void cluster_tiles_init(cluster_tiles<Sum> *memory, const struct cluster_row &row)
{
    for (int i = 0; i < CLUSTER_EXCHANGES; i++)
        mbarrier_init_cluster(&memory->published[i]);
    mbarrier_init_warps(&memory->summed, row.blocks);
    for (int i = 0; i < CLUSTER_EXCHANGES; i++)
        mbarrier_expect(&memory->published[i], row.bytes);
}

/* The totals of exchange `number`. */
template <class Sum>
DEVICE typename Sum::sum *cluster_totals(cluster_tiles<Sum> *memory, const struct cluster_row &row, unsigned number)
{
    return memory->totals + number % CLUSTER_EXCHANGES * row.blocks * ORDER_FAN;
}

/* Tells the total of a tile of this thread block to all, by a warp. */
template <class Sum>
DEVICE void cluster_tell(cluster_tiles<Sum> *memory, const struct cluster_row &row, unsigned number, int tile,
                         typename Sum::sum total)
{
    const int rank = lane_index();
    typename Sum::sum *place = cluster_totals<Sum>(memory, row, number) + cluster_rank() * row.here + tile;
    mbarrier *published = &memory->published[number % CLUSTER_EXCHANGES];
    if (rank < cluster_size())
        cluster_store_sum(cluster_address(smem_address(place), rank), cluster_address(smem_address(published), rank),
                          total);
}

/* The same of two tiles, an even one and the next, in one store: half as many have to arrive. */
template <class Sum>
DEVICE void cluster_tell_pair(cluster_tiles<Sum> *memory, const struct cluster_row &row, unsigned number, int tile,
                              const typename Sum::sum totals[2])
{
    const int rank = lane_index();
    typename Sum::sum *place = cluster_totals<Sum>(memory, row, number) + cluster_rank() * row.here + tile;
    mbarrier *published = &memory->published[number % CLUSTER_EXCHANGES];
    uint64_t words[sizeof(typename Sum::sum) / 4];
    memcpy(words, totals, sizeof(words));
    if (rank >= cluster_size())
        return;
    const unsigned to = cluster_address(smem_address(place), rank);
    if constexpr (sizeof(words) == sizeof(uint64_t))
        cluster_store(to, words[0], cluster_address(smem_address(published), rank));
    else
        cluster_store_v2(to, words[0], words[1], cluster_address(smem_address(published), rank));
}

/* Awaits all totals, and makes the carries into those of the `tiles` tiles of order block `block` that are here, by the
 * block's warp, whose lanes stand for tiles in the order of the pass: exchange `number` of the cluster. outside(sum,
 * last, before) puts the carry into the order block before those into its tiles; `sum` are prefixes of the totals in
 * lanes 0 to `last`. */
template <class Sum, class Outside, class Level = sum_level<Sum>>
DEVICE void cluster_tiles_carries(cluster_tiles<Sum> *memory, const struct cluster_row &row, unsigned number,
                                  bool backward, int block, int tiles, Outside outside, Level level = {})
{
    mbarrier *published = &memory->published[number % CLUSTER_EXCHANGES];
    mbarrier_wait_cluster(published, number / CLUSTER_EXCHANGES % 2);
    const int lane = lane_index(), last = min(tiles, ORDER_FAN) - 1, network = group_last<Sum>(last + 1);
    const int tile = block * ORDER_FAN + (backward ? last - lane : lane);
    if (block == 0 && lane == 0)
        mbarrier_expect(published, row.bytes);
    typename Sum::sum sum = lane <= last ? cluster_totals<Sum>(memory, row, number)[tile] : Sum::identity();
    sum = level.template scan<false>(sum, network);
    const carry<Sum> before = outside(sum, last, group_before<Sum, false>(sum, network));
    const int here = tile - cluster_rank() * row.here;
    if (lane <= last && here >= 0 && here < row.here)
        memory->carries[number % CLUSTER_EXCHANGES][here] = before.sum;
}

/* Makes the carries into the tiles of this thread block, by all of its warps, of which there are as many as order
 * blocks or more: exchange `number` of the cluster. */
template <class Sum, bool Backward, class Level = sum_level<Sum>>
DEVICE void cluster_tiles_scan(cluster_tiles<Sum> *memory, const struct cluster_row &row, unsigned number, int block,
                               Level level = {})
{
    const auto outside = [&](typename Sum::sum sum, int last, carry<Sum> before) {
        const int lane = lane_index(), met = Backward ? row.blocks - 1 - block : block;
        const auto factor = level.template factor<false>();
        if (lane == last)
            memory->blocks[met] = sum;
        mbarrier_arrive(&memory->summed);
        mbarrier_wait(&memory->summed, number % 2);
        sum = lane_get(level.above().template scan_rolled<false>(memory->blocks[lane], row.blocks), met - 1);
        return met > 0 ? level.join({sum, true}, before, factor) : before;
    };
    if (block < row.blocks)
        cluster_tiles_carries<Sum>(memory, row, number, Backward, block, row.tiles - block * ORDER_FAN, outside, level);
    __syncthreads();
}

#endif
