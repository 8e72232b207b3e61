/*
 * Rows of more than one order block, read once and written once: their samples stay on the chip while the totals of the
 * row's other blocks are awaited.
 *
 * In order 1 a block's total depends on its own samples alone, so every thread block tells its totals to the others as
 * soon as it has them, and each makes the carries that it needs from those of the others (tile_state.cuh). To have
 * something to do while they travel, a thread block has several items, order blocks, under way. Of two passes, in turn
 * t it
 *
 *   - makes the values of item t in the first pass, and from them its total in the second;
 *   - makes the total of item t + 2 in the first pass;
 *   - makes the values of item t - 1 in the second pass, and writes them;
 *   - sends for the samples of item t + 3.
 *
 * Of a single pass, it makes the values of item t - 1, and takes the samples of item t to registers, out of the way.
 *
 * Sixteen warps compute, with two tiles each, and meet nobody. Two more serve each pass: one tells the totals of items
 * as soon as there are those of their tiles, the other turns them into carries, and is the one that waits for other
 * thread blocks. So what is told never waits for what is awaited.
 *
 * Thread block b takes the items b, b + grid, b + 2 grid, ..., and all are resident (a cooperative launch). So nobody
 * waits for ever: items in the order of the first pass wait in it for earlier items alone, and a row of at most as many
 * items as there are thread blocks waits in the second one only for items that their thread blocks reach before they
 * need anything of this row or later ones. Where carries are known before, items go to whoever is ready, as processors
 * differ in speed; else nobody knows who is late with what others wait for, and that takes longer.
 */
#ifndef KERNELS_CUDA_KERNELS_GRID_PER_ROW_CUH
#define KERNELS_CUDA_KERNELS_GRID_PER_ROW_CUH

#include "kernels/cuda/exchange/block.cuh"
#include "kernels/cuda/exchange/lookback.cuh"
#include "kernels/cuda/exchange/mbarrier.cuh"
#include "kernels/cuda/exchange/work_queue.cuh"
#include "kernels/cuda/lane/convert32.cuh"
#include "kernels/cuda/warp/item.cuh"
#include "kernels/cuda/warp/tile_io.cuh"

#define LONG_WARPS           16                       /* that compute */
#define LONG_SERVERS         2                        /* that serve a pass: one tells, one waits */
#define LONG_TILES           (ORDER_FAN / LONG_WARPS) /* of each that computes */
#define LONG_THREADS(PASSES) ((LONG_WARPS + LONG_SERVERS * (PASSES)) * WARP)
#define LONG_BUFFERS         3                       /* of an order block's samples, in shared memory */
#define LONG_GATES           4                       /* items whose sums of tiles are known at once */
#define LONG_AHEAD           4                       /* items that are known before the first turn */
#define LONG_ITEMS           16                      /* that are known at once: t - 1 to t + 7, in a ring */
#define LONG_BUFFER          (ORDER_FAN * TILE_ROOM) /* slots of one */
#define LONG_BEFORES         (2 * ORDER_FAN * WARP)  /* sums: what each leaf of two items has before it in its tile */
#define LONG_SHARED          (LONG_BUFFERS * LONG_BUFFER * SLOT_BYTES + LONG_BEFORES * 8)
#define LONG_SHARED_ALL      (LONG_SHARED + 5120) /* with what is declared in the kernel */

/* f64 where f32 goes in and f32 comes out of every pass: f32 samples are held. */
struct sum_f64_narrow : sum_f64 {
    using sample = float;

    DEVICE sample from_f32(float x)
    {
        return x;
    }
    DEVICE sum first(sample x)
    {
        return x;
    }
    DEVICE sum add_sample(sum s, sample x)
    {
        return s + (double)x;
    }
    DEVICE sample absent()
    {
        return -0.0f;
    }
    DEVICE sample value(sum s)
    {
        return (float)s;
    }
    DEVICE sample between_passes(sample x, bool)
    {
        return x;
    }
    DEVICE float as_f32(sample x)
    {
        return x;
    }
};

/* What of a scan one launch does. Sums, in scan.sums, are the carries into blocks in the first pass and the blocks'
 * totals in the second (grid_per_row_sums.cuh), which become carries before there are values. */
enum long_step {
    LONG_ALL,
    LONG_SUMS,
    LONG_VALUES,
};

