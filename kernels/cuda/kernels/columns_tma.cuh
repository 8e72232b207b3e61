/*
 * Scans along an axis that is not the innermost one: sums of f32 samples, and 4-byte forms, of columns that lie side by
 * side in memory where tensor maps can describe them, of an order block at most. The copy engine moves boxes then,
 * twice as wide as what a warp would move (columns_shared.cuh, columns_streaming.cuh).
 *
 * A strip is 64 columns, two to a lane, and an item a tile of a strip. A thread block holds an item in registers, two
 * leaves to a warp, from its only read to its only write; so the next item has shared memory to come to meanwhile.
 * Lanes change places only for the network: a warp takes some columns and turns the totals of their leaves, one per
 * lane, into carries.
 *
 * Items come in the order in which the last pass meets rows: the first tiles of all strips, then the second ones, as in
 * a copy of rows. A thread block takes the next one that none has taken: so nobody waits but for one that works, and
 * those near memory do more than others. What a tile needs of the tiles before was told long before it is wanted
 * (records, tile_state.cuh), and is asked for ahead.
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

#define BOXES_LANE    2                                /* columns of a lane */
#define BOXES_COLUMNS (BOXES_LANE * WARP)              /* of a strip */
#define BOXES_WARPS   16                               /* of a thread block */
#define BOXES_THREADS (BOXES_WARPS * WARP)             /* all of a processor */
#define BOXES_LEAVES  (ORDER_FAN / BOXES_WARPS)        /* of a warp */
#define BOXES_SHARE   (BOXES_COLUMNS / BOXES_WARPS)    /* columns whose networks are a warp's */
#define BOXES_SEEN    (ORDER_FAN * BOXES_SHARE / WARP) /* tiles that a lane asks for */
#define BOXES_LINE    (BOXES_COLUMNS + 1)              /* sums: no bank conflicts along columns nor along leaves */
#define BOXES_RING    3                                /* leaves of a warp on their way where only totals are wanted */

/* A leaf of all columns of a strip: what a box holds. */
typedef float boxes_leaf[ORDER_LEAF][BOXES_COLUMNS];

/* A tile of a strip. */
struct boxes_item {
    unsigned strip, tile;
    int column, plane, outer; /* where the strip begins in the tensor */
    int samples, leaves;      /* of a column in this tile */
};

/* Starts the copy of a leaf of an item; zeros stand for what is not there. By one lane. `Once`: the L2 cache need not
 * keep it. */
template <bool Once>
DEVICE void boxes_load(const CUtensorMap &map, const struct boxes_item &item, int leaf, boxes_leaf *box, gate *gate)
{
    const int sample = (int)item.tile * ORDER_TILE + leaf * ORDER_LEAF;
    if (Once)
        tma_load_4d(smem_address(box), &map, item.column, sample, item.plane, item.outer, smem_address(gate),
                    policy_evict_first());
    else
        tma_load_4d(smem_address(box), &map, item.column, sample, item.plane, item.outer, smem_address(gate));
}

/* Starts the copy of the results of a leaf, without what is not there. By one lane, once all lanes have written. */
template <bool Once>
DEVICE void boxes_store(const CUtensorMap &map, const struct boxes_item &item, int leaf, const boxes_leaf *stage)
{
    const int sample = (int)item.tile * ORDER_TILE + leaf * ORDER_LEAF;
    if (Once)
        tma_store_4d(&map, item.column, sample, item.plane, item.outer, smem_address(stage), policy_evict_first());
    else
        tma_store_4d(&map, item.column, sample, item.plane, item.outer, smem_address(stage));
    bulk_commit();
}

/* What one launch does. */
struct boxes_plan {
    enum scand_dtype input_form, output_form;
    unsigned strips, tiles, items;
    unsigned strips_per_plane;
    unsigned first_plane, planes; /* planes: of the innermost axis of planes */
    int last;                     /* samples of a column's last tile */
    int pass_count;
    bool backward[SCAND_PASSES_MAX], exclusive;
    unsigned *taken;                   /* items, 0 before */
    record *records[SCAND_PASSES_MAX]; /* totals of tiles; of the last pass all zero before */
};

/* A sum in shared memory: aligned, it moves in one instruction. */
template <class Sum> struct alignas(sizeof(typename Sum::sum)) boxes_sum {
    typename Sum::sum sum;
};

