/*
 * Scans along an axis that is not the innermost one: sums of f32 samples, 4-byte forms, f16 and bf16, and other
 * operators of f32 and these forms, of columns that lie side by side in memory where tensor maps can describe them, of
 * an order block at most. TMA moves tiles of tensors then.
 *
 * A strip is 64 columns, two to a lane, and an item a tile of a strip. A thread block holds an item in registers, one
 * or two leaves to a warp, from its only read to its only write; so the next item has shared memory to come to
 * meanwhile.
 * Lanes change places only for the network: a warp takes some columns and turns the totals of their leaves, one per
 * lane, into carries.
 *
 * Items come in the order in which the last pass meets rows: the first tiles of all strips, then the second ones, as in
 * a copy of rows. A thread block takes the next one that none has taken: so nobody waits but for one that works, and
 * those near memory do more than others. What a tile needs of the tiles before was published long before it is wanted
 * (tile states, tile_state.cuh), and is asked for ahead.
 *
 * Of two passes the first one's carries are wanted at once, too. A launch before finds all its totals: it reads as fast
 * as memory can, and to wait for each other in one launch took longer than to read twice. It clears the tile states of
 * the second launch, too. While its last thread blocks read on, the others have made room for those of the second
 * launch, which ask for their first items.
 */
#ifndef KERNELS_CUDA_KERNELS_COLUMNS_TMA_CUH
#define KERNELS_CUDA_KERNELS_COLUMNS_TMA_CUH

#include <cuda.h>

#include "kernels/cuda/exchange/mbarrier.cuh"
#include "kernels/cuda/exchange/tile_state.cuh"
#include "kernels/cuda/lane/column_leaf.cuh"
#include "kernels/cuda/lane/shuffle.cuh"
#include "kernels/cuda/warp/kogge_stone.cuh"

#define TMA_LANE    2                 /* columns of a lane */
#define TMA_COLUMNS (TMA_LANE * WARP) /* columns of a strip */
#define TMA_LINE    (TMA_COLUMNS + 1) /* sums: no bank conflicts along columns nor along leaves */
#define TMA_RING    3                 /* leaves of a warp on their way where only totals are wanted */

/* An operator of samples that lie in memory as a Word of 4 or 2 bytes, and how the warps of a thread block, which is
 * all that an SM has, share an item. More warps have registers enough where sums are wider than words. */
template <class Accumulator, class Word> struct tma_rule : Accumulator {
    using word = Word;
    static const int warps = sizeof(Word) == 2 && sizeof(typename Accumulator::sum) == 8 ? 32 : 16;
    static const int leaves = ORDER_FAN / warps;           /* leaves of a warp; */
    static const int networks = TMA_COLUMNS / warps;       /* columns whose networks are a warp's; */
    static const int polled = ORDER_FAN * networks / WARP; /* tiles that a lane asks for */
};

/* A leaf of all columns of a strip: what a TMA tile holds. */
template <class Sum> using tma_leaf = typename Sum::word[ORDER_LEAF][TMA_COLUMNS];

/* A tile of a strip. */
struct tma_item {
    unsigned strip, tile;
    int column, plane, outer; /* beginning of the strip in the tensor */
    int samples, leaves;      /* samples and leaves of a column in this tile */
};

/* Starts the copy of a leaf of an item; zeros stand for what is not there. By one lane. `Once`: the L2 cache need not
 * keep it. */
template <class Sum, bool Once>
DEVICE void tma_load(const CUtensorMap &map, const struct tma_item &item, int leaf, tma_leaf<Sum> *target,
                     mbarrier *barrier)
{
    const int sample = (int)item.tile * ORDER_TILE + leaf * ORDER_LEAF;
    if (Once)
        tma_load_4d(smem_address(target), &map, item.column, sample, item.plane, item.outer, smem_address(barrier),
                    policy_evict_first());
    else
        tma_load_4d(smem_address(target), &map, item.column, sample, item.plane, item.outer, smem_address(barrier));
}

/* Starts the copy of the results of a leaf, without what is not there. By one lane, once all lanes have written. */
template <class Sum, bool Once>
DEVICE void tma_store(const CUtensorMap &map, const struct tma_item &item, int leaf, const tma_leaf<Sum> *stage)
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
    uint64_t strips_inverse; /* divides by strips: tma_quotient */
    unsigned strips_per_plane;
    unsigned first_plane, planes; /* planes: of the innermost axis of planes, or 0 */
    int last;                     /* samples of a column's last tile */
    int pass_count;
    bool backward[SCAND_PASSES_MAX], exclusive;
    unsigned *taken;                      /* items, 0 before */
    tile_state *states[SCAND_PASSES_MAX]; /* totals of tiles; of the last pass all zero before */
    uint64_t flip;                        /* instance_flip */
};

