/*
 * Scans along an axis that is not the innermost one: sums of f32 samples, and 4-byte forms, of columns that lie side by
 * side in memory where tensor maps can describe them, of an order block at most. TMA moves tiles of tensors then.
 *
 * A strip is 64 columns, two to a lane, and an item a tile of a strip. A thread block holds an item in registers, two
 * leaves to a warp, from its only read to its only write; so the next item has shared memory to come to meanwhile.
 * Lanes change places only for the network: a warp takes some columns and turns the totals of their leaves, one per
 * lane, into carries.
 *
 * Items come in the order in which the last pass meets rows: the first tiles of all strips, then the second ones, as in
 * a copy of rows. A thread block takes the next one that none has taken: so nobody waits but for one that works, and
 * those near memory do more than others. What a tile needs of the tiles before was published long before it is wanted
 * (tile states, tile_state.cuh), and is asked for ahead.
 *
 * Of two passes the first one's carries are wanted at once, too. A launch before finds all its totals: it reads as fast
 * as memory can, and to wait for each other in one launch took longer than to read twice. While its last thread blocks
 * read on, the others have made room for those of the second launch, which ask for their first items.
 */
#ifndef KERNELS_CUDA_KERNELS_COLUMNS_TMA_CUH
#define KERNELS_CUDA_KERNELS_COLUMNS_TMA_CUH

#include <cuda.h>

#include "kernels/cuda/exchange/mbarrier.cuh"
#include "kernels/cuda/exchange/tile_state.cuh"
#include "kernels/cuda/lane/column_leaf.cuh"
#include "kernels/cuda/lane/shuffle.cuh"
#include "kernels/cuda/warp/kogge_stone.cuh"

#define TMA_LANE     2                                 /* columns of a lane */
#define TMA_COLUMNS  (TMA_LANE * WARP)                 /* columns of a strip */
#define TMA_WARPS    16                                /* warps of a thread block */
#define TMA_THREADS  (TMA_WARPS * WARP)                /* all of an SM */
#define TMA_LEAVES   (ORDER_FAN / TMA_WARPS)           /* leaves of a warp */
#define TMA_PER_WARP (TMA_COLUMNS / TMA_WARPS)         /* columns whose networks are a warp's */
#define TMA_POLLED   (ORDER_FAN * TMA_PER_WARP / WARP) /* tiles that a lane asks for */
#define TMA_LINE     (TMA_COLUMNS + 1)                 /* sums: no bank conflicts along columns nor along leaves */
#define TMA_RING     3                                 /* leaves of a warp on their way where only totals are wanted */

/* A leaf of all columns of a strip: what a TMA tile holds. */
typedef float tma_leaf[ORDER_LEAF][TMA_COLUMNS];

/* A tile of a strip. */
struct tma_item {
    unsigned strip, tile;
    int column, plane, outer; /* beginning of the strip in the tensor */
    int samples, leaves;      /* samples and leaves of a column in this tile */
};

/* Starts the copy of a leaf of an item; zeros stand for what is not there. By one lane. `Once`: the L2 cache need not
 * keep it. */
template <bool Once>
DEVICE void tma_load(const CUtensorMap &map, const struct tma_item &item, int leaf, tma_leaf *target, mbarrier *barrier)
{
    const int sample = (int)item.tile * ORDER_TILE + leaf * ORDER_LEAF;
    if (Once)
        tma_load_4d(smem_address(target), &map, item.column, sample, item.plane, item.outer, smem_address(barrier),
                    policy_evict_first());
    else
        tma_load_4d(smem_address(target), &map, item.column, sample, item.plane, item.outer, smem_address(barrier));
}

/* Starts the copy of the results of a leaf, without what is not there. By one lane, once all lanes have written. */
template <bool Once>
DEVICE void tma_store(const CUtensorMap &map, const struct tma_item &item, int leaf, const tma_leaf *stage)
{
    const int sample = (int)item.tile * ORDER_TILE + leaf * ORDER_LEAF;
    if (Once)
        tma_store_4d(&map, item.column, sample, item.plane, item.outer, smem_address(stage), policy_evict_first());
    else
        tma_store_4d(&map, item.column, sample, item.plane, item.outer, smem_address(stage));
    bulk_commit();
}