/* What one launch does. */
struct long_plan {
    struct scan_plan scan;
    record *records[SCAND_PASSES_MAX]; /* per pass a tree of records for each row, all zero before */
    enum long_step step;
};

struct long_item {
    char *input, *output; /* its first sample */
    uint64_t sum;         /* index of its row's first sum or record */
    uint64_t block;       /* in the row */
    int length;           /* 0 where there is no more work */
};

/* Sums and gates are in rings: those of an item are used again when nobody waits for it any more. */
template <class Sum> struct long_shared {
    tile_sums<Sum> tiles[SCAND_PASSES_MAX][LONG_GATES];
    gate totals[SCAND_PASSES_MAX][LONG_GATES], carries[SCAND_PASSES_MAX][LONG_GATES];
    struct long_item items[LONG_ITEMS];
};

/* The blocks of a row in the order in which the first pass visits them. */
DEVICE struct long_item long_item_at(const struct scan_plan &plan, uint64_t index)
{
    struct long_item item = {};
    if (index >= plan.items)
        return item;
    uint64_t row = index / plan.blocks, block = index % plan.blocks;
    if (plan.backward[0])
        block = plan.blocks - 1 - block;
    item.input = side_at(plan, plan.input, plan.first_row + row, block);
    item.output = side_at(plan, plan.output, plan.first_row + row, block);
    item.sum = row * plan.sums_per_row;
    item.block = block;
    item.length = (int)min(plan.length - block * ORDER_BLOCK, (uint64_t)ORDER_BLOCK);
    return item;
}

/* Whether a pass over an item has a carry from other blocks of the row. */
DEVICE bool long_outer(const struct scan_plan &plan, const struct long_item *item, int pass)
{
    return item->block != (plan.backward[pass] ? plan.blocks - 1 : 0);
}

/* Which of a warp's tiles of an item. */
DEVICE int long_tile(int warp, int i)
{
    return warp + i * LONG_WARPS;
}

/* Where a lane keeps what its leaf of a tile has before it, in the first pass. */
template <class T> DEVICE T *long_before(T *befores, int number, int tile)
{
    return befores + (number % 2 * ORDER_FAN + tile) * WARP + lane_index();
}

/* Whether there is an item of that number. Read anew wherever it is needed, for want of registers. */
template <class Sum> DEVICE bool long_there(const struct long_shared<Sum> *shared, int number)
{
    return *(const volatile int *)&shared->items[number % LONG_ITEMS].length > 0;
}

/* Starts the copy of a warp's tiles of an item. */
template <bool Aligned>
DEVICE void long_fetch(const struct scan_plan &plan, const struct long_item *item, int warp, uint4 *buffer)
{
#pragma unroll
    for (int i = 0; i < LONG_TILES; i++) {
        const int tile = long_tile(warp, i), count = tile_samples(item->length, tile);
        if (Aligned || plan.input.access != ACCESS_SLOTS)
            tile_fetch<Aligned>(buffer + tile * TILE_ROOM, item->input, plan.input, item->length, tile);
        else if (count > 0)
            fetch_lines<1>(buffer + tile * TILE_ROOM, item->input + tile * ORDER_TILE * 4, count);
    }
    __pipeline_commit();
}

/* The samples of this lane's leaf of a tile as they have arrived. Where they do not begin with a slot, or are encoded,
 * they are put back as if they had not been, to be read again. */
template <bool Aligned>
DEVICE void long_read(const struct scan_plan &plan, const struct long_item *item, uint4 *tile, float x[ORDER_LEAF])
{
    if (Aligned) {
        leaf_read(tile, x);
    } else {
        if (plan.input.access == ACCESS_SLOTS)
            leaf_read_at(tile, slots_in_line(item->input) + ORDER_LEAF / 4 * lane_index(), shift_of<float>(item->input),
                         x);
        else
            leaf_read(tile, x);
        leaf_decode(plan.input_form, x);
        __syncwarp();
        leaf_write(tile, lane_index(), x);
    }
}