/* A sum in shared memory: aligned, it moves in one instruction. */
template <class Sum> struct alignas(sizeof(typename Sum::sum)) tma_sum {
    typename Sum::sum sum;
};

/* Totals of leaves, then carries into them. */
template <class Sum> using tma_line = tma_sum<Sum>[TMA_LINE];

/* The shared memory of a thread block. */
template <class Sum> struct tma_smem {
    tma_leaf<Sum> samples[Sum::warps][Sum::leaves];
    tma_leaf<Sum> stages[Sum::warps];
    tma_line<Sum> sums[ORDER_FAN];
    mbarrier mbarriers[Sum::warps]; /* a warp's samples are there */
    unsigned next;                  /* item */
};

/* Shared memory of launches that want totals only. */
template <class Sum> struct tma_totals_smem {
    tma_leaf<Sum> ring[Sum::warps][TMA_RING];
    tma_line<Sum> sums[2][ORDER_FAN]; /* sums of items that take turns */
    mbarrier mbarriers[Sum::warps][TMA_RING];
};

/* A number below 2^31 divided by what `inverse` is 2^63 divided by, rounded up: a division takes three times as long.
 */
DEVICE unsigned tma_quotient(unsigned number, uint64_t inverse)
{
    return (unsigned)__umul64hi(2ull * number, inverse);
}

DEVICE struct tma_item tma_item_at(const struct tma_plan &plan, unsigned number)
{
    struct tma_item item;
    const unsigned row = tma_quotient(number, plan.strips_inverse);
    item.strip = number - row * plan.strips;
    item.tile = plan.backward[plan.pass_count - 1] ? plan.tiles - 1 - row : row;
    unsigned plane = 0, outer = 0, column = item.strip;
    if (plan.planes > 0) {
        const unsigned planes = item.strip / plan.strips_per_plane;
        column -= planes * plan.strips_per_plane;
        outer = (plan.first_plane + planes) / plan.planes;
        plane = (plan.first_plane + planes) % plan.planes;
    }
    item.column = (int)column * TMA_COLUMNS;
    item.plane = (int)plane;
    item.outer = (int)outer;
    item.samples = item.tile == plan.tiles - 1 ? plan.last : ORDER_TILE;
    item.leaves = (item.samples + ORDER_LEAF - 1) / ORDER_LEAF;
    return item;
}

/* The number of samples of an item's leaf; 0 where there is none. */
DEVICE int tma_samples(const struct tma_item &item, int leaf)
{
    return min(max(item.samples - leaf * ORDER_LEAF, 0), ORDER_LEAF);
}

/* Calls get(i, row) for the rows of a leaf in the order in which the first pass meets them, each before the next one.
 */
template <class Get> DEVICE void tma_rows(const struct tma_plan &plan, int samples, const Get &get)
{
    if (plan.backward[0]) {
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            get(i, max(samples - 1 - i, 0));
    } else {
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            get(i, i);
    }
}

/* Reads this lane's columns of a leaf, in the order in which the first pass meets samples. */
template <class Sum>
DEVICE void tma_read(const struct tma_plan &plan, const tma_leaf<Sum> *leaf, int samples, float x[TMA_LANE][ORDER_LEAF])
{
    constexpr bool words = sizeof(typename Sum::word) == sizeof(float);
    if constexpr (words) {
        tma_rows(plan, samples, [&](int i, int row) {
            const float2 pair = *(const float2 *)&(*leaf)[row][lane_index() * TMA_LANE];
            x[0][i] = pair.x;
            x[1][i] = pair.y;
        });
    } else {
        uint32_t pairs[ORDER_LEAF];
        tma_rows(plan, samples,
                 [&](int i, int row) { pairs[i] = *(const uint32_t *)&(*leaf)[row][lane_index() * TMA_LANE]; });
        pairs_decode<false>(plan.input_form, pairs, x);
    }
#pragma unroll
    for (int c = 0; c < TMA_LANE; c++) {
        if constexpr (words)
            leaf_decode(plan.input_form, x[c]);
        leaf_turn<Sum>(x[c], plan.flip);
        column_fill<Sum>(x[c], samples);
    }
}

