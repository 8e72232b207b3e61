/*
 * Ragged rows (scan.h): sums of f32 samples into f32, contiguous, by three kinds of rows.
 *
 * - Short ones, of at most a tile: a warp takes 32 rows in turn, as many at once as it has lanes for their leaves, as
 * in short.cuh.
 * - Others of at most an order block: a thread block packs the tiles of several into its warps, whatever rows come
 *   next, so that none waits for a long neighbour. Tiles of one row meet in shared memory.
 * - Long ones: every order block of a row is a pack of its own. Its thread block keeps the samples, publishes its total
 *   and waits for those of the row's other blocks, so that samples are read once. That ends because all of a row's
 *   blocks are taken by different thread blocks that run at once: there are more of these than a row has blocks.
 */
#ifndef KERNELS_CUDA_RAGGED_CUH
#define KERNELS_CUDA_RAGGED_CUH

#include "kernels/cuda/short.cuh"

/* A row of several order blocks. */
struct ragged_long {
    uint64_t first, length; /* samples of the line */
    uint32_t item;          /* its first order block's among those of all */
    uint32_t blocks;
};

/* How far a launch is. All zero before it. */
struct ragged_progress {
    unsigned long long found;     /* long rows, and from bit 32 on their order blocks */
    unsigned long long rows_from; /* the first row that no thread block has taken */
    unsigned int items_taken;     /* order blocks of long rows */
};

struct ragged_plan {
    const char *input; /* sample 0 of the line */
    char *output;
    const uint64_t *offsets; /* rows + 1 */
    uint64_t rows;
    int pass_count;
    bool backward[SCAND_PASSES_MAX];
    bool intermediate_f32;
    uint64_t length_max; /* of long rows: others are not for these kernels */
    int takers;          /* thread blocks that take order blocks of long rows first */
    struct ragged_progress *progress;
    struct ragged_long *longs;
    uint32_t *items;                /* for each order block of long rows, the index of its row */
    unsigned int *arrived;          /* for each long row and pass, how many totals there are */
    void *totals[SCAND_PASSES_MAX]; /* of all order blocks of long rows */
};

/* Short rows. */

/* 32 rows in turn, one per lane. */
struct ragged_batch {
    uint64_t begin;  /* sample of the line */
    int length;      /* 0: none, or not short */
    int leaves_upto; /* of the batch's short rows up to this one */
    unsigned others; /* lanes with rows that are not short */
    int next;        /* lane of the first row that is not taken */
};

/* Rows that one warp scans at once: a stretch of at most a tile. */
struct ragged_group {
    uint64_t begin;
    int samples; /* 0: no more work */
    bool single; /* it is one row */
};

/* This lane's leaf of it. */
struct ragged_leaf {
    int first;          /* sample in the stretch */
    int number, leaves; /* in its row */
    int samples;        /* 0 to 16 */
};

DEVICE struct ragged_batch ragged_batch_at(const struct ragged_plan &plan, uint64_t number)
{
    struct ragged_batch batch = {};
    const uint64_t row = min(number * WARP + lane_index(), plan.rows);
    batch.begin = plan.offsets[row];
    const uint64_t length = row < plan.rows ? plan.offsets[row + 1] - batch.begin : 0;
    batch.others = __ballot_sync(~0u, length > ORDER_TILE);
    batch.length = length > ORDER_TILE ? 0 : (int)length;
    batch.leaves_upto = (batch.length + ORDER_LEAF - 1) / ORDER_LEAF;
#pragma unroll
    for (int distance = 1; distance < WARP; distance *= 2) {
        int before = __shfl_up_sync(~0u, batch.leaves_upto, distance);
        batch.leaves_upto += lane_index() >= distance ? before : 0;
    }
    return batch;
}

