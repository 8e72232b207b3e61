/*
 * Rows of more than one order block, read once and written once: their samples stay on the chip while the totals of the
 * row's other blocks are awaited.
 *
 * In order 1 a block's total depends on its own samples alone, so every thread block tells its totals to the others as
 * soon as it has them, and each makes the carries that it needs from those of the others (long_tree.cuh). To have
 * something to do while they travel, a thread block has several items, order blocks, under way. In turn t it
 *
 *   - makes the values of item t in the first pass, and from them its total in the second;
 *   - makes the values of item t - 1 in the second pass, and writes them;
 *   - makes the total of item t + 2 in the first pass;
 *   - has the samples of item t + 3 on their way to shared memory.
 *
 * Sixteen warps compute, with two tiles each, and meet nobody. Two more, one for each pass, serve them: they turn the
 * totals of tiles into carries, and are the ones that wait for other thread blocks.
 *
 * Thread block b takes the items b, b + grid, b + 2 grid, ..., and all are resident (a cooperative launch). So nobody
 * waits for ever: items in the order of the first pass wait in it for earlier items alone, and a row of at most as many
 * items as there are thread blocks waits in the second one only for items that their thread blocks reach before they
 * need anything of this row or later ones.
 */
#ifndef KERNELS_CUDA_LONG_CUH
#define KERNELS_CUDA_LONG_CUH

#include "kernels/cuda/long_tree.cuh"
#include "kernels/cuda/scan.cuh"

#define LONG_WARPS      16                       /* that compute */
#define LONG_TILES      (ORDER_FAN / LONG_WARPS) /* of each of them */
#define LONG_THREADS    ((LONG_WARPS + SCAND_PASSES_MAX) * WARP)
#define LONG_BUFFERS    3                       /* of an order block's samples, in shared memory */
#define LONG_ITEMS      8                       /* that are known at once: t - 1 to t + 4, in a ring */
#define LONG_BUFFER     (ORDER_FAN * TILE_ROOM) /* slots of one */
#define LONG_BEFORES    (2 * ORDER_FAN * WARP)  /* sums: what each leaf of two items has before it in its tile */
#define LONG_SHARED     (LONG_BUFFERS * LONG_BUFFER * SLOT_BYTES + LONG_BEFORES * 8)
#define LONG_SHARED_ALL (LONG_SHARED + 4096) /* with what is declared in the kernel */

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

/* What one launch does. */
struct long_plan {
    struct scan_plan scan;
    record *records[SCAND_PASSES_MAX]; /* per pass a tree of records for each row, all zero before */
    /* No results: the carries into blocks in the first pass go to scan.sums[0], their totals in the second to
     * scan.sums[1]. */
    bool sums_only;
};

struct long_item {
    char *input, *output; /* its first sample */
    uint64_t sum;         /* index of its row's first sum or record */
    uint64_t block;       /* in the row */
    int length;           /* 0 where there is no more work */
};

/* Two gates each, for items of even and of odd number: a warp may pass one twice before another does. */
template <class Sum> struct long_shared {
    tile_sums<Sum> tiles[SCAND_PASSES_MAX][2];
    gate totals[SCAND_PASSES_MAX][2], carries[SCAND_PASSES_MAX][2];
    struct long_item items[LONG_ITEMS];
};

/* The blocks of a row in the order in which the first pass visits them. */
DEVICE struct long_item long_item_at(const struct scan_plan &plan, uint64_t turn)
{
    struct long_item item = {};
    uint64_t index = turn * gridDim.x + blockIdx.x;
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
    for (int i = 0; i < LONG_TILES; i++)
        tile_fetch<Aligned>(buffer + long_tile(warp, i) * TILE_ROOM, item->input, plan.input, item->length,
                            long_tile(warp, i));
    __pipeline_commit();
}

/* The samples of this lane's leaf. */
template <class Sum, bool Aligned>
DEVICE void long_read(const struct scan_plan &plan, const struct long_item *item, const uint4 *tile,
                      typename Sum::sample x[ORDER_LEAF])
{
    float samples[ORDER_LEAF];
    leaf_read(tile, !Aligned && plan.input.access == ACCESS_SLOTS ? shift_of<float>(item->input) : 0, samples);
    if (!Aligned)
        leaf_decode(plan.input_form, samples);
#pragma unroll
    for (int i = 0; i < ORDER_LEAF; i++)
        x[i] = Sum::from_f32(samples[i]);
}

