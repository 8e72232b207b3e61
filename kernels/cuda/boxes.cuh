/*
 * Scans along an axis that is not the innermost one: sums of f32 samples, and 4-byte forms, of columns that lie side by
 * side in memory where tensor maps can describe them, of an order block at most. The copy engine moves boxes then,
 * twice as wide as what a warp would move (columns.cuh, walk.cuh).
 *
 * A strip is 64 columns, two to a lane, and an item a tile of a strip. A thread block holds an item in registers, two
 * leaves to a warp, from its only read to its only write; so the next item has shared memory to come to meanwhile.
 * Lanes change places only for the network: a warp takes some columns and turns the totals of their leaves, one per
 * lane, into carries.
 *
 * Items come in the order in which the last pass meets rows: the first tiles of all strips, then the second ones, as in
 * a copy of rows. All thread blocks are resident (a cooperative launch) and take their items in order. So what a tile
 * needs of the tiles before was told long before it is wanted (records, long_tree.cuh), and is asked for ahead.
 *
 * Of two passes the first one's carries are wanted at once, too. A launch before finds all its totals: it reads as fast
 * as memory can, and to wait for each other in one launch took longer than to read twice.
 */
#ifndef KERNELS_CUDA_BOXES_CUH
#define KERNELS_CUDA_BOXES_CUH

#include <cuda.h>

#include "kernels/cuda/long_tree.cuh"
#include "kernels/cuda/scan.cuh"

#define BOXES_LANE    2                             /* columns of a lane */
#define BOXES_COLUMNS (BOXES_LANE * WARP)           /* of a strip */
#define BOXES_WARPS   16                            /* of a thread block */
#define BOXES_THREADS (BOXES_WARPS * WARP)          /* all of a processor */
#define BOXES_LEAVES  (ORDER_FAN / BOXES_WARPS)     /* of a warp */
#define BOXES_SHARE   (BOXES_COLUMNS / BOXES_WARPS) /* columns whose networks are a warp's */
#define BOXES_LINE    (BOXES_COLUMNS + 1)           /* sums: no bank conflicts along columns nor along leaves */
#define BOXES_RING    3                             /* leaves of a warp on their way where only totals are wanted */

/* What one launch does. */
struct boxes_plan {
    enum scand_dtype input_form, output_form;
    unsigned strips, tiles, items;
    unsigned strips_per_plane;
    unsigned first_plane, planes; /* planes: of the innermost axis of planes */
    int last;                     /* samples of a column's last tile */
    int pass_count;
    bool backward[SCAND_PASSES_MAX], exclusive;
    record *records[SCAND_PASSES_MAX]; /* totals of tiles, by column and tile; of the last pass all zero before */
};

/* A leaf of all columns of a strip: what a box holds. */
typedef float boxes_leaf[ORDER_LEAF][BOXES_COLUMNS];

/* The shared memory of a thread block. */
struct boxes_room {
    boxes_leaf boxes[BOXES_WARPS][BOXES_LEAVES];
    boxes_leaf stages[BOXES_WARPS];
    float sums[ORDER_FAN][BOXES_LINE]; /* totals of leaves, then carries into them */
    gate gates[BOXES_WARPS];           /* a warp's boxes are there */
};

/* The same where only totals are wanted. */
struct boxes_totals_room {
    boxes_leaf ring[BOXES_WARPS][BOXES_RING];
    float sums[2][ORDER_FAN][BOXES_LINE]; /* of items that take turns */
    gate gates[BOXES_WARPS][BOXES_RING];
};

struct boxes_item {
    unsigned strip, tile;
    int column, plane, outer; /* where the strip begins in the tensor */
    int samples, leaves;      /* of a column in this tile */
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

/* A gate that opens when the copy engine has brought what one thread announces. By one lane. */
DEVICE void boxes_gate_init(gate *gate)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" : : "r"(gate_address(gate)) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" : : : "memory");
    asm volatile("fence.proxy.async;" : : : "memory");
#endif
}

