/*
 * One pass along an axis that is not the innermost one, where many columns lie side by side in memory: sums of f32
 * samples, and 4-byte forms.
 *
 * A strip is 32 columns, a lane each. An item is a tile of a strip, and items are taken in the order in which the pass
 * meets rows: the first tiles of all strips, then the second ones. So the whole device reads and writes about the same
 * rows at any time, as a copy of rows does, and the totals of the tiles before an item's have long been made by others;
 * they are published in device memory (tile states, tile_state.cuh). All thread blocks are resident (a cooperative
 * launch) and take their items in order, so that none waits for one that cannot come.
 *
 * A thread block streams through an item some leaves at a time: a group, of which each warp has a leaf. A prefix is
 * made of the totals of this group and the last one, in shared memory, and of sums that the warp remembers. The leaves
 * ahead are on their way to a ring in shared memory. While the values of a group are made, so are the totals of the
 * next one: chains of additions side by side.
 */
#ifndef KERNELS_CUDA_KERNELS_COLUMNS_STREAMING_CUH
#define KERNELS_CUDA_KERNELS_COLUMNS_STREAMING_CUH

#include "kernels/cuda/exchange/tile_state.cuh"
#include "kernels/cuda/lane/convert32.cuh"
#include "kernels/cuda/warp/item.cuh"
#include "kernels/cuda/warp/kogge_stone.cuh"
#include "kernels/cuda/warp/tile_io.cuh"

#define STREAMING_WARPS    8 /* warps of a thread block: leaves of a group */
#define STREAMING_RESIDENT 2 /* thread blocks of an SM */
#define STREAMING_RING     4 /* groups that are in shared memory or on their way there */
#define STREAMING_PER_WARP \
    (ORDER_FAN / STREAMING_WARPS) /* members of a group of tiles or blocks that a warp asks for */
#define STREAMING_TOTALS 4        /* groups whose totals are known: those of one are written while two are read */

/* One launch. */
struct streaming_plan {
    struct scan_plan scan; /* sides, axes, first row and forms of the scan */
    uint64_t rows;
    unsigned strips, items;
    unsigned tiles, leaves; /* tiles and leaves of a column */
    int last;               /* samples of its last leaf */
    bool backward, exclusive;
    tile_state *tile_states;  /* the totals of tiles: by tile and column, in the order in which they are met; */
    tile_state *block_states; /* and of order blocks; all zero before */
};

/* A leaf of the ring: samples in the order in which they are met. */
struct streaming_ring_leaf {
    float samples[ORDER_LEAF][WARP];
};

/* Sums of one level that a network of `Fan` members still needs, for each of its steps. */
template <class Sum, int Fan> struct streaming_history {
    typename Sum::sum sums[Fan - 1][WARP];
};

/* The shared memory of a thread block. */
template <class Sum> struct streaming_smem {
    streaming_ring_leaf ring[STREAMING_WARPS][STREAMING_RING];
    typename Sum::sum totals[STREAMING_TOTALS * STREAMING_WARPS][WARP]; /* totals of leaves, by position */
    streaming_history<Sum, ORDER_FAN / STREAMING_WARPS> groups[STREAMING_WARPS];
    typename Sum::sum published[3][STREAMING_WARPS]
                               [WARP]; /* by others: of tiles, of order blocks; of tiles for a total */
};

/* The position of a thread block on one side. */
struct streaming_position {
    char *column;                      /* sample 0 of this lane's; or where it copies vectors of the first leaf */
    unsigned item, tile, strip, group; /* tile, group: in the order in which they are met */
    bool there;                        /* true when this lane has a column */
    bool vectors;                      /* true when the vectors of all lanes lie side by side, and are theirs alone */
};

/* A leaf of the group that a thread block is at. */
struct streaming_leaf {
    int number;  /* in the column */
    int samples; /* 0 where there is none */
};

/* Unlike lane_index, read once. */
DEVICE int streaming_lane()
{
    return (int)threadIdx.x % WARP;
}