/* Results, as they are written. */
template <class Sum>
DEVICE void tma_write(const struct tma_plan &plan, tma_leaf<Sum> *leaf, int samples, float x[TMA_LANE][ORDER_LEAF])
{
    constexpr bool words = sizeof(typename Sum::word) == sizeof(float);
    uint32_t pairs[ORDER_LEAF];
    bool nan = false;
#pragma unroll
    for (int c = 0; c < TMA_LANE; c++) {
        leaf_turn<Sum>(x[c], plan.flip);
        if (x[c][0] != x[c][0] || x[c][ORDER_LEAF - 1] != x[c][ORDER_LEAF - 1]) { /* what was added to NaN is NaN */
            nan = true;
            if constexpr (words)
#pragma unroll
                for (int i = 0; i < ORDER_LEAF; i++)
                    quiet_nan(&x[c][i]);
        }
        if constexpr (words)
            leaf_encode(plan.output_form, x[c]);
    }
    if constexpr (!words)
        pairs_encode<false>(plan.output_form, x, nan, pairs);
    const auto put = [&](int i, int row) {
        auto *const pair = &(*leaf)[row][lane_index() * TMA_LANE];
        if constexpr (words)
            *(float2 *)pair = {x[0][i], x[1][i]};
        else
            *(uint32_t *)pair = pairs[i];
    };
    if (samples == ORDER_LEAF)
        tma_rows(plan, ORDER_LEAF, put);
    else
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            if (i < samples)
                put(i, plan.backward[0] ? samples - 1 - i : i);
}

/* The totals of a tile in a warp's columns, which lie next to those of the next tile. */
template <class Sum>
DEVICE tile_state *tma_states(const struct tma_plan &plan, const struct tma_item &item, int pass, unsigned tile,
                              int warp)
{
    const uint64_t number = ((uint64_t)item.strip * Sum::warps + warp) * plan.tiles + tile;
    return plan.states[pass] + number * Sum::networks * tile_state_words<Sum>();
}

/* The number of tiles that a pass meets before an item's. */
DEVICE int tma_met(const struct tma_plan &plan, const struct tma_item &item, int pass)
{
    return (int)(plan.backward[pass] ? plan.tiles - 1 - item.tile : item.tile);
}

/* Tells the totals of a tile. By one lane. */
template <class Sum> DEVICE void tma_publish(tile_state *states, const typename Sum::sum totals[Sum::networks])
{
    const int words = tile_state_words<Sum>();
    unsigned bits[Sum::networks * words];
    memcpy(bits, totals, sizeof(bits));
#pragma unroll
    for (int i = 0; i < Sum::networks * words; i += 2)
        store_relaxed_v2(states + i, TILE_STATE_PUBLISHED | bits[i], TILE_STATE_PUBLISHED | bits[i + 1]);
}