/* Takes the next rows of a batch: *leaf is this lane's. */
DEVICE struct ragged_group ragged_group_take(struct ragged_batch *batch, struct ragged_leaf *leaf)
{
    const int lane = lane_index(), first = batch->next;
    const int before = first > 0 ? __shfl_sync(~0u, batch->leaves_upto, first - 1) : 0;
    const bool ends = lane >= first && (batch->leaves_upto - before > WARP || batch->others >> lane & 1);
    const unsigned end = __ballot_sync(~0u, ends);
    const int last = (end ? __ffs((int)end) - 1 : WARP) - 1; /* the last row taken */
    const int leaves = __shfl_sync(~0u, batch->leaves_upto, max(last, 0)) - before;
    struct ragged_group group;
    group.begin = __shfl_sync(~0u, batch->begin, first);
    group.samples = (int)(__shfl_sync(~0u, batch->begin + batch->length, max(last, 0)) - group.begin);
    batch->next = last + 1 + (end != 0 && batch->others >> (last + 1) & 1); /* what is not short is passed over */
    if (last < first)
        group.samples = 0;
    /* The first row that ends after this lane's leaf. */
    int row = 0;
#pragma unroll
    for (int step = WARP / 2; step > 0; step /= 2)
        if (__shfl_sync(~0u, batch->leaves_upto, row + step - 1) - before <= lane)
            row += step;
    const int row_leaves = (__shfl_sync(~0u, batch->length, row) + ORDER_LEAF - 1) / ORDER_LEAF;
    const int row_length = __shfl_sync(~0u, batch->length, row);
    const int row_first = (int)(__shfl_sync(~0u, batch->begin, row) - group.begin);
    leaf->leaves = row_leaves;
    leaf->number = lane - (__shfl_sync(~0u, batch->leaves_upto, row) - row_leaves - before);
    leaf->first = row_first + leaf->number * ORDER_LEAF;
    leaf->samples = min(row_length - leaf->number * ORDER_LEAF, ORDER_LEAF);
    if (lane >= leaves || group.samples == 0)
        *leaf = {};
    group.single = __all_sync(~0u, lane >= leaves || leaf->leaves == leaves);
    return group;
}

/* The next group that there is, of this batch or of a later one; *number is that of the batch. */
DEVICE struct ragged_group ragged_group_next(const struct ragged_plan &plan, struct ragged_batch *batch,
                                             uint64_t *number, struct ragged_leaf *leaf)
{
    const uint64_t stride = (uint64_t)gridDim.x * SHORT_WARPS;
    for (;;) {
        while (batch->next < WARP) {
            struct ragged_group group = ragged_group_take(batch, leaf);
            if (group.samples > 0)
                return group;
        }
        *number += stride;
        if (*number * WARP >= plan.rows) {
            *leaf = {};
            return {};
        }
        *batch = ragged_batch_at(plan, *number);
    }
}

DEVICE void ragged_group_fetch(const struct ragged_plan &plan, const struct ragged_group &group, uint4 *tile)
{
    const char *source = plan.input + group.begin * sizeof(float);
    if (group.samples > 0)
        fetch_slots(tile, source, shift_of<float>(source), group.samples);
    __pipeline_commit();
}

template <class Sum, bool Backward, int Kind>
DEVICE void ragged_short_pass(typename Sum::sample x[ORDER_LEAF], struct ragged_leaf leaf)
{
    const bool partial = !Sum::has_identity && Backward;
    const int position = Backward ? leaf.leaves - 1 - leaf.number : leaf.number, last = leaf.samples - 1;
    if (Sum::has_identity)
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            if (i >= leaf.samples)
                x[i] = Sum::absent();
    typename Sum::sum sum = leaf_total<Sum, Backward, partial>(x, last), before;
    sum = short_scan<Sum, Backward>(sum, position, WARP);
    lane_before<Backward>(sum, &before, 1, WARP - 1);
    leaf_values<Sum, Backward, Kind, partial>(x, carry_of<Sum>(before, position > 0), last, Kind);
    if (Kind == SCAND_KIND_EXCLUSIVE && Sum::has_identity && position == 0)
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            if (i == (Backward ? last : 0))
                x[i] = Sum::value(Sum::zero());
}