/* The total of a tile goes to `totals`; returned is what this lane's leaf has before it there. */
template <class Sum, bool Backward>
DEVICE typename Sum::sum long_total(typename Sum::sample x[ORDER_LEAF], int length, int tile,
                                    typename Sum::sum totals[ORDER_FAN])
{
    const int samples = tile_samples(length, tile), leaves = (samples + ORDER_LEAF - 1u) / ORDER_LEAF;
    if (Sum::has_identity && samples < ORDER_TILE)
        leaf_fill<Sum>(x, samples);
    struct leaf_end end = leaf_end_of<Sum, Backward>(samples);
    typename Sum::sum sum =
        end.partial ? leaf_total<Sum, Backward, Backward>(x, end.last) : leaf_total<Sum, Backward, false>(x, end.last);
    sum = group_scan<Sum, Backward>(sum, group_last<Sum>(leaves));
    if (lane_index() == (Backward ? 0 : leaves - 1))
        totals[tile] = sum;
    return group_before<Sum, Backward>(sum, group_last<Sum>(leaves)).sum;
}

/* Replaces the samples of a tile by their values. `carries` are those into the item's tiles, `before` is as
 * long_total returned it. */
template <class Sum, bool Backward, int Kind>
DEVICE void long_values(typename Sum::sample x[ORDER_LEAF], int length, int tile, bool outer,
                        const typename Sum::sum carries[ORDER_FAN], typename Sum::sum before)
{
    const int samples = tile_samples(length, tile), leaves = (samples + ORDER_LEAF - 1u) / ORDER_LEAF;
    const int tiles = (length + ORDER_TILE - 1u) / ORDER_TILE, lane = lane_index();
    if (Sum::has_identity && samples < ORDER_TILE)
        leaf_fill<Sum>(x, samples);
    struct leaf_end end = leaf_end_of<Sum, Backward>(samples);
    carry<Sum> leaf = carry_join<Sum>({carries[tile], Sum::has_identity || outer || tile != (Backward ? tiles - 1 : 0)},
                                      {before, Sum::has_identity || lane != (Backward ? leaves - 1 : 0)});
    if (end.partial)
        leaf_values<Sum, Backward, Kind, Backward>(x, leaf, end.last, Kind);
    else
        leaf_values<Sum, Backward, Kind, false>(x, leaf, end.last, Kind);
    if (Kind == SCAND_KIND_EXCLUSIVE && Sum::has_identity && !outer)
        leaf_zero_first<Sum, Backward>(x, length, tile, Sum::value(Sum::zero()));
}

/* Both for either direction. */
template <class Sum>
DEVICE typename Sum::sum long_total_of(const struct scan_plan &plan, int pass, typename Sum::sample x[ORDER_LEAF],
                                       int length, int tile, typename Sum::sum totals[ORDER_FAN])
{
    return plan.backward[pass] ? long_total<Sum, true>(x, length, tile, totals)
                               : long_total<Sum, false>(x, length, tile, totals);
}

template <class Sum, int Kind>
DEVICE void long_values_of(const struct scan_plan &plan, int pass, typename Sum::sample x[ORDER_LEAF],
                           const struct long_item *item, int tile, const typename Sum::sum carries[ORDER_FAN],
                           typename Sum::sum before)
{
    const bool outer = long_outer(plan, item, pass);
    if (plan.backward[pass])
        long_values<Sum, true, Kind>(x, item->length, tile, outer, carries, before);
    else
        long_values<Sum, false, Kind>(x, item->length, tile, outer, carries, before);
}

/* The totals of a warp's tiles of item `number` in the first pass, when this lane's share of the samples has arrived,
 * and what each lane's leaf has before it there. */
template <class Sum, bool Aligned>
DEVICE void long_first(const struct scan_plan &plan, struct long_shared<Sum> *shared, int number, int warp,
                       uint4 *buffer, typename Sum::sum *befores)
{
    const struct long_item *item = &shared->items[number % LONG_ITEMS];
    __syncwarp();
#pragma unroll 1
    for (int i = 0; i < LONG_TILES; i++) {
        const int tile = long_tile(warp, i);
        float x[ORDER_LEAF];
        long_read<Aligned>(plan, item, buffer + tile * TILE_ROOM, x);
        *long_before(befores, number, tile) =
            long_total_of<Sum>(plan, 0, x, item->length, tile, shared->tiles[0][number % LONG_GATES].totals);
    }
    gate_arrive(&shared->totals[0][number % LONG_GATES]);
}

/* The values of a tile of item `number` in the first pass, in place of its samples, and its total in the second. */
template <class Sum, int Kind>
DEVICE typename Sum::sum long_second(const struct scan_plan &plan, struct long_shared<Sum> *shared, int number,
                                     int tile, float x[ORDER_LEAF], typename Sum::sum before)
{
    const struct long_item *item = &shared->items[number % LONG_ITEMS];
    long_values_of<Sum, Kind>(plan, 0, x, item, tile, shared->tiles[0][number % LONG_GATES].carries, before);
    return long_total_of<Sum>(plan, 1, x, item->length, tile, shared->tiles[1][number % LONG_GATES].totals);
}