/* One launch. */
struct tma_plan {
    enum scand_dtype input_form, output_form;
    unsigned strips, tiles, items;
    unsigned strips_per_plane;
    unsigned first_plane, planes; /* planes: of the innermost axis of planes */
    int last;                     /* samples of a column's last tile */
    int pass_count;
    bool backward[SCAND_PASSES_MAX], exclusive;
    unsigned *taken;                      /* items, 0 before */
    tile_state *states[SCAND_PASSES_MAX]; /* totals of tiles; of the last pass all zero before */
};

/* A sum in shared memory: aligned, it moves in one instruction. */
template <class Sum> struct alignas(sizeof(typename Sum::sum)) tma_sum {
    typename Sum::sum sum;
};

/* Totals of leaves, then carries into them. */
template <class Sum> using tma_line = tma_sum<Sum>[TMA_LINE];

/* The shared memory of a thread block. */
template <class Sum> struct tma_smem {
    tma_leaf samples[TMA_WARPS][TMA_LEAVES];
    tma_leaf stages[TMA_WARPS];
    tma_line<Sum> sums[ORDER_FAN];
    mbarrier mbarriers[TMA_WARPS]; /* a warp's samples are there */
    unsigned next;                 /* item */
};

/* Shared memory of launches that want totals only. */
template <class Sum> struct tma_totals_smem {
    tma_leaf ring[TMA_WARPS][TMA_RING];
    tma_line<Sum> sums[2][ORDER_FAN]; /* sums of items that take turns */
    mbarrier mbarriers[TMA_WARPS][TMA_RING];
};

DEVICE struct tma_item tma_item_at(const struct tma_plan &plan, unsigned number)
{
    struct tma_item item;
    const unsigned row = number / plan.strips;
    item.strip = number - row * plan.strips;
    item.tile = plan.backward[plan.pass_count - 1] ? plan.tiles - 1 - row : row;
    const unsigned plane = item.strip / plan.strips_per_plane;
    item.column = (int)(item.strip - plane * plan.strips_per_plane) * TMA_COLUMNS;
    item.plane = (int)((plan.first_plane + plane) % plan.planes);
    item.outer = (int)((plan.first_plane + plane) / plan.planes);
    item.samples = item.tile == plan.tiles - 1 ? plan.last : ORDER_TILE;
    item.leaves = (item.samples + ORDER_LEAF - 1) / ORDER_LEAF;
    return item;
}

/* The number of samples of an item's leaf; 0 where there is none. */
DEVICE int tma_samples(const struct tma_item &item, int leaf)
{
    return min(max(item.samples - leaf * ORDER_LEAF, 0), ORDER_LEAF);
}

DEVICE void tma_pair(const float row[TMA_COLUMNS], float x[TMA_LANE][ORDER_LEAF], int i)
{
    const float2 pair = *(const float2 *)&row[lane_index() * TMA_LANE];
    x[0][i] = pair.x;
    x[1][i] = pair.y;
}

/* Reads this lane's columns of a leaf, in the order in which the first pass meets samples. */
template <class Sum>
DEVICE void tma_read(const struct tma_plan &plan, const tma_leaf *leaf, int samples, float x[TMA_LANE][ORDER_LEAF])
{
    if (plan.backward[0]) {
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            tma_pair((*leaf)[max(samples - 1 - i, 0)], x, i);
    } else {
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            tma_pair((*leaf)[i], x, i);
    }
#pragma unroll
    for (int c = 0; c < TMA_LANE; c++) {
        leaf_decode(plan.input_form, x[c]);
        column_fill<Sum>(x[c], samples);
    }
}

/* Results, as they are written. */
DEVICE void tma_write(const struct tma_plan &plan, tma_leaf *leaf, int samples, float x[TMA_LANE][ORDER_LEAF])
{
#pragma unroll
    for (int c = 0; c < TMA_LANE; c++) {
        if (x[c][0] != x[c][0] || x[c][ORDER_LEAF - 1] != x[c][ORDER_LEAF - 1]) /* what was added to NaN is NaN */
#pragma unroll
            for (int i = 0; i < ORDER_LEAF; i++)
                quiet_nan(&x[c][i]);
        leaf_encode(plan.output_form, x[c]);
    }
#pragma unroll
    for (int i = 0; i < ORDER_LEAF; i++)
        if (i < samples)
            *(float2 *)&(*leaf)[plan.backward[0] ? samples - 1 - i : i][lane_index() * TMA_LANE] = {x[0][i], x[1][i]};
}