/* Clears the states of a tile, for the other launch. By one lane. */
template <class Sum> DEVICE void tma_clear(tile_state *states)
{
#pragma unroll
    for (int i = 0; i < Sum::networks * tile_state_words<Sum>(); i += 2)
        store_relaxed_v2(states + i, 0, 0);
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
template <class Sum> DEVICE int tma_lane_tile()
{
    return lane_index() / Sum::networks * Sum::polled;
}

/* The tile state of the n-th one of them. */
template <class Sum>
DEVICE tile_state *tma_state(const struct tma_plan &plan, const struct tma_item &item, int pass, int warp, int n)
{
    const unsigned back = tma_lane_tile<Sum>() + n + 1;
    const unsigned tile = plan.backward[pass] ? item.tile + back : item.tile - back;
    return tma_states<Sum>(plan, item, pass, tile, warp) + lane_index() % Sum::networks * tile_state_words<Sum>();
}

/* Asks for the totals of the tiles before an item's, in a warp's columns. */
template <class Sum>
DEVICE void tma_poll(const struct tma_plan &plan, const struct tma_item &item, int pass, int warp,
                     tile_state_polled<Sum> polled[Sum::polled])
{
    const int met = tma_met(plan, item, pass) - tma_lane_tile<Sum>();
#pragma unroll
    for (int i = 0; i < Sum::polled; i++)
        if (i < met)
            polled[i] = tma_state_poll<Sum>(tma_state<Sum>(plan, item, pass, warp, i));
}

/* The carries into the tile, from what was polled, and what was published since: the way through the network to the
 * prefix of the tile before. */
template <class Sum>
DEVICE void tma_lookback(const struct tma_plan &plan, const struct tma_item &item, int pass, int warp,
                         const tile_state_polled<Sum> polled[Sum::polled], carry<Sum> outside[Sum::networks])
{
    const int met = tma_met(plan, item, pass), met_here = met - tma_lane_tile<Sum>();
    typename Sum::sum sums[Sum::polled];
#pragma unroll
    for (int i = 0; i < Sum::polled; i++) {
        sums[i] = Sum::identity();
        if (i < met_here)
            sums[i] = tile_state_is_published<Sum>(polled[i])
                          ? tile_state_sum<Sum>(polled[i])
                          : tile_state_await<Sum>(tma_state<Sum>(plan, item, pass, warp, i));
    }
    __syncwarp();
    kogge_stone_one<Sum, Sum::polled>(sums, [&](int i, int further) { return i + further < met_here; });
    /* The further steps go across lanes, of which each has several members. */
#pragma unroll
    for (int distance = Sum::polled; distance < ORDER_FAN; distance *= 2) {
        typename Sum::sum before;
        lane_before<true>(sums[0], &before, distance / Sum::polled * Sum::networks, WARP - 1);
        sums[0] = sum_choose<Sum>(distance < met_here, Sum::add(before, sums[0]), sums[0]);
    }
#pragma unroll
    for (int k = 0; k < Sum::networks; k++)
        outside[k] = carry_of<Sum>(lane_get(sums[0], k), met > 0);
}

/* The totals of all leaves are there: the inclusive prefixes in a warp's columns, a leaf to a lane, in the order in
 * which the pass meets them; and the tile's totals are published. */
template <class Sum>
DEVICE void tma_prefixes(const struct tma_plan &plan, const struct tma_item &item, int pass, bool publishes, int warp,
                         const tma_sum<Sum> *line, typename Sum::sum prefixes[Sum::networks])
{
#pragma unroll
    for (int k = 0; k < Sum::networks; k++)
        prefixes[k] = group_scan<Sum, false>(line[warp * Sum::networks + k].sum, ORDER_FAN - 1);
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
                        tile_state_polled<Sum> polled[Sum::polled], tma_line<Sum> sums[ORDER_FAN])
{
    tma_sum<Sum> *const line = tma_line_of<Sum>(plan, item, pass, sums);
    typename Sum::sum prefixes[Sum::networks];
    carry<Sum> outside[Sum::networks];
    const bool publishes = pass == plan.pass_count - 1 && tma_met(plan, item, pass) < (int)plan.tiles - 1;
    tma_prefixes<Sum>(plan, item, pass, publishes, warp, line, prefixes);
    tma_lookback<Sum>(plan, item, pass, warp, polled, outside);
    __syncwarp();
#pragma unroll
    for (int k = 0; k < Sum::networks; k++) {
        typename Sum::sum before;
        const bool there = lane_before<false>(prefixes[k], &before, 1, WARP - 1);
        line[warp * Sum::networks + k].sum = carry_join<Sum>(outside[k], carry_of<Sum>(before, there)).sum;
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
template <class Sum> struct tma_held {
    float x[Sum::leaves][TMA_LANE][ORDER_LEAF];
};

/* Unrolling of the loops over a warp's leaves. Code for one leaf is for the first, and the leaves then change places:
 * without an identity a leaf takes so many instructions that they should be there only once. */
template <class Sum> constexpr int tma_unrolled = Sum::has_identity ? Sum::leaves : 1;

/* The first leaf becomes the last one. */
template <class Sum> DEVICE void tma_rotate(tma_held<Sum> *held)
{
#pragma unroll
    for (int c = 0; c < TMA_LANE; c++)
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++) {
            const float first = held->x[0][c][i];
#pragma unroll
            for (int l = 1; l < Sum::leaves; l++)
                held->x[l - 1][c][i] = held->x[l][c][i];
            held->x[Sum::leaves - 1][c][i] = first;
        }
}

/* The totals of the first pass. */
template <class Sum>
DEVICE void tma_totals(const struct tma_item &item, int warp, tma_held<Sum> *held, tma_line<Sum> sums[ORDER_FAN])
{
#pragma unroll(tma_unrolled <Sum>)
    for (int l = 0; l < Sum::leaves; l++) {
        const int leaf = warp * Sum::leaves + l, samples = tma_samples(item, leaf);
#pragma unroll
        for (int c = 0; c < TMA_LANE; c++)
            sums[leaf][lane_index() * TMA_LANE + c].sum = column_total<Sum, false>(held->x[0][c], samples);
        tma_rotate(held);
    }
}

/* The values of the first of two passes, and the totals of the second one. */
template <class Sum>
DEVICE void tma_between(const struct tma_plan &plan, const struct tma_item &item, int warp, tma_held<Sum> *held,
                        tma_line<Sum> sums[ORDER_FAN])
{
    const bool reverse = plan.backward[0] != plan.backward[1];
#pragma unroll(tma_unrolled <Sum>)
    for (int l = 0; l < Sum::leaves; l++) {
        const int leaf = warp * Sum::leaves + l, samples = tma_samples(item, leaf);
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
                       tma_held<Sum> *held, tma_smem<Sum> *smem)
{
    const int pass = plan.pass_count - 1;
    const bool reverse = plan.backward[0] != plan.backward[pass];
#pragma unroll(tma_unrolled <Sum>)
    for (int l = 0; l < Sum::leaves; l++) {
        const int leaf = warp * Sum::leaves + l, samples = tma_samples(item, leaf);
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
        tma_write<Sum>(plan, &smem->stages[warp], samples, held->x[0]);
        fence_proxy_async_shared();
        __syncwarp();
        if (lane_index() == 0 && samples > 0)
            tma_store<Sum, tma_once<Sum>>(output, item, leaf, &smem->stages[warp]);
        tma_rotate(held);
    }
}

/* Starts the copy of a warp's leaves of an item. By one lane. */
template <class Sum>
DEVICE void tma_fetch(const CUtensorMap &input, const struct tma_item &item, int warp, tma_smem<Sum> *smem)
{
    mbarrier_expect(&smem->mbarriers[warp], sizeof(smem->samples[warp]));
#pragma unroll
    for (int l = 0; l < Sum::leaves; l++)
        tma_load<Sum, tma_once<Sum>>(input, item, warp * Sum::leaves + l, &smem->samples[warp][l],
                                     &smem->mbarriers[warp]);
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
__global__ void __launch_bounds__(Sum::warps *WARP, 1)
    tma_kernel(const __grid_constant__ struct tma_plan plan, const __grid_constant__ CUtensorMap input,
               const __grid_constant__ CUtensorMap output)
{
#if __CUDA_ARCH__ >= 900
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
        tma_held<Sum> held;
        tile_state_polled<Sum> polled[Sum::polled];
        tma_poll<Sum>(plan, item, 0, warp, polled);
        mbarrier_wait(&smem->mbarriers[warp], parity);
#pragma unroll
        for (int l = 0; l < Sum::leaves; l++)
            tma_read<Sum>(plan, &smem->samples[warp][l], tma_samples(item, warp * Sum::leaves + l), held.x[l]);
        __syncwarp();
        number = smem->next;
        if (lane_index() == 0 && number < plan.items)
            tma_fetch<Sum>(input, tma_item_at(plan, number), warp, smem);
        unsigned taken = 0;
        if (threadIdx.x == 0)
            taken = atomicAdd(plan.taken, 1);
        tma_totals<Sum>(item, warp, &held, smem->sums);
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
#endif
}

/* The totals of all tiles by the first of two passes. What the other launch wants first is read last, and still in the
 * L2 cache then. */
template <class Sum>
__global__ void __launch_bounds__(Sum::warps *WARP, 1)
    tma_totals_kernel(const __grid_constant__ struct tma_plan plan, const __grid_constant__ CUtensorMap input)
{
#if __CUDA_ARCH__ >= 900
    extern __shared__ __align__(128) char tma_smem_bytes[];
    tma_totals_smem<Sum> *const smem = (tma_totals_smem<Sum> *)tma_smem_bytes;
    const int warp = warp_index();
    unsigned ahead = 0; /* leaves of a warp, counted through all items */
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        *plan.taken = 0; /* which thread blocks of the next launch count at once */
        __threadfence();
    }
    __syncthreads();
    grid_let_next_begin();
    auto fetch = [&](unsigned n, int vec16) {
        const unsigned number = blockIdx.x + n / Sum::leaves * gridDim.x;
        if (lane_index() != 0 || number >= plan.items)
            return;
        mbarrier_expect(&smem->mbarriers[warp][vec16], sizeof(tma_leaf<Sum>));
        tma_load<Sum, false>(input, tma_item_at(plan, plan.items - 1 - number),
                             warp + (int)(n % Sum::leaves) * Sum::warps, &smem->ring[warp][vec16],
                             &smem->mbarriers[warp][vec16]);
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
        for (int l = 0; l < Sum::leaves; l++) {
            const int leaf = warp + l * Sum::warps, samples = tma_samples(item, leaf);
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
        typename Sum::sum prefixes[Sum::networks];
        tma_prefixes<Sum>(plan, item, 0, true, warp, tma_line_of<Sum>(plan, item, 0, smem->sums[iteration]), prefixes);
        if (lane_index() == 0)
            tma_clear<Sum>(tma_states<Sum>(plan, item, plan.pass_count - 1, item.tile, warp));
    }
#endif
}

#endif