DEVICE void boxes_announce(gate *gate, int bytes)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;"
                 :
                 : "r"(gate_address(gate)), "r"(bytes)
                 : "memory");
#endif
}

/* Starts the copy of a leaf of an item; zeros stand for what is not there. By one lane. */
DEVICE void boxes_load(const CUtensorMap &map, const struct boxes_item &item, int leaf, boxes_leaf *box, gate *gate)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, "
                 "%5}], [%6];"
                 :
                 : "r"((unsigned)__cvta_generic_to_shared(box)), "l"(&map), "r"(item.column),
                   "r"((int)item.tile * ORDER_TILE + leaf * ORDER_LEAF), "r"(item.plane), "r"(item.outer),
                   "r"(gate_address(gate))
                 : "memory");
#endif
}

/* Starts the copy of the results of a leaf, without what is not there. By one lane, once all lanes have written. */
DEVICE void boxes_store(const CUtensorMap &map, const struct boxes_item &item, int leaf, const boxes_leaf *stage)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%1, %2, %3, %4}], [%5];"
                 :
                 : "l"(&map), "r"(item.column), "r"((int)item.tile * ORDER_TILE + leaf * ORDER_LEAF), "r"(item.plane),
                   "r"(item.outer), "r"((unsigned)__cvta_generic_to_shared(stage))
                 : "memory");
    asm volatile("cp.async.bulk.commit_group;" : : : "memory");
#endif
}

/* Until the copy engine has read what this lane gave it to store. */
DEVICE void boxes_await_store()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("cp.async.bulk.wait_group.read 0;" : : : "memory");
#endif
}

/* Lets the copy engine see what this thread has written to shared memory. */
DEVICE void boxes_written()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("fence.proxy.async.shared::cta;" : : : "memory");
#endif
}

/* The total of a leaf of samples; Reverse: from the last one to the first one. */
template <bool Reverse> DEVICE float boxes_total(const float x[ORDER_LEAF])
{
    float sum = x[Reverse ? ORDER_LEAF - 1 : 0];
#pragma unroll
    for (int i = 1; i < ORDER_LEAF; i++)
        sum += x[Reverse ? ORDER_LEAF - 1 - i : i];
    return sum;
}

/* Replaces samples of a leaf, of which `samples` are there, by their values. `first`: the pass begins with this leaf.
 */
template <bool Reverse>
DEVICE void boxes_values(float x[ORDER_LEAF], int samples, float carry, bool first, bool exclusive)
{
    float sum = carry;
#pragma unroll
    for (int i = 0; i < ORDER_LEAF; i++) {
        const int k = Reverse ? ORDER_LEAF - 1 - i : i;
        const float before = sum;
        sum += x[k];
        x[k] = exclusive ? before : sum;
    }
    if (exclusive && first)
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            x[i] = i == (Reverse ? samples - 1 : 0) ? sum_f32::zero() : x[i];
}

/* Makes absent what a leaf lacks. */
DEVICE void boxes_fill(float x[ORDER_LEAF], int samples)
{
    if (samples < ORDER_LEAF)
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            x[i] = i < samples ? x[i] : sum_f32::absent();
}

DEVICE void boxes_pair(const float row[BOXES_COLUMNS], float x[BOXES_LANE][ORDER_LEAF], int i)
{
    const float2 pair = *(const float2 *)&row[lane_index() * BOXES_LANE];
    x[0][i] = pair.x;
    x[1][i] = pair.y;
}

/* This lane's columns of a leaf, in the order in which the first pass meets samples. */
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
        boxes_fill(x[c], samples);
    }
}

