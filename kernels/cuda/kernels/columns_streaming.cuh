/*
 * One pass along an axis that is not the innermost one, where many columns lie side by side in memory: sums of f32
 * samples, and 4-byte forms.
 *
 * A strip is 32 columns, a lane each. An item is a tile of a strip, and items are taken in the order in which the pass
 * meets rows: the first tiles of all strips, then the second ones. So the whole device reads and writes about the same
 * rows at any time, as a copy of rows does, and the totals of the tiles before an item's have long been made by others;
 * they are told in device memory (records, tile_state.cuh). All thread blocks are resident (a cooperative launch) and
 * take their items in order, so that none waits for one that cannot come.
 *
 * A thread block walks through an item some leaves at a time: a group, of which each warp has a leaf. A prefix is made
 * of the totals of this group and the last one, in shared memory, and of sums that the warp remembers. The leaves ahead
 * are on their way to a ring in shared memory. While the values of a group are made, so are the totals of the next one:
 * chains of additions side by side.
 */
#ifndef KERNELS_CUDA_KERNELS_COLUMNS_STREAMING_CUH
#define KERNELS_CUDA_KERNELS_COLUMNS_STREAMING_CUH

#include "kernels/cuda/exchange/tile_state.cuh"
#include "kernels/cuda/lane/convert32.cuh"
#include "kernels/cuda/warp/item.cuh"
#include "kernels/cuda/warp/kogge_stone.cuh"
#include "kernels/cuda/warp/tile_io.cuh"

#define WALK_WARPS    8                        /* of a thread block: leaves of a group */
#define WALK_RESIDENT 2                        /* thread blocks of a processor */
#define WALK_RING     4                        /* groups that are in shared memory or on their way there */
#define WALK_SHARE    (ORDER_FAN / WALK_WARPS) /* members of a group of tiles or blocks that a warp asks for */
#define WALK_TOTALS   4 /* groups whose totals are known: those of one are written while two are read */

/* What one launch does. */
struct walk_plan {
    struct scan_plan scan; /* of it: sides, axes, first row, forms */
    uint64_t rows;
    unsigned strips, items;
    unsigned tiles, leaves; /* of a column */
    int last;               /* samples of its last leaf */
    bool backward, exclusive;
    record *tile_records;  /* the totals of tiles: by tile and column, in the order in which they are met; */
    record *block_records; /* and of order blocks; all zero before */
};

/* A leaf of the ring: samples in the order in which they are met. */
struct walk_slot {
    float samples[ORDER_LEAF][WARP];
};

/* Sums of one level that a network of `Fan` members still needs, for each of its steps. */
template <class Sum, int Fan> struct walk_history {
    typename Sum::sum sums[Fan - 1][WARP];
};

/* The shared memory of a thread block. */
template <class Sum> struct walk_room {
    walk_slot ring[WALK_WARPS][WALK_RING];
    typename Sum::sum totals[WALK_TOTALS * WALK_WARPS][WARP]; /* of leaves, by position */
    walk_history<Sum, ORDER_FAN / WALK_WARPS> groups[WALK_WARPS];
    typename Sum::sum told[3][WALK_WARPS][WARP]; /* by others: of tiles, of order blocks; of tiles for a total */
};

/* Where a thread block is on one side. */
struct walk_place {
    char *column;                      /* sample 0 of this lane's; or where it copies slots of the first leaf */
    unsigned item, tile, strip, group; /* tile, group: in the order in which they are met */
    bool there;                        /* whether this lane has a column */
    bool slots;                        /* whether those of all lanes lie side by side in slots that are theirs alone */
};

/* A leaf of the group that a thread block is at. */
struct walk_leaf {
    int number;  /* in the column */
    int samples; /* 0 where there is none */
};

/* Unlike lane_index, read once. */
DEVICE int walk_lane()
{
    return (int)threadIdx.x % WARP;
}

/* How many leaves the n-th tile has that is met. */
DEVICE int walk_tile_leaves(const struct walk_plan &plan, unsigned n)
{
    return n == (plan.backward ? 0 : plan.tiles - 1) ? (int)(plan.leaves - (plan.tiles - 1) * ORDER_FAN) : ORDER_FAN;
}

DEVICE struct walk_leaf walk_leaf_at(const struct walk_plan &plan, const struct walk_place &place, int warp)
{
    const int count = walk_tile_leaves(plan, place.tile), position = (int)place.group * WALK_WARPS + warp;
    const int tile = (int)(plan.backward ? plan.tiles - 1 - place.tile : place.tile);
    struct walk_leaf leaf = {tile * ORDER_FAN + (plan.backward ? count - 1 - position : position), 0};
    if (position < count)
        leaf.samples = leaf.number == (int)plan.leaves - 1 ? plan.last : ORDER_LEAF;
    return leaf;
}