/* The totals of a tile in a warp's columns, which lie next to those of the next tile. */
template <class Sum>
DEVICE tile_state *tma_states(const struct tma_plan &plan, const struct tma_item &item, int pass, unsigned tile,
                              int warp)
{
    const uint64_t number = ((uint64_t)item.strip * TMA_WARPS + warp) * plan.tiles + tile;
    return plan.states[pass] + number * TMA_PER_WARP * tile_state_words<Sum>();
}

/* The number of tiles that a pass meets before an item's. */
DEVICE int tma_met(const struct tma_plan &plan, const struct tma_item &item, int pass)
{
    return (int)(plan.backward[pass] ? plan.tiles - 1 - item.tile : item.tile);
}

/* Tells the totals of a tile. By one lane. */
template <class Sum> DEVICE void tma_publish(tile_state *states, const typename Sum::sum totals[TMA_PER_WARP])
{
    const int words = tile_state_words<Sum>();
    unsigned bits[TMA_PER_WARP * words];
    memcpy(bits, totals, sizeof(bits));
#pragma unroll
    for (int i = 0; i < TMA_PER_WARP * words; i += 2)
        store_relaxed_v2(states + i, TILE_STATE_PUBLISHED | bits[i], TILE_STATE_PUBLISHED | bits[i + 1]);
}

/* A tile state in one word, or in two that lie in one vector. */
template <class Sum> DEVICE tile_state_polled<Sum> tma_state_poll(const tile_state *state)
{
    tile_state_polled<Sum> polled;
    if constexpr (tile_state_words<Sum>() == 2)
        load_relaxed_v2(state, polled.words);
    else
        polled = tile_state_poll<Sum>(state);
    return polled;
}

/* The first of the tiles that a lane stands for, in one column, among those that a pass meets before an item's, counted
 * from the last one. */
DEVICE int tma_lane_tile()
{
    return lane_index() / TMA_PER_WARP * TMA_POLLED;
}

/* The tile state of the n-th one of them. */
template <class Sum>
DEVICE tile_state *tma_state(const struct tma_plan &plan, const struct tma_item &item, int pass, int warp, int n)
{
    const unsigned back = tma_lane_tile() + n + 1;
    const unsigned tile = plan.backward[pass] ? item.tile + back : item.tile - back;
    return tma_states<Sum>(plan, item, pass, tile, warp) + lane_index() % TMA_PER_WARP * tile_state_words<Sum>();
}

/* Asks for the totals of the tiles before an item's, in a warp's columns. */
template <class Sum>
DEVICE void tma_poll(const struct tma_plan &plan, const struct tma_item &item, int pass, int warp,
                     tile_state_polled<Sum> polled[TMA_POLLED])
{
    const int met = tma_met(plan, item, pass) - tma_lane_tile();
#pragma unroll
    for (int i = 0; i < TMA_POLLED; i++)
        if (i < met)
            polled[i] = tma_state_poll<Sum>(tma_state<Sum>(plan, item, pass, warp, i));
}

/* The carries into the tile, from what was polled, and what was published since: the way through the network to the
 * prefix of the tile before. */
template <class Sum>
DEVICE void tma_lookback(const struct tma_plan &plan, const struct tma_item &item, int pass, int warp,
                         const tile_state_polled<Sum> polled[TMA_POLLED], carry<Sum> outside[TMA_PER_WARP])
{
    const int met = tma_met(plan, item, pass), met_here = met - tma_lane_tile();
    typename Sum::sum sums[TMA_POLLED];
#pragma unroll
    for (int i = 0; i < TMA_POLLED; i++) {
        sums[i] = Sum::identity();
        if (i < met_here)
            sums[i] = tile_state_is_published<Sum>(polled[i])
                          ? tile_state_sum<Sum>(polled[i])
                          : tile_state_await<Sum>(tma_state<Sum>(plan, item, pass, warp, i));
    }
    __syncwarp();
    kogge_stone_one<Sum, TMA_POLLED>(sums, [&](int i, int further) { return i + further < met_here; });
    /* The further steps go across lanes, of which each has several members. */
#pragma unroll
    for (int distance = TMA_POLLED; distance < ORDER_FAN; distance *= 2) {
        typename Sum::sum before;
        lane_before<true>(sums[0], &before, distance / TMA_POLLED * TMA_PER_WARP, WARP - 1);
        sums[0] = sum_choose<Sum>(distance < met_here, Sum::add(before, sums[0]), sums[0]);
    }
#pragma unroll
    for (int k = 0; k < TMA_PER_WARP; k++)
        outside[k] = carry_of<Sum>(lane_get(sums[0], k), met > 0);
}