/* Results, as they are written. */
DEVICE void boxes_write(const struct boxes_plan &plan, boxes_leaf *leaf, int samples, float x[BOXES_LANE][ORDER_LEAF])
{
#pragma unroll
    for (int c = 0; c < BOXES_LANE; c++) {
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

/* Where the totals of a column are. */
DEVICE record *boxes_records(const struct boxes_plan &plan, const struct boxes_item &item, int pass, int column)
{
    const uint64_t number = (uint64_t)item.strip * BOXES_COLUMNS + column;
    return plan.records[pass] + number * plan.tiles;
}

/* How many tiles a pass meets before an item's. */
DEVICE int boxes_met(const struct boxes_plan &plan, const struct boxes_item &item, int pass)
{
    return (int)(plan.backward[pass] ? plan.tiles - 1 - item.tile : item.tile);
}

/* The record of the tile that this lane stands for: they are counted in the order in which the pass meets them. */
DEVICE record *boxes_record(const struct boxes_plan &plan, const struct boxes_item &item, int pass, int column)
{
    const unsigned tile = plan.backward[pass] ? plan.tiles - 1 - lane_index() : lane_index();
    return boxes_records(plan, item, pass, column) + tile;
}

/* Asks for the totals of the tiles before an item's, in a warp's columns. */
DEVICE void boxes_look(const struct boxes_plan &plan, const struct boxes_item &item, int pass, int warp,
                       record_seen<sum_f32> seen[BOXES_SHARE])
{
    if (lane_index() < boxes_met(plan, item, pass))
#pragma unroll
        for (int k = 0; k < BOXES_SHARE; k++)
            seen[k] = record_look<sum_f32>(boxes_record(plan, item, pass, warp + k * BOXES_WARPS));
}

/* The carries into the tile, from what was seen, and what was told since. */
DEVICE void boxes_outside(const struct boxes_plan &plan, const struct boxes_item &item, int pass, int warp,
                          const record_seen<sum_f32> seen[BOXES_SHARE], carry<sum_f32> outside[BOXES_SHARE])
{
    const int met = boxes_met(plan, item, pass);
#pragma unroll
    for (int k = 0; k < BOXES_SHARE; k++) {
        float sum = sum_f32::identity();
        if (lane_index() < met)
            sum = record_there<sum_f32>(seen[k])
                      ? record_sum<sum_f32>(seen[k])
                      : record_await<sum_f32>(boxes_record(plan, item, pass, warp + k * BOXES_WARPS));
        __syncwarp();
        sum = group_scan<sum_f32, false>(sum, ORDER_FAN - 1);
        outside[k] = carry_of<sum_f32>(lane_get(sum, max(met - 1, 0)), met > 0);
    }
}

/* The totals of all leaves are there: the inclusive prefixes in a warp's columns, a leaf to a lane, in the order in
 * which the pass meets them; and the tile's totals are told. */
DEVICE void boxes_prefixes(const struct boxes_plan &plan, const struct boxes_item &item, int pass, bool tells, int warp,
                           const float *line, float prefixes[BOXES_SHARE])
{
#pragma unroll
    for (int k = 0; k < BOXES_SHARE; k++) {
        prefixes[k] = group_scan<sum_f32, false>(line[warp + k * BOXES_WARPS], ORDER_FAN - 1);
        if (tells && lane_index() == item.leaves - 1)
            record_put<sum_f32>(boxes_records(plan, item, pass, warp + k * BOXES_WARPS) + item.tile, prefixes[k]);
    }
}

/* The line of sums of the leaf that a lane stands for. */
DEVICE float *boxes_line(const struct boxes_plan &plan, const struct boxes_item &item, int pass,
                         float sums[ORDER_FAN][BOXES_LINE])
{
    const int leaf = plan.backward[pass] ? item.leaves - 1 - lane_index() : lane_index();
    return sums[leaf & (ORDER_FAN - 1)];
}

/* Totals of leaves become carries into them. */
DEVICE void boxes_carries(const struct boxes_plan &plan, const struct boxes_item &item, int pass, int warp,
                          record_seen<sum_f32> seen[BOXES_SHARE], float sums[ORDER_FAN][BOXES_LINE])
{
    float *const line = boxes_line(plan, item, pass, sums);
    float prefixes[BOXES_SHARE];
    carry<sum_f32> outside[BOXES_SHARE];
    const bool tells = pass == plan.pass_count - 1 && boxes_met(plan, item, pass) < (int)plan.tiles - 1;
    boxes_prefixes(plan, item, pass, tells, warp, line, prefixes);
    boxes_outside(plan, item, pass, warp, seen, outside);
    __syncwarp();
#pragma unroll
    for (int k = 0; k < BOXES_SHARE; k++) {
        float before;
        const bool there = lane_before<false>(prefixes[k], &before, 1, WARP - 1);
        line[warp + k * BOXES_WARPS] = carry_join<sum_f32>(outside[k], carry_of<sum_f32>(before, there)).sum;
    }
}

/* Whether a pass over a column begins with this leaf. */
DEVICE bool boxes_first(const struct boxes_plan &plan, const struct boxes_item &item, int pass, int leaf)
{
    return boxes_met(plan, item, pass) == 0 && leaf == (plan.backward[pass] ? item.leaves - 1 : 0);
}

/* What a thread holds of an item. */
struct boxes_held {
    float x[BOXES_LEAVES][BOXES_LANE][ORDER_LEAF];
};

#define BOXES_EACH(L, C) \
    _Pragma("unroll") for (int L = 0; L < BOXES_LEAVES; L++) _Pragma("unroll") for (int C = 0; C < BOXES_LANE; C++)

/* The values of the first of two passes, and the totals of the second one. */
DEVICE void boxes_between(const struct boxes_plan &plan, const struct boxes_item &item, int warp,
                          struct boxes_held *held, float sums[ORDER_FAN][BOXES_LINE])
{
    const bool reverse = plan.backward[0] != plan.backward[1];
#pragma unroll
    for (int l = 0; l < BOXES_LEAVES; l++) {
        const int leaf = warp * BOXES_LEAVES + l, samples = boxes_samples(item, leaf);
        float *const pair = &sums[leaf][lane_index() * BOXES_LANE];
#pragma unroll
        for (int c = 0; c < BOXES_LANE; c++) {
            float *const x = held->x[l][c];
            boxes_values<false>(x, samples, pair[c], boxes_first(plan, item, 0, leaf), plan.exclusive);
            boxes_fill(x, samples);
            pair[c] = reverse ? boxes_total<true>(x) : boxes_total<false>(x);
        }
    }
}

/* The values of the last pass, on their way out. */
DEVICE void boxes_finish(const struct boxes_plan &plan, const struct boxes_item &item, int warp,
                         const CUtensorMap &output, struct boxes_held *held, boxes_room *room)
{
    const int pass = plan.pass_count - 1;
    const bool reverse = plan.backward[0] != plan.backward[pass];
#pragma unroll
    for (int l = 0; l < BOXES_LEAVES; l++) {
        const int leaf = warp * BOXES_LEAVES + l, samples = boxes_samples(item, leaf);
        const bool first = boxes_first(plan, item, pass, leaf);
#pragma unroll
        for (int c = 0; c < BOXES_LANE; c++) {
            const float carry = room->sums[leaf][lane_index() * BOXES_LANE + c];
            if (reverse)
                boxes_values<true>(held->x[l][c], samples, carry, first, plan.exclusive);
            else
                boxes_values<false>(held->x[l][c], samples, carry, first, plan.exclusive);
        }
        if (lane_index() == 0)
            boxes_await_store();
        __syncwarp();
        boxes_write(plan, &room->stages[warp], samples, held->x[l]);
        boxes_written();
        __syncwarp();
        if (lane_index() == 0 && samples > 0)
            boxes_store(output, item, leaf, &room->stages[warp]);
    }
}

/* Starts the copy of a warp's leaves of an item. By one lane. */
DEVICE void boxes_fetch(const CUtensorMap &input, const struct boxes_item &item, int warp, boxes_room *room)
{
    boxes_announce(&room->gates[warp], sizeof(room->boxes[warp]));
#pragma unroll
    for (int l = 0; l < BOXES_LEAVES; l++)
        boxes_load(input, item, warp * BOXES_LEAVES + l, &room->boxes[warp][l], &room->gates[warp]);
}

__global__ void __launch_bounds__(BOXES_THREADS, 1)
    boxes_kernel(const __grid_constant__ struct boxes_plan plan, const __grid_constant__ CUtensorMap input,
                 const __grid_constant__ CUtensorMap output)
{
    extern __shared__ __align__(128) char boxes_rooms[];
    boxes_room *const room = (boxes_room *)boxes_rooms;
    const int warp = warp_index();
    unsigned number = blockIdx.x;
    if (lane_index() == 0) {
        boxes_gate_init(&room->gates[warp]);
        boxes_fetch(input, boxes_item_at(plan, number), warp, room);
    }
    __syncwarp();
    for (int parity = 0; number < plan.items; parity ^= 1) {
        const struct boxes_item item = boxes_item_at(plan, number);
        struct boxes_held held;
        record_seen<sum_f32> seen[BOXES_SHARE];
        boxes_look(plan, item, 0, warp, seen);
        gate_wait(&room->gates[warp], parity);
#pragma unroll
        for (int l = 0; l < BOXES_LEAVES; l++)
            boxes_read(plan, &room->boxes[warp][l], boxes_samples(item, warp * BOXES_LEAVES + l), held.x[l]);
        __syncwarp();
        number += gridDim.x;
        if (lane_index() == 0 && number < plan.items)
            boxes_fetch(input, boxes_item_at(plan, number), warp, room);
        BOXES_EACH(l, c)
        {
            const int leaf = warp * BOXES_LEAVES + l;
            room->sums[leaf][lane_index() * BOXES_LANE + c] = boxes_total<false>(held.x[l][c]);
        }
        __syncthreads();
        boxes_carries(plan, item, 0, warp, seen, room->sums);
        __syncthreads();
        if (plan.pass_count > 1) {
            boxes_look(plan, item, 1, warp, seen);
            boxes_between(plan, item, warp, &held, room->sums);
            __syncthreads();
            boxes_carries(plan, item, 1, warp, seen, room->sums);
            __syncthreads();
        }
        boxes_finish(plan, item, warp, output, &held, room);
    }
    if (lane_index() == 0)
        boxes_await_store();
}

/* The totals of all tiles by the first of two passes. What the other launch wants first is read last, and still in the
 * L2 cache then. */
__global__ void __launch_bounds__(BOXES_THREADS, 1)
    boxes_totals_kernel(const __grid_constant__ struct boxes_plan plan, const __grid_constant__ CUtensorMap input)
{
    extern __shared__ __align__(128) char boxes_rooms[];
    boxes_totals_room *const room = (boxes_totals_room *)boxes_rooms;
    const int warp = warp_index();
    unsigned ahead = 0; /* leaves of a warp, counted through all items */
    auto fetch = [&](unsigned n, int slot) {
        const unsigned number = blockIdx.x + n / BOXES_LEAVES * gridDim.x;
        if (lane_index() != 0 || number >= plan.items)
            return;
        boxes_announce(&room->gates[warp][slot], sizeof(boxes_leaf));
        boxes_load(input, boxes_item_at(plan, plan.items - 1 - number), warp + (int)(n % BOXES_LEAVES) * BOXES_WARPS,
                   &room->ring[warp][slot], &room->gates[warp][slot]);
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
            boxes_read(plan, &room->ring[warp][slot], samples, x);
            __syncwarp();
            fetch(ahead++, slot);
#pragma unroll
            for (int c = 0; c < BOXES_LANE; c++)
                room->sums[turn][leaf][lane_index() * BOXES_LANE + c] = boxes_total<false>(x[c]);
            slot = slot == BOXES_RING - 1 ? 0 : slot + 1;
            parity ^= slot == 0;
        }
        __syncthreads();
        float prefixes[BOXES_SHARE];
        boxes_prefixes(plan, item, 0, true, warp, boxes_line(plan, item, 0, room->sums[turn]), prefixes);
    }
}

#endif