DEVICE struct walk_place walk_start(const struct walk_plan &plan, const struct scan_side &side, unsigned item)
{
    struct walk_place place = {side.base, item, item / plan.strips, item % plan.strips, 0, false, false};
    const uint64_t row = (uint64_t)place.strip * WARP + walk_lane();
    place.there = item < plan.items && row < plan.rows;
    if (place.there)
        place.column = side_at(plan.scan, side, plan.scan.first_row + row, 0);
    return place;
}

/* The same on the input's side, where lanes copy slots, if they can, of every fourth sample of all columns. */
DEVICE struct walk_place walk_start_ahead(const struct walk_plan &plan, unsigned item)
{
    const struct scan_side &side = plan.scan.input;
    struct walk_place place = walk_start(plan, side, item);
    const int lane = walk_lane();
    const uint64_t first = __shfl_sync(~0u, (unsigned long long)(uintptr_t)place.column, 0);
    place.slots = __all_sync(~0u, place.there && (uintptr_t)place.column == first + lane * 4 &&
                                      (first | side.stride) % SLOT_BYTES == 0);
    if (place.slots)
        place.column =
            (char *)(uintptr_t)first + lane % 8 * SLOT_BYTES + lane / 8 * (plan.backward ? -side.stride : side.stride);
    return place;
}

/* To the group that follows; false where that is the next item's. */
DEVICE bool walk_on(const struct walk_plan &plan, struct walk_place *place)
{
    return (int)(++place->group * WALK_WARPS) < walk_tile_leaves(plan, place->tile);
}

DEVICE char *walk_steps(char *address, int steps, int64_t stride)
{
    return address_after(address, steps, (int)stride);
}

/* Starts the copy of 4 or 16 bytes to an address in shared memory. */
template <int Bytes> DEVICE void walk_copy(unsigned target, const char *source)
{
    if (Bytes == SLOT_BYTES)
        cp_async_16(target, source);
    else
        cp_async_4(target, source);
}

/* The address of the sample of a leaf that is met first. */
DEVICE char *walk_first(const struct walk_plan &plan, const struct walk_place &place, struct walk_leaf leaf,
                        int64_t stride)
{
    return walk_steps(place.column, leaf.number * ORDER_LEAF + (plan.backward ? leaf.samples - 1 : 0), stride);
}

/* Starts the copy of a leaf. */
DEVICE void walk_fetch(const struct walk_plan &plan, const struct walk_place &place, struct walk_leaf leaf,
                       unsigned slot)
{
    const int lane = walk_lane();
    const int64_t step = plan.backward ? -plan.scan.input.stride : plan.scan.input.stride;
    char *const source = walk_first(plan, place, leaf, plan.scan.input.stride);
    const bool full = leaf.samples == ORDER_LEAF;
    if (place.slots) {
        const int end = leaf.samples - lane / 8;
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i += 4)
            if (full || i < end)
                walk_copy<SLOT_BYTES>(slot + i * WARP * 4 + lane * SLOT_BYTES, walk_steps(source, i, step));
    } else if (place.there) {
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            if (full || i < leaf.samples)
                walk_copy<4>(slot + (i * WARP + lane) * 4, walk_steps(source, i, step));
    }
}

/* Takes the n-th member of a group, n = 0, 1, ..., and returns its inclusive prefix. */
template <class Sum, int Fan>
DEVICE typename Sum::sum walk_push(walk_history<Sum, Fan> *history, unsigned n, typename Sum::sum sum)
{
#pragma unroll
    for (unsigned distance = 1; distance < Fan; distance *= 2) {
        typename Sum::sum *const place = &history->sums[distance - 1 + n % distance][walk_lane()];
        const typename Sum::sum before = *place;
        *place = sum;
        sum = sum_choose<Sum>(n >= distance, Sum::add(before, sum), sum);
    }
    return sum;
}

/* The inclusive prefix of leaf `position` of a tile whose first group's totals are those of turn `turn`. The steps of
 * the network that stay among the last WALK_WARPS leaves are made anew; longer ones lead to leaves of the same warp. */