/* Writes a tile of results by way of `stage`; where rows do not begin with a slot, in requests that begin where lines
 * do. Moves the results. */
template <bool Aligned, class Out>
DEVICE void long_write(const struct scan_plan &plan, const struct long_item *item, int tile, uint4 *stage,
                       struct held_leaf<Out> *results)
{
    if constexpr (!Aligned && sizeof(Out) == 4) {
        if (plan.output.access == ACCESS_SLOTS) {
            few_write<1>(stage, item->output + tile * ORDER_TILE * 4, tile_samples(item->length, tile), results);
            return;
        }
    }
    tile_write<Out, TILE_SLOTS, Aligned>(stage, item->output, plan.output, item->length, tile, results->x);
}

/* The results of a warp's tiles of item `number`, from what goes into the last pass, which moves. Code for all tiles
 * side by side does not fit the instruction cache unless rows are aligned. */
template <class Sum, class Last, class Out, int Kind, bool Aligned>
DEVICE void long_results(const struct scan_plan &plan, struct long_shared<Sum> *shared, int pass, int number, int warp,
                         uint4 *stage, typename Sum::sum before[LONG_TILES], float values[LONG_TILES][ORDER_LEAF])
{
    const struct long_item *item = &shared->items[number % LONG_ITEMS];
    constexpr int at_once = Aligned ? LONG_TILES : 1;
#pragma unroll at_once
    for (int i = 0; i < LONG_TILES; i++) {
        const int tile = long_tile(warp, i);
        typename Last::sample x[ORDER_LEAF];
#pragma unroll
        for (int k = 0; k < ORDER_LEAF; k++)
            x[k] = Last::from_f32(values[0][k]);
        long_values_of<Last, Kind>(plan, pass, x, item, tile, shared->tiles[pass][number % LONG_GATES].carries,
                                   before[0]);
        struct held_leaf<Out> results;
        leaf_results<Last, Out>(x, results.x);
        if (!Aligned)
            leaf_encode(plan.output_form, results.x);
        long_write<Aligned>(plan, item, tile, stage, &results);
#pragma unroll
        for (int next = 1; next < LONG_TILES; next++) {
            before[next - 1] = before[next];
#pragma unroll
            for (int k = 0; k < ORDER_LEAF; k++)
                values[next - 1][k] = values[next][k];
        }
    }
}

/* Before the first turn. */
template <class Sum, bool Aligned>
DEVICE void long_begin(const struct scan_plan &plan, struct long_shared<Sum> *shared, int warp, uint4 *buffers,
                       typename Sum::sum *befores)
{
    for (int number = 0; number < 2; number++)
        long_fetch<Aligned>(plan, &shared->items[number], warp, buffers + number * LONG_BUFFER);
    __pipeline_wait_prior(1);
    long_first<Sum, Aligned>(plan, shared, 0, warp, buffers, befores);
    long_fetch<Aligned>(plan, &shared->items[2], warp, buffers + 2 * LONG_BUFFER);
    __pipeline_wait_prior(1);
    if (long_there(shared, 1))
        long_first<Sum, Aligned>(plan, shared, 1, warp, buffers + LONG_BUFFER, befores);
}

/* The place in the ring after this one, and the one before. */
DEVICE int long_next(int at)
{
    return at == LONG_BUFFERS - 1 ? 0 : at + 1;
}

DEVICE int long_last(int at)
{
    return at == 0 ? LONG_BUFFERS - 1 : at - 1;
}

/*
 * What a warp that computes does in two passes. Every way has a loop of its own: together they would not fit the
 * registers, and a single one spilled costs a tenth, because the buffers leave no room for the cache that it would lie
 * in. Between the passes the values of item t - 1 are in registers, and those of all tiles of item t but the last in
 * the buffer of its samples until there is room for them in registers. The last one's place there is free for results
 * to pass through. The total of item t + 2 in the first pass comes early in a turn, for those who wait for it; but
 * `late` where that spares the compiler spilling, which for f32 wins 3 % on 1,754 rows of 57,001 on an H200.
 */
