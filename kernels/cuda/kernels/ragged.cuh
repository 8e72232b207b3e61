/*
 * Ragged rows (scan.h): sums of f32 samples into f32, contiguous. They come as items, which a launch before has made
 * (ragged_items.cuh). Of an item
 *
 * - of up to RAGGED_TILES tiles a warp takes all and meets nobody: one row, or several that have no more leaves than a
 *   tile;
 * - of up to an order block a team of 2, 4 or 8 warps shares the tiles;
 * - of a longer row, one order block each, a whole thread block does, and keeps the samples while it waits for the
 *   totals of the row's other order blocks (tile_state.cuh). That ends because these have been taken before or are
 *   taken by other thread blocks: they are dealt out in order, a thread block has one at a time, and all thread blocks,
 *   of which there are as many as a row has order blocks, are resident (a cooperative launch).
 *
 * Longer ones go first, so that all thread blocks end with work in small pieces. Samples lie in shared memory until
 * the results are there, and those of the next item come meanwhile if there is room.
 */
#ifndef KERNELS_CUDA_KERNELS_RAGGED_CUH
#define KERNELS_CUDA_KERNELS_RAGGED_CUH

#include "kernels/cuda/exchange/lookback.cuh"
#include "kernels/cuda/exchange/team.cuh"
#include "kernels/cuda/kernels/ragged_tile.cuh"

/* Items by one warp. */

/* One pass over the `nth` of so many tiles of a row that it meets. totals: in lane n the total of the n-th. */
template <class Sum, bool Backward, int Kind>
DEVICE void ragged_tile_pass(const struct ragged_leaf &leaf, int nth, int tiles, typename Sum::sum *totals,
                             typename Sum::sample x[ORDER_LEAF])
{
    const typename Sum::sum inclusive = ragged_prefix<Sum, Backward>(x, leaf);
    typename Sum::sum outer = Sum::identity();
    if (nth > 0)
        outer = lane_get(segmented_scan<Sum, false>(*totals, lane_index(), RAGGED_TILES), nth - 1);
    if (nth + 1 < tiles) {
        const typename Sum::sum total = lane_get(inclusive, Backward ? 0 : leaf.leaves - 1);
        if (lane_index() == nth)
            *totals = total;
    }
    ragged_values<Sum, Backward, Kind>(x, leaf, inclusive, nth == 0, outer);
}

/* A warp's tile `tile` in shared memory, of an item whose first is tile `at` of its room. */
DEVICE uint4 *ragged_tile_at(uint4 *smem, int at, int tile)
{
    return smem + (unsigned)(at + tile) % RAGGED_TILES * TILE_SMEM;
}

template <class Sum, int Kind>
DEVICE void ragged_item_scan(const struct ragged_plan &plan, const struct ragged_item &item,
                             const struct ragged_leaf &group, uint4 *smem, int at)
{
    const int tiles = ragged_tiles(item.samples);
    const bool together = item.number > 1;
    int held = -1; /* the tile that is in registers since the pass before */
    typename Sum::sample x[ORDER_LEAF];
    typename Sum::sum totals = Sum::identity();
#pragma unroll 1
    for (int pass = 0; pass < plan.pass_count; pass++) {
        const bool backward = plan.backward[pass], last_pass = pass + 1 == plan.pass_count;
#pragma unroll 1
        for (int nth = 0; nth < tiles; nth++) {
            const int tile = backward ? tiles - 1 - nth : nth;
            uint4 *vectors = ragged_tile_at(smem, at, tile);
            const struct ragged_leaf leaf = together ? group : ragged_leaf_of(tile_samples(item.samples, tile));
            if (tile != held)
                ragged_read<Sum>(plan, item, pass, vectors, leaf, together, x);
            __syncwarp();
            if (backward)
                ragged_tile_pass<Sum, true, Kind>(leaf, nth, tiles, &totals, x);
            else
                ragged_tile_pass<Sum, false, Kind>(leaf, nth, tiles, &totals, x);
            const bool stays = !last_pass && nth + 1 == tiles && tile == (plan.backward[1] ? tiles - 1 : 0);
            if (last_pass) {
                ragged_write<Sum>(plan, item, tile, vectors, leaf, together, x);
            } else if (stays) {
                leaf_between_passes<Sum>(x, true);
                if (!Sum::has_identity || plan.backward[1])
                    ragged_fill(x, leaf.samples, Sum::absent());
                held = tile;
            } else {
                ragged_keep<Sum>(vectors, x);
            }
        }
    }
}

