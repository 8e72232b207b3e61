/*
 * Ragged rows (scan.h): sums of f32 samples into f32, contiguous.
 *
 * A kernel of its own first makes items of the offsets, sorted into classes by length. Of an item
 *
 * - of up to RAGGED_TILES tiles a warp takes all and meets nobody: one row, or several that have no more leaves than a
 *   tile, side by side in the lanes;
 * - of up to an order block a team of 2, 4 or 8 warps shares the tiles, as long as they lie in shared memory;
 * - of a longer row, one order block each, a whole thread block does, and keeps the samples while it waits for the
 *   totals of the row's other order blocks (long_tree.cuh). That ends because these have been taken before or are taken
 *   by other thread blocks: RAGGED_LONG items are dealt out in order, to as many thread blocks as a row has items at
 *   most, all of them resident (a cooperative launch). Each processor has one of these, and others to go on with.
 *
 * Longer ones go first, so that all thread blocks end with work in small pieces.
 */
#ifndef KERNELS_CUDA_RAGGED_CUH
#define KERNELS_CUDA_RAGGED_CUH

#include "kernels/cuda/long_tree.cuh"
#include "kernels/cuda/short.cuh"

#define RAGGED_WARPS  8                          /* of a thread block */
#define RAGGED_TILES  (ORDER_FAN / RAGGED_WARPS) /* that a warp has room for */
#define RAGGED_ROOM   (RAGGED_TILES * TILE_ROOM) /* slots of it */
#define RAGGED_SHARED ((size_t)RAGGED_WARPS * RAGGED_ROOM * SLOT_BYTES)
#define RAGGED_BLOCKS 3 /* on a processor, if there is shared memory for them */
#define RAGGED_AHEAD  4 /* items that a warp takes at a time */

/* The n-th is for teams of 2^n warps, but for the last. */
enum ragged_class { RAGGED_ALONE, RAGGED_PAIR, RAGGED_FOUR, RAGGED_ALL, RAGGED_LONG, RAGGED_CLASSES };

struct ragged_item {
    uint64_t first;   /* sample of the line */
    uint32_t row;     /* the first one; of a long row its index among these */
    uint16_t samples; /* 0: no more work */
    uint16_t number;  /* of rows; of a long one which order block this is */
};

/* A row of several order blocks. */
struct ragged_long {
    uint32_t item, blocks; /* its first item, and how many it has */
};

/* All zero before a launch. */
struct ragged_counts {
    unsigned int made[RAGGED_CLASSES], taken[RAGGED_CLASSES], longs;
};

struct ragged_plan {
    const char *input; /* sample 0 of the line */
    char *output;
    const uint64_t *offsets; /* rows + 1 */
    uint64_t rows;
    int pass_count;
    bool backward[SCAND_PASSES_MAX];
    uint64_t length_max; /* rows beyond are not for these kernels */
    int takers;          /* thread blocks that take items of long rows, first of all */
    struct ragged_counts *counts;
    struct ragged_item *items[RAGGED_CLASSES];
    struct ragged_long *longs;
    record *records[SCAND_PASSES_MAX]; /* of long rows, RAGGED_RECORDS for each item */
};

#define RAGGED_RECORDS 4 /* words: a tree over n > 1 items has less than 2 n sums, of 2 words at most */

/* The sum over this lane and those before it. */
DEVICE int lanes_upto(int value)
{
#pragma unroll
    for (int distance = 1; distance < WARP; distance *= 2) {
        int before = __shfl_up_sync(~0u, value, distance);
        value += lane_index() >= distance ? before : 0;
    }
    return value;
}

DEVICE int ragged_leaves(int samples)
{
    return (samples + ORDER_LEAF - 1) / ORDER_LEAF;
}

DEVICE int ragged_tiles(int samples)
{
    return (samples + ORDER_TILE - 1) / ORDER_TILE;
}

/* Making items. */

/* A lane's row as an item, unless it is in a group. */
struct ragged_row {
    struct ragged_item item;
    int kind; /* an enum ragged_class, or none */
};