template <class Sum, class Last, class Out, int Kind, bool Aligned>
DEVICE void long_both(const struct scan_plan &plan, struct long_shared<Sum> *shared, int warp, uint4 *buffers)
{
    typename Sum::sum *const befores = (typename Sum::sum *)(buffers + LONG_BUFFERS * LONG_BUFFER);
    const bool late = !Aligned && sizeof(typename Sum::sum) == 4;
    typename Sum::sum held_before[LONG_TILES];
    float held[LONG_TILES][ORDER_LEAF]; /* of item t - 1 */
    long_begin<Sum, Aligned>(plan, shared, warp, buffers, befores);
#pragma unroll 1
    for (int turn = 0, at = 0;; turn++, at = long_next(at)) {
        uint4 *buffer = buffers + at * LONG_BUFFER, *stage = buffer + long_tile(warp, LONG_TILES - 1) * TILE_ROOM;
        typename Sum::sum before[LONG_TILES];
        float x[ORDER_LEAF];
        if (long_there(shared, turn)) {
            gate_wait(&shared->carries[0][turn % LONG_GATES], turn / LONG_GATES % 2);
#pragma unroll
            for (int i = 0; i < LONG_TILES; i++) {
                const int tile = long_tile(warp, i);
                leaf_read(buffer + tile * TILE_ROOM, x);
                before[i] = long_second<Sum, Kind>(plan, shared, turn, tile, x, *long_before(befores, turn, tile));
                if (i < LONG_TILES - 1)
                    leaf_write(buffer + tile * TILE_ROOM, lane_index(), x);
            }
            gate_arrive(&shared->totals[1][turn % LONG_GATES]);
            if (!late && long_there(shared, turn + 2)) {
                __pipeline_wait_prior(0);
                long_first<Sum, Aligned>(plan, shared, turn + 2, warp, buffers + long_last(at) * LONG_BUFFER, befores);
            }
        }
        if (turn > 0) {
            gate_wait(&shared->carries[1][(turn - 1) % LONG_GATES], (turn - 1) / LONG_GATES % 2);
            __syncwarp(); /* the stage has been read */
            long_results<Sum, Last, Out, Kind, Aligned>(plan, shared, 1, turn - 1, warp, stage, held_before, held);
        }
        if (!long_there(shared, turn))
            return;
#pragma unroll
        for (int i = 0; i < LONG_TILES; i++) {
            held_before[i] = before[i];
            if (i < LONG_TILES - 1)
                leaf_read(buffer + long_tile(warp, i) * TILE_ROOM, held[i]);
#pragma unroll
            for (int k = 0; k < ORDER_LEAF && i == LONG_TILES - 1; k++)
                held[i][k] = x[k];
        }
        __syncwarp();
        long_fetch<Aligned>(plan, &shared->items[(turn + 3) % LONG_ITEMS], warp, buffer);
        if (late) {
            __pipeline_wait_prior(1); /* the next item's may be on their way */
            if (long_there(shared, turn + 2))
                long_first<Sum, Aligned>(plan, shared, turn + 2, warp, buffers + long_last(at) * LONG_BUFFER, befores);
        }
    }
}

/* What it does in one pass. Here samples wait in registers, a turn longer for the carries of their item. */
template <class Sum, class Last, class Out, int Kind, bool Aligned>
DEVICE void long_one(const struct scan_plan &plan, struct long_shared<Sum> *shared, int warp, uint4 *buffers)
{
    typename Sum::sum *const befores = (typename Sum::sum *)(buffers + LONG_BUFFERS * LONG_BUFFER);
    typename Sum::sum held_before[LONG_TILES], before[LONG_TILES];
    float held[LONG_TILES][ORDER_LEAF], x[LONG_TILES][ORDER_LEAF]; /* of items t - 1 and t */
    long_begin<Sum, Aligned>(plan, shared, warp, buffers, befores);
#pragma unroll 1
    for (int turn = 0, at = 0;; turn++, at = long_next(at)) {
        uint4 *buffer = buffers + at * LONG_BUFFER;
        const bool there = long_there(shared, turn);
#pragma unroll
        for (int i = 0; i < LONG_TILES; i++) {
            leaf_read(buffer + long_tile(warp, i) * TILE_ROOM, x[i]);
            before[i] = *long_before(befores, turn, long_tile(warp, i));
        }
        __syncwarp();
        if (turn > 0) {
            gate_wait(&shared->carries[0][(turn - 1) % LONG_GATES], (turn - 1) / LONG_GATES % 2);
            long_results<Sum, Last, Out, Kind, Aligned>(plan, shared, 0, turn - 1, warp, buffer + warp * TILE_ROOM,
                                                        held_before, held);
        }
        if (!there)
            return;
        long_fetch<Aligned>(plan, &shared->items[(turn + 3) % LONG_ITEMS], warp, buffer);
#pragma unroll
        for (int i = 0; i < LONG_TILES; i++) {
            held_before[i] = before[i];
#pragma unroll
            for (int k = 0; k < ORDER_LEAF; k++)
                held[i][k] = x[i][k];
        }
        __pipeline_wait_prior(1); /* the next item's may be on their way */
        if (long_there(shared, turn + 2))
            long_first<Sum, Aligned>(plan, shared, turn + 2, warp, buffers + long_last(at) * LONG_BUFFER, befores);
    }
}