/* The number of leaves of the n-th tile that is met. */
DEVICE int streaming_tile_leaves(const struct streaming_plan &plan, unsigned n)
{
    return n == (plan.backward ? 0 : plan.tiles - 1) ? (int)(plan.leaves - (plan.tiles - 1) * ORDER_FAN) : ORDER_FAN;
}

DEVICE struct streaming_leaf streaming_leaf_at(const struct streaming_plan &plan, const struct streaming_position &at,
                                               int warp)
{
    const int count = streaming_tile_leaves(plan, at.tile), position = (int)at.group * STREAMING_WARPS + warp;
    const int tile = (int)(plan.backward ? plan.tiles - 1 - at.tile : at.tile);
    struct streaming_leaf leaf = {tile * ORDER_FAN + (plan.backward ? count - 1 - position : position), 0};
    if (position < count)
        leaf.samples = leaf.number == (int)plan.leaves - 1 ? plan.last : ORDER_LEAF;
    return leaf;
}

DEVICE struct streaming_position streaming_start(const struct streaming_plan &plan, const struct scan_side &side,
                                                 unsigned item)
{
    struct streaming_position at = {side.base, item, item / plan.strips, item % plan.strips, 0, false, false};
    const uint64_t row = (uint64_t)at.strip * WARP + streaming_lane();
    at.there = item < plan.items && row < plan.rows;
    if (at.there)
        at.column = side_at(plan.scan, side, plan.scan.first_row + row, 0);
    return at;
}

/* The position on the input's side, where lanes copy vectors, if they can, of every fourth sample of all columns. */
DEVICE struct streaming_position streaming_start_ahead(const struct streaming_plan &plan, unsigned item)
{
    const struct scan_side &side = plan.scan.input;
    struct streaming_position at = streaming_start(plan, side, item);
    const int lane = streaming_lane();
    const uint64_t first = __shfl_sync(~0u, (unsigned long long)(uintptr_t)at.column, 0);
    at.vectors = __all_sync(~0u, at.there && (uintptr_t)at.column == first + lane * 4 &&
                                     (first | side.stride) % VEC16_BYTES == 0);
    if (at.vectors)
        at.column =
            (char *)(uintptr_t)first + lane % 8 * VEC16_BYTES + lane / 8 * (plan.backward ? -side.stride : side.stride);
    return at;
}

/* Moves to the group that follows; false where that is the next item's. */
DEVICE bool streaming_advance(const struct streaming_plan &plan, struct streaming_position *at)
{
    return (int)(++at->group * STREAMING_WARPS) < streaming_tile_leaves(plan, at->tile);
}

DEVICE char *streaming_steps(char *address, int steps, int64_t stride)
{
    return address_after(address, steps, (int)stride);
}

/* Starts the copy of 4 or 16 bytes to an address in shared memory. */
template <int Bytes> DEVICE void streaming_copy(unsigned target, const char *source)
{
    if (Bytes == VEC16_BYTES)
        cp_async_16(target, source);
    else
        cp_async_4(target, source);
}

/* The address of the sample of a leaf that is met first. */
DEVICE char *streaming_first(const struct streaming_plan &plan, const struct streaming_position &at,
                             struct streaming_leaf leaf, int64_t stride)
{
    return streaming_steps(at.column, leaf.number * ORDER_LEAF + (plan.backward ? leaf.samples - 1 : 0), stride);
}

/* Starts the copy of a leaf. */
DEVICE void streaming_fetch(const struct streaming_plan &plan, const struct streaming_position &at,
                            struct streaming_leaf leaf, unsigned vec16)
{
    const int lane = streaming_lane();
    const int64_t step = plan.backward ? -plan.scan.input.stride : plan.scan.input.stride;
    char *const source = streaming_first(plan, at, leaf, plan.scan.input.stride);
    const bool full = leaf.samples == ORDER_LEAF;
    if (at.vectors) {
        const int end = leaf.samples - lane / 8;
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i += 4)
            if (full || i < end)
                streaming_copy<VEC16_BYTES>(vec16 + i * WARP * 4 + lane * VEC16_BYTES,
                                            streaming_steps(source, i, step));
    } else if (at.there) {
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            if (full || i < leaf.samples)
                streaming_copy<4>(vec16 + (i * WARP + lane) * 4, streaming_steps(source, i, step));
    }
}