/*
 * Rows of at most a tile, one after the other, become items of as many as have leaves for 32 lanes. Each is made by the
 * lane of its first row.
 */
DEVICE void ragged_group(struct ragged_row *row, uint64_t end, bool is_short)
{
    const int lane = lane_index(), upto = lanes_upto(is_short ? ragged_leaves((int)(end - row->item.first)) : 0);
    for (int begin = 0, before = 0; begin < WARP;) {
        const unsigned beyond = __ballot_sync(~0u, lane >= begin && (upto - before > WARP || !is_short));
        const int next = beyond ? __ffs((int)beyond) - 1 : WARP, last = max(next - 1, begin);
        const uint64_t group_end = __shfl_sync(~0u, end, last);
        if (lane == begin && next > begin && group_end > row->item.first) {
            row->item.samples = (uint16_t)(group_end - row->item.first);
            row->item.number = (uint16_t)(next - begin);
            row->kind = RAGGED_ALONE;
        }
        before = __shfl_sync(~0u, upto, last);
        begin = max(next, begin + 1); /* what is not short is passed over */
    }
}

/* By a warp: the items of a long row, and the place for its totals. */
DEVICE void ragged_long_make(const struct ragged_plan &plan, uint64_t first, uint64_t length)
{
    const int lane = lane_index();
    const unsigned blocks = (unsigned)((length + ORDER_BLOCK - 1) / ORDER_BLOCK);
    unsigned index = lane == 0 ? atomicAdd(&plan.counts->longs, 1) : 0;
    unsigned item = lane == 0 ? atomicAdd(&plan.counts->made[RAGGED_LONG], blocks) : 0;
    index = __shfl_sync(~0u, index, 0);
    item = __shfl_sync(~0u, item, 0);
    if (lane == 0)
        plan.longs[index] = {item, blocks};
    for (unsigned block = lane; block < blocks; block += WARP) {
        const uint64_t before = (uint64_t)block * ORDER_BLOCK;
        plan.items[RAGGED_LONG][item + block] = {
            first + before, index, (uint16_t)min(length - before, (uint64_t)ORDER_BLOCK), (uint16_t)block};
    }
    for (int pass = 0; pass < plan.pass_count; pass++)
        for (unsigned word = lane; word < blocks * RAGGED_RECORDS; word += WARP)
            plan.records[pass][item * RAGGED_RECORDS + word] = 0;
}

DEVICE void ragged_items_put(const struct ragged_plan &plan, const struct ragged_row &row)
{
    const int lane = lane_index();
    for (int kind = RAGGED_ALONE; kind <= RAGGED_ALL; kind++) {
        const unsigned own = __ballot_sync(~0u, row.kind == kind);
        unsigned at = lane == 0 && own ? atomicAdd(&plan.counts->made[kind], __popc(own)) : 0;
        at = __shfl_sync(~0u, at, 0) + __popc(own & ((1u << lane) - 1));
        if (own >> lane & 1)
            plan.items[kind][at] = row.item;
    }
}

/* A warp takes 32 rows at a time. */
static __global__ void ragged_plan_kernel(const __grid_constant__ struct ragged_plan plan)
{
    const uint64_t stride = (uint64_t)gridDim.x * blockDim.x;
    const uint64_t thread = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    for (uint64_t batch = thread / WARP * WARP; batch < plan.rows; batch += stride) {
        const uint64_t number = min(batch + lane_index(), plan.rows), end = plan.offsets[min(number + 1, plan.rows)];
        const uint64_t first = plan.offsets[number], length = end - first;
        struct ragged_row row = {{first, (uint32_t)number, (uint16_t)length, 1}, RAGGED_CLASSES};
        if (length > ORDER_BLOCK)
            row.kind = length <= plan.length_max ? RAGGED_LONG : RAGGED_CLASSES;
        else if (length > ORDER_TILE)
            for (row.kind = RAGGED_ALONE; length > (uint64_t)(RAGGED_TILES * ORDER_TILE) << row.kind;)
                row.kind++;
        ragged_group(&row, end, length <= ORDER_TILE);
        ragged_items_put(plan, row);
        for (unsigned longs = __ballot_sync(~0u, row.kind == RAGGED_LONG); longs != 0; longs &= longs - 1) {
            const int lane = __ffs((int)longs) - 1;
            ragged_long_make(plan, __shfl_sync(~0u, first, lane), __shfl_sync(~0u, length, lane));
        }
    }
}