/* The totals of all leaves are there: the inclusive prefixes in a warp's columns, a leaf to a lane, in the order in
 * which the pass meets them; and the tile's totals are published. */
template <class Sum>
DEVICE void tma_prefixes(const struct tma_plan &plan, const struct tma_item &item, int pass, bool publishes, int warp,
                         const tma_sum<Sum> *line, typename Sum::sum prefixes[TMA_PER_WARP])
{
#pragma unroll
    for (int k = 0; k < TMA_PER_WARP; k++)
        prefixes[k] = group_scan<Sum, false>(line[warp * TMA_PER_WARP + k].sum, ORDER_FAN - 1);
    if (publishes && lane_index() == item.leaves - 1)
        tma_publish<Sum>(tma_states<Sum>(plan, item, pass, item.tile, warp), prefixes);
}

/* The line of sums of the leaf that a lane stands for. */
template <class Sum>
DEVICE tma_sum<Sum> *tma_line_of(const struct tma_plan &plan, const struct tma_item &item, int pass,
                                 tma_line<Sum> sums[ORDER_FAN])
{
    const int leaf = plan.backward[pass] ? item.leaves - 1 - lane_index() : lane_index();
    return sums[leaf & (ORDER_FAN - 1)];
}

/* Totals of leaves become carries into them. */
template <class Sum>
DEVICE void tma_carries(const struct tma_plan &plan, const struct tma_item &item, int pass, int warp,
                        tile_state_polled<Sum> polled[TMA_POLLED], tma_line<Sum> sums[ORDER_FAN])
{
    tma_sum<Sum> *const line = tma_line_of<Sum>(plan, item, pass, sums);
    typename Sum::sum prefixes[TMA_PER_WARP];
    carry<Sum> outside[TMA_PER_WARP];
    const bool publishes = pass == plan.pass_count - 1 && tma_met(plan, item, pass) < (int)plan.tiles - 1;
    tma_prefixes<Sum>(plan, item, pass, publishes, warp, line, prefixes);
    tma_lookback<Sum>(plan, item, pass, warp, polled, outside);
    __syncwarp();
#pragma unroll
    for (int k = 0; k < TMA_PER_WARP; k++) {
        typename Sum::sum before;
        const bool there = lane_before<false>(prefixes[k], &before, 1, WARP - 1);
        line[warp * TMA_PER_WARP + k].sum = carry_join<Sum>(outside[k], carry_of<Sum>(before, there)).sum;
    }
}

/* True when a pass over a column begins with this leaf. */
DEVICE bool tma_first(const struct tma_plan &plan, const struct tma_item &item, int pass, int leaf)
{
    return tma_met(plan, item, pass) == 0 && leaf == (plan.backward[pass] ? item.leaves - 1 : 0);
}

/* True when the L2 cache does better to keep tile states than samples: tile states of 8-byte sums lie in so many lines.
 */
template <class Sum> constexpr bool tma_once = sizeof(typename Sum::sum) > sizeof(float);

/* The samples that a thread holds of an item. */
struct tma_held {
    float x[TMA_LEAVES][TMA_LANE][ORDER_LEAF];
};

/* Unrolling of the loops over a warp's leaves. Code for one leaf is for the first, and the leaves then change places:
 * without an identity a leaf takes so many instructions that they should be there only once. */
template <class Sum> constexpr int tma_unrolled = Sum::has_identity ? TMA_LEAVES : 1;

/* The first leaf becomes the last one. */
DEVICE void tma_rotate(struct tma_held *held)
{
#pragma unroll
    for (int c = 0; c < TMA_LANE; c++)
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++) {
            const float first = held->x[0][c][i];
#pragma unroll
            for (int l = 1; l < TMA_LEAVES; l++)
                held->x[l - 1][c][i] = held->x[l][c][i];
            held->x[TMA_LEAVES - 1][c][i] = first;
        }
}

/* The totals of the first pass. */
template <class Sum>
DEVICE void tma_totals(const struct tma_item &item, int warp, struct tma_held *held, tma_line<Sum> sums[ORDER_FAN])
{
#pragma unroll(tma_unrolled <Sum>)
    for (int l = 0; l < TMA_LEAVES; l++) {
        const int leaf = warp * TMA_LEAVES + l, samples = tma_samples(item, leaf);
#pragma unroll
        for (int c = 0; c < TMA_LANE; c++)
            sums[leaf][lane_index() * TMA_LANE + c].sum = column_total<Sum, false>(held->x[0][c], samples);
        tma_rotate(held);
    }
}