/* The total of a tile of `samples` samples goes to `total`; returned is what this lane's leaf has before it there. */
template <class Sum, bool Backward>
DEVICE typename Sum::sum long_total(typename Sum::sample x[ORDER_LEAF], int samples, typename Sum::sum *total)
{
    int leaves = (samples + ORDER_LEAF - 1u) / ORDER_LEAF;
    if (Sum::has_identity && samples < ORDER_TILE)
        leaf_fill<Sum>(x, samples);
    struct leaf_end end = leaf_end_of<Sum, Backward>(samples);
    typename Sum::sum sum =
        end.partial ? leaf_total<Sum, Backward, Backward>(x, end.last) : leaf_total<Sum, Backward, false>(x, end.last);
    sum = group_scan<Sum, Backward>(sum, group_last<Sum>(leaves));
    if (lane_index() == (Backward ? 0 : leaves - 1))
        *total = sum;
    return group_before<Sum, Backward>(sum, group_last<Sum>(leaves)).sum;
}

/* Replaces the samples of a tile by their values. `outside` is the carry into the tile, `before` as long_total returned
 * it. */
template <class Sum, bool Backward, int Kind>
DEVICE void long_values(typename Sum::sample x[ORDER_LEAF], int length, int tile, bool outer, typename Sum::sum outside,
                        typename Sum::sum before)
{
    int samples = tile_samples(length, tile), leaves = (samples + ORDER_LEAF - 1u) / ORDER_LEAF;
    int tiles = (length + ORDER_TILE - 1u) / ORDER_TILE, lane = lane_index();
    if (Sum::has_identity && samples < ORDER_TILE)
        leaf_fill<Sum>(x, samples);
    struct leaf_end end = leaf_end_of<Sum, Backward>(samples);
    carry<Sum> leaf = carry_join<Sum>({outside, Sum::has_identity || outer || tile != (Backward ? tiles - 1 : 0)},
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
                                       int samples, typename Sum::sum *total)
{
    return plan.backward[pass] ? long_total<Sum, true>(x, samples, total) : long_total<Sum, false>(x, samples, total);
}

template <class Sum, int Kind>
DEVICE void long_values_of(const struct scan_plan &plan, int pass, typename Sum::sample x[ORDER_LEAF],
                           const struct long_item *item, int tile, typename Sum::sum carry, typename Sum::sum before)
{
    bool outer = long_outer(plan, item, pass);
    if (plan.backward[pass])
        long_values<Sum, true, Kind>(x, item->length, tile, outer, carry, before);
    else
        long_values<Sum, false, Kind>(x, item->length, tile, outer, carry, before);
}

/* Writes a warp's tile of an item. */
template <class Sum, class Out, bool Aligned>
DEVICE void long_write(const struct scan_plan &plan, const struct long_item *item, int tile, uint4 *stage,
                       const typename Sum::sample x[ORDER_LEAF])
{
    Out results[ORDER_LEAF];
    leaf_results<Sum, Out>(x, results);
    if (!Aligned)
        leaf_encode(plan.output_form, results);
    tile_write<Out, TILE_SLOTS, Aligned>(stage, item->output, plan.output, item->length, tile, results);
}

/* The totals of a warp's tiles of item `number` in the first pass, and what each lane's leaf has before it there. */
template <class Sum, bool Aligned>
DEVICE void long_first(const struct scan_plan &plan, struct long_shared<Sum> *shared, int number, int warp,
                       const uint4 *buffer, typename Sum::sum *befores)
{
    const struct long_item *item = &shared->items[number % LONG_ITEMS];
    __pipeline_wait_prior(1); /* the next item's may be on their way */
    __syncwarp();
#pragma unroll
    for (int i = 0; i < LONG_TILES; i++) {
        const int tile = long_tile(warp, i);
        typename Sum::sample x[ORDER_LEAF];
        long_read<Sum, Aligned>(plan, item, buffer + tile * TILE_ROOM, x);
        *long_before(befores, number, tile) = long_total_of<Sum>(plan, 0, x, tile_samples(item->length, tile),
                                                                 &shared->tiles[0][number % 2].totals[tile]);
    }
    gate_arrive(&shared->totals[0][number % 2]);
}

/* The values of a tile of item `number` in the first pass. If there is a second one, they are left in `values`, and
 * what the leaf has before it in that pass is returned; else they are the results. */
template <class Sum, class Last, class Out, int Kind, bool Aligned>
DEVICE typename Sum::sum long_second(const struct scan_plan &plan, struct long_shared<Sum> *shared, int number,
                                     int tile, uint4 *buffer, typename Sum::sum before, float values[ORDER_LEAF])
{
    const struct long_item *item = &shared->items[number % LONG_ITEMS];
    const typename Sum::sum outside = shared->tiles[0][number % 2].carries[tile];
    if (plan.pass_count == 1) {
        typename Last::sample x[ORDER_LEAF];
        long_read<Last, Aligned>(plan, item, buffer, x);
        __syncwarp();
        long_values_of<Last, Kind>(plan, 0, x, item, tile, outside, before);
        long_write<Last, Out, Aligned>(plan, item, tile, buffer, x);
        return before;
    }
    typename Sum::sample x[ORDER_LEAF];
    long_read<Sum, Aligned>(plan, item, buffer, x);
    __syncwarp();
    long_values_of<Sum, Kind>(plan, 0, x, item, tile, outside, before);
#pragma unroll
    for (int k = 0; k < ORDER_LEAF; k++)
        x[k] = Sum::from_f32(values[k] = Sum::as_f32(x[k]));
    return long_total_of<Sum>(plan, 1, x, tile_samples(item->length, tile), &shared->tiles[1][number % 2].totals[tile]);
}

/* The results of a tile of item `number`, from the values that the first pass left. */
template <class Sum, class Last, class Out, int Kind, bool Aligned>
DEVICE void long_third(const struct scan_plan &plan, struct long_shared<Sum> *shared, int number, int tile,
                       uint4 *stage, typename Sum::sum before, const float values[ORDER_LEAF])
{
    const struct long_item *item = &shared->items[number % LONG_ITEMS];
    typename Last::sample x[ORDER_LEAF];
#pragma unroll
    for (int k = 0; k < ORDER_LEAF; k++)
        x[k] = Last::from_f32(values[k]);
    long_values_of<Last, Kind>(plan, 1, x, item, tile, shared->tiles[1][number % 2].carries[tile], before);
    long_write<Last, Out, Aligned>(plan, item, tile, stage, x);
}

/*
 * What a warp that computes does. Between the passes the values of item t - 1 are in registers, and those of a lane's
 * first leaf of item t in the buffer of its samples until there is room for them in registers.
 */
template <class Sum, class Last, class Out, int Kind, bool Aligned>
DEVICE void long_compute(const struct long_plan &plan, struct long_shared<Sum> *shared, int warp, uint4 *buffers)
{
    typename Sum::sum *const befores = (typename Sum::sum *)(buffers + LONG_BUFFERS * LONG_BUFFER);
    const int tile_a = long_tile(warp, 0), tile_b = long_tile(warp, 1);
    const bool twice = plan.scan.pass_count > 1;
    typename Sum::sum second_a, second_b;
    float held_a[ORDER_LEAF], held_b[ORDER_LEAF];
    for (int number = 0; number < 2; number++)
        long_fetch<Aligned>(plan.scan, &shared->items[number], warp, buffers + number * LONG_BUFFER);
    long_first<Sum, Aligned>(plan.scan, shared, 0, warp, buffers, befores);
    long_fetch<Aligned>(plan.scan, &shared->items[2], warp, buffers + 2 * LONG_BUFFER);
    if (long_there(shared, 1))
        long_first<Sum, Aligned>(plan.scan, shared, 1, warp, buffers + LONG_BUFFER, befores);
#pragma unroll 1
    for (int turn = 0, at = 0;; turn++, at = at == LONG_BUFFERS - 1 ? 0 : at + 1) {
        uint4 *buffer_a = buffers + at * LONG_BUFFER + tile_a * TILE_ROOM;
        uint4 *buffer_b = buffers + at * LONG_BUFFER + tile_b * TILE_ROOM;
        typename Sum::sum fresh_a, fresh_b;
        float values[ORDER_LEAF];
        if (long_there(shared, turn)) {
            gate_wait(&shared->carries[0][turn % 2], turn / 2 % 2);
            fresh_a = long_second<Sum, Last, Out, Kind, Aligned>(plan.scan, shared, turn, tile_a, buffer_a,
                                                                 *long_before(befores, turn, tile_a), values);
            if (twice)
                leaf_write(buffer_a, lane_index(), values);
            fresh_b = long_second<Sum, Last, Out, Kind, Aligned>(plan.scan, shared, turn, tile_b, buffer_b,
                                                                 *long_before(befores, turn, tile_b), values);
            if (twice)
                gate_arrive(&shared->totals[1][turn % 2]);
        }
        if (twice && turn > 0) {
            gate_wait(&shared->carries[1][(turn - 1) % 2], (turn - 1) / 2 % 2);
            if (!plan.sums_only) {
                long_third<Sum, Last, Out, Kind, Aligned>(plan.scan, shared, turn - 1, tile_a, buffer_b, second_a,
                                                          held_a);
                long_third<Sum, Last, Out, Kind, Aligned>(plan.scan, shared, turn - 1, tile_b, buffer_b, second_b,
                                                          held_b);
            }
        }
        if (!long_there(shared, turn))
            return;
        leaf_read(buffer_a, 0, held_a);
#pragma unroll
        for (int k = 0; k < ORDER_LEAF; k++)
            held_b[k] = values[k];
        __syncwarp();
        long_fetch<Aligned>(plan.scan, &shared->items[(turn + 3) % LONG_ITEMS], warp, buffers + at * LONG_BUFFER);
        second_a = fresh_a;
        second_b = fresh_b;
        if (long_there(shared, turn + 2))
            long_first<Sum, Aligned>(plan.scan, shared, turn + 2, warp,
                                     buffers + (at == 0 ? LONG_BUFFERS - 1 : at - 1) * LONG_BUFFER, befores);
    }
}

/* The carries into an item's tiles, from their totals and those of the row's other blocks. */
template <class Sum, bool Backward>
DEVICE void long_carries(const struct long_plan &plan, const struct long_item *item, int pass, tile_sums<Sum> *tiles)
{
    const int lane = lane_index(), last = (item->length + ORDER_TILE - 1u) / ORDER_TILE - 1;
    typename Sum::sum *sums = (typename Sum::sum *)plan.scan.sums[pass];
    typename Sum::sum sum = group_scan<Sum, Backward>(tiles->totals[lane], last);
    typename Sum::sum total = lane_get(sum, Backward ? 0 : last);
    carry<Sum> before = group_before<Sum, Backward>(sum, last);
    if (plan.sums_only && pass > 0) {
        if (lane == 0)
            sums[item->sum + item->block] = total;
        return;
    }
    carry<Sum> outside = tree_carry<Sum, Backward>(plan.records[pass] + item->sum * record_words<Sum>(),
                                                   (unsigned)plan.scan.blocks, (unsigned)item->block, total);
    if (plan.sums_only && lane == 0)
        sums[item->sum + item->block] = outside.sum;
    tiles->carries[lane] = carry_join<Sum>(outside, before).sum;
}

/* What the warp that serves a pass does. That of the first pass also finds out about items. */
template <class Sum> DEVICE void long_serve(const struct long_plan &plan, struct long_shared<Sum> *shared, int pass)
{
    for (int number = 0;; number++) {
        const struct long_item *item = &shared->items[number % LONG_ITEMS];
        tile_sums<Sum> *tiles = &shared->tiles[pass][number % 2];
        if (item->length == 0)
            return;
        gate_wait(&shared->totals[pass][number % 2], number / 2 % 2);
        if (plan.scan.backward[pass])
            long_carries<Sum, true>(plan, item, pass, tiles);
        else
            long_carries<Sum, false>(plan, item, pass, tiles);
        gate_arrive(&shared->carries[pass][number % 2]);
        if (pass == 0 && lane_index() == 0)
            shared->items[(number + 4) % LONG_ITEMS] = long_item_at(plan.scan, number + 4);
    }
}

template <class Sum, class Last, class Out, int Kind, bool Aligned>
__global__ void __launch_bounds__(LONG_THREADS, 1) long_kernel(const __grid_constant__ struct long_plan plan)
{
#if __CUDA_ARCH__ >= 900
    extern __shared__ uint4 buffers[];
    __shared__ struct long_shared<Sum> shared;
    if (threadIdx.x < SCAND_PASSES_MAX * 2) {
        gate_init(&shared.totals[threadIdx.x / 2][threadIdx.x % 2], LONG_WARPS);
        gate_init(&shared.carries[threadIdx.x / 2][threadIdx.x % 2], 1);
    }
    if (threadIdx.x < 4)
        shared.items[threadIdx.x] = long_item_at(plan.scan, threadIdx.x);
    __syncthreads();
    const int warp = warp_index();
    if (warp < LONG_WARPS)
        long_compute<Sum, Last, Out, Kind, Aligned>(plan, &shared, warp, buffers);
    else if (warp - LONG_WARPS < plan.scan.pass_count)
        long_serve<Sum>(plan, &shared, warp - LONG_WARPS);
#endif
}

#endif