/* Totals of leaves, then carries into them. */
template <class Sum> using boxes_line = boxes_sum<Sum>[BOXES_LINE];

/* The shared memory of a thread block. */
template <class Sum> struct boxes_room {
    boxes_leaf boxes[BOXES_WARPS][BOXES_LEAVES];
    boxes_leaf stages[BOXES_WARPS];
    boxes_line<Sum> sums[ORDER_FAN];
    gate gates[BOXES_WARPS]; /* a warp's boxes are there */
    unsigned next;           /* item */
};

/* The same where only totals are wanted. */
template <class Sum> struct boxes_totals_room {
    boxes_leaf ring[BOXES_WARPS][BOXES_RING];
    boxes_line<Sum> sums[2][ORDER_FAN]; /* of items that take turns */
    gate gates[BOXES_WARPS][BOXES_RING];
};

DEVICE struct boxes_item boxes_item_at(const struct boxes_plan &plan, unsigned number)
{
    struct boxes_item item;
    const unsigned row = number / plan.strips;
    item.strip = number - row * plan.strips;
    item.tile = plan.backward[plan.pass_count - 1] ? plan.tiles - 1 - row : row;
    const unsigned plane = item.strip / plan.strips_per_plane;
    item.column = (int)(item.strip - plane * plan.strips_per_plane) * BOXES_COLUMNS;
    item.plane = (int)((plan.first_plane + plane) % plan.planes);
    item.outer = (int)((plan.first_plane + plane) / plan.planes);
    item.samples = item.tile == plan.tiles - 1 ? plan.last : ORDER_TILE;
    item.leaves = (item.samples + ORDER_LEAF - 1) / ORDER_LEAF;
    return item;
}

/* How many samples a leaf of an item has; 0 where there is none. */
DEVICE int boxes_samples(const struct boxes_item &item, int leaf)
{
    return min(max(item.samples - leaf * ORDER_LEAF, 0), ORDER_LEAF);
}

DEVICE void boxes_pair(const float row[BOXES_COLUMNS], float x[BOXES_LANE][ORDER_LEAF], int i)
{
    const float2 pair = *(const float2 *)&row[lane_index() * BOXES_LANE];
    x[0][i] = pair.x;
    x[1][i] = pair.y;
}

/* This lane's columns of a leaf, in the order in which the first pass meets samples. */
template <class Sum>
DEVICE void boxes_read(const struct boxes_plan &plan, const boxes_leaf *leaf, int samples,
                       float x[BOXES_LANE][ORDER_LEAF])
{
    if (plan.backward[0]) {
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            boxes_pair((*leaf)[max(samples - 1 - i, 0)], x, i);
    } else {
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            boxes_pair((*leaf)[i], x, i);
    }
#pragma unroll
    for (int c = 0; c < BOXES_LANE; c++) {
        leaf_decode(plan.input_form, x[c]);
        boxes_fill<Sum>(x[c], samples);
    }
}

/* Results, as they are written. */
DEVICE void boxes_write(const struct boxes_plan &plan, boxes_leaf *leaf, int samples, float x[BOXES_LANE][ORDER_LEAF])
{
#pragma unroll
    for (int c = 0; c < BOXES_LANE; c++) {
        if (x[c][0] != x[c][0] || x[c][ORDER_LEAF - 1] != x[c][ORDER_LEAF - 1]) /* what was added to NaN is NaN */
#pragma unroll
            for (int i = 0; i < ORDER_LEAF; i++)
                quiet_nan(&x[c][i]);
        leaf_encode(plan.output_form, x[c]);
    }
#pragma unroll
    for (int i = 0; i < ORDER_LEAF; i++)
        if (i < samples)
            *(float2 *)&(*leaf)[plan.backward[0] ? samples - 1 - i : i][lane_index() * BOXES_LANE] = {x[0][i], x[1][i]};
}

/* Where the totals of a tile in a warp's columns are: next to those of the next tile. */
template <class Sum>
DEVICE record *boxes_records(const struct boxes_plan &plan, const struct boxes_item &item, int pass, unsigned tile,
                             int warp)
{
    const uint64_t number = ((uint64_t)item.strip * BOXES_WARPS + warp) * plan.tiles + tile;
    return plan.records[pass] + number * BOXES_SHARE * record_words<Sum>();
}