/* Scanning a tile: of one row, or of several short ones. */

/* This lane's leaf. */
struct ragged_leaf {
    int first;          /* sample in the tile */
    int number, leaves; /* in its row, or in the tile of it */
    int samples;        /* 0 to 16 */
};

DEVICE struct ragged_leaf ragged_leaf_of(int tile_samples)
{
    const int first = lane_index() * ORDER_LEAF;
    return {first, lane_index(), ragged_leaves(tile_samples), max(min(tile_samples - first, ORDER_LEAF), 0)};
}

/* Of several rows. */
DEVICE struct ragged_leaf ragged_leaf_among(const struct ragged_plan &plan, const struct ragged_item &item)
{
    const int lane = lane_index();
    const uint64_t row = min((uint64_t)item.row + min(lane, (int)item.number), plan.rows);
    const uint64_t begin = plan.offsets[row];
    const int length = lane < item.number && row < plan.rows ? (int)(plan.offsets[row + 1] - begin) : 0;
    const int upto = lanes_upto(ragged_leaves(length));
    int own = 0; /* the first row that ends after this lane's leaf */
#pragma unroll
    for (int step = WARP / 2; step > 0; step /= 2)
        if (__shfl_sync(~0u, upto, own + step - 1) <= lane)
            own += step;
    struct ragged_leaf leaf;
    const int own_length = __shfl_sync(~0u, length, own);
    leaf.leaves = ragged_leaves(own_length);
    leaf.number = lane - (__shfl_sync(~0u, upto, own) - leaf.leaves);
    leaf.first = __shfl_sync(~0u, (int)(begin - item.first), own) + leaf.number * ORDER_LEAF;
    leaf.samples = min(own_length - leaf.number * ORDER_LEAF, ORDER_LEAF);
    if (lane >= __shfl_sync(~0u, upto, WARP - 1))
        leaf = {};
    return leaf;
}

template <class Sum> DEVICE void ragged_decode(const float samples[ORDER_LEAF], int there, typename Sum::sample x[])
{
#pragma unroll
    for (int i = 0; i < ORDER_LEAF; i++)
        x[i] = Sum::from_f32(samples[i]);
    if (Sum::has_identity && there < ORDER_LEAF)
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            if (i >= there)
                x[i] = Sum::absent();
}

template <bool Backward> DEVICE int ragged_position(const struct ragged_leaf &leaf)
{
    return Backward ? leaf.leaves - 1 - leaf.number : leaf.number;
}

/* Whether a leaf lacks samples that a backward pass would have met first, as in leaf_end_of. */
template <class Sum, bool Backward> DEVICE bool ragged_partial(const struct ragged_leaf &leaf)
{
    return !Sum::has_identity && Backward && __any_sync(~0u, leaf.samples % ORDER_LEAF != 0);
}

/* The inclusive prefix of this lane's leaf among those of its row in the tile. */
template <class Sum, bool Backward>
DEVICE typename Sum::sum ragged_prefix(const typename Sum::sample x[ORDER_LEAF], const struct ragged_leaf &leaf)
{
    typename Sum::sum total = ragged_partial<Sum, Backward>(leaf)
                                  ? leaf_total<Sum, Backward, Backward>(x, leaf.samples - 1)
                                  : leaf_total<Sum, Backward, false>(x, ORDER_LEAF - 1);
    return short_scan<Sum, Backward>(total, ragged_position<Backward>(leaf), WARP);
}

