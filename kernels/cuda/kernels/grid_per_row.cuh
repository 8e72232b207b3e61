/*
 * Rows of more than one order block, read once and written once: their samples stay on the chip while the totals of the
 * row's other blocks are awaited.
 *
 * In order 1 a block's total depends on its own samples alone, so every thread block publishes its totals as
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
 * Sixteen warps compute, with two tiles each, and meet nobody. Two more serve each pass: one publishes the totals of
 * items as soon as there are those of their tiles, the other turns them into carries, and is the one that waits for
 * other thread blocks. So what is published never waits for what is awaited.
 *
 * Thread block b takes the items b, b + grid, b + 2 grid, ..., and all are resident (a cooperative launch). So nobody
 * waits for ever: items in the order of the first pass wait in it for earlier items alone, and a row of at most as many
 * items as there are thread blocks waits in the second one only for items that their thread blocks reach before they
 * need anything of this row or later ones. Where carries are known before, items go to whoever is ready, as SMs
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

#define GRID_WARPS           16                       /* warps that compute */
#define GRID_SERVERS         2                        /* warps that serve a pass: one publishes, one looks back */
#define GRID_TILES           (ORDER_FAN / GRID_WARPS) /* tiles of each computing warp */
#define GRID_THREADS(PASSES) ((GRID_WARPS + GRID_SERVERS * (PASSES)) * WARP)
#define GRID_BUFFERS         3                       /* buffers of an order block's samples, in shared memory */
#define GRID_MBARRIERS       4                       /* items whose sums of tiles are known at once */
#define GRID_AHEAD           4                       /* items that are known before the first iteration */
#define GRID_ITEMS           16                      /* items known at once: t - 1 to t + 7, in a ring */
#define GRID_BUFFER          (ORDER_FAN * TILE_SMEM) /* vectors of one */
#define GRID_BEFORES         (2 * ORDER_FAN * WARP)  /* sums: what each leaf of two items has before it in its tile */
#define GRID_SHARED          (GRID_BUFFERS * GRID_BUFFER * VEC16_BYTES + GRID_BEFORES * 8)
#define GRID_SHARED_ALL      (GRID_SHARED + 5120) /* with what is declared in the kernel */

/* f64 where f32 goes in and f32 comes out of every pass: f32 samples are held. */
using sum_f64_narrow = sum_f64_of<float>;

/* The part of a scan that one launch does. Sums, in scan.sums, are the carries into blocks in the first pass and the
 * blocks' totals in the second (grid_per_row_sums.cuh), which become carries before there are values. */
enum grid_step {
    GRID_ALL,
    GRID_SUMS,
    GRID_VALUES,
};

/* One launch. */
struct grid_plan {
    struct scan_plan scan;
    tile_state *states[SCAND_PASSES_MAX]; /* per pass a tree of tile states for each row, all zero before */
    enum grid_step step;
};

struct grid_item {
    char *input, *output; /* addresses of the item's first sample */
    uint64_t sum;         /* index of its row's first sum or tile_state */
    uint64_t block;       /* in the row */
    int length;           /* 0 where there is no more work */
};

/* Sums and mbarriers are in rings: those of an item are used again when nobody waits for it any more. */
template <class Sum> struct grid_shared {
    tile_sums<Sum> tiles[SCAND_PASSES_MAX][GRID_MBARRIERS];
    mbarrier totals[SCAND_PASSES_MAX][GRID_MBARRIERS], carries[SCAND_PASSES_MAX][GRID_MBARRIERS];
    struct grid_item items[GRID_ITEMS];
};

