/*
 * Ragged rows of up to 16 tiles, where a warp's registers suffice for two of them: for sums of 4 bytes. A warp takes
 * rows of two tiles, or two rows of one, or several short ones, and a team of 2, 4 or 8 warps longer ones. The samples
 * of the next row are on their way while one is scanned.
 */
#ifndef KERNELS_CUDA_KERNELS_RAGGED_ROWS_CUH
#define KERNELS_CUDA_KERNELS_RAGGED_ROWS_CUH

#include "kernels/cuda/kernels/ragged_stretch.cuh"
#include "kernels/cuda/kernels/ragged_tile.cuh"

#define ROWS_ITEMS 4   /* items that a warp knows: the one that it scans, and three more */
#define ROWS_DEALT 4   /* one of so many items for warps alone is dealt out */
#define ROWS_AHEAD 16u /* items that a warp takes at a time, at most */

/* Several short rows side by side in a tile, by one warp. */
template <class Sum, int Kind>
DEVICE void rows_group_scan(const struct ragged_plan &plan, const struct ragged_item &item,
                            const struct ragged_leaf &leaf, uint4 *vectors)
{
    typename Sum::sample x[ORDER_LEAF];
    ragged_read<Sum>(plan, item, 0, vectors, leaf, true, x);
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
        leaf_fill_beyond<Sum>(x, leaf.samples);
    }
    ragged_write<Sum>(plan, item, 0, vectors, leaf, true, x);
}

/* An item as a warp has to know it, in registers that the lanes share. When it was read in shared memory wherever it
 * was needed, warps waited for that a quarter of the time, on an H200. */
struct rows_item {
    uint64_t first;
    int samples, number;
    unsigned row; /* row as in ragged_item */
};

DEVICE struct rows_item rows_item_of(const struct ragged_item *item)
{
    uint4 words;
    memcpy(&words, item, sizeof(words));
    const uint64_t low = __shfl_sync(~0u, words.x, 0), high = __shfl_sync(~0u, words.y, 0);
    const unsigned row = __shfl_sync(~0u, words.z, 0), counts = __shfl_sync(~0u, words.w, 0);
    return {high << 32 | low, (int)(counts & 0xffff), (int)(counts >> 16), row};
}

/* A team member's share. */
DEVICE struct stretch rows_stretch(const struct rows_item &item, int member)
{
    const bool apart = item.number >= RAGGED_BESIDE;
    const int samples = stretch_samples(item.samples, member);
    struct stretch stretch = {{}, {min(samples, ORDER_TILE), max(samples - ORDER_TILE, 0)}, apart};
    if (apart)
        stretch.samples[1] = item.number - RAGGED_BESIDE;
    stretch.at[0] = (item.first + member * STRETCH_SAMPLES) * sizeof(float);
    stretch.at[1] = stretch.at[0] + (apart ? item.row : ORDER_TILE) * sizeof(float);
    return stretch;
}

/* True when an item is several short rows. */
DEVICE bool rows_are_group(const struct rows_item &item)
{
    return item.number > 1 && item.number < RAGGED_BESIDE;
}

/*
 * Items of a class. Those for teams of several warps, of which each has to know, are dealt out. A warp alone takes some
 * at a time, first those of RAGGED_ALONE, then those of RAGGED_TILE, and fewer towards the end, as SMs differ in
 * speed. What does not change is in shared memory, for want of registers.
 */
struct rows_list {
    const struct ragged_item *items[2]; /* items of the class, and those of RAGGED_TILE, from index 0 on, too */
    unsigned count, made;               /* items of the class, and with those of RAGGED_TILE */
    unsigned stride;                    /* from a team's item to its next one */
    unsigned dealt;                     /* items for warps alone that are dealt to all of them in the beginning */
};

/* The number of items dealt to each warp in the beginning. */
DEVICE unsigned rows_share(const struct rows_list &list)
{
    return min(list.made / (gridDim.x * RAGGED_WARPS * ROWS_DEALT), ROWS_AHEAD);
}

DEVICE struct rows_list rows_list_of(const struct ragged_plan &plan, int kind)
{
    const unsigned count = plan.counts[kind].made;
    const struct ragged_item *items = plan.items[kind];
    if (kind != RAGGED_ALONE)
        return {{items, items}, count, count, gridDim.x * (RAGGED_WARPS >> kind), 0};
    struct rows_list list = {
        {items, plan.items[RAGGED_TILE] - count}, count, count + plan.counts[RAGGED_TILE].made, 1, 0};
    list.dealt = rows_share(list) * gridDim.x * RAGGED_WARPS;
    return list;
}

/* A warp's position in a list. A warp asks for items an iteration before it needs them. */
struct rows_queue {
    unsigned at, end;
    unsigned pending, ahead; /* items that it has asked for: lane 0 will know where they begin, and how many they are */
};

/* Asks for the next ones. */
DEVICE void rows_queue_ask(const struct ragged_plan &plan, const struct rows_list *list, struct rows_queue *queue)
{
    const unsigned share = (list->made - min(queue->end, list->made)) / (gridDim.x * RAGGED_WARPS * 2);
    queue->ahead = max(min(share, ROWS_AHEAD), 1);
    queue->pending = lane_index() == 0 ? atomicAdd(&plan.counts[RAGGED_ALONE].taken, queue->ahead) : 0;
}