/* How many tiles a pass meets before an item's. */
DEVICE int boxes_met(const struct boxes_plan &plan, const struct boxes_item &item, int pass)
{
    return (int)(plan.backward[pass] ? plan.tiles - 1 - item.tile : item.tile);
}

/* Tells the totals of a tile. By one lane. */
template <class Sum> DEVICE void boxes_tell(record *records, const typename Sum::sum totals[BOXES_SHARE])
{
    const int words = record_words<Sum>();
    unsigned bits[BOXES_SHARE * words];
    memcpy(bits, totals, sizeof(bits));
#pragma unroll
    for (int i = 0; i < BOXES_SHARE * words; i += 2)
        store_relaxed_v2(records + i, RECORD_MARK | bits[i], RECORD_MARK | bits[i + 1]);
}

/* A record in one word, or in two that lie in one slot. */
template <class Sum> DEVICE record_seen<Sum> boxes_record_look(const record *record)
{
    record_seen<Sum> seen;
    if constexpr (record_words<Sum>() == 2)
        load_relaxed_v2(record, seen.words);
    else
        seen = record_look<Sum>(record);
    return seen;
}

/* Of the tiles that a pass meets before an item's, counted from the last one, a lane stands for some in one column. */
DEVICE int boxes_lane_tile()
{
    return lane_index() / BOXES_SHARE * BOXES_SEEN;
}

/* The record of the n-th one of them. */
template <class Sum>
DEVICE record *boxes_record(const struct boxes_plan &plan, const struct boxes_item &item, int pass, int warp, int n)
{
    const unsigned back = boxes_lane_tile() + n + 1;
    const unsigned tile = plan.backward[pass] ? item.tile + back : item.tile - back;
    return boxes_records<Sum>(plan, item, pass, tile, warp) + lane_index() % BOXES_SHARE * record_words<Sum>();
}

/* Asks for the totals of the tiles before an item's, in a warp's columns. */
template <class Sum>
DEVICE void boxes_look(const struct boxes_plan &plan, const struct boxes_item &item, int pass, int warp,
                       record_seen<Sum> seen[BOXES_SEEN])
{
    const int met = boxes_met(plan, item, pass) - boxes_lane_tile();
#pragma unroll
    for (int i = 0; i < BOXES_SEEN; i++)
        if (i < met)
            seen[i] = boxes_record_look<Sum>(boxes_record<Sum>(plan, item, pass, warp, i));
}

/* The carries into the tile, from what was seen, and what was told since: the way through the network to the prefix of
 * the tile before. */
template <class Sum>
DEVICE void boxes_outside(const struct boxes_plan &plan, const struct boxes_item &item, int pass, int warp,
                          const record_seen<Sum> seen[BOXES_SEEN], carry<Sum> outside[BOXES_SHARE])
{
    const int met = boxes_met(plan, item, pass), met_here = met - boxes_lane_tile();
    typename Sum::sum sums[BOXES_SEEN];
#pragma unroll
    for (int i = 0; i < BOXES_SEEN; i++) {
        sums[i] = Sum::identity();
        if (i < met_here)
            sums[i] = record_there<Sum>(seen[i]) ? record_sum<Sum>(seen[i])
                                                 : record_await<Sum>(boxes_record<Sum>(plan, item, pass, warp, i));
    }
    __syncwarp();
    kogge_stone_one<Sum, BOXES_SEEN, true>(sums, [&](int i, int further) { return i + further < met_here; });
    /* The further steps go across lanes, of which each has several members. */
#pragma unroll
    for (int distance = BOXES_SEEN; distance < ORDER_FAN; distance *= 2) {
        typename Sum::sum before;
        lane_before<true>(sums[0], &before, distance / BOXES_SEEN * BOXES_SHARE, WARP - 1);
        sums[0] = sum_choose<Sum>(distance < met_here, Sum::add(before, sums[0]), sums[0]);
    }
#pragma unroll
    for (int k = 0; k < BOXES_SHARE; k++)
        outside[k] = carry_of<Sum>(lane_get(sums[0], k), met > 0);
}

/* The totals of all leaves are there: the inclusive prefixes in a warp's columns, a leaf to a lane, in the order in
 * which the pass meets them; and the tile's totals are told. */