/* Replaces the samples by their values. `outer` is the carry into the tile, unless the row begins there. */
template <class Sum, bool Backward, int Kind>
DEVICE void ragged_values(typename Sum::sample x[ORDER_LEAF], const struct ragged_leaf &leaf,
                          typename Sum::sum inclusive, bool begins, typename Sum::sum outer)
{
    const int position = ragged_position<Backward>(leaf);
    typename Sum::sum before;
    lane_before<Backward>(inclusive, &before, 1, WARP - 1);
    carry<Sum> carry = carry_of<Sum>(before, position > 0);
    if (!begins)
        carry = carry_join<Sum>({outer, true}, carry);
    if (ragged_partial<Sum, Backward>(leaf))
        leaf_values<Sum, Backward, Kind, Backward>(x, carry, leaf.samples - 1, Kind);
    else
        leaf_values<Sum, Backward, Kind, false>(x, carry, ORDER_LEAF - 1, Kind);
    if (Kind == SCAND_KIND_EXCLUSIVE && Sum::has_identity && begins && position == 0)
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            if (i == (Backward ? leaf.samples - 1 : 0))
                x[i] = Sum::value(Sum::zero());
}

/* Rows in shared memory. Between passes values lie, in f32, where the samples were. */

DEVICE void ragged_fetch(const struct ragged_plan &plan, const struct ragged_item &item, int tile, uint4 *slots)
{
    const char *source = plan.input + (item.first + (uint64_t)tile * ORDER_TILE) * sizeof(float);
    fetch_slots(slots, source, shift_of<float>(source), tile_samples(item.samples, tile));
}

template <class Sum>
DEVICE void ragged_read(const struct ragged_plan &plan, const struct ragged_item &item, int pass, uint4 *slots,
                        const struct ragged_leaf &leaf, bool together, typename Sum::sample x[ORDER_LEAF])
{
    const int shift = shift_of<float>(plan.input + item.first * sizeof(float));
    float samples[ORDER_LEAF];
    if (pass > 0)
        leaf_read(slots, samples);
    else if (together)
        short_read(slots, shift + leaf.first, false, samples);
    else
        leaf_read(slots, shift, samples);
    ragged_decode<Sum>(samples, leaf.samples, x);
}

/* When all lanes have read the tile. */
template <class Sum>
DEVICE void ragged_write(const struct ragged_plan &plan, const struct ragged_item &item, int tile, uint4 *slots,
                         const struct ragged_leaf &leaf, bool together, const typename Sum::sample x[ORDER_LEAF])
{
    char *target = plan.output + (item.first + (uint64_t)tile * ORDER_TILE) * sizeof(float);
    const int shift = shift_of<float>(target);
    float results[ORDER_LEAF];
    leaf_results<Sum, float>(x, results);
    if (together) {
        short_write(slots, shift + leaf.first, leaf.samples, false, results);
        __syncwarp();
        stretch_drain(slots, target, shift, item.samples);
        __syncwarp();
    } else {
        const struct scan_side contiguous = {.access = ACCESS_SLOTS};
        tile_write<float, TILE_SLOTS, false>(slots, target, contiguous, tile_samples(item.samples, tile), 0, results);
    }
}

template <class Sum> DEVICE void ragged_keep(uint4 *slots, const typename Sum::sample x[ORDER_LEAF])
{
    float values[ORDER_LEAF];
#pragma unroll
    for (int i = 0; i < ORDER_LEAF; i++)
        values[i] = Sum::as_f32(x[i]);
    leaf_write(slots, lane_index(), values);
}

/* By one warp. */

/* One pass over the `nth` tile of a row that it meets. totals: in lane n the total of the n-th. */
template <class Sum, bool Backward, int Kind>
DEVICE void ragged_tile_pass(const struct ragged_leaf &leaf, int nth, typename Sum::sum *totals,
                             typename Sum::sample x[ORDER_LEAF])
{
    const typename Sum::sum inclusive = ragged_prefix<Sum, Backward>(x, leaf);
    typename Sum::sum outer = Sum::identity();
    if (nth > 0)
        outer = lane_get(short_scan<Sum, false>(*totals, lane_index(), RAGGED_TILES), nth - 1);
    const typename Sum::sum total = lane_get(inclusive, Backward ? 0 : leaf.leaves - 1);
    if (lane_index() == nth)
        *totals = total;
    ragged_values<Sum, Backward, Kind>(x, leaf, inclusive, nth == 0, outer);
}