template <class Sum, int Kind>
DEVICE void ragged_short_passes(const struct ragged_plan &plan, struct ragged_leaf leaf,
                                typename Sum::sample x[ORDER_LEAF])
{
#pragma unroll 1
    for (int pass = 0;; pass++) {
        if (plan.backward[pass])
            ragged_short_pass<Sum, true, Kind>(x, leaf);
        else
            ragged_short_pass<Sum, false, Kind>(x, leaf);
        if (pass + 1 == plan.pass_count)
            return;
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            x[i] = Sum::between_passes(x[i], plan.intermediate_f32);
    }
}

template <class Sum, int Kind>
__global__ void __launch_bounds__(SHORT_WARPS *WARP)
    ragged_short_kernel(const __grid_constant__ struct ragged_plan plan)
{
    __shared__ uint4 tiles[SHORT_WARPS][2][TILE_ROOM];
    const int warp = warp_index();
    uint64_t number = (uint64_t)blockIdx.x * SHORT_WARPS + warp;
    struct ragged_batch batch = ragged_batch_at(plan, number);
    struct ragged_leaf leaf, next_leaf;
    struct ragged_group group = ragged_group_next(plan, &batch, &number, &leaf), next;
    ragged_group_fetch(plan, group, tiles[warp][0]);
    for (int side = 0; group.samples > 0; group = next, leaf = next_leaf, side ^= 1) {
        uint4 *tile = tiles[warp][side];
        next = ragged_group_next(plan, &batch, &number, &next_leaf);
        ragged_group_fetch(plan, next, tiles[warp][side ^ 1]);
        __pipeline_wait_prior(1);
        __syncwarp();
        float samples[ORDER_LEAF];
        typename Sum::sample x[ORDER_LEAF];
        const int shift = shift_of<float>(plan.input + group.begin * sizeof(float));
        if (group.single)
            leaf_read(tile, shift, samples);
        else
            short_read(tile, shift + leaf.first, false, samples);
        __syncwarp();
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            x[i] = Sum::from_f32(samples[i]);
        ragged_short_passes<Sum, Kind>(plan, leaf, x);
        leaf_results<Sum, float>(x, samples);
        char *target = plan.output + group.begin * sizeof(float);
        if (group.single) {
            const struct scan_side contiguous = {.access = ACCESS_SLOTS};
            tile_write<float, TILE_SLOTS, false>(tile, target, contiguous, group.samples, 0, samples);
        } else {
            const int begin = shift_of<float>(target);
            short_write(tile, begin + leaf.first, leaf.samples, false, samples);
            __syncwarp();
            stretch_drain(tile, target, begin, group.samples);
        }
        __syncwarp();
    }
}

/* Packs. */

/* A warp's tile. */
struct ragged_tile {
    uint64_t first;      /* sample of the line */
    int samples;         /* 0: none */
    short number, tiles; /* in its row, or in its order block of a long one */
};

struct ragged_pack {
    struct ragged_tile tiles[ORDER_FAN];
    int used; /* 0: no more work */
    /* Of an order block of a long row. */
    uint32_t row, block;
};

/* Rows that the planning warp has taken and not all packed yet. */
struct ragged_stock {
    uint64_t first[WARP];
    int length[WARP];
    unsigned pending; /* those to be packed */
    bool exhausted;   /* there are no more rows to be taken */
};

/* In turn t a thread block computes pack t, fetches t + 1 and plans t + PACKS_AHEAD (see ITEMS_AHEAD). */
#define PACKS       4
#define PACKS_AHEAD 3

#define RAGGED_STAGE 64 /* slots that results pass through: so two thread blocks that fetch ahead fit a processor */
#define RAGGED_ROOM  (TILE_ROOM + RAGGED_STAGE)