/* The place of an item's sum, or of its record, in a tree of those of its row. */
template <class Sum>
DEVICE typename Sum::sum *long_stored(const struct long_plan &plan, const struct long_item *item, int pass)
{
    return (typename Sum::sum *)plan.scan.sums[pass] + item->sum + item->block;
}

template <class Sum> DEVICE record *long_records(const struct long_plan &plan, const struct long_item *item, int pass)
{
    return plan.records[pass] + item->sum * record_words<Sum>();
}

/* The inclusive prefixes of the totals of an item's tiles, and its own total, in all lanes. */
template <class Sum, bool Backward>
DEVICE typename Sum::sum long_prefixes(const struct long_item *item, const tile_sums<Sum> *tiles,
                                       typename Sum::sum *total)
{
    const int last = (item->length + ORDER_TILE - 1u) / ORDER_TILE - 1;
    const typename Sum::sum sum = group_scan<Sum, Backward>(tiles->totals[lane_index()], last);
    *total = lane_get(sum, Backward ? 0 : last);
    return sum;
}

/* The carries into an item's tiles, from their totals and those of the row's other blocks. */
template <class Sum, bool Backward>
DEVICE void long_carries(const struct long_plan &plan, const struct long_item *item, int pass, tile_sums<Sum> *tiles,
                         tree_memory<Sum> *memory)
{
    const int lane = lane_index(), last = (item->length + ORDER_TILE - 1u) / ORDER_TILE - 1;
    typename Sum::sum total, *stored = long_stored<Sum>(plan, item, pass);
    const typename Sum::sum sum = long_prefixes<Sum, Backward>(item, tiles, &total);
    carry<Sum> before = group_before<Sum, Backward>(sum, last), outside;
    if (plan.step == LONG_VALUES)
        outside = carry_of<Sum>(*stored, long_outer(plan.scan, item, pass));
    else
        outside = tree_carry_near<Sum, Backward>(long_records<Sum>(plan, item, pass), (unsigned)plan.scan.blocks,
                                                 (unsigned)item->block, total, memory);
    if (plan.step == LONG_SUMS && lane == 0)
        *stored = outside.sum;
    tiles->carries[lane] = carry_join<Sum>(outside, before).sum;
}

/* What a warp does that tells the totals of items in a pass. */
template <class Sum, bool Backward>
DEVICE void long_tell(const struct long_plan &plan, struct long_shared<Sum> *shared, int pass)
{
    for (int number = 0; long_there(shared, number); number++) {
        const struct long_item *item = &shared->items[number % LONG_ITEMS];
        gate_wait(&shared->totals[pass][number % LONG_GATES], number / LONG_GATES % 2);
        typename Sum::sum total;
        long_prefixes<Sum, Backward>(item, &shared->tiles[pass][number % LONG_GATES], &total);
        if (lane_index() == 0)
            record_put<Sum>(long_records<Sum>(plan, item, pass) + item->block * record_words<Sum>(), total);
        gate_arrive(&shared->carries[pass][number % LONG_GATES]);
    }
}

/* Which item a thread block does in a turn to come. */
DEVICE uint64_t long_taken(const struct scan_plan &plan, unsigned taken, int turn)
{
    return plan.progress ? (uint64_t)LONG_AHEAD * gridDim.x + taken : (uint64_t)turn * gridDim.x + blockIdx.x;
}

/* What a warp does that waits for the totals of others in a pass, for every so many items from `first` on. In the first
 * pass that for item 0 also finds out about items, as many at a time. */