template <class Sum> DEVICE typename Sum::sum walk_prefix(walk_room<Sum> *room, int warp, unsigned turn, int position)
{
    typename Sum::sum sums[WALK_WARPS];
#pragma unroll
    for (int i = 0; i < WALK_WARPS; i++)
        sums[i] = room->totals[(turn * WALK_WARPS + position - i) % (WALK_TOTALS * WALK_WARPS)][walk_lane()];
    const typename Sum::sum last =
        kogge_stone_one<Sum, WALK_WARPS, true>(sums, [&](int i, int further) { return position - i >= further; });
    return walk_push<Sum>(&room->groups[warp], (unsigned)position / WALK_WARPS, last);
}

template <class Sum> DEVICE carry<Sum> walk_nothing()
{
    return carry_of<Sum>(Sum::zero(), false);
}

/* The record of this lane's column for a tile or block, by what number it is met. */
template <class Sum>
DEVICE record *walk_record(const struct walk_plan &plan, record *records, unsigned n, unsigned strip)
{
    return records + (((uint64_t)n * plan.strips + strip) * WARP + walk_lane()) * record_words<Sum>();
}

/* A look at the records of a share of a group: of the n-th member that is met of a level, of which `before` are met
 * earlier in its group, those WALK_SHARE x share and more before it. */
template <class Sum>
DEVICE void walk_look(const struct walk_plan &plan, record *records, unsigned n, int before, unsigned strip, int share,
                      record_seen<Sum> seen[WALK_SHARE])
{
    const int first = share * WALK_SHARE;
#pragma unroll
    for (int i = 0; i < WALK_SHARE; i++)
        if (first + i <= before)
            seen[i] = record_look<Sum>(walk_record<Sum>(plan, records, n - first - i, strip));
}

/* That share of the way through the network to the inclusive prefix of the n-th member, from what the look found. */
template <class Sum>
DEVICE typename Sum::sum walk_seen(const struct walk_plan &plan, record *records, unsigned n, int before,
                                   unsigned strip, int share, const record_seen<Sum> seen[WALK_SHARE])
{
    const int first = share * WALK_SHARE;
    typename Sum::sum sums[WALK_SHARE] = {};
#pragma unroll
    for (int i = 0; i < WALK_SHARE; i++)
        if (first + i <= before)
            sums[i] = record_there<Sum>(seen[i])
                          ? record_sum<Sum>(seen[i])
                          : record_await<Sum>(walk_record<Sum>(plan, records, n - first - i, strip));
    return kogge_stone_one<Sum, WALK_SHARE, false>(sums,
                                                   [&](int i, int further) { return before - first - i >= further; });
}

template <class Sum>
DEVICE typename Sum::sum walk_told(const struct walk_plan &plan, record *records, unsigned n, int before,
                                   unsigned strip, int share)
{
    record_seen<Sum> seen[WALK_SHARE];
    walk_look<Sum>(plan, records, n, before, strip, share, seen);
    return walk_seen<Sum>(plan, records, n, before, strip, share, seen);
}

/* The rest of the way, from all shares. */
template <class Sum>
DEVICE typename Sum::sum walk_told_all(const typename Sum::sum shares[WALK_WARPS][WARP], int before)
{
    typename Sum::sum sums[WALK_WARPS];
#pragma unroll
    for (int i = 0; i < WALK_WARPS; i++)
        sums[i] = shares[i][walk_lane()];
    return kogge_stone_one<Sum, WALK_WARPS, false>(
        sums, [&](int i, int further) { return before - i * WALK_SHARE >= further * WALK_SHARE; });
}

/* Where a tile is among those of the column. */
struct walk_tile {
    unsigned block; /* that it lies in, in the order in which blocks are met */
    int before;     /* tiles of it that are met earlier */
    bool ends;      /* whether it is the last one of it that is met */
};

DEVICE struct walk_tile walk_tile_at(const struct walk_plan &plan, unsigned n)
{
    /* Blocks are full but for the last one. */
    const unsigned short_by = plan.backward ? (ORDER_FAN - plan.tiles % ORDER_FAN) % ORDER_FAN : 0;
    struct walk_tile tile = {(n + short_by) / ORDER_FAN, (int)((n + short_by) % ORDER_FAN), false};
    tile.ends = tile.before == ORDER_FAN - 1;
    if (tile.block == 0)
        tile.before -= (int)short_by;
    return tile;
}

/* Whether a warp asks for totals a turn before it needs them. Sums in f64 leave no registers for that. */
template <class Sum> constexpr bool walk_looks_ahead = sizeof(typename Sum::sample) == 4;