/* The blocks of a row in the order in which the first pass visits them. */
DEVICE struct grid_item grid_item_at(const struct scan_plan &plan, uint64_t index)
{
    struct grid_item item = {};
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

/* True when a pass over an item has a carry from other blocks of the row. */
DEVICE bool grid_outer(const struct scan_plan &plan, const struct grid_item *item, int pass)
{
    return item->block != (plan.backward[pass] ? plan.blocks - 1 : 0);
}

/* The number of a warp's i-th tile of an item. */
DEVICE int grid_tile(int warp, int i)
{
    return warp + i * GRID_WARPS;
}

/* The place of a lane's carry into its leaf of a tile, in the first pass. */
template <class T> DEVICE T *grid_before(T *befores, int number, int tile)
{
    return befores + (number % 2 * ORDER_FAN + tile) * WARP + lane_index();
}

/* True when there is an item of that number. Read anew wherever it is needed, for want of registers. */
template <class Sum> DEVICE bool grid_there(const struct grid_shared<Sum> *shared, int number)
{
    return *(const volatile int *)&shared->items[number % GRID_ITEMS].length > 0;
}

/* Waits until the mbarrier of item `number`, of a ring of them, has opened for it. */
DEVICE void grid_wait(mbarrier ring[GRID_MBARRIERS], int number)
{
    mbarrier_wait(&ring[number % GRID_MBARRIERS], number / GRID_MBARRIERS % 2);
}

/* Starts the copy of a warp's tiles of an item. */
template <bool Aligned> DEVICE void grid_fetch(const struct grid_item *item, int warp, uint4 *buffer)
{
#pragma unroll
    for (int i = 0; i < GRID_TILES; i++) {
        const int tile = grid_tile(warp, i), count = tile_samples(item->length, tile);
        const char *source = item->input + tile * ORDER_TILE * 4;
        if (count == 0)
            continue;
        if (Aligned)
            fetch_vectors(buffer + tile * TILE_SMEM, source, 0, count);
        else
            fetch_lines<1>(buffer + tile * TILE_SMEM, source, count);
    }
    __pipeline_commit();
}

/* The samples of this lane's leaf of a tile as they have arrived. Where they do not begin with a vector, or are
 * encoded, they are put back as if they had not been, to be read again. */
template <bool Aligned>
DEVICE void grid_read(const struct scan_plan &plan, const struct grid_item *item, uint4 *tile, float x[ORDER_LEAF])
{
    if (Aligned) {
        leaf_read(tile, x);
    } else {
        leaf_read_at(tile, vectors_in_line(item->input) + ORDER_LEAF / 4 * lane_index(), shift_of<float>(item->input),
                     x);
        leaf_decode(plan.input_form, x);
        __syncwarp();
        leaf_write(tile, lane_index(), x);
    }
}

/* The total of a tile goes to `totals`; returned is what this lane's leaf has before it there. */
template <class Sum, bool Backward>
DEVICE typename Sum::sum grid_total(typename Sum::sample x[ORDER_LEAF], int length, int tile,
                                    typename Sum::sum totals[ORDER_FAN])
{
    const int samples = tile_samples(length, tile), leaves = (samples + ORDER_LEAF - 1u) / ORDER_LEAF;
    if (Sum::has_identity && samples < ORDER_TILE)
        leaf_fill<Sum>(x, samples);
    struct leaf_end end = leaf_end_of<Sum, Backward>(samples);
    typename Sum::sum sum = leaf_total<Sum, Backward>(x, end);
    sum = group_scan<Sum, Backward>(sum, group_last<Sum>(leaves));
    if (lane_index() == (Backward ? 0 : leaves - 1))
        totals[tile] = sum;
    return group_before<Sum, Backward>(sum, group_last<Sum>(leaves)).sum;
}

/* Replaces the samples of a tile by their values. `carries` are those into the item's tiles, `before` is as
 * grid_total returned it. */
template <class Sum, bool Backward, int Kind>
DEVICE void grid_values(typename Sum::sample x[ORDER_LEAF], int length, int tile, bool outer,
                        const typename Sum::sum carries[ORDER_FAN], typename Sum::sum before)
{
    const int samples = tile_samples(length, tile), leaves = (samples + ORDER_LEAF - 1u) / ORDER_LEAF;
    const int tiles = (length + ORDER_TILE - 1u) / ORDER_TILE, lane = lane_index();
    if (Sum::has_identity && samples < ORDER_TILE)
        leaf_fill<Sum>(x, samples);
    struct leaf_end end = leaf_end_of<Sum, Backward>(samples);
    carry<Sum> leaf = carry_join<Sum>({carries[tile], Sum::has_identity || outer || tile != (Backward ? tiles - 1 : 0)},
                                      {before, Sum::has_identity || lane != (Backward ? leaves - 1 : 0)});
    leaf_values<Sum, Backward, Kind>(x, leaf, end);
    if (Kind == SCAND_KIND_EXCLUSIVE && Sum::has_identity && !outer)
        leaf_zero_first<Sum, Backward>(x, length, tile, Sum::value(Sum::zero()));
}

/* Both functions above for either direction. */
template <class Sum>
DEVICE typename Sum::sum grid_total_of(const struct scan_plan &plan, int pass, typename Sum::sample x[ORDER_LEAF],
                                       int length, int tile, typename Sum::sum totals[ORDER_FAN])
{
    return plan.backward[pass] ? grid_total<Sum, true>(x, length, tile, totals)
                               : grid_total<Sum, false>(x, length, tile, totals);
}

template <class Sum, int Kind>
DEVICE void grid_values_of(const struct scan_plan &plan, int pass, typename Sum::sample x[ORDER_LEAF],
                           const struct grid_item *item, int tile, const typename Sum::sum carries[ORDER_FAN],
                           typename Sum::sum before)
{
    const bool outer = grid_outer(plan, item, pass);
    if (plan.backward[pass])
        grid_values<Sum, true, Kind>(x, item->length, tile, outer, carries, before);
    else
        grid_values<Sum, false, Kind>(x, item->length, tile, outer, carries, before);
}

/* The totals of a warp's tiles of item `number` in the first pass, when this lane's share of the samples has arrived,
 * and what each lane's leaf has before it there. */
template <class Sum, bool Aligned>
DEVICE void grid_first(const struct scan_plan &plan, struct grid_shared<Sum> *shared, int number, int warp,
                       uint4 *buffer, typename Sum::sum *befores)
{
    const struct grid_item *item = &shared->items[number % GRID_ITEMS];
    __syncwarp();
#pragma unroll 1
    for (int i = 0; i < GRID_TILES; i++) {
        const int tile = grid_tile(warp, i);
        float x[ORDER_LEAF];
        grid_read<Aligned>(plan, item, buffer + tile * TILE_SMEM, x);
        *grid_before(befores, number, tile) =
            grid_total_of<Sum>(plan, 0, x, item->length, tile, shared->tiles[0][number % GRID_MBARRIERS].totals);
    }
    mbarrier_arrive(&shared->totals[0][number % GRID_MBARRIERS]);
}

/* The values of a tile of item `number` in the first pass, in place of its samples, and its total in the second. */
template <class Sum, int Kind>
DEVICE typename Sum::sum grid_second(const struct scan_plan &plan, struct grid_shared<Sum> *shared, int number,
                                     int tile, float x[ORDER_LEAF], typename Sum::sum before)
{
    const struct grid_item *item = &shared->items[number % GRID_ITEMS];
    grid_values_of<Sum, Kind>(plan, 0, x, item, tile, shared->tiles[0][number % GRID_MBARRIERS].carries, before);
    return grid_total_of<Sum>(plan, 1, x, item->length, tile, shared->tiles[1][number % GRID_MBARRIERS].totals);
}

/* The results of a warp's tiles of item `number`, from what goes into the last pass, which moves. Code for all tiles
 * side by side does not fit the instruction cache unless rows are aligned. They are written by way of `stage`: where
 * rows do not begin with a vector, in requests that begin where lines do. */
template <class Sum, int Kind, bool Aligned>
DEVICE void grid_results(const struct scan_plan &plan, struct grid_shared<Sum> *shared, int pass, int number, int warp,
                         uint4 *stage, typename Sum::sum before[GRID_TILES], float values[GRID_TILES][ORDER_LEAF])
{
    const struct grid_item *item = &shared->items[number % GRID_ITEMS];
    constexpr int at_once = Aligned ? GRID_TILES : 1;
#pragma unroll at_once
    for (int i = 0; i < GRID_TILES; i++) {
        const int tile = grid_tile(warp, i);
        typename Sum::sample x[ORDER_LEAF];
        leaf_from_f32<Sum>(values[0], x);
        grid_values_of<Sum, Kind>(plan, pass, x, item, tile, shared->tiles[pass][number % GRID_MBARRIERS].carries,
                                  before[0]);
        struct held_leaf<float> results;
        leaf_results<Sum>(x, results.x);
        if (!Aligned)
            leaf_encode(plan.output_form, results.x);
        if (Aligned)
            tile_write<TILE_VECTORS>(stage, (char *)__builtin_assume_aligned(item->output, VEC16_BYTES), item->length,
                                     tile, &results);
        else
            tiles_write<1>(stage, item->output + tile * ORDER_TILE * 4, tile_samples(item->length, tile), &results);
#pragma unroll
        for (int next = 1; next < GRID_TILES; next++) {
            before[next - 1] = before[next];
#pragma unroll
            for (int k = 0; k < ORDER_LEAF; k++)
                values[next - 1][k] = values[next][k];
        }
    }
}

/* Fetches and computes ahead of the first iteration. */
template <class Sum, bool Aligned>
DEVICE void grid_begin(const struct scan_plan &plan, struct grid_shared<Sum> *shared, int warp, uint4 *buffers,
                       typename Sum::sum *befores)
{
    for (int number = 0; number < 2; number++)
        grid_fetch<Aligned>(&shared->items[number], warp, buffers + number * GRID_BUFFER);
    __pipeline_wait_prior(1);
    grid_first<Sum, Aligned>(plan, shared, 0, warp, buffers, befores);
    grid_fetch<Aligned>(&shared->items[2], warp, buffers + 2 * GRID_BUFFER);
    __pipeline_wait_prior(1);
    if (grid_there(shared, 1))
        grid_first<Sum, Aligned>(plan, shared, 1, warp, buffers + GRID_BUFFER, befores);
}

/* The place in the ring after this one, and the one before. */
DEVICE int grid_next(int at)
{
    return at == GRID_BUFFERS - 1 ? 0 : at + 1;
}

DEVICE int grid_last(int at)
{
    return at == 0 ? GRID_BUFFERS - 1 : at - 1;
}

/*
 * The work of a computing warp in two passes. Every way has a loop of its own: together they would not fit the
 * registers, and a single one spilled costs a tenth, because the buffers leave no room for the cache that it would lie
 * in. Between the passes the values of item t - 1 are in registers, and those of all tiles of item t but the last in
 * the buffer of its samples until there is room for them in registers. The last one's place there is free for results
 * to pass through. The total of item t + 2 in the first pass comes early in an iteration, for those who wait for it;
 * but `late` where that spares the compiler spilling, which for f32 wins 3 % on 1,754 rows of 57,001 on an H200.
 */
template <class Sum, int Kind, bool Aligned>
DEVICE void grid_both(const struct scan_plan &plan, struct grid_shared<Sum> *shared, int warp, uint4 *buffers)
{
    typename Sum::sum *const befores = (typename Sum::sum *)(buffers + GRID_BUFFERS * GRID_BUFFER);
    const bool late = !Aligned && sizeof(typename Sum::sum) == 4;
    typename Sum::sum held_before[GRID_TILES];
    float held[GRID_TILES][ORDER_LEAF]; /* values of item t - 1 */
    grid_begin<Sum, Aligned>(plan, shared, warp, buffers, befores);
#pragma unroll 1
    for (int iteration = 0, at = 0;; iteration++, at = grid_next(at)) {
        uint4 *buffer = buffers + at * GRID_BUFFER, *stage = buffer + grid_tile(warp, GRID_TILES - 1) * TILE_SMEM;
        typename Sum::sum before[GRID_TILES];
        float x[ORDER_LEAF];
        if (grid_there(shared, iteration)) {
            grid_wait(shared->carries[0], iteration);
#pragma unroll
            for (int i = 0; i < GRID_TILES; i++) {
                const int tile = grid_tile(warp, i);
                leaf_read(buffer + tile * TILE_SMEM, x);
                before[i] =
                    grid_second<Sum, Kind>(plan, shared, iteration, tile, x, *grid_before(befores, iteration, tile));
                if (i < GRID_TILES - 1)
                    leaf_write(buffer + tile * TILE_SMEM, lane_index(), x);
            }
            mbarrier_arrive(&shared->totals[1][iteration % GRID_MBARRIERS]);
            if (!late && grid_there(shared, iteration + 2)) {
                __pipeline_wait_prior(0);
                grid_first<Sum, Aligned>(plan, shared, iteration + 2, warp, buffers + grid_last(at) * GRID_BUFFER,
                                         befores);
            }
        }
        if (iteration > 0) {
            grid_wait(shared->carries[1], iteration - 1);
            __syncwarp(); /* the stage has been read */
            grid_results<Sum, Kind, Aligned>(plan, shared, 1, iteration - 1, warp, stage, held_before, held);
        }
        if (!grid_there(shared, iteration))
            return;
#pragma unroll
        for (int i = 0; i < GRID_TILES; i++) {
            held_before[i] = before[i];
            if (i < GRID_TILES - 1)
                leaf_read(buffer + grid_tile(warp, i) * TILE_SMEM, held[i]);
#pragma unroll
            for (int k = 0; k < ORDER_LEAF && i == GRID_TILES - 1; k++)
                held[i][k] = x[k];
        }
        __syncwarp();
        grid_fetch<Aligned>(&shared->items[(iteration + 3) % GRID_ITEMS], warp, buffer);
        if (late) {
            __pipeline_wait_prior(1); /* the next item's may be on their way */
            if (grid_there(shared, iteration + 2))
                grid_first<Sum, Aligned>(plan, shared, iteration + 2, warp, buffers + grid_last(at) * GRID_BUFFER,
                                         befores);
        }
    }
}

/* The work of a computing warp in one pass. Here samples wait in registers, an iteration longer for the carries of
 * their item. */
template <class Sum, int Kind, bool Aligned>
DEVICE void grid_one(const struct scan_plan &plan, struct grid_shared<Sum> *shared, int warp, uint4 *buffers)
{
    typename Sum::sum *const befores = (typename Sum::sum *)(buffers + GRID_BUFFERS * GRID_BUFFER);
    typename Sum::sum held_before[GRID_TILES];
    float held[GRID_TILES][ORDER_LEAF]; /* samples of item t - 1 */
    grid_begin<Sum, Aligned>(plan, shared, warp, buffers, befores);
#pragma unroll 1
    for (int iteration = 0, at = 0;; iteration++, at = grid_next(at)) {
        uint4 *buffer = buffers + at * GRID_BUFFER, *stage = buffer + warp * TILE_SMEM;
        float x[ORDER_LEAF]; /* of item t, whose place results pass through */
        leaf_read(stage, x);
        __syncwarp();
        if (iteration > 0) {
            grid_wait(shared->carries[0], iteration - 1);
            grid_results<Sum, Kind, Aligned>(plan, shared, 0, iteration - 1, warp, stage, held_before, held);
        }
        if (!grid_there(shared, iteration))
            return;
#pragma unroll
        for (int i = 0; i < GRID_TILES; i++) {
            const int tile = grid_tile(warp, i);
            held_before[i] = *grid_before(befores, iteration, tile);
            if (i > 0)
                leaf_read(buffer + tile * TILE_SMEM, held[i]);
#pragma unroll
            for (int k = 0; k < ORDER_LEAF && i == 0; k++)
                held[i][k] = x[k];
        }
        __syncwarp();
        grid_fetch<Aligned>(&shared->items[(iteration + 3) % GRID_ITEMS], warp, buffer);
        __pipeline_wait_prior(1); /* the next item's may be on their way */
        if (grid_there(shared, iteration + 2))
            grid_first<Sum, Aligned>(plan, shared, iteration + 2, warp, buffers + grid_last(at) * GRID_BUFFER, befores);
    }
}

/* The place of an item's sum, or of its tile state, in a tree of those of its row. */
template <class Sum>
DEVICE typename Sum::sum *grid_stored(const struct grid_plan &plan, const struct grid_item *item, int pass)
{
    return (typename Sum::sum *)plan.scan.sums[pass] + item->sum + item->block;
}

template <class Sum>
DEVICE tile_state *grid_states(const struct grid_plan &plan, const struct grid_item *item, int pass)
{
    return plan.states[pass] + item->sum * tile_state_words<Sum>();
}

/* The inclusive prefixes of the totals of an item's tiles, and its own total, in all lanes. */
template <class Sum, bool Backward>
DEVICE typename Sum::sum grid_prefixes(const struct grid_item *item, const tile_sums<Sum> *tiles,
                                       typename Sum::sum *total)
{
    const int last = (item->length + ORDER_TILE - 1u) / ORDER_TILE - 1;
    const typename Sum::sum sum = group_scan<Sum, Backward>(tiles->totals[lane_index()], last);
    *total = lane_get(sum, Backward ? 0 : last);
    return sum;
}

/* The carries into an item's tiles, from their totals and those of the row's other blocks. */
template <class Sum, bool Backward>
DEVICE void grid_carries(const struct grid_plan &plan, const struct grid_item *item, int pass, tile_sums<Sum> *tiles,
                         lookback_memory<Sum> *memory)
{
    const int lane = lane_index(), last = (item->length + ORDER_TILE - 1u) / ORDER_TILE - 1;
    typename Sum::sum total, *stored = grid_stored<Sum>(plan, item, pass);
    const typename Sum::sum sum = grid_prefixes<Sum, Backward>(item, tiles, &total);
    carry<Sum> before = group_before<Sum, Backward>(sum, last), outside;
    if (plan.step == GRID_VALUES)
        outside = carry_of<Sum>(*stored, grid_outer(plan.scan, item, pass));
    else
        outside = lookback_carry_near<Sum, Backward>(grid_states<Sum>(plan, item, pass), (unsigned)plan.scan.blocks,
                                                     (unsigned)item->block, total, memory);
    if (plan.step == GRID_SUMS && lane == 0)
        *stored = outside.sum;
    tiles->carries[lane] = carry_join<Sum>(outside, before).sum;
}

/* The work of a warp that makes the totals of items in a pass known: by a lane, tell(item, total). */
template <class Sum, bool Backward, class Tell>
DEVICE void grid_tell(struct grid_shared<Sum> *shared, int pass, Tell tell)
{
    for (int number = 0; grid_there(shared, number); number++) {
        const struct grid_item *item = &shared->items[number % GRID_ITEMS];
        grid_wait(shared->totals[pass], number);
        typename Sum::sum total;
        grid_prefixes<Sum, Backward>(item, &shared->tiles[pass][number % GRID_MBARRIERS], &total);
        if (lane_index() == 0)
            tell(item, total);
        mbarrier_arrive(&shared->carries[pass][number % GRID_MBARRIERS]);
    }
}

/* The number of a thread block's item in an iteration to come. */
DEVICE uint64_t grid_taken(const struct scan_plan &plan, unsigned taken, int iteration)
{
    return plan.progress ? (uint64_t)GRID_AHEAD * gridDim.x + taken : (uint64_t)iteration * gridDim.x + blockIdx.x;
}

/* The work of a warp that waits for the totals of others in a pass, for every so many items from `first` on. In the
 * first pass the warp for item 0 also finds out about items, as many at a time. */
template <class Sum, bool Backward, int Every>
DEVICE void grid_await(const struct grid_plan &plan, struct grid_shared<Sum> *shared, int pass, int first)
{
    const bool finds = pass == 0 && first == 0 && lane_index() == 0;
    unsigned taken = finds ? scan_take_number(plan.scan) : 0; /* one ahead */
    lookback_memory<Sum> memory = {};
    for (int number = first; grid_there(shared, number); number += Every) {
        const struct grid_item *item = &shared->items[number % GRID_ITEMS];
        for (int next = number + GRID_AHEAD; finds && next < number + GRID_AHEAD + Every; next++) {
            shared->items[next % GRID_ITEMS] = grid_item_at(plan.scan, grid_taken(plan.scan, taken, next));
            taken = scan_take_number(plan.scan);
        }
        grid_wait(shared->totals[pass], number);
        grid_carries<Sum, Backward>(plan, item, pass, &shared->tiles[pass][number % GRID_MBARRIERS], &memory);
        mbarrier_arrive(&shared->carries[pass][number % GRID_MBARRIERS]);
    }
    if (finds && plan.scan.progress)
        scan_finish(plan.scan.progress);
}

/* The work of a warp that waits, or of the one that publishes. */
template <class Sum, bool Backward, int Waiting>
DEVICE void grid_serve(const struct grid_plan &plan, struct grid_shared<Sum> *shared, int pass, int server)
{
    if (server < Waiting)
        grid_await<Sum, Backward, Waiting>(plan, shared, pass, server);
    else if (plan.step != GRID_VALUES)
        grid_tell<Sum, Backward>(shared, pass, [&](const struct grid_item *item, typename Sum::sum total) {
            tile_state_publish<Sum>(grid_states<Sum>(plan, item, pass) + item->block * tile_state_words<Sum>(), total);
        });
}

/* A function of its own, for two passes, which have no registers to spare: else the compiler spills some of those that
 * compute. It takes longer where it does not matter: for one pass over a row of 10^9 0.83 instead of 0.93. */
template <class Sum, bool Backward>
static __device__ __noinline__ void grid_serve_both(const struct grid_plan &plan, struct grid_shared<Sum> *shared,
                                                    int pass, int server)
{
    grid_serve<Sum, Backward, GRID_SERVERS - 1>(plan, shared, pass, server);
}

/* Makes the mbarriers, before all else. Carries are there when they are made and, where their item's total is
 * published, when it has been. */
template <class Sum> DEVICE void grid_init(const struct grid_plan &plan, struct grid_shared<Sum> *shared)
{
    const int mbarrier = (int)threadIdx.x % GRID_MBARRIERS, pass = (int)threadIdx.x / GRID_MBARRIERS;
    if (pass < SCAND_PASSES_MAX) {
        const bool published = plan.step == GRID_ALL || (plan.step == GRID_SUMS && pass == 0);
        mbarrier_init_warps(&shared->totals[pass][mbarrier], GRID_WARPS);
        mbarrier_init_warps(&shared->carries[pass][mbarrier], 1 + published);
    }
    if (threadIdx.x < GRID_AHEAD)
        shared->items[threadIdx.x] = grid_item_at(plan.scan, (uint64_t)threadIdx.x * gridDim.x + blockIdx.x);
    __syncthreads();
}

template <class Sum, int Kind, bool Aligned, int Passes>
__global__ void __launch_bounds__(GRID_THREADS(Passes), 1)
    grid_per_row_kernel(const __grid_constant__ struct grid_plan plan)
{
#if __CUDA_ARCH__ >= 900
    extern __shared__ uint4 buffers[];
    __shared__ struct grid_shared<Sum> shared;
    grid_init<Sum>(plan, &shared);
    const int warp = warp_index(), pass = (warp - GRID_WARPS) / GRID_SERVERS, server = warp % GRID_SERVERS;
    if (warp < GRID_WARPS && Passes > 1)
        grid_both<Sum, Kind, Aligned>(plan.scan, &shared, warp, buffers);
    else if (warp < GRID_WARPS)
        grid_one<Sum, Kind, Aligned>(plan.scan, &shared, warp, buffers);
    else if (Passes > 1 && plan.scan.backward[pass])
        grid_serve_both<Sum, true>(plan, &shared, pass, server);
    else if (Passes > 1)
        grid_serve_both<Sum, false>(plan, &shared, pass, server);
    else if (plan.scan.backward[0])
        grid_serve<Sum, true, GRID_SERVERS - 1>(plan, &shared, 0, server);
    else
        grid_serve<Sum, false, GRID_SERVERS - 1>(plan, &shared, 0, server);
#endif
}

#endif
