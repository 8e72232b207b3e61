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
#define ROWS_DEALT 4   /* one of so many items for warps alone is dealt out */
#define ROWS_AHEAD 16u /* items that a warp takes at a time, at most */

/* Several short rows side by side in a tile, by one warp. */
template <class Sum, int Kind>
DEVICE void rows_group_scan(const struct ragged_plan &plan, const struct ragged_item &item,
                            const struct ragged_leaf &leaf, uint4 *slots)
{
    typename Sum::sample x[ORDER_LEAF];
    ragged_read<Sum>(plan, item, 0, slots, leaf, true, x);
    __syncwarp();
#pragma unroll 1
    for (int left = plan.pass_count;; left--) {
        if (plan.backward[plan.pass_count - left])
            ragged_values<Sum, true, Kind>(x, leaf, ragged_prefix<Sum, true>(x, leaf), true, Sum::identity());
        else
            ragged_values<Sum, false, Kind>(x, leaf, ragged_prefix<Sum, false>(x, leaf), true, Sum::identity());
        if (left == 1)
            break;
        leaf_between_passes<Sum>(x, true);
        leaf_absent<Sum>(leaf.samples, x);
    }
    ragged_write<Sum>(plan, item, 0, slots, leaf, true, x);
}

/* What a warp has to know of an item, in registers that the lanes share. When it was read in shared memory wherever it
 * was needed, warps waited for that a quarter of the time, on an H200. */
struct rows_item {
    uint64_t first;
    int samples, number; /* as in ragged_item */
};

DEVICE struct rows_item rows_item_of(const struct ragged_item *item)
{
    uint4 words;
    memcpy(&words, item, sizeof(words));
    const uint64_t low = __shfl_sync(~0u, words.x, 0), high = __shfl_sync(~0u, words.y, 0);
    const unsigned counts = __shfl_sync(~0u, words.w, 0);
    return {high << 32 | low, (int)(counts & 0xffff), (int)(counts >> 16)};
}

/*
 * Which items a team takes. Those of several warps, of which each has to know, are dealt out; a warp alone takes some
 * at a time, first those of RAGGED_ALONE, then those of RAGGED_TILE, and fewer towards the end, as processors differ in
 * speed. It asks for them a turn before it needs them.
 */
struct rows_queue {
    int kind;
    unsigned at, end, stride;
    unsigned count, made;    /* of this kind, and with those of RAGGED_TILE */
    unsigned dealt;          /* of these, in the beginning, to all warps alone */
    unsigned pending, ahead; /* what it has asked for: lane 0 will know where they begin, and how many they are */
};

/* Asks for the next ones. */
DEVICE void rows_queue_ask(const struct ragged_plan &plan, struct rows_queue *queue)
{
    const unsigned share = (queue->made - min(queue->end, queue->made)) / (gridDim.x * RAGGED_WARPS * 2);
    queue->ahead = max(min(share, ROWS_AHEAD), 1);
    queue->pending = lane_index() == 0 ? atomicAdd(&plan.counts->taken[RAGGED_ALONE], queue->ahead) : 0;
}

DEVICE struct rows_queue rows_queue_of(const struct ragged_plan &plan, int kind, int warp)
{
    const unsigned count = plan.counts->made[kind];
    if (kind == RAGGED_ALONE) {
        const unsigned made = count + plan.counts->made[RAGGED_TILE], warps = gridDim.x * RAGGED_WARPS;
        const unsigned share = min(made / (warps * ROWS_DEALT), ROWS_AHEAD),
                       at = (blockIdx.x * RAGGED_WARPS + warp) * share;
        struct rows_queue queue = {kind, at, at + share, 1, count, made, share * warps};
        if (share == 0)
            rows_queue_ask(plan, &queue);
        return queue;
    }
    const unsigned teams = RAGGED_WARPS >> kind;
    return {kind, blockIdx.x * teams + (warp >> kind), ~0u, gridDim.x * teams, count, count};
}