/* The carry into an item. Each warp asks for a share of the totals before it. */
template <class Sum>
DEVICE carry<Sum> walk_tile_carry(const struct walk_plan &plan, walk_room<Sum> *room, const struct walk_place &place,
                                  int warp, const record_seen<Sum> seen[WALK_SHARE])
{
    carry<Sum> carry = walk_nothing<Sum>();
    if (place.tile == 0)
        return carry;
    const struct walk_tile tile = walk_tile_at(plan, place.tile);
    const int blocks = (int)tile.block;
    if (tile.before > 0)
        room->told[0][warp][walk_lane()] =
            walk_looks_ahead<Sum>
                ? walk_seen<Sum>(plan, plan.tile_records, place.tile - 1, tile.before - 1, place.strip, warp, seen)
                : walk_told<Sum>(plan, plan.tile_records, place.tile - 1, tile.before - 1, place.strip, warp);
    if (blocks > 0)
        room->told[1][warp][walk_lane()] =
            walk_told<Sum>(plan, plan.block_records, blocks - 1, blocks - 1, place.strip, warp);
    __syncthreads();
    if (blocks > 0)
        carry = {walk_told_all<Sum>(room->told[1], blocks - 1), true};
    if (tile.before > 0)
        carry = carry_join<Sum>(carry, {walk_told_all<Sum>(room->told[0], tile.before - 1), true});
    return carry;
}

/* Tells others the total of a tile, and of the block that it completes. */
template <class Sum>
DEVICE void walk_tell(const struct walk_plan &plan, walk_room<Sum> *room, const struct walk_place &place,
                      typename Sum::sum total)
{
    const struct walk_tile tile = walk_tile_at(plan, place.tile);
    record_put<Sum>(walk_record<Sum>(plan, plan.tile_records, place.tile, place.strip), total);
    if (!tile.ends)
        return;
#pragma unroll 1
    for (int share = 0; share < WALK_WARPS; share++)
        room->told[2][share][walk_lane()] =
            walk_told<Sum>(plan, plan.tile_records, place.tile, tile.before, place.strip, share);
    record_put<Sum>(walk_record<Sum>(plan, plan.block_records, tile.block, place.strip),
                    walk_told_all<Sum>(room->told[2], tile.before));
}

/* The carry into a warp's leaf, once the totals of the group are known; `tile` is that into the item. */
template <class Sum>
DEVICE carry<Sum> walk_carry(const struct walk_plan &plan, walk_room<Sum> *room, carry<Sum> *tile,
                             const struct walk_place &place, int warp, unsigned turn,
                             const record_seen<Sum> seen[WALK_SHARE])
{
    const int position = (int)place.group * WALK_WARPS + warp, leaves = walk_tile_leaves(plan, place.tile);
    const bool ends = place.tile + 1 < plan.tiles && (int)(place.group + 1) * WALK_WARPS >= leaves;
    carry<Sum> into = walk_nothing<Sum>();
    typename Sum::sum sum = Sum::zero();
    if (position > 0)
        sum = walk_prefix<Sum>(room, warp, turn - place.group, position - 1);
    if (ends && position == leaves)
        walk_tell<Sum>(plan, room, place, sum);
    else if (ends && warp == 0 && leaves % WALK_WARPS == 0)
        walk_tell<Sum>(plan, room, place, walk_prefix<Sum>(room, warp, turn - place.group, leaves - 1));
    if (place.group == 0)
        *tile = walk_tile_carry<Sum>(plan, room, place, warp, seen);
    into = *tile;
    if (position > 0)
        into = carry_join<Sum>(into, {sum, true});
    return into;
}

/* The total of the first `samples` of a leaf. */
template <class Sum, bool Partial>
DEVICE typename Sum::sum walk_total(const typename Sum::sample x[ORDER_LEAF], int samples)
{
    typename Sum::sum sum = Sum::first(x[0]);
#pragma unroll
    for (int i = 1; i < ORDER_LEAF; i++)
        sum = Partial ? sum_choose<Sum>(i < samples, Sum::add_sample(sum, x[i]), sum) : Sum::add_sample(sum, x[i]);
    return sum;
}

/* Replaces samples by their values; `first`: the pass begins with this leaf. */
template <class Sum, class Last, class Out>
DEVICE void walk_values(const typename Sum::sample x[ORDER_LEAF], typename Sum::sum carry, bool first, bool exclusive,
                        Out values[ORDER_LEAF])
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

template <class Out> DEVICE void walk_put(char *target, Out result)
{
    __builtin_assume(__isGlobal(target));
    *(Out *)target = result;
}