DEVICE struct rows_queue rows_queue_of(const struct ragged_plan &plan, const struct rows_list *list, int kind, int warp)
{
    if (kind != RAGGED_ALONE)
        return {blockIdx.x * (RAGGED_WARPS >> kind) + (warp >> kind), ~0u};
    const unsigned share = rows_share(*list), at = (blockIdx.x * RAGGED_WARPS + warp) * share;
    struct rows_queue queue = {at, at + share};
    if (share == 0)
        rows_queue_ask(plan, list, &queue);
    return queue;
}

/* Starts to fetch the next item, one without samples if there is none. */
DEVICE void rows_queue_fetch(const struct ragged_plan &plan, const struct rows_list *list, struct rows_queue *queue,
                             struct ragged_item *item)
{
    if (queue->at == queue->end) {
        queue->at = list->dealt + __shfl_sync(~0u, queue->pending, 0);
        queue->end = queue->at + queue->ahead;
    }
    if (lane_index() == 0)
        vec16_fetch((uint4 *)item, (const char *)(list->items[queue->at >= list->count] + queue->at),
                    queue->at < list->made ? VEC16_BYTES : 0);
    queue->at += list->stride;
    if (queue->at == queue->end)
        rows_queue_ask(plan, list, queue);
}

/* The first ones, at once. */
DEVICE void rows_queue_begin(const struct ragged_plan &plan, const struct rows_list *list, struct rows_queue *queue,
                             struct ragged_item *items)
{
    for (int i = 0; i < ROWS_ITEMS - 1; i++)
        rows_queue_fetch(plan, list, queue, &items[i]);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncwarp();
}

/* `known`: of the item. */
DEVICE void rows_fetch(const struct ragged_plan &plan, const struct rows_item &known, const struct ragged_item *item,
                       int member, uint4 *vectors)
{
    if (rows_are_group(known))
        ragged_fetch(plan, *item, 0, vectors);
    else
        stretch_fetch(plan, rows_stretch(known, member), vectors);
}

/* A warp's share of an item whose samples have arrived. */
template <class Sum, int Kind>
DEVICE void rows_scan(const struct ragged_plan &plan, const struct rows_item &known, const struct ragged_item *item,
                      struct ragged_team team, uint4 *vectors, typename Sum::sum (*totals)[STRETCH_TOTALS],
                      unsigned meetings)
{
    if (rows_are_group(known))
        rows_group_scan<Sum, Kind>(plan, *item, ragged_leaf_among(plan, *item), vectors);
    else
        stretch_scan<Sum, Kind>(plan, rows_stretch(known, team.member), known.samples, team, vectors, totals, meetings);
}

/* Shared memory of a thread block: of teams by their number, of warps by theirs, of classes for teams of up to 8 warps.
 */
template <class Sum> struct rows_shared {
    struct rows_list lists[RAGGED_EIGHT + 1];
    struct rows_list none;                                     /* without items */
    typename Sum::sum totals[RAGGED_WARPS][2][STRETCH_TOTALS]; /* not of warps alone */
    struct ragged_item items[RAGGED_WARPS][ROWS_ITEMS];
};

/* Prepares shared memory before items are made. */
template <class Sum> DEVICE void rows_begin(int warp, rows_shared<Sum> *shared)
{
    if (lane_index() < ROWS_ITEMS)
        shared->items[warp][lane_index()] = {};
    if (threadIdx.x == 0)
        shared->none = {};
    __syncthreads();
}

/*
 * Items of one class by teams of 2^kind warps, or a warp's own ones, that are there. In iteration t a warp scans item
 * t, the samples of t + 1 and item t + 3 itself are on their way, to be there in the next iteration.
 */
template <class Sum, int Kind>
DEVICE void ragged_rows(const struct ragged_plan &plan, int kind, bool own, int warp, uint4 *smem,
                        rows_shared<Sum> *shared)
{
    const struct rows_list *list = own ? &shared->none : &shared->lists[kind];
    struct rows_queue queue = {0, ~0u};
    struct ragged_item *items = shared->items[warp];
    const struct ragged_team team = {1 << kind, warp & ((1 << kind) - 1), (RAGGED_WARPS >> kind) - 1 + (warp >> kind)};
    if (!own) {
        queue = rows_queue_of(plan, list, kind, warp);
        rows_queue_begin(plan, list, &queue, items);
    }
    rows_fetch(plan, rows_item_of(&items[0]), &items[0], team.member, smem);
    __pipeline_commit();
#pragma unroll 1
    for (unsigned iteration = 0;; iteration++) {
        const struct rows_item item = rows_item_of(&items[iteration % ROWS_ITEMS]),
                               next = rows_item_of(&items[(iteration + 1) % ROWS_ITEMS]);
        if (item.samples == 0)
            break;
        rows_fetch(plan, next, &items[(iteration + 1) % ROWS_ITEMS], team.member,
                   smem + (iteration + 1) % 2 * STRETCH_SMEM);
        __pipeline_commit();
        rows_queue_fetch(plan, list, &queue, &items[(iteration + 3) % ROWS_ITEMS]);
        __pipeline_commit();
        __pipeline_wait_prior(2);
        __syncwarp();
        rows_scan<Sum, Kind>(plan, item, &items[iteration % ROWS_ITEMS], team, smem + iteration % 2 * STRETCH_SMEM,
                             shared->totals[team.number % RAGGED_WARPS], iteration * plan.pass_count);
    }
    __pipeline_wait_prior(0);
    __syncwarp();
}

#endif