DEVICE void ragged_stock_take(const struct ragged_plan &plan, struct ragged_stock *stock)
{
    const int lane = lane_index();
    uint64_t row = 0, first = 0, length = 0;
    if (lane == 0)
        row = atomicAdd(&plan.progress->rows_from, (unsigned long long)WARP);
    row = __shfl_sync(~0u, row, 0);
    const bool exhausted = row >= plan.rows;
    row += lane;
    if (row < plan.rows) {
        first = plan.offsets[row];
        length = plan.offsets[row + 1] - first;
    }
    const unsigned pending = __ballot_sync(~0u, length > ORDER_TILE && length <= ORDER_BLOCK);
    stock->first[lane] = first;
    stock->length[lane] = (int)length;
    if (lane == 0) {
        stock->pending = pending;
        stock->exhausted = exhausted;
    }
    __syncwarp();
}

/* By one warp: rows in turn for as long as they fit, then the first that still does. */
DEVICE void ragged_pack_plan(const struct ragged_plan &plan, struct ragged_stock *stock, struct ragged_pack *pack)
{
    const int lane = lane_index();
    int used = 0;
    while (used < ORDER_FAN) {
        const unsigned pending = stock->pending;
        if (pending == 0) {
            if (stock->exhausted)
                break;
            ragged_stock_take(plan, stock);
            continue;
        }
        const int length = stock->length[lane];
        const int tiles = pending >> lane & 1 ? (length + ORDER_TILE - 1) / ORDER_TILE : 0;
        int upto = tiles;
#pragma unroll
        for (int distance = 1; distance < WARP; distance *= 2) {
            int before = __shfl_up_sync(~0u, upto, distance);
            upto += lane >= distance ? before : 0;
        }
        unsigned taken = __ballot_sync(~0u, tiles > 0 && used + upto <= ORDER_FAN);
        if (taken == 0) {
            taken = __ballot_sync(~0u, tiles > 0 && used + tiles <= ORDER_FAN);
            taken &= 0 - taken;
            upto = tiles;
        }
        if (taken == 0)
            break;
        if (taken >> lane & 1)
            for (int number = 0; number < tiles; number++)
                pack->tiles[used + upto - tiles + number] = {stock->first[lane] + (uint64_t)number * ORDER_TILE,
                                                             tile_samples(length, number), (short)number, (short)tiles};
        used += __shfl_sync(~0u, upto, 31 - __clz((int)taken));
        __syncwarp();
        if (lane == 0)
            stock->pending = pending & ~taken;
        __syncwarp();
    }
    if (lane >= used)
        pack->tiles[lane] = {};
    if (lane == 0)
        pack->used = used;
}

/* The next order block of a long row, by one warp. */
DEVICE void ragged_long_take(const struct ragged_plan &plan, struct ragged_pack *pack)
{
    const int lane = lane_index();
    unsigned item = lane == 0 ? atomicAdd(&plan.progress->items_taken, 1) : 0;
    item = __shfl_sync(~0u, item, 0);
    if (item >= plan.progress->found >> 32) {
        if (lane == 0)
            pack->used = 0;
        return;
    }
    const uint32_t row = plan.items[item];
    const struct ragged_long found = plan.longs[row];
    const uint64_t begin = (uint64_t)(item - found.item) * ORDER_BLOCK;
    const int length = (int)min(found.length - begin, (uint64_t)ORDER_BLOCK);
    const int tiles = (length + ORDER_TILE - 1) / ORDER_TILE;
    pack->tiles[lane] = {found.first + begin + (uint64_t)lane * ORDER_TILE, tile_samples(length, lane), (short)lane,
                         (short)tiles};
    if (lane == 0) {
        pack->used = tiles;
        pack->row = row;
        pack->block = item - found.item;
    }
}

/* The value of another lane. */
DEVICE float lane_value(float value, int lane)
{
    return __shfl_sync(~0u, value, lane);
}

DEVICE double lane_value(double value, int lane)
{
    return __shfl_sync(~0u, value, lane);
}

DEVICE struct f2 lane_value(struct f2 value, int lane)
{
    return {__shfl_sync(~0u, value.high, lane), __shfl_sync(~0u, value.low, lane)};
}