template <class Sum>
DEVICE void boxes_prefixes(const struct boxes_plan &plan, const struct boxes_item &item, int pass, bool tells, int warp,
                           const boxes_sum<Sum> *line, typename Sum::sum prefixes[BOXES_SHARE])
{
#pragma unroll
    for (int k = 0; k < BOXES_SHARE; k++)
        prefixes[k] = group_scan<Sum, false>(line[warp * BOXES_SHARE + k].sum, ORDER_FAN - 1);
    if (tells && lane_index() == item.leaves - 1)
        boxes_tell<Sum>(boxes_records<Sum>(plan, item, pass, item.tile, warp), prefixes);
}

/* The line of sums of the leaf that a lane stands for. */
template <class Sum>
DEVICE boxes_sum<Sum> *boxes_line_of(const struct boxes_plan &plan, const struct boxes_item &item, int pass,
                                     boxes_line<Sum> sums[ORDER_FAN])
{
    const int leaf = plan.backward[pass] ? item.leaves - 1 - lane_index() : lane_index();
    return sums[leaf & (ORDER_FAN - 1)];
}

/* Totals of leaves become carries into them. */
template <class Sum>
DEVICE void boxes_carries(const struct boxes_plan &plan, const struct boxes_item &item, int pass, int warp,
                          record_seen<Sum> seen[BOXES_SEEN], boxes_line<Sum> sums[ORDER_FAN])
{
    boxes_sum<Sum> *const line = boxes_line_of<Sum>(plan, item, pass, sums);
    typename Sum::sum prefixes[BOXES_SHARE];
    carry<Sum> outside[BOXES_SHARE];
    const bool tells = pass == plan.pass_count - 1 && boxes_met(plan, item, pass) < (int)plan.tiles - 1;
    boxes_prefixes<Sum>(plan, item, pass, tells, warp, line, prefixes);
    boxes_outside<Sum>(plan, item, pass, warp, seen, outside);
    __syncwarp();
#pragma unroll
    for (int k = 0; k < BOXES_SHARE; k++) {
        typename Sum::sum before;
        const bool there = lane_before<false>(prefixes[k], &before, 1, WARP - 1);
        line[warp * BOXES_SHARE + k].sum = carry_join<Sum>(outside[k], carry_of<Sum>(before, there)).sum;
    }
}

/* Whether a pass over a column begins with this leaf. */
DEVICE bool boxes_first(const struct boxes_plan &plan, const struct boxes_item &item, int pass, int leaf)
{
    return boxes_met(plan, item, pass) == 0 && leaf == (plan.backward[pass] ? item.leaves - 1 : 0);
}

/* Whether the L2 cache does better to keep records than samples: those of 8-byte sums lie in so many lines. */
template <class Sum> constexpr bool boxes_once = sizeof(typename Sum::sum) > sizeof(float);

/* What a thread holds of an item. */
struct boxes_held {
    float x[BOXES_LEAVES][BOXES_LANE][ORDER_LEAF];
};

/* What is done to a warp's leaves one by one is done to the first one, and then they take turns: without an identity a
 * leaf takes so many instructions that they should be there only once. */
template <class Sum> constexpr int boxes_unrolled = Sum::has_identity ? BOXES_LEAVES : 1;

/* The first leaf becomes the last one. */
DEVICE void boxes_turn(struct boxes_held *held)
{
#pragma unroll
    for (int c = 0; c < BOXES_LANE; c++)
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++) {
            const float first = held->x[0][c][i];
#pragma unroll
            for (int l = 1; l < BOXES_LEAVES; l++)
                held->x[l - 1][c][i] = held->x[l][c][i];
            held->x[BOXES_LEAVES - 1][c][i] = first;
        }
}

/* The totals of the first pass. */
template <class Sum>
DEVICE void boxes_totals(const struct boxes_item &item, int warp, struct boxes_held *held,
                         boxes_line<Sum> sums[ORDER_FAN])
{
#pragma unroll(boxes_unrolled <Sum>)
    for (int l = 0; l < BOXES_LEAVES; l++) {
        const int leaf = warp * BOXES_LEAVES + l, samples = boxes_samples(item, leaf);
#pragma unroll
        for (int c = 0; c < BOXES_LANE; c++)
            sums[leaf][lane_index() * BOXES_LANE + c].sum = boxes_total<Sum, false>(held->x[0][c], samples);
        boxes_turn(held);
    }
}