/* Starts to fetch the next item, one without samples if there is none. */
DEVICE void rows_queue_fetch(const struct ragged_plan &plan, struct rows_queue *queue, struct ragged_item *item)
{
    if (queue->at == queue->end) {
        queue->at = queue->dealt + __shfl_sync(~0u, queue->pending, 0);
        queue->end = queue->at + queue->ahead;
    }
    const unsigned index = min(queue->at, queue->made);
    const bool is_tile = index >= queue->count;
    const struct ragged_item *items = plan.items[is_tile ? RAGGED_TILE : queue->kind];
    if (lane_index() == 0)
        slot_fetch((uint4 *)item, (const char *)(items + index - (is_tile ? queue->count : 0)),
                   index < queue->made ? SLOT_BYTES : 0);
    queue->at += queue->stride;
    if (queue->at == queue->end)
        rows_queue_ask(plan, queue);
}

/* The first ones, at once. */
DEVICE void rows_queue_begin(const struct ragged_plan &plan, struct rows_queue *queue, struct ragged_item *items)
{
    for (int i = 0; i < ROWS_ITEMS - 1; i++)
        rows_queue_fetch(plan, queue, &items[i]);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncwarp();
}

/* `known`: of the item. */
DEVICE void rows_fetch(const struct ragged_plan &plan, const struct rows_item &known, const struct ragged_item *item,
                       int member, uint4 *slots)
{
    const char *source = plan.input + (known.first + member * STRETCH_SAMPLES) * sizeof(float);
    if (known.number > 1)
        ragged_fetch(plan, *item, 0, slots);
    else
        stretch_fetch(slots, source, stretch_samples(known.samples, member));
}

/* A warp's share of an item whose samples have arrived. */
template <class Sum, int Kind>
DEVICE void rows_scan(const struct ragged_plan &plan, const struct rows_item &known, const struct ragged_item *item,
                      struct ragged_team team, uint4 *slots, typename Sum::sum (*totals)[STRETCH_TOTALS],
                      unsigned meetings)
{
    if (known.number > 1)
        rows_group_scan<Sum, Kind>(plan, *item, ragged_leaf_among(plan, *item), slots);
    else
        stretch_scan<Sum, Kind>(plan, known.first, known.samples, team, slots, totals, meetings);
}

/* What a thread block shares: of teams by their number, of warps by theirs. */
template <class Sum> struct rows_shared {
    typename Sum::sum totals[RAGGED_WARPS][2][STRETCH_TOTALS]; /* not of warps alone */
    struct ragged_item items[RAGGED_WARPS][ROWS_ITEMS];
};

/*
 * Items of one class by teams of 2^kind warps. In turn t a warp scans item t, the samples of t + 1 and item t + 3
 * itself are on their way, to be there in the next turn.
 */
template <class Sum, int Kind>
DEVICE void ragged_rows(const struct ragged_plan &plan, int kind, int warp, uint4 *room, rows_shared<Sum> *shared)
{
    struct rows_queue queue = rows_queue_of(plan, kind, warp);
    struct ragged_item *items = shared->items[warp];
    const struct ragged_team team = {1 << kind, warp & ((1 << kind) - 1), (RAGGED_WARPS >> kind) - 1 + (warp >> kind)};
    rows_queue_begin(plan, &queue, items);
    struct rows_item item = rows_item_of(&items[0]), next = rows_item_of(&items[1]);
    rows_fetch(plan, item, &items[0], team.member, room);
    __pipeline_commit();
#pragma unroll 1
    for (unsigned turn = 0; item.samples > 0; turn++) {
        rows_fetch(plan, next, &items[(turn + 1) % ROWS_ITEMS], team.member, room + (turn + 1) % 2 * STRETCH_ROOM);
        __pipeline_commit();
        rows_queue_fetch(plan, &queue, &items[(turn + 3) % ROWS_ITEMS]);
        __pipeline_commit();
        __pipeline_wait_prior(2);
        __syncwarp();
        const struct rows_item after = rows_item_of(&items[(turn + 2) % ROWS_ITEMS]);
        rows_scan<Sum, Kind>(plan, item, &items[turn % ROWS_ITEMS], team, room + turn % 2 * STRETCH_ROOM,
                             shared->totals[team.number % RAGGED_WARPS], turn * plan.pass_count);
        item = next;
        next = after;
    }
    __pipeline_wait_prior(0);
    __syncwarp();
}

#endif