/* Takes the n-th member of a group, n = 0, 1, ..., and returns its inclusive prefix. */
template <class Sum, int Fan>
DEVICE typename Sum::sum streaming_push(streaming_history<Sum, Fan> *history, unsigned n, typename Sum::sum sum)
{
#pragma unroll
    for (unsigned distance = 1; distance < Fan; distance *= 2) {
        typename Sum::sum *const at = &history->sums[distance - 1 + n % distance][streaming_lane()];
        const typename Sum::sum before = *at;
        *at = sum;
        sum = sum_choose<Sum>(n >= distance, Sum::add(before, sum), sum);
    }
    return sum;
}

/* The inclusive prefix of leaf `position` of a tile whose first group's totals are those of iteration `iteration`. The
 * steps of the network that stay among the last STREAMING_WARPS leaves are made anew; longer ones lead to leaves of the
 * same warp. */
template <class Sum>
DEVICE typename Sum::sum streaming_prefix(streaming_smem<Sum> *smem, int warp, unsigned iteration, int position)
{
    typename Sum::sum sums[STREAMING_WARPS];
#pragma unroll
    for (int i = 0; i < STREAMING_WARPS; i++)
        sums[i] = smem->totals[(iteration * STREAMING_WARPS + position - i) % (STREAMING_TOTALS * STREAMING_WARPS)]
                              [streaming_lane()];
    const typename Sum::sum last =
        kogge_stone_one<Sum, STREAMING_WARPS, true>(sums, [&](int i, int further) { return position - i >= further; });
    return streaming_push<Sum>(&smem->groups[warp], (unsigned)position / STREAMING_WARPS, last);
}

template <class Sum> DEVICE carry<Sum> streaming_nothing()
{
    return carry_of<Sum>(Sum::zero(), false);
}

/* The tile state of this lane's column for a tile or block, by what number it is met. */
template <class Sum>
DEVICE tile_state *streaming_state(const struct streaming_plan &plan, tile_state *states, unsigned n, unsigned strip)
{
    return states + (((uint64_t)n * plan.strips + strip) * WARP + streaming_lane()) * tile_state_words<Sum>();
}

/* A poll of a warp's tile states of a group: of the n-th member that is met of a level, of which `before` are met
 * earlier in its group, those STREAMING_PER_WARP x share and more before it. */
template <class Sum>
DEVICE void streaming_poll(const struct streaming_plan &plan, tile_state *states, unsigned n, int before,
                           unsigned strip, int share, tile_state_polled<Sum> polled[STREAMING_PER_WARP])
{
    const int first = share * STREAMING_PER_WARP;
#pragma unroll
    for (int i = 0; i < STREAMING_PER_WARP; i++)
        if (first + i <= before)
            polled[i] = tile_state_poll<Sum>(streaming_state<Sum>(plan, states, n - first - i, strip));
}

/* A warp's part of the Kogge-Stone network, towards the inclusive prefix of the n-th member, from the results of the
 * poll. */
template <class Sum>
DEVICE typename Sum::sum streaming_lookback_polled(const struct streaming_plan &plan, tile_state *states, unsigned n,
                                                   int before, unsigned strip, int share,
                                                   const tile_state_polled<Sum> polled[STREAMING_PER_WARP])
{
    const int first = share * STREAMING_PER_WARP;
    typename Sum::sum sums[STREAMING_PER_WARP] = {};
#pragma unroll
    for (int i = 0; i < STREAMING_PER_WARP; i++)
        if (first + i <= before)
            sums[i] = tile_state_is_published<Sum>(polled[i])
                          ? tile_state_sum<Sum>(polled[i])
                          : tile_state_await<Sum>(streaming_state<Sum>(plan, states, n - first - i, strip));
    return kogge_stone_one<Sum, STREAMING_PER_WARP, false>(
        sums, [&](int i, int further) { return before - first - i >= further; });
}