/* The values of the first of two passes, and the totals of the second one. */
template <class Sum>
DEVICE void tma_between(const struct tma_plan &plan, const struct tma_item &item, int warp, struct tma_held *held,
                        tma_line<Sum> sums[ORDER_FAN])
{
    const bool reverse = plan.backward[0] != plan.backward[1];
#pragma unroll(tma_unrolled <Sum>)
    for (int l = 0; l < TMA_LEAVES; l++) {
        const int leaf = warp * TMA_LEAVES + l, samples = tma_samples(item, leaf);
        tma_sum<Sum> *const pair = &sums[leaf][lane_index() * TMA_LANE];
#pragma unroll
        for (int c = 0; c < TMA_LANE; c++) {
            float *const x = held->x[0][c];
            column_values<Sum, false>(x, samples, pair[c].sum, tma_first(plan, item, 0, leaf), plan.exclusive);
            column_fill<Sum>(x, samples);
            pair[c].sum = reverse ? column_total<Sum, true>(x, samples) : column_total<Sum, false>(x, samples);
        }
        tma_rotate(held);
    }
}

/* The values of the last pass, on their way out. */
template <class Sum>
DEVICE void tma_finish(const struct tma_plan &plan, const struct tma_item &item, int warp, const CUtensorMap &output,
                       struct tma_held *held, tma_smem<Sum> *smem)
{
    const int pass = plan.pass_count - 1;
    const bool reverse = plan.backward[0] != plan.backward[pass];
#pragma unroll(tma_unrolled <Sum>)
    for (int l = 0; l < TMA_LEAVES; l++) {
        const int leaf = warp * TMA_LEAVES + l, samples = tma_samples(item, leaf);
        const bool first = tma_first(plan, item, pass, leaf);
#pragma unroll
        for (int c = 0; c < TMA_LANE; c++) {
            const typename Sum::sum carry = smem->sums[leaf][lane_index() * TMA_LANE + c].sum;
            if (reverse)
                column_values<Sum, true>(held->x[0][c], samples, carry, first, plan.exclusive);
            else
                column_values<Sum, false>(held->x[0][c], samples, carry, first, plan.exclusive);
        }
        if (lane_index() == 0)
            bulk_wait_read();
        __syncwarp();
        tma_write(plan, &smem->stages[warp], samples, held->x[0]);
        fence_proxy_async_shared();
        __syncwarp();
        if (lane_index() == 0 && samples > 0)
            tma_store<tma_once<Sum>>(output, item, leaf, &smem->stages[warp]);
        tma_rotate(held);
    }
}

/* Starts the copy of a warp's leaves of an item. By one lane. */
template <class Sum>
DEVICE void tma_fetch(const CUtensorMap &input, const struct tma_item &item, int warp, tma_smem<Sum> *smem)
{
    mbarrier_expect(&smem->mbarriers[warp], sizeof(smem->samples[warp]));
#pragma unroll
    for (int l = 0; l < TMA_LEAVES; l++)
        tma_load<tma_once<Sum>>(input, item, warp * TMA_LEAVES + l, &smem->samples[warp][l], &smem->mbarriers[warp]);
}

/* The number of the next item that no thread block has taken. */
template <class Sum> DEVICE unsigned tma_take(const struct tma_plan &plan, tma_smem<Sum> *smem)
{
    __syncthreads();
    if (threadIdx.x == 0)
        smem->next = atomicAdd(plan.taken, 1);
    __syncthreads();
    return smem->next;
}