/* The carry into block `block` of a long row, from the totals of all its blocks: the tree above the order block. */
template <class Sum, bool Backward>
DEVICE carry<Sum> ragged_long_carry(const typename Sum::sum *totals, int blocks, int block)
{
    const int lane = lane_index(), groups = (blocks + ORDER_FAN - 1) / ORDER_FAN, own = block / ORDER_FAN;
    typename Sum::sum group_total = Sum::identity();
    carry<Sum> inner = carry_of<Sum>(Sum::identity(), false);
    for (int group = 0; group < groups; group++) {
        const int count = min(blocks - group * ORDER_FAN, ORDER_FAN), last = group_last<Sum>(count);
        typename Sum::sum sum = lane < count ? totals[group * ORDER_FAN + lane] : Sum::identity();
        sum = group_scan<Sum, Backward>(sum, last);
        const carry<Sum> before = group_before<Sum, Backward>(sum, last);
        const int end = Backward ? 0 : count - 1, member = block % ORDER_FAN;
        const typename Sum::sum total = lane_value(sum, end);
        if (lane == group)
            group_total = total;
        if (group == own)
            inner = carry_of<Sum>(lane_value(before.sum, member), member != (Backward ? count - 1 : 0));
    }
    if (groups == 1)
        return inner;
    const int last = group_last<Sum>(groups);
    group_total = group_scan<Sum, Backward>(group_total, last);
    const carry<Sum> before = group_before<Sum, Backward>(group_total, last);
    const carry<Sum> outer = carry_of<Sum>(lane_value(before.sum, own), own != (Backward ? groups - 1 : 0));
    return carry_join<Sum>(outer, inner);
}

/* Publishes the total of an order block, waits for the others of its row, and returns the carry into it. */
template <class Sum, bool Backward>
DEVICE carry<Sum> ragged_long_exchange(const struct ragged_plan &plan, const struct ragged_pack *pack, int pass,
                                       typename Sum::sum inclusive)
{
    const struct ragged_long row = plan.longs[pack->row];
    typename Sum::sum *totals = (typename Sum::sum *)plan.totals[pass] + row.item;
    unsigned int *arrived = &plan.arrived[pack->row * SCAND_PASSES_MAX + pass];
    if (lane_index() == (Backward ? 0 : pack->used - 1)) {
        totals[pack->block] = inclusive;
        __threadfence();
        atomicAdd(arrived, 1);
        while (*(volatile unsigned int *)arrived < row.blocks)
            ;
        __threadfence();
    }
    __syncwarp();
    return ragged_long_carry<Sum, Backward>(totals, (int)row.blocks, (int)pack->block);
}

/* One warp turns the totals of the tiles into the carries into them. */
template <class Sum, bool Backward, bool Long>
DEVICE void ragged_tiles_scan(const struct ragged_plan &plan, const struct ragged_pack *pack, int pass,
                              tile_sums<Sum> *shared)
{
    const int lane = lane_index();
    const struct ragged_tile tile = pack->tiles[lane];
    const int position = Backward ? tile.tiles - 1 - tile.number : tile.number;
    typename Sum::sum sum = short_scan<Sum, Backward>(shared->totals[lane], position, WARP), before;
    lane_before<Backward>(sum, &before, 1, WARP - 1);
    carry<Sum> carry = carry_of<Sum>(before, position > 0);
    if (Long)
        carry = carry_join<Sum>(ragged_long_exchange<Sum, Backward>(plan, pack, pass, sum), carry);
    shared->carries[lane] = carry.sum;
}

/* Whether a tile is the first of its row that a pass meets. */
template <bool Backward, bool Long>
DEVICE bool ragged_begins(const struct ragged_plan &plan, const struct ragged_pack *pack, int warp)
{
    const int number = pack->tiles[warp].number, tiles = pack->tiles[warp].tiles;
    if (Long && pack->block != (Backward ? plan.longs[pack->row].blocks - 1 : 0))
        return false;
    return number == (Backward ? tiles - 1 : 0);
}