template <class Sum>
DEVICE typename Sum::sum streaming_lookback(const struct streaming_plan &plan, tile_state *states, unsigned n,
                                            int before, unsigned strip, int share)
{
    tile_state_polled<Sum> polled[STREAMING_PER_WARP];
    streaming_poll<Sum>(plan, states, n, before, strip, share, polled);
    return streaming_lookback_polled<Sum>(plan, states, n, before, strip, share, polled);
}

/* The rest of the way, from all warps. */
template <class Sum>
DEVICE typename Sum::sum streaming_lookback_all(const typename Sum::sum sums_of_warps[STREAMING_WARPS][WARP],
                                                int before)
{
    typename Sum::sum sums[STREAMING_WARPS];
#pragma unroll
    for (int i = 0; i < STREAMING_WARPS; i++)
        sums[i] = sums_of_warps[i][streaming_lane()];
    return kogge_stone_one<Sum, STREAMING_WARPS, false>(
        sums, [&](int i, int further) { return before - i * STREAMING_PER_WARP >= further * STREAMING_PER_WARP; });
}

/* The position of a tile among those of the column. */
struct streaming_tile {
    unsigned block; /* order block of the tile, in the order in which blocks are met */
    int before;     /* tiles of it that are met earlier */
    bool ends;      /* true for the last tile of its order block that is met */
};

DEVICE struct streaming_tile streaming_tile_at(const struct streaming_plan &plan, unsigned n)
{
    /* Blocks are full but for the last one. */
    const unsigned short_by = plan.backward ? (ORDER_FAN - plan.tiles % ORDER_FAN) % ORDER_FAN : 0;
    struct streaming_tile tile = {(n + short_by) / ORDER_FAN, (int)((n + short_by) % ORDER_FAN), false};
    tile.ends = tile.before == ORDER_FAN - 1;
    if (tile.block == 0)
        tile.before -= (int)short_by;
    return tile;
}

/* True when a warp asks for totals an iteration before it needs them. Sums in f64 leave no registers for that. */
template <class Sum> constexpr bool streaming_polls_ahead = sizeof(typename Sum::sample) == 4;

/* The carry into an item. Each warp asks for a share of the totals before it. */
template <class Sum>
DEVICE carry<Sum> streaming_tile_carry(const struct streaming_plan &plan, streaming_smem<Sum> *smem,
                                       const struct streaming_position &at, int warp,
                                       const tile_state_polled<Sum> polled[STREAMING_PER_WARP])
{
    carry<Sum> carry = streaming_nothing<Sum>();
    if (at.tile == 0)
        return carry;
    const struct streaming_tile tile = streaming_tile_at(plan, at.tile);
    const int blocks = (int)tile.block;
    if (tile.before > 0)
        smem->published[0][warp][streaming_lane()] =
            streaming_polls_ahead<Sum>
                ? streaming_lookback_polled<Sum>(plan, plan.tile_states, at.tile - 1, tile.before - 1, at.strip, warp,
                                                 polled)
                : streaming_lookback<Sum>(plan, plan.tile_states, at.tile - 1, tile.before - 1, at.strip, warp);
    if (blocks > 0)
        smem->published[1][warp][streaming_lane()] =
            streaming_lookback<Sum>(plan, plan.block_states, blocks - 1, blocks - 1, at.strip, warp);
    __syncthreads();
    if (blocks > 0)
        carry = {streaming_lookback_all<Sum>(smem->published[1], blocks - 1), true};
    if (tile.before > 0)
        carry = carry_join<Sum>(carry, {streaming_lookback_all<Sum>(smem->published[0], tile.before - 1), true});
    return carry;
}

/* Tells others the total of a tile, and of the block that it completes. */
template <class Sum>
DEVICE void streaming_publish(const struct streaming_plan &plan, streaming_smem<Sum> *smem,
                              const struct streaming_position &at, typename Sum::sum total)
{
    const struct streaming_tile tile = streaming_tile_at(plan, at.tile);
    tile_state_publish<Sum>(streaming_state<Sum>(plan, plan.tile_states, at.tile, at.strip), total);
    if (!tile.ends)
        return;
#pragma unroll 1
    for (int share = 0; share < STREAMING_WARPS; share++)
        smem->published[2][share][streaming_lane()] =
            streaming_lookback<Sum>(plan, plan.tile_states, at.tile, tile.before, at.strip, share);
    tile_state_publish<Sum>(streaming_state<Sum>(plan, plan.block_states, tile.block, at.strip),
                            streaming_lookback_all<Sum>(smem->published[2], tile.before));
}