template <class Sum>
__global__ void __launch_bounds__(TMA_THREADS, 1)
    tma_kernel(const __grid_constant__ struct tma_plan plan, const __grid_constant__ CUtensorMap input,
               const __grid_constant__ CUtensorMap output)
{
    extern __shared__ __align__(128) char tma_smem_bytes[];
    tma_smem<Sum> *const smem = (tma_smem<Sum> *)tma_smem_bytes;
    const int warp = warp_index();
    if (lane_index() == 0)
        mbarrier_init_tx(&smem->mbarriers[warp]);
    unsigned number = tma_take(plan, smem);
    if (lane_index() == 0 && number < plan.items)
        tma_fetch<Sum>(input, tma_item_at(plan, number), warp, smem);
    tma_take(plan, smem);
    grid_wait_for_last();
    for (int parity = 0; number < plan.items; parity ^= 1) {
        const struct tma_item item = tma_item_at(plan, number);
        struct tma_held held;
        tile_state_polled<Sum> polled[TMA_POLLED];
        tma_poll<Sum>(plan, item, 0, warp, polled);
        mbarrier_wait(&smem->mbarriers[warp], parity);
#pragma unroll
        for (int l = 0; l < TMA_LEAVES; l++)
            tma_read<Sum>(plan, &smem->samples[warp][l], tma_samples(item, warp * TMA_LEAVES + l), held.x[l]);
        __syncwarp();
        number = smem->next;
        if (lane_index() == 0 && number < plan.items)
            tma_fetch<Sum>(input, tma_item_at(plan, number), warp, smem);
        tma_totals<Sum>(item, warp, &held, smem->sums);
        unsigned taken = 0;
        if (threadIdx.x == 0)
            taken = atomicAdd(plan.taken, 1);
#pragma unroll 1
        for (int pass = 0;;) {
            __syncthreads();
            tma_carries<Sum>(plan, item, pass, warp, polled, smem->sums);
            if (threadIdx.x == 0)
                smem->next = taken;
            __syncthreads();
            if (++pass == plan.pass_count)
                break;
            tma_poll<Sum>(plan, item, pass, warp, polled);
            tma_between<Sum>(plan, item, warp, &held, smem->sums);
        }
        tma_finish<Sum>(plan, item, warp, output, &held, smem);
    }
    if (lane_index() == 0)
        bulk_wait_read();
}

/* The totals of all tiles by the first of two passes. What the other launch wants first is read last, and still in the
 * L2 cache then. */
template <class Sum>
__global__ void __launch_bounds__(TMA_THREADS, 1)
    tma_totals_kernel(const __grid_constant__ struct tma_plan plan, const __grid_constant__ CUtensorMap input)
{
    extern __shared__ __align__(128) char tma_smem_bytes[];
    tma_totals_smem<Sum> *const smem = (tma_totals_smem<Sum> *)tma_smem_bytes;
    const int warp = warp_index();
    unsigned ahead = 0; /* leaves of a warp, counted through all items */
    grid_let_next_begin();
    auto fetch = [&](unsigned n, int vec16) {
        const unsigned number = blockIdx.x + n / TMA_LEAVES * gridDim.x;
        if (lane_index() != 0 || number >= plan.items)
            return;
        mbarrier_expect(&smem->mbarriers[warp][vec16], sizeof(tma_leaf));
        tma_load<false>(input, tma_item_at(plan, plan.items - 1 - number), warp + (int)(n % TMA_LEAVES) * TMA_WARPS,
                        &smem->ring[warp][vec16], &smem->mbarriers[warp][vec16]);
    };
    if (lane_index() == 0)
        for (int vec16 = 0; vec16 < TMA_RING; vec16++)
            mbarrier_init_tx(&smem->mbarriers[warp][vec16]);
    for (; ahead < TMA_RING; ahead++)
        fetch(ahead, (int)ahead);
    __syncwarp();
    int vec16 = 0, parity = 0, iteration = 0;
    for (unsigned number = blockIdx.x; number < plan.items; number += gridDim.x, iteration ^= 1) {
        const struct tma_item item = tma_item_at(plan, plan.items - 1 - number);
#pragma unroll 1
        for (int l = 0; l < TMA_LEAVES; l++) {
            const int leaf = warp + l * TMA_WARPS, samples = tma_samples(item, leaf);
            float x[TMA_LANE][ORDER_LEAF];
            mbarrier_wait(&smem->mbarriers[warp][vec16], parity);
            tma_read<Sum>(plan, &smem->ring[warp][vec16], samples, x);
            __syncwarp();
            fetch(ahead++, vec16);
#pragma unroll
            for (int c = 0; c < TMA_LANE; c++)
                smem->sums[iteration][leaf][lane_index() * TMA_LANE + c].sum = column_total<Sum, false>(x[c], samples);
            vec16 = vec16 == TMA_RING - 1 ? 0 : vec16 + 1;
            parity ^= vec16 == 0;
        }
        __syncthreads();
        typename Sum::sum prefixes[TMA_PER_WARP];
        tma_prefixes<Sum>(plan, item, 0, true, warp, tma_line_of<Sum>(plan, item, 0, smem->sums[iteration]), prefixes);
    }
}

#endif