/* Where a warp has tile `tile` of an item whose first is tile `at` of its room. */
DEVICE uint4 *ragged_slots(uint4 *room, int at, int tile)
{
    return room + (at + tile) % RAGGED_TILES * TILE_ROOM;
}

template <class Sum, int Kind>
DEVICE void ragged_item_scan(const struct ragged_plan &plan, const struct ragged_item &item,
                             const struct ragged_leaf &group, uint4 *room, int at)
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
            uint4 *slots = ragged_slots(room, at, tile);
            const struct ragged_leaf leaf = together ? group : ragged_leaf_of(tile_samples(item.samples, tile));
            if (tile != held)
                ragged_read<Sum>(plan, item, pass, slots, leaf, together, x);
            __syncwarp();
            if (backward)
                ragged_tile_pass<Sum, true, Kind>(leaf, nth, &totals, x);
            else
                ragged_tile_pass<Sum, false, Kind>(leaf, nth, &totals, x);
            const bool stays = !last_pass && nth + 1 == tiles && tile == (plan.backward[1] ? tiles - 1 : 0);
            if (last_pass) {
                ragged_write<Sum>(plan, item, tile, slots, leaf, together, x);
            } else if (stays) {
                float values[ORDER_LEAF];
#pragma unroll
                for (int i = 0; i < ORDER_LEAF; i++)
                    values[i] = Sum::as_f32(x[i]);
                ragged_decode<Sum>(values, leaf.samples, x);
                held = tile;
            } else {
                ragged_keep<Sum>(slots, x);
            }
        }
    }
}

/* Items of RAGGED_ALONE, some at a time. */
struct ragged_queue {
    unsigned at, made;
};

DEVICE struct ragged_item ragged_next(const struct ragged_plan &plan, struct ragged_queue *queue)
{
    if (queue->at % RAGGED_AHEAD == 0) {
        const unsigned taken =
            lane_index() == 0 ? atomicAdd(&plan.counts->taken[RAGGED_ALONE], (unsigned)RAGGED_AHEAD) : 0;
        queue->at = __shfl_sync(~0u, taken, 0);
    }
    const unsigned index = queue->at++;
    struct ragged_item item = {};
    if (index < queue->made)
        item = plan.items[RAGGED_ALONE][index];
    return item;
}

DEVICE void ragged_item_fetch(const struct ragged_plan &plan, const struct ragged_item &item, uint4 *room, int at)
{
    for (int tile = 0; tile < ragged_tiles(item.samples); tile++)
        ragged_fetch(plan, item, tile, ragged_slots(room, at, tile));
    __pipeline_commit();
}

/* Samples of the next item are on their way while one is scanned, if there is room. */
template <class Sum, int Kind> DEVICE void ragged_alone(const struct ragged_plan &plan, uint4 *room)
{
    struct ragged_queue queue = {0, plan.counts->made[RAGGED_ALONE]};
    struct ragged_item item = ragged_next(plan, &queue), next = ragged_next(plan, &queue);
    int at = 0;
    ragged_item_fetch(plan, item, room, at);
    while (item.samples > 0) {
        const int tiles = ragged_tiles(item.samples), next_at = (at + tiles) % RAGGED_TILES;
        const bool early = tiles + ragged_tiles(next.samples) <= RAGGED_TILES;
        struct ragged_leaf group = {};
        if (early)
            ragged_item_fetch(plan, next, room, next_at);
        const struct ragged_item after = ragged_next(plan, &queue);
        if (item.number > 1)
            group = ragged_leaf_among(plan, item);
        if (early)
            __pipeline_wait_prior(1);
        else
            __pipeline_wait_prior(0);
        __syncwarp();
        ragged_item_scan<Sum, Kind>(plan, item, group, room, at);
        if (!early)
            ragged_item_fetch(plan, next, room, next_at);
        item = next;
        next = after;
        at = next_at;
    }
}