/* The carry into a warp's leaf, once the totals of the group are known; `tile` is that into the item. */
template <class Sum>
DEVICE carry<Sum> streaming_carry(const struct streaming_plan &plan, streaming_smem<Sum> *smem, carry<Sum> *tile,
                                  const struct streaming_position &at, int warp, unsigned iteration,
                                  const tile_state_polled<Sum> polled[STREAMING_PER_WARP])
{
    const int position = (int)at.group * STREAMING_WARPS + warp, leaves = streaming_tile_leaves(plan, at.tile);
    const bool ends = at.tile + 1 < plan.tiles && (int)(at.group + 1) * STREAMING_WARPS >= leaves;
    carry<Sum> into = streaming_nothing<Sum>();
    typename Sum::sum sum = Sum::zero();
    if (position > 0)
        sum = streaming_prefix<Sum>(smem, warp, iteration - at.group, position - 1);
    if (ends && position == leaves)
        streaming_publish<Sum>(plan, smem, at, sum);
    else if (ends && warp == 0 && leaves % STREAMING_WARPS == 0)
        streaming_publish<Sum>(plan, smem, at, streaming_prefix<Sum>(smem, warp, iteration - at.group, leaves - 1));
    if (at.group == 0)
        *tile = streaming_tile_carry<Sum>(plan, smem, at, warp, polled);
    into = *tile;
    if (position > 0)
        into = carry_join<Sum>(into, {sum, true});
    return into;
}

/* The total of the first `samples` of a leaf. */
template <class Sum, bool Partial>
DEVICE typename Sum::sum streaming_total(const typename Sum::sample x[ORDER_LEAF], int samples)
{
    typename Sum::sum sum = Sum::first(x[0]);
#pragma unroll
    for (int i = 1; i < ORDER_LEAF; i++)
        sum = Partial ? sum_choose<Sum>(i < samples, Sum::add_sample(sum, x[i]), sum) : Sum::add_sample(sum, x[i]);
    return sum;
}

/* Replaces samples by their values; `first`: the pass begins with this leaf. */
template <class Sum, class Last, class Out>
DEVICE void streaming_values(const typename Sum::sample x[ORDER_LEAF], typename Sum::sum carry, bool first,
                             bool exclusive, Out values[ORDER_LEAF])
{
    typename Sum::sum sum = carry;
#pragma unroll
    for (int i = 0; i < ORDER_LEAF; i++) {
        const typename Sum::sum before = sum;
        sum = Sum::add_sample(before, x[i]);
        if (i == 0 && !Sum::has_identity)
            sum = sum_choose<Sum>(!first, sum, Sum::first(x[i]));
        const typename Sum::sum value = !exclusive ? sum : i == 0 && first ? Sum::zero() : before;
        result_of<Last>(Last::value(value), &values[i]);
    }
}

template <class Out> DEVICE void streaming_put(char *target, Out result)
{
    __builtin_assume(__isGlobal(target));
    *(Out *)target = result;
}

/* Writes this lane's results of a leaf. */
template <class Out>
DEVICE void streaming_write(const struct streaming_plan &plan, const struct streaming_position &at,
                            struct streaming_leaf leaf, Out results[ORDER_LEAF])
{
    const int64_t step = plan.backward ? -plan.scan.output.stride : plan.scan.output.stride;
    char *const target = streaming_first(plan, at, leaf, plan.scan.output.stride);
    if (results[0] != results[0] || results[ORDER_LEAF - 1] != results[ORDER_LEAF - 1])
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            quiet_nan(&results[i]);
    leaf_encode(plan.scan.output_form, results);
    if (!at.there)
        return;
    if (leaf.samples == ORDER_LEAF) {
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            streaming_put(streaming_steps(target, i, step), results[i]);
    } else {
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            if (i < leaf.samples)
                streaming_put(streaming_steps(target, i, step), results[i]);
    }
}