/* Writes this lane's results of a leaf. */
template <class Out>
DEVICE void walk_write(const struct walk_plan &plan, const struct walk_place &place, struct walk_leaf leaf,
                       Out results[ORDER_LEAF])
{
    const int64_t step = plan.backward ? -plan.scan.output.stride : plan.scan.output.stride;
    char *const target = walk_first(plan, place, leaf, plan.scan.output.stride);
    if (results[0] != results[0] || results[ORDER_LEAF - 1] != results[ORDER_LEAF - 1])
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            quiet_nan(&results[i]);
    leaf_encode(plan.scan.output_form, results);
    if (!place.there)
        return;
    if (leaf.samples == ORDER_LEAF) {
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            walk_put(walk_steps(target, i, step), results[i]);
    } else {
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            if (i < leaf.samples)
                walk_put(walk_steps(target, i, step), results[i]);
    }
}

/* Sum is what is summed up in, Last the same, or one of the same size, for results. */
template <class Sum, class Last, class Out>
__global__ void __launch_bounds__(WALK_WARPS *WARP, WALK_RESIDENT)
    walk_kernel(const __grid_constant__ struct walk_plan plan)
{
    extern __shared__ uint4 walk_rooms[];
    walk_room<Sum> *const room = (walk_room<Sum> *)walk_rooms;
    const int warp = warp_index();
    const unsigned ring = (unsigned)__cvta_generic_to_shared(room->ring[warp]);
    struct walk_place ahead = walk_start_ahead(plan, blockIdx.x);
    struct walk_place next = walk_start(plan, plan.scan.output, blockIdx.x), place = next;
    struct walk_leaf leaf = {};
    carry<Sum> tile = walk_nothing<Sum>(), into = tile;
    typename Sum::sample x[ORDER_LEAF] = {};
    int slot_in = 0, slot_out = 0;
    /* In each turn a group's copy is started, the totals made of one that has come, and the values of the one before,
     * which is at `place`. The first turns, below 0, only fetch. */
    for (int turn = 1 - WALK_RING;; turn++) {
        if (turn >= 0)
            __pipeline_wait_prior(WALK_RING - 2);
        __syncwarp();
        if (ahead.item < plan.items) {
            walk_fetch(plan, ahead, walk_leaf_at(plan, ahead, warp), ring + slot_in * (unsigned)sizeof(walk_slot));
            if (!walk_on(plan, &ahead))
                ahead = walk_start_ahead(plan, ahead.item + gridDim.x);
        }
        __pipeline_commit();
        slot_in = slot_in == WALK_RING - 1 ? 0 : slot_in + 1;
        if (turn < 0)
            continue;

        record_seen<Sum> seen[WALK_SHARE];
        if (walk_looks_ahead<Sum> && next.group == 0 && next.tile > 0 && next.item < plan.items)
            walk_look<Sum>(plan, plan.tile_records, next.tile - 1, walk_tile_at(plan, next.tile).before - 1, next.strip,
                           warp, seen);
        const walk_slot *const slot = &room->ring[warp][slot_out];
        const struct walk_leaf leaf_next = walk_leaf_at(plan, next, warp);
        float raw[ORDER_LEAF];
        typename Sum::sample x_next[ORDER_LEAF];
        slot_out = slot_out == WALK_RING - 1 ? 0 : slot_out + 1;
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            raw[i] = slot->samples[i][walk_lane()];
        leaf_decode(plan.scan.input_form, raw);
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            x_next[i] = Sum::from_f32(raw[i]);
        typename Sum::sum total = walk_total<Sum, false>(x_next, ORDER_LEAF);
        const bool first = leaf.number == (plan.backward ? (int)plan.leaves - 1 : 0);
        Out results[ORDER_LEAF];
        walk_values<Sum, Last, Out>(x, into.sum, first, plan.exclusive, results);
        pin(total); /* else it would be made after the results are written */
        if (leaf.samples > 0)
            walk_write<Out>(plan, place, leaf, results);
        if (next.item >= plan.items)
            return;
        if (leaf_next.samples < ORDER_LEAF)
            total = walk_total<Sum, true>(x_next, leaf_next.samples);
        room->totals[turn % WALK_TOTALS * WALK_WARPS + warp][walk_lane()] = total;
        __syncthreads();
        into = walk_carry<Sum>(plan, room, &tile, next, warp, (unsigned)turn, seen);
        place = next;
        leaf = leaf_next;
        if (!walk_on(plan, &next))
            next = walk_start(plan, plan.scan.output, next.item + gridDim.x);
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            x[i] = x_next[i];
    }
}

#endif