/* The values of the first of two passes, and the totals of the second one. */
template <class Sum>
DEVICE void boxes_between(const struct boxes_plan &plan, const struct boxes_item &item, int warp,
                          struct boxes_held *held, boxes_line<Sum> sums[ORDER_FAN])
{
    const bool reverse = plan.backward[0] != plan.backward[1];
#pragma unroll(boxes_unrolled <Sum>)
    for (int l = 0; l < BOXES_LEAVES; l++) {
        const int leaf = warp * BOXES_LEAVES + l, samples = boxes_samples(item, leaf);
        boxes_sum<Sum> *const pair = &sums[leaf][lane_index() * BOXES_LANE];
#pragma unroll
        for (int c = 0; c < BOXES_LANE; c++) {
            float *const x = held->x[0][c];
            boxes_values<Sum, false>(x, samples, pair[c].sum, boxes_first(plan, item, 0, leaf), plan.exclusive);
            boxes_fill<Sum>(x, samples);
            pair[c].sum = reverse ? boxes_total<Sum, true>(x, samples) : boxes_total<Sum, false>(x, samples);
        }
        boxes_turn(held);
    }
}

/* The values of the last pass, on their way out. */
template <class Sum>
DEVICE void boxes_finish(const struct boxes_plan &plan, const struct boxes_item &item, int warp,
                         const CUtensorMap &output, struct boxes_held *held, boxes_room<Sum> *room)
{
    const int pass = plan.pass_count - 1;
    const bool reverse = plan.backward[0] != plan.backward[pass];
#pragma unroll(boxes_unrolled <Sum>)
    for (int l = 0; l < BOXES_LEAVES; l++) {
        const int leaf = warp * BOXES_LEAVES + l, samples = boxes_samples(item, leaf);
        const bool first = boxes_first(plan, item, pass, leaf);
#pragma unroll
        for (int c = 0; c < BOXES_LANE; c++) {
            const typename Sum::sum carry = room->sums[leaf][lane_index() * BOXES_LANE + c].sum;
            if (reverse)
                boxes_values<Sum, true>(held->x[0][c], samples, carry, first, plan.exclusive);
            else
                boxes_values<Sum, false>(held->x[0][c], samples, carry, first, plan.exclusive);
        }
        if (lane_index() == 0)
            bulk_wait_read();
        __syncwarp();
        boxes_write(plan, &room->stages[warp], samples, held->x[0]);
        fence_proxy_async_shared();
        __syncwarp();
        if (lane_index() == 0 && samples > 0)
            boxes_store<boxes_once<Sum>>(output, item, leaf, &room->stages[warp]);
        boxes_turn(held);
    }
}

/* Starts the copy of a warp's leaves of an item. By one lane. */
template <class Sum>
DEVICE void boxes_fetch(const CUtensorMap &input, const struct boxes_item &item, int warp, boxes_room<Sum> *room)
{
    boxes_announce(&room->gates[warp], sizeof(room->boxes[warp]));
#pragma unroll
    for (int l = 0; l < BOXES_LEAVES; l++)
        boxes_load<boxes_once<Sum>>(input, item, warp * BOXES_LEAVES + l, &room->boxes[warp][l], &room->gates[warp]);
}

/* The number of the next item that no thread block has taken. */
template <class Sum> DEVICE unsigned boxes_take(const struct boxes_plan &plan, boxes_room<Sum> *room)
{
    __syncthreads();
    if (threadIdx.x == 0)
        room->next = atomicAdd(plan.taken, 1);
    __syncthreads();
    return room->next;
}

