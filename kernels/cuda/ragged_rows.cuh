/*
 * Ragged rows of up to 16 tiles, where a warp's registers suffice for two of them: for sums of 4 bytes. A warp takes
 * rows of two tiles, or several short ones, and a team of 2, 4 or 8 warps longer ones. The samples of the next row are
 * on their way while one is scanned.
 */
#ifndef KERNELS_CUDA_RAGGED_ROWS_CUH
#define KERNELS_CUDA_RAGGED_ROWS_CUH

#include "kernels/cuda/ragged_stretch.cuh"
#include "kernels/cuda/ragged_tile.cuh"

#define ROWS_ITEMS 4   /* that a warp knows: the one that it scans, and three more */
#define ROWS_AHEAD 16u /* items that a warp takes at a time, at most: it waits for them */

/* Several short rows side by side in a tile, by one warp. */
template <class Sum, int Kind>
DEVICE void rows_group_scan(const struct ragged_plan &plan, const struct ragged_item &item,
                            const struct ragged_leaf &leaf, uint4 *slots)
{
    typename Sum::sample x[ORDER_LEAF];
    ragged_read<Sum>(plan, item, 0, slots, leaf, true, x);
    __syncwarp();
#pragma unroll 1
    for (int pass = 0;; pass++) {
        if (plan.backward[pass])
            ragged_values<Sum, true, Kind>(x, leaf, ragged_prefix<Sum, true>(x, leaf), true, Sum::identity());
        else
            ragged_values<Sum, false, Kind>(x, leaf, ragged_prefix<Sum, false>(x, leaf), true, Sum::identity());
        if (pass + 1 == plan.pass_count)
            break;
        leaf_between_passes<Sum>(x, true);
        leaf_absent<Sum>(leaf.samples, x);
    }
    ragged_write<Sum>(plan, item, 0, slots, leaf, true, x);
}

/*
 * Which items a team takes. Those of several warps, of which each has to know, are dealt out; a warp alone takes some
 * at a time, first those of RAGGED_ALONE, then those of RAGGED_TILE, and fewer towards the end, as processors differ in
 * speed. In shared memory, for want of registers.
 */
struct rows_queue {
    int kind;
    unsigned at, end, stride;
    unsigned count, made; /* of this kind, and with those of RAGGED_TILE */
};

DEVICE struct rows_queue rows_queue_of(const struct ragged_plan &plan, int kind, int warp)
{
    const unsigned count = plan.counts->made[kind];
    if (kind == RAGGED_ALONE)
        return {kind, 0, 0, 1, count, count + plan.counts->made[RAGGED_TILE]};
    const unsigned teams = RAGGED_WARPS >> kind;
    return {kind, blockIdx.x * teams + (warp >> kind), ~0u, gridDim.x * teams, count, count};
}

/* By one lane. */
DEVICE void rows_queue_fill(const struct ragged_plan &plan, struct rows_queue *queue)
{
    const unsigned share = (queue->made - min(queue->end, queue->made)) / (gridDim.x * RAGGED_WARPS * 2);
    const unsigned count = max(min(share, ROWS_AHEAD), 1);
    queue->at = atomicAdd(&plan.counts->taken[RAGGED_ALONE], count);
    queue->end = queue->at + count;
}

/* Starts to fetch the next item, one without samples if there is none. */
DEVICE void rows_queue_fetch(const struct ragged_plan &plan, struct rows_queue *queue, struct ragged_item *item)
{
    if (lane_index() == 0) {
        if (queue->at == queue->end)
            rows_queue_fill(plan, queue);
        const unsigned index = min(queue->at, queue->made);
        const bool is_tile = index >= queue->count;
        const struct ragged_item *items = plan.items[is_tile ? RAGGED_TILE : queue->kind];
        slot_fetch((uint4 *)item, (const char *)(items + index - (is_tile ? queue->count : 0)),
                   index < queue->made ? SLOT_BYTES : 0);
        queue->at += queue->stride;
    }
}

/* The first ones, at once. */
DEVICE void rows_queue_begin(const struct ragged_plan &plan, int kind, int warp, struct rows_queue *queue,
                             struct ragged_item *items)
{
    if (lane_index() == 0)
        *queue = rows_queue_of(plan, kind, warp);
    for (int i = 0; i < ROWS_ITEMS - 1; i++)
        rows_queue_fetch(plan, queue, &items[i]);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncwarp();
}

DEVICE void rows_fetch(const struct ragged_plan &plan, const struct ragged_item *item, int member, uint4 *slots)
{
    const char *source = plan.input + (item->first + member * STRETCH_SAMPLES) * sizeof(float);
    if (item->number > 1)
        ragged_fetch(plan, *item, 0, slots);
    else
        stretch_fetch(slots, source, stretch_samples(item->samples, member));
}

/* A warp's share of an item whose samples have arrived. */
template <class Sum, int Kind>
DEVICE void rows_scan(const struct ragged_plan &plan, const struct ragged_item *item, struct ragged_team team,
                      uint4 *slots, typename Sum::sum (*totals)[STRETCH_TOTALS], unsigned meetings)
{
    if (item->number > 1)
        rows_group_scan<Sum, Kind>(plan, *item, ragged_leaf_among(plan, *item), slots);
    else
        stretch_scan<Sum, Kind>(plan, item, team, slots, totals, meetings);
}

/* What a thread block shares: of teams by their number, of warps by theirs. */
template <class Sum> struct rows_shared {
    typename Sum::sum totals[RAGGED_WARPS][2][STRETCH_TOTALS]; /* not of warps alone */
    struct ragged_item items[RAGGED_WARPS][ROWS_ITEMS];
    struct rows_queue queues[RAGGED_WARPS];
};

/*
 * Items of one class by teams of 2^kind warps. In turn t a warp scans item t, the samples of t + 1 and item t + 3
 * itself are on their way, to be there in the next turn.
 */
template <class Sum, int Kind>
DEVICE void ragged_rows(const struct ragged_plan &plan, int kind, int warp, uint4 *room, rows_shared<Sum> *shared)
{
    struct rows_queue *queue = &shared->queues[warp];
    struct ragged_item *items = shared->items[warp];
    const struct ragged_team team = {1 << kind, warp & ((1 << kind) - 1), (RAGGED_WARPS >> kind) - 1 + (warp >> kind)};
    rows_queue_begin(plan, kind, warp, queue, items);
    rows_fetch(plan, &items[0], team.member, room);
    __pipeline_commit();
#pragma unroll 1
    for (unsigned turn = 0; items[turn % ROWS_ITEMS].samples > 0; turn++) {
        rows_fetch(plan, &items[(turn + 1) % ROWS_ITEMS], team.member, room + (turn + 1) % 2 * STRETCH_ROOM);
        __pipeline_commit();
        rows_queue_fetch(plan, queue, &items[(turn + 3) % ROWS_ITEMS]);
        __pipeline_commit();
        __pipeline_wait_prior(2);
        __syncwarp();
        rows_scan<Sum, Kind>(plan, &items[turn % ROWS_ITEMS], team, room + turn % 2 * STRETCH_ROOM,
                             shared->totals[team.number % RAGGED_WARPS], turn * plan.pass_count);
    }
    __pipeline_wait_prior(0);
    __syncwarp();
}

#endif