template <class Sum, bool Backward, int Every>
DEVICE void long_await(const struct long_plan &plan, struct long_shared<Sum> *shared, int pass, int first)
{
    const bool finds = pass == 0 && first == 0 && lane_index() == 0;
    unsigned taken = finds ? scan_take_number(plan.scan) : 0; /* one ahead */
    tree_memory<Sum> memory = {};
    for (int number = first; long_there(shared, number); number += Every) {
        const struct long_item *item = &shared->items[number % LONG_ITEMS];
        for (int next = number + LONG_AHEAD; finds && next < number + LONG_AHEAD + Every; next++) {
            shared->items[next % LONG_ITEMS] = long_item_at(plan.scan, long_taken(plan.scan, taken, next));
            taken = scan_take_number(plan.scan);
        }
        gate_wait(&shared->totals[pass][number % LONG_GATES], number / LONG_GATES % 2);
        long_carries<Sum, Backward>(plan, item, pass, &shared->tiles[pass][number % LONG_GATES], &memory);
        gate_arrive(&shared->carries[pass][number % LONG_GATES]);
    }
    if (finds && plan.scan.progress)
        scan_finish(plan.scan.progress);
}

/* Either, of as many warps as wait and one that tells. */
template <class Sum, bool Backward, int Waiting>
DEVICE void long_serve(const struct long_plan &plan, struct long_shared<Sum> *shared, int pass, int server)
{
    if (server < Waiting)
        long_await<Sum, Backward, Waiting>(plan, shared, pass, server);
    else if (plan.step != LONG_VALUES)
        long_tell<Sum, Backward>(plan, shared, pass);
}

/* A function of its own, for two passes, which have no registers to spare: else the compiler spills some of those that
 * compute. It takes longer where it does not matter: for one pass over a row of 10^9 0.83 instead of 0.93. */
template <class Sum, bool Backward>
static __device__ __noinline__ void long_serve_both(const struct long_plan &plan, struct long_shared<Sum> *shared,
                                                    int pass, int server)
{
    long_serve<Sum, Backward, LONG_SERVERS - 1>(plan, shared, pass, server);
}

/* Before all else. Carries are there when they are made, and their item's total has been told, where it is. */
template <class Sum> DEVICE void long_init(const struct long_plan &plan, struct long_shared<Sum> *shared)
{
    const int gate = (int)threadIdx.x % LONG_GATES, pass = (int)threadIdx.x / LONG_GATES;
    if (pass < SCAND_PASSES_MAX) {
        const bool told = plan.step == LONG_ALL || (plan.step == LONG_SUMS && pass == 0);
        gate_init(&shared->totals[pass][gate], LONG_WARPS);
        gate_init(&shared->carries[pass][gate], 1 + told);
    }
    if (threadIdx.x < LONG_AHEAD)
        shared->items[threadIdx.x] = long_item_at(plan.scan, (uint64_t)threadIdx.x * gridDim.x + blockIdx.x);
    __syncthreads();
}

template <class Sum, class Last, class Out, int Kind, bool Aligned, int Passes>
__global__ void __launch_bounds__(LONG_THREADS(Passes), 1) long_kernel(const __grid_constant__ struct long_plan plan)
{
#if __CUDA_ARCH__ >= 900
    extern __shared__ uint4 buffers[];
    __shared__ struct long_shared<Sum> shared;
    long_init<Sum>(plan, &shared);
    const int warp = warp_index(), pass = (warp - LONG_WARPS) / LONG_SERVERS, server = warp % LONG_SERVERS;
    if (warp < LONG_WARPS && Passes > 1)
        long_both<Sum, Last, Out, Kind, Aligned>(plan.scan, &shared, warp, buffers);
    else if (warp < LONG_WARPS)
        long_one<Sum, Last, Out, Kind, Aligned>(plan.scan, &shared, warp, buffers);
    else if (Passes > 1 && plan.scan.backward[pass])
        long_serve_both<Sum, true>(plan, &shared, pass, server);
    else if (Passes > 1)
        long_serve_both<Sum, false>(plan, &shared, pass, server);
    else if (plan.scan.backward[0])
        long_serve<Sum, true, LONG_SERVERS - 1>(plan, &shared, 0, server);
    else
        long_serve<Sum, false, LONG_SERVERS - 1>(plan, &shared, 0, server);
#endif
}

#endif