/* As block_pass does for an order block. */
template <class Sum, bool Backward, int Kind, bool Long>
DEVICE void ragged_pass(const struct ragged_plan &plan, const struct ragged_pack *pack, int pass, int warp,
                        tile_sums<Sum> *shared, typename Sum::sample x[ORDER_LEAF])
{
    const int samples = pack->tiles[warp].samples, leaves = (samples + ORDER_LEAF - 1u) / ORDER_LEAF;
    if (Sum::has_identity && samples < ORDER_TILE)
        leaf_fill<Sum>(x, samples);
    struct leaf_end end = leaf_end_of<Sum, Backward>(samples);
    typename Sum::sum sum =
        end.partial ? leaf_total<Sum, Backward, Backward>(x, end.last) : leaf_total<Sum, Backward, false>(x, end.last);
    sum = group_scan<Sum, Backward>(sum, group_last<Sum>(leaves));
    if (lane_index() == (Backward ? 0 : leaves - 1))
        shared->totals[warp] = sum;
    carry<Sum> leaf = group_before<Sum, Backward>(sum, group_last<Sum>(leaves));
    __syncthreads();
    if (warp == 0)
        ragged_tiles_scan<Sum, Backward, Long>(plan, pack, pass, shared);
    __syncthreads();
    const bool begins = ragged_begins<Backward, Long>(plan, pack, warp);
    leaf = carry_join<Sum>({shared->carries[warp], Sum::has_identity || !begins}, leaf);
    if (end.partial)
        leaf_values<Sum, Backward, Kind, Backward>(x, leaf, end.last, Kind);
    else
        leaf_values<Sum, Backward, Kind, false>(x, leaf, end.last, Kind);
    if (Kind == SCAND_KIND_EXCLUSIVE && Sum::has_identity && begins)
        leaf_zero_first<Sum, Backward>(x, samples, 0, Sum::value(Sum::zero()));
}

template <class Sum, int Kind, bool Long>
DEVICE void ragged_passes(const struct ragged_plan &plan, const struct ragged_pack *pack, int warp,
                          tile_sums<Sum> *shared, typename Sum::sample x[ORDER_LEAF])
{
#pragma unroll 1
    for (int pass = 0;; pass++) {
        if (plan.backward[pass])
            ragged_pass<Sum, true, Kind, Long>(plan, pack, pass, warp, shared, x);
        else
            ragged_pass<Sum, false, Kind, Long>(plan, pack, pass, warp, shared, x);
        if (pass + 1 == plan.pass_count)
            return;
        leaf_between_passes<Sum>(x, plan.intermediate_f32);
    }
}

DEVICE void ragged_fetch(const struct ragged_plan &plan, const struct ragged_pack *pack, int warp, uint4 *tile)
{
    const char *source = plan.input + pack->tiles[warp].first * sizeof(float);
    if (pack->tiles[warp].samples > 0)
        fetch_slots(tile, source, shift_of<float>(source), pack->tiles[warp].samples);
    __pipeline_commit();
}

/* The samples of this lane's leaf, when they have arrived. Their place is free then. */
template <class Sum>
DEVICE void ragged_read(const struct ragged_plan &plan, const struct ragged_pack *pack, int warp, const uint4 *tile,
                        typename Sum::sample x[ORDER_LEAF])
{
    float samples[ORDER_LEAF];
    __pipeline_wait_prior(0);
    __syncwarp();
    leaf_read(tile, shift_of<float>(plan.input + pack->tiles[warp].first * sizeof(float)), samples);
    __syncwarp();
#pragma unroll
    for (int i = 0; i < ORDER_LEAF; i++)
        x[i] = Sum::from_f32(samples[i]);
}