template <class Sum>
__global__ void __launch_bounds__(BOXES_THREADS, 1)
    boxes_kernel(const __grid_constant__ struct boxes_plan plan, const __grid_constant__ CUtensorMap input,
                 const __grid_constant__ CUtensorMap output)
{
    extern __shared__ __align__(128) char boxes_rooms[];
    boxes_room<Sum> *const room = (boxes_room<Sum> *)boxes_rooms;
    const int warp = warp_index();
    if (lane_index() == 0)
        boxes_gate_init(&room->gates[warp]);
    unsigned number = boxes_take(plan, room);
    if (lane_index() == 0 && number < plan.items)
        boxes_fetch<Sum>(input, boxes_item_at(plan, number), warp, room);
    boxes_take(plan, room);
    grid_wait_for_last();
    for (int parity = 0; number < plan.items; parity ^= 1) {
        const struct boxes_item item = boxes_item_at(plan, number);
        struct boxes_held held;
        record_seen<Sum> seen[BOXES_SEEN];
        boxes_look<Sum>(plan, item, 0, warp, seen);
        gate_wait(&room->gates[warp], parity);
#pragma unroll
        for (int l = 0; l < BOXES_LEAVES; l++)
            boxes_read<Sum>(plan, &room->boxes[warp][l], boxes_samples(item, warp * BOXES_LEAVES + l), held.x[l]);
        __syncwarp();
        number = room->next;
        if (lane_index() == 0 && number < plan.items)
            boxes_fetch<Sum>(input, boxes_item_at(plan, number), warp, room);
        boxes_totals<Sum>(item, warp, &held, room->sums);
        unsigned taken = 0;
        if (threadIdx.x == 0)
            taken = atomicAdd(plan.taken, 1);
#pragma unroll 1
        for (int pass = 0;;) {
            __syncthreads();
            boxes_carries<Sum>(plan, item, pass, warp, seen, room->sums);
            if (threadIdx.x == 0)
                room->next = taken;
            __syncthreads();
            if (++pass == plan.pass_count)
                break;
            boxes_look<Sum>(plan, item, pass, warp, seen);
            boxes_between<Sum>(plan, item, warp, &held, room->sums);
        }
        boxes_finish<Sum>(plan, item, warp, output, &held, room);
    }
    if (lane_index() == 0)
        bulk_wait_read();
}

/* The totals of all tiles by the first of two passes. What the other launch wants first is read last, and still in the
 * L2 cache then. */
template <class Sum>
__global__ void __launch_bounds__(BOXES_THREADS, 1)
    boxes_totals_kernel(const __grid_constant__ struct boxes_plan plan, const __grid_constant__ CUtensorMap input)
{
    extern __shared__ __align__(128) char boxes_rooms[];
    boxes_totals_room<Sum> *const room = (boxes_totals_room<Sum> *)boxes_rooms;
    const int warp = warp_index();
    unsigned ahead = 0; /* leaves of a warp, counted through all items */
    grid_let_next_begin();
    auto fetch = [&](unsigned n, int slot) {
        const unsigned number = blockIdx.x + n / BOXES_LEAVES * gridDim.x;
        if (lane_index() != 0 || number >= plan.items)
            return;
        boxes_announce(&room->gates[warp][slot], sizeof(boxes_leaf));
        boxes_load<false>(input, boxes_item_at(plan, plan.items - 1 - number),
                          warp + (int)(n % BOXES_LEAVES) * BOXES_WARPS, &room->ring[warp][slot],
                          &room->gates[warp][slot]);
    };
    if (lane_index() == 0)
        for (int slot = 0; slot < BOXES_RING; slot++)
            boxes_gate_init(&room->gates[warp][slot]);
    for (; ahead < BOXES_RING; ahead++)
        fetch(ahead, (int)ahead);
    __syncwarp();
    int slot = 0, parity = 0, turn = 0;
    for (unsigned number = blockIdx.x; number < plan.items; number += gridDim.x, turn ^= 1) {
        const struct boxes_item item = boxes_item_at(plan, plan.items - 1 - number);
#pragma unroll 1
        for (int l = 0; l < BOXES_LEAVES; l++) {
            const int leaf = warp + l * BOXES_WARPS, samples = boxes_samples(item, leaf);
            float x[BOXES_LANE][ORDER_LEAF];
            gate_wait(&room->gates[warp][slot], parity);
            boxes_read<Sum>(plan, &room->ring[warp][slot], samples, x);
            __syncwarp();
            fetch(ahead++, slot);
#pragma unroll
            for (int c = 0; c < BOXES_LANE; c++)
                room->sums[turn][leaf][lane_index() * BOXES_LANE + c].sum = boxes_total<Sum, false>(x[c], samples);
            slot = slot == BOXES_RING - 1 ? 0 : slot + 1;
            parity ^= slot == 0;
        }
        __syncthreads();
        typename Sum::sum prefixes[BOXES_SHARE];
        boxes_prefixes<Sum>(plan, item, 0, true, warp, boxes_line_of<Sum>(plan, item, 0, room->sums[turn]), prefixes);
    }
}

#endif