/* By teams. */

/* Which warps of a thread block work on an item together, and which of them this is. */
struct ragged_team {
    int size, member, number;
};

/* What the teams of a thread block share: of totals each has as many as its rooms hold tiles. There are two of all that
 * is written while others may still read what was before. */
template <class Sum> struct ragged_shared {
    typename Sum::sum totals[2][ORDER_FAN], outer;
    struct ragged_item items[RAGGED_WARPS / 2][2];
};

DEVICE void ragged_meet(struct ragged_team team)
{
    asm volatile("bar.sync %0, %1;" : : "r"(1 + team.number), "r"(team.size * WARP) : "memory");
}

DEVICE struct ragged_item ragged_take(const struct ragged_plan &plan, int kind)
{
    const unsigned index = atomicAdd(&plan.counts->taken[kind], 1);
    struct ragged_item item = {};
    if (index < plan.counts->made[kind])
        item = plan.items[kind][index];
    return item;
}

/* The carry into an order block of a long row, from outside it. */
template <class Sum, bool Backward>
DEVICE carry<Sum> ragged_outer(const struct ragged_plan &plan, const struct ragged_item &item, int pass,
                               struct ragged_team team, const typename Sum::sum *totals, ragged_shared<Sum> *shared)
{
    const struct ragged_long row = plan.longs[item.row];
    if (team.member == 0) {
        const typename Sum::sum total = group_scan<Sum, Backward>(
            lane_index() < ragged_tiles(item.samples) ? totals[lane_index()] : Sum::identity(),
            group_last<Sum>(ragged_tiles(item.samples)));
        const carry<Sum> outer =
            tree_carry<Sum, Backward>(plan.records[pass] + (uint64_t)row.item * RAGGED_RECORDS, row.blocks, item.number,
                                      lane_get(total, Backward ? 0 : ragged_tiles(item.samples) - 1));
        if (lane_index() == 0)
            shared->outer = outer.sum;
    }
    ragged_meet(team);
    return carry_of<Sum>(shared->outer, item.number != (Backward ? row.blocks - 1 : 0));
}

/* Tile i of a warp is tile member + i * size of the item. */
template <class Sum, bool Backward, int Kind>
DEVICE void ragged_team_pass(const struct ragged_plan &plan, const struct ragged_item &item, int pass, bool is_long,
                             struct ragged_team team, uint4 *room, typename Sum::sum *totals,
                             ragged_shared<Sum> *shared)
{
    const int lane = lane_index(), tiles = ragged_tiles(item.samples);
    typename Sum::sample x[ORDER_LEAF];
    typename Sum::sum inclusive[RAGGED_TILES];
#pragma unroll 1
    for (int i = 0; team.member + i * team.size < tiles; i++) {
        const int tile = team.member + i * team.size;
        const struct ragged_leaf leaf = ragged_leaf_of(tile_samples(item.samples, tile));
        ragged_read<Sum>(plan, item, pass, ragged_slots(room, 0, i), leaf, false, x);
        const typename Sum::sum sum = ragged_prefix<Sum, Backward>(x, leaf);
        if (lane == (Backward ? 0 : leaf.leaves - 1))
            totals[tile] = sum;
#pragma unroll
        for (int k = 0; k < RAGGED_TILES; k++)
            if (k == i)
                inclusive[k] = sum;
    }
    ragged_meet(team);
    const int last = group_last<Sum>(tiles);
    carry<Sum> outer = carry_of<Sum>(Sum::identity(), false), carry;
    if (is_long)
        outer = ragged_outer<Sum, Backward>(plan, item, pass, team, totals, shared);
    const bool outside = is_long && item.number != (Backward ? plan.longs[item.row].blocks - 1 : 0);
    const typename Sum::sum sum = lane < tiles ? totals[lane] : Sum::identity();
    carry = group_before<Sum, Backward>(group_scan<Sum, Backward>(sum, last), last);
    if (outside)
        carry = carry_join<Sum>(outer, carry);
#pragma unroll 1
    for (int i = 0; team.member + i * team.size < tiles; i++) {
        const int tile = team.member + i * team.size;
        const struct ragged_leaf leaf = ragged_leaf_of(tile_samples(item.samples, tile));
        uint4 *slots = ragged_slots(room, 0, i);
        typename Sum::sum prefix = inclusive[0];
#pragma unroll
        for (int k = 1; k < RAGGED_TILES; k++)
            if (k == i)
                prefix = inclusive[k];
        ragged_read<Sum>(plan, item, pass, slots, leaf, false, x);
        __syncwarp();
        ragged_values<Sum, Backward, Kind>(x, leaf, prefix, !outside && tile == (Backward ? tiles - 1 : 0),
                                           lane_get(carry.sum, tile));
        if (pass + 1 == plan.pass_count)
            ragged_write<Sum>(plan, item, tile, slots, leaf, false, x);
        else
            ragged_keep<Sum>(slots, x);
    }
}