/* Items for one warp: those of RAGGED_ALONE, then those of RAGGED_TILE. It takes some at a time, fewer towards the end.
 */
struct ragged_queue {
    unsigned at, end; /* range of items that have been taken */
    unsigned alone, made;
    struct ragged_item *next; /* in shared memory */
};

DEVICE void ragged_queue_fill(const struct ragged_plan &plan, struct ragged_queue *queue)
{
    const unsigned share = (queue->made - min(queue->end, queue->made)) / (gridDim.x * RAGGED_WARPS * 2);
    const unsigned count = max(min(share, RAGGED_AHEAD), 1);
    const unsigned taken = lane_index() == 0 ? atomicAdd(&plan.counts[RAGGED_ALONE].taken, count) : 0;
    queue->at = __shfl_sync(~0u, taken, 0);
    queue->end = queue->at + count;
}

/* Starts the copy of the next item to shared memory. The compiler would wait for it if it went to registers. */
DEVICE void ragged_ask(const struct ragged_plan &plan, struct ragged_queue *queue)
{
    if (queue->at == queue->end)
        ragged_queue_fill(plan, queue);
    const unsigned index = queue->at++;
    const struct ragged_item *item =
        index < queue->alone ? &plan.items[RAGGED_ALONE][index] : &plan.items[RAGGED_TILE][index - queue->alone];
    if (lane_index() == 0)
        vec16_fetch((uint4 *)queue->next, (const char *)item, index < queue->made ? sizeof(*item) : 0);
    __pipeline_commit();
}

/* It, when all copies have come, in registers that lanes share. */
DEVICE struct ragged_item ragged_asked(const struct ragged_queue &queue)
{
    __pipeline_wait_prior(0);
    __syncwarp();
    const unsigned word = ((const unsigned *)queue.next)[lane_index() % 4];
    __syncwarp();
    const unsigned words[4] = {__shfl_sync(~0u, word, 0), __shfl_sync(~0u, word, 1), __shfl_sync(~0u, word, 2),
                               __shfl_sync(~0u, word, 3)};
    struct ragged_item item;
    memcpy(&item, words, sizeof(item));
    return item;
}

DEVICE void ragged_item_fetch(const struct ragged_plan &plan, const struct ragged_item &item, uint4 *smem, int at)
{
#pragma unroll 1
    for (int tile = 0; tile < ragged_tiles(item.samples); tile++)
        ragged_fetch(plan, item, tile, ragged_tile_at(smem, at, tile));
    __pipeline_commit();
}