template <class Sum>
DEVICE void ragged_write(const struct ragged_plan &plan, const struct ragged_pack *pack, int warp, uint4 *stage,
                         const typename Sum::sample x[ORDER_LEAF])
{
    const struct scan_side contiguous = {.access = ACCESS_SLOTS};
    float results[ORDER_LEAF];
    leaf_results<Sum, float>(x, results);
    tile_write<float, RAGGED_STAGE, false>(stage, plan.output + pack->tiles[warp].first * sizeof(float), contiguous,
                                           pack->tiles[warp].samples, 0, results);
}

/* Order blocks of long rows, one after the other: while one waits, the processor's other thread blocks work. */
template <class Sum, int Kind>
DEVICE void ragged_longs(const struct ragged_plan &plan, int warp, struct ragged_pack *pack, tile_sums<Sum> *shared,
                         uint4 *tile)
{
    for (;;) {
        if (warp == 0)
            ragged_long_take(plan, pack);
        __syncthreads();
        if (pack->used == 0)
            break;
        typename Sum::sample x[ORDER_LEAF];
        ragged_fetch(plan, pack, warp, tile);
        ragged_read<Sum>(plan, pack, warp, tile, x);
        ragged_passes<Sum, Kind, true>(plan, pack, warp, shared, x);
        ragged_write<Sum>(plan, pack, warp, tile + TILE_ROOM, x);
        __syncthreads();
    }
    __syncthreads();
}

/* Shared memory: RAGGED_ROOM slots for each warp. */
template <class Sum, int Kind>
__global__ void __launch_bounds__(ORDER_FAN *WARP, sizeof(typename Sum::sample) == 4 ? 2 : 1)
    ragged_kernel(const __grid_constant__ struct ragged_plan plan)
{
    extern __shared__ uint4 rooms[];
    __shared__ struct ragged_pack packs[PACKS];
    __shared__ struct ragged_stock stock;
    __shared__ tile_sums<Sum> shared;
    const int warp = warp_index(), planner = ORDER_FAN - 1; /* whose tile is often missing */
    uint4 *tile = rooms + warp * RAGGED_ROOM;
    if ((int)blockIdx.x < plan.takers)
        ragged_longs<Sum, Kind>(plan, warp, &packs[0], &shared, tile);
    if (warp == planner) {
        if (lane_index() == 0) {
            stock.pending = 0;
            stock.exhausted = false;
        }
        __syncwarp();
        for (int turn = 0; turn < PACKS_AHEAD; turn++)
            ragged_pack_plan(plan, &stock, &packs[turn]);
    }
    __syncthreads();
    ragged_fetch(plan, &packs[0], warp, tile);
    for (unsigned turn = 0; packs[turn % PACKS].used > 0; turn++) {
        const struct ragged_pack *pack = &packs[turn % PACKS];
        typename Sum::sample x[ORDER_LEAF];
        ragged_read<Sum>(plan, pack, warp, tile, x);
        ragged_fetch(plan, &packs[(turn + 1) % PACKS], warp, tile);
        ragged_passes<Sum, Kind, false>(plan, pack, warp, &shared, x);
        ragged_write<Sum>(plan, pack, warp, tile + TILE_ROOM, x);
        if (warp == planner)
            ragged_pack_plan(plan, &stock, &packs[(turn + PACKS_AHEAD) % PACKS]);
    }
}

/* Lists the long rows. One thread per row at a time. */
static __global__ void ragged_find_kernel(const __grid_constant__ struct ragged_plan plan)
{
    const uint64_t stride = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t row = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; row < plan.rows; row += stride) {
        const uint64_t first = plan.offsets[row], length = plan.offsets[row + 1] - first;
        if (length <= ORDER_BLOCK || length > plan.length_max)
            continue;
        const uint32_t blocks = (uint32_t)((length + ORDER_BLOCK - 1) / ORDER_BLOCK);
        const unsigned long long before = atomicAdd(&plan.progress->found, (unsigned long long)blocks << 32 | 1ull);
        const uint32_t index = (uint32_t)before, item = (uint32_t)(before >> 32);
        plan.longs[index] = {first, length, item, blocks};
        for (uint32_t block = 0; block < blocks; block++)
            plan.items[item + block] = index;
    }
}

#endif