/* All items of a class that this thread block can get. The next one is known when the team has met. */
template <class Sum, int Kind>
DEVICE void ragged_teams(const struct ragged_plan &plan, int kind, int warp, uint4 *room, ragged_shared<Sum> *shared)
{
    const int size = kind == RAGGED_LONG ? RAGGED_WARPS : 1 << kind;
    const struct ragged_team team = {size, warp % size, warp / size};
    const bool taker = team.member == 0 && lane_index() == 0;
    struct ragged_item *items = shared->items[team.number];
    if (taker)
        items[0] = ragged_take(plan, kind);
    __syncthreads();
    for (unsigned turn = 0, meetings = 0; items[turn % 2].samples > 0; turn++) {
        const struct ragged_item item = items[turn % 2];
        for (int i = 0; team.member + i * size < ragged_tiles(item.samples); i++)
            ragged_fetch(plan, item, team.member + i * size, ragged_slots(room, 0, i));
        __pipeline_commit();
        if (taker && kind != RAGGED_LONG)
            items[(turn + 1) % 2] = ragged_take(plan, kind);
        __pipeline_wait_prior(0);
        __syncwarp();
#pragma unroll 1
        for (int pass = 0; pass < plan.pass_count; pass++, meetings++) {
            typename Sum::sum *totals = shared->totals[meetings % 2] + team.number * size * RAGGED_TILES;
            if (plan.backward[pass])
                ragged_team_pass<Sum, true, Kind>(plan, item, pass, kind == RAGGED_LONG, team, room, totals, shared);
            else
                ragged_team_pass<Sum, false, Kind>(plan, item, pass, kind == RAGGED_LONG, team, room, totals, shared);
        }
        if (kind == RAGGED_LONG) { /* whoever waits for an item must not have one that is waited for */
            if (taker)
                items[(turn + 1) % 2] = ragged_take(plan, kind);
            ragged_meet(team);
        }
    }
    __syncthreads();
}

template <class Sum, int Kind>
__global__ void __launch_bounds__(RAGGED_WARPS *WARP, RAGGED_BLOCKS)
    ragged_kernel(const __grid_constant__ struct ragged_plan plan)
{
    extern __shared__ uint4 rooms[];
    __shared__ ragged_shared<Sum> shared;
    const int warp = warp_index();
    uint4 *room = rooms + warp * RAGGED_ROOM;
#pragma unroll 1
    for (int kind = (int)blockIdx.x < plan.takers ? RAGGED_LONG : RAGGED_ALL; kind > RAGGED_ALONE; kind--)
        ragged_teams<Sum, Kind>(plan, kind, warp, room, &shared);
    ragged_alone<Sum, Kind>(plan, room);
}

#endif