/* Samples of the next item are on their way while one is scanned, if there is room. */
template <class Sum, int Kind>
DEVICE void ragged_alone(const struct ragged_plan &plan, uint4 *smem, struct ragged_item *place)
{
    const unsigned alone = plan.counts[RAGGED_ALONE].made;
    struct ragged_queue queue = {0, 0, alone, alone + plan.counts[RAGGED_TILE].made, place};
    ragged_ask(plan, &queue);
    struct ragged_item item = ragged_asked(queue);
    ragged_ask(plan, &queue);
    struct ragged_item next = ragged_asked(queue);
    int at = 0;
    ragged_item_fetch(plan, item, smem, at);
    while (item.samples > 0) {
        const int tiles = ragged_tiles(item.samples), next_at = (unsigned)(at + tiles) % RAGGED_TILES;
        const bool early = tiles + ragged_tiles(next.samples) <= RAGGED_TILES;
        struct ragged_leaf group = {};
        if (early)
            ragged_item_fetch(plan, next, smem, next_at);
        ragged_ask(plan, &queue);
        if (item.number > 1)
            group = ragged_leaf_among(plan.offsets, plan.rows, item.row, item.number, item.first);
        if (early)
            __pipeline_wait_prior(2);
        else
            __pipeline_wait_prior(1);
        __syncwarp();
        ragged_item_scan<Sum, Kind>(plan, item, group, smem, at);
        item = next;
        next = ragged_asked(queue);
        if (!early)
            ragged_item_fetch(plan, item, smem, next_at);
        at = next_at;
    }
}

/* Items by teams. */

/* Shared memory of the teams of a thread block: each has as many totals as its rooms hold tiles, twice, as they are
 * written while others may still read those of the pass before. A team that ends its class of items leaves it to those
 * of the next class, smaller ones, that its warps are then in. */
template <class Sum> struct ragged_shared {
    typename Sum::sum totals[2][ORDER_FAN], outer;
    struct ragged_item items[RAGGED_WARPS / 2], alone[RAGGED_WARPS];
};

DEVICE struct ragged_item ragged_take(const struct ragged_plan &plan, int kind)
{
    const unsigned index = atomicAdd(&plan.counts[kind].taken, 1);
    struct ragged_item item = {};
    if (index < plan.counts[kind].made)
        item = plan.items[kind][index];
    return item;
}

/* The sum before an order block of a long row, whose total is `total`. */
template <class Sum, bool Backward>
DEVICE typename Sum::sum ragged_outer(const struct ragged_plan &plan, const struct ragged_item &item, int pass,
                                      struct warp_team team, typename Sum::sum total, ragged_shared<Sum> *shared)
{
    const struct ragged_long row = plan.longs[item.row];
    if (team.member == 0) {
        const carry<Sum> outer = lookback_carry<Sum, Backward>(plan.states[pass] + (uint64_t)row.item * RAGGED_STATES,
                                                               row.blocks, item.number, total);
        if (lane_index() == 0)
            shared->outer = outer.sum;
    }
    team_meet(team, team.count);
    return shared->outer;
}

/* Tile i of a warp is tile member + i * size of the item. */
template <class Sum, bool Backward, int Kind>
DEVICE void ragged_team_pass(const struct ragged_plan &plan, const struct ragged_item &item, int pass, bool is_long,
                             struct warp_team team, uint4 *smem, typename Sum::sum *totals, ragged_shared<Sum> *shared)
{
    const int lane = lane_index(), tiles = ragged_tiles(item.samples);
    typename Sum::sample x[ORDER_LEAF];
    typename Sum::sum inclusive[RAGGED_TILES];
#pragma unroll 1
    for (int i = 0; team.member + i * team.size < tiles; i++) {
        const int tile = team.member + i * team.size;
        const struct ragged_leaf leaf = ragged_leaf_of(tile_samples(item.samples, tile));
        ragged_read<Sum>(plan, item, pass, ragged_tile_at(smem, 0, i), leaf, false, x);
        const typename Sum::sum sum = ragged_prefix<Sum, Backward>(x, leaf);
        if (lane == (Backward ? 0 : leaf.leaves - 1))
            totals[tile] = sum;
#pragma unroll
        for (int k = 0; k < RAGGED_TILES; k++)
            if (k == i)
                inclusive[k] = sum;
    }
    team_meet(team, team.count);
    const int last = group_last<Sum>(tiles);
    const bool outside = is_long && item.number != (Backward ? plan.longs[item.row].blocks - 1 : 0);
    const typename Sum::sum prefixes = group_scan<Sum, Backward>(lane < tiles ? totals[lane] : Sum::identity(), last);
    carry<Sum> carry = group_before<Sum, Backward>(prefixes, last);
    if (is_long) {
        const typename Sum::sum total = lane_get(prefixes, Backward ? 0 : tiles - 1),
                                outer = ragged_outer<Sum, Backward>(plan, item, pass, team, total, shared);
        if (outside)
            carry = carry_join<Sum>({outer, true}, carry);
    }
#pragma unroll 1
    for (int i = 0; team.member + i * team.size < tiles; i++) {
        const int tile = team.member + i * team.size;
        const struct ragged_leaf leaf = ragged_leaf_of(tile_samples(item.samples, tile));
        uint4 *vectors = ragged_tile_at(smem, 0, i);
        typename Sum::sum prefix = inclusive[0];
#pragma unroll
        for (int k = 1; k < RAGGED_TILES; k++)
            if (k == i)
                prefix = inclusive[k];
        ragged_read<Sum>(plan, item, pass, vectors, leaf, false, x);
        __syncwarp();
        ragged_values<Sum, Backward, Kind>(x, leaf, prefix, !outside && tile == (Backward ? tiles - 1 : 0),
                                           lane_get(carry.sum, tile));
        if (pass + 1 == plan.pass_count)
            ragged_write<Sum>(plan, item, tile, vectors, leaf, false, x);
        else
            ragged_keep<Sum>(vectors, x);
    }
}