/* Sum is what is summed up in, Last the same, or one of the same size, for results. */
template <class Sum, class Last, class Out>
__global__ void __launch_bounds__(STREAMING_WARPS *WARP, STREAMING_RESIDENT)
    streaming_kernel(const __grid_constant__ struct streaming_plan plan)
{
    extern __shared__ uint4 streaming_smem_bytes[];
    streaming_smem<Sum> *const smem = (streaming_smem<Sum> *)streaming_smem_bytes;
    const int warp = warp_index();
    const unsigned ring = (unsigned)__cvta_generic_to_shared(smem->ring[warp]);
    struct streaming_position ahead = streaming_start_ahead(plan, blockIdx.x);
    struct streaming_position next = streaming_start(plan, plan.scan.output, blockIdx.x), at = next;
    struct streaming_leaf leaf = {};
    carry<Sum> tile = streaming_nothing<Sum>(), into = tile;
    typename Sum::sample x[ORDER_LEAF] = {};
    int ring_in = 0, ring_out = 0;
    /* Each iteration starts a group's copy, makes the totals of one that has come, and the values of the one before,
     * which is at `at`. The first iterations, below 0, only fetch. */
    for (int iteration = 1 - STREAMING_RING;; iteration++) {
        if (iteration >= 0)
            __pipeline_wait_prior(STREAMING_RING - 2);
        __syncwarp();
        if (ahead.item < plan.items) {
            streaming_fetch(plan, ahead, streaming_leaf_at(plan, ahead, warp),
                            ring + ring_in * (unsigned)sizeof(streaming_ring_leaf));
            if (!streaming_advance(plan, &ahead))
                ahead = streaming_start_ahead(plan, ahead.item + gridDim.x);
        }
        __pipeline_commit();
        ring_in = ring_in == STREAMING_RING - 1 ? 0 : ring_in + 1;
        if (iteration < 0)
            continue;

        tile_state_polled<Sum> polled[STREAMING_PER_WARP];
        if (streaming_polls_ahead<Sum> && next.group == 0 && next.tile > 0 && next.item < plan.items)
            streaming_poll<Sum>(plan, plan.tile_states, next.tile - 1, streaming_tile_at(plan, next.tile).before - 1,
                                next.strip, warp, polled);
        const streaming_ring_leaf *const vec16 = &smem->ring[warp][ring_out];
        const struct streaming_leaf leaf_next = streaming_leaf_at(plan, next, warp);
        float raw[ORDER_LEAF];
        typename Sum::sample x_next[ORDER_LEAF];
        ring_out = ring_out == STREAMING_RING - 1 ? 0 : ring_out + 1;
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            raw[i] = vec16->samples[i][streaming_lane()];
        leaf_decode(plan.scan.input_form, raw);
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            x_next[i] = Sum::from_f32(raw[i]);
        typename Sum::sum total = streaming_total<Sum, false>(x_next, ORDER_LEAF);
        const bool first = leaf.number == (plan.backward ? (int)plan.leaves - 1 : 0);
        Out results[ORDER_LEAF];
        streaming_values<Sum, Last, Out>(x, into.sum, first, plan.exclusive, results);
        pin(total); /* else it would be made after the results are written */
        if (leaf.samples > 0)
            streaming_write<Out>(plan, at, leaf, results);
        if (next.item >= plan.items)
            return;
        if (leaf_next.samples < ORDER_LEAF)
            total = streaming_total<Sum, true>(x_next, leaf_next.samples);
        smem->totals[iteration % STREAMING_TOTALS * STREAMING_WARPS + warp][streaming_lane()] = total;
        __syncthreads();
        into = streaming_carry<Sum>(plan, smem, &tile, next, warp, (unsigned)iteration, polled);
        at = next;
        leaf = leaf_next;
        if (!streaming_advance(plan, &next))
            next = streaming_start(plan, plan.scan.output, next.item + gridDim.x);
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            x[i] = x_next[i];
    }
}

#endif