/* All items of a class that a team can get, one at a time: nobody may have an item of a long row that others wait for
 * while it waits itself. */
template <class Sum, int Kind>
DEVICE void ragged_teams(const struct ragged_plan &plan, int kind, int warp, uint4 *smem, ragged_shared<Sum> *shared)
{
    const bool is_long = kind == RAGGED_LONG;
    const struct warp_team team = warp_team_of(min(1 << kind, RAGGED_WARPS), warp);
    const bool taker = team.member == 0 && lane_index() == 0;
    struct ragged_item *next = &shared->items[(warp - team.member) / 2];
    if (plan.counts[kind].made == 0)
        return;
    for (unsigned meetings = 0;;) {
        if (taker)
            *next = ragged_take(plan, kind);
        team_meet(team, team.count);
        const struct ragged_item item = *next;
        if (item.samples == 0)
            break;
        for (int i = 0; team.member + i * team.size < ragged_tiles(item.samples); i++)
            ragged_fetch(plan, item, team.member + i * team.size, ragged_tile_at(smem, 0, i));
        __pipeline_commit();
        __pipeline_wait_prior(0);
        __syncwarp();
#pragma unroll 1
        for (int pass = 0; pass < plan.pass_count; pass++, meetings++) {
            typename Sum::sum *totals = shared->totals[meetings % 2] + team.number * team.size * RAGGED_TILES;
            if (plan.backward[pass])
                ragged_team_pass<Sum, true, Kind>(plan, item, pass, is_long, team, smem, totals, shared);
            else
                ragged_team_pass<Sum, false, Kind>(plan, item, pass, is_long, team, smem, totals, shared);
        }
    }
    team_meet(team, team.count);
}

template <class Sum, int Kind>
__global__ void __launch_bounds__(RAGGED_WARPS *WARP, RAGGED_BLOCKS)
    ragged_kernel(const __grid_constant__ struct ragged_plan plan)
{
    extern __shared__ __align__(128) uint4 smem_of_all[];
    __shared__ ragged_shared<Sum> shared;
    const int warp = warp_index();
    uint4 *smem = warp_uniform(smem_of_all + warp * RAGGED_SMEM);
#pragma unroll 1
    for (int kind = RAGGED_LONG; kind > RAGGED_ALONE; kind--)
        ragged_teams<Sum, Kind>(plan, kind, warp, smem, &shared);
    ragged_alone<Sum, Kind>(plan, smem, &shared.alone[warp]);
}

#endif
