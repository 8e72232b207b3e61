/*
 * Rows of several order blocks of any rule, each in the registers of the thread blocks of a cluster: as in
 * any_layout.cuh a lane holds a leaf of each of its warp's tiles from the load to the store, and the next row is on its
 * way meanwhile. In each pass the tiles' totals become carries as cluster_tiles.cuh says.
 *
 * Of rows that no cluster holds a cluster takes an order block at a time, and looks back for what other clusters have.
 */
#ifndef KERNELS_CUDA_KERNELS_ANY_CLUSTER_CUH
#define KERNELS_CUDA_KERNELS_ANY_CLUSTER_CUH

#include "kernels/cuda/exchange/any_items.cuh"
#include "kernels/cuda/exchange/cluster_tiles.cuh"
#include "kernels/cuda/exchange/lookback.cuh"
#include "kernels/cuda/exchange/work_queue.cuh"
#include "kernels/cuda/warp/affine_level.cuh"

/* Tiles of a warp: two have more to do at a time than one. Registers for them: f64 has few to spare, but waits for
 * memory, so that as many warps as can be are worth more. So they are where order blocks (`Blocks`) wait for others of
 * their row: 36 warps on an SM. */
template <class Sum> constexpr int any_cluster_tiles = sizeof(typename Sum::sample) == 8 ? 1 : 2;
template <class Sum, bool Blocks>
constexpr int any_cluster_registers = std::is_same<typename Sum::sample, double>::value ? 48 : (Blocks ? 56 : 64);
#define ANY_CLUSTER_SAMPLES (16 * ORDER_BLOCK) /* of a row, at most */

struct any_cluster_plan {
    struct any_plan any;         /* items: rows, or order blocks of rows that no cluster holds */
    struct cluster_row row;      /* an item */
    struct affine_powers powers; /* of affine */
    /* Of order blocks: per pass a tree of tile states for each row, all zero before; the tiles of a row; and whether
     * the last item comes first. */
    tile_state *states[SCAND_PASSES_MAX];
    unsigned tiles;
    bool last_first;
};

/* This thread block's part of the item of a turn, which may have no samples. Its length is -1 where there is no more
 * work. `Blocks`: items are order blocks. */
template <bool Blocks> DEVICE struct scan_item any_cluster_item(const struct any_cluster_plan &plan, unsigned turn)
{
    const struct scan_plan &scan = plan.any.scan;
    const int part = plan.row.here * ORDER_TILE, begin = cluster_rank() * part;
    const uint64_t index = (blockIdx.x + (uint64_t)turn * gridDim.x) / (unsigned)cluster_size();
    struct scan_item item = {};
    item.length = -1;
    if (index >= scan.items)
        return item;
    item = scan_item_at(scan, plan.last_first ? scan.items - 1 - index : index,
                        Blocks ? ORDER_BLOCK : ANY_CLUSTER_SAMPLES);
    item.input += (int64_t)begin * scan.input.stride;
    item.output += (int64_t)begin * scan.output.stride;
    for (int pass = 0; pass < SCAND_PASSES_MAX; pass++)
        item.outer[pass] |= scan.backward[pass] ? item.length > begin + part : begin > 0;
    item.length = min(max(item.length - begin, 0), part);
    return item;
}

/* A pass over an item: the first sample of a row is in the thread block that has no carry. */
template <class Sum> struct any_cluster_outside : any_outside<Sum> {
    __device__ __forceinline__ bool halves() const
    {
        return Sum::has_half && this->plan.kind == SCAND_KIND_TRAPEZOID && !this->present();
    }
};

/* The leaves that a lane has of its warp's tiles. */
template <class Sum> struct any_cluster_leaves {
    struct held_leaf<typename Sum::sample> tile[any_cluster_tiles<Sum>];
};

/* The inclusive prefixes of a tile's leaves, and the values of a lane's leaf. */
template <class Sum, bool Backward>
DEVICE typename Sum::sum any_cluster_prefixes(const struct any_cluster_plan &plan,
                                              const typename Sum::sample x[ORDER_LEAF], int samples, float *most)
{
    const struct leaf_end end = leaf_end_of<Sum, Backward>(samples);
    if constexpr (sum_is_affine<Sum>) {
        using T = typename Sum::number;
        const T term = affine_leaf_total<T, Backward>(x, affine_coefficient<T>(plan.powers), end).term;
        return level_of<Sum>(plan.powers)
            .template scan<Backward>(term, (int)((samples + ORDER_LEAF - 1u) / ORDER_LEAF) - 1);
    } else {
        return tile_prefixes<Sum, Backward>(x, end, samples, most);
    }
}

template <class Sum, bool Backward>
DEVICE void any_cluster_values(const struct any_cluster_plan &plan, typename Sum::sample x[ORDER_LEAF], int samples,
                               carry<Sum> carry, float most)
{
    if constexpr (sum_is_affine<Sum>) {
        using T = typename Sum::number;
        affine_leaf_values<T, Backward>(x, affine_coefficient<T>(plan.powers), {carry.sum, carry.present},
                                        leaf_end_of<Sum, Backward>(samples), plan.any.kind == SCAND_KIND_EXCLUSIVE);
    } else {
        leaf_values_of<Sum, Backward, KIND_ANY>(x, carry, leaf_end_of<Sum, Backward>(samples), most, plan.any.kind);
    }
}

/* One pass over this thread block's part of a row, exchange `number` of its cluster. */
template <class Sum, bool Backward, bool Blocks>
DEVICE void any_cluster_pass(const struct any_cluster_plan &plan, const any_cluster_outside<Sum> &outside,
                             unsigned number, int warp, cluster_tiles<Sum> *memory, any_cluster_leaves<Sum> *leaves)
{
    const int tiles = any_cluster_tiles<Sum>, length = outside.item->length;
    const auto level = level_of<Sum>(plan.powers);
    carry<Sum> before[tiles];
    float most[tiles];
#pragma unroll
    for (int t = 0; t < tiles; t++) {
        typename Sum::sample *x = leaves->tile[t].x;
        const int tile = warp * tiles + t, samples = tile_samples(length, tile);
        const int count = (samples + ORDER_LEAF - 1u) / ORDER_LEAF;
        if (Sum::has_identity && samples < ORDER_TILE)
            leaf_fill<Sum>(x, samples);
        block_halve<Sum, Backward>(x, length, tile, outside);
        const typename Sum::sum sum = any_cluster_prefixes<Sum, Backward>(plan, x, samples, &most[t]);
        if (samples > 0 || Blocks)
            cluster_tell<Sum>(memory, plan.row, number, tile, lane_get(sum, Backward ? 0 : count - 1));
        before[t] = group_before<Sum, Backward>(sum, group_last<Sum>(count));
    }
    const auto factor = level.template factor<Backward>();
    if (Blocks)
        mbarrier_wait(&memory->summed, number % 2);
    else
        cluster_tiles_scan<Sum, Backward>(memory, plan.row, number, warp, level.above());
#pragma unroll
    for (int t = 0; t < tiles; t++) {
        typename Sum::sample *x = leaves->tile[t].x;
        const int tile = warp * tiles + t;
        const bool present =
            Sum::has_identity || outside.present() || tile != (Backward ? (length - 1) / ORDER_TILE : 0);
        const carry<Sum> leaf =
            level.join({memory->carries[number % CLUSTER_EXCHANGES][tile], present}, before[t], factor);
        any_cluster_values<Sum, Backward>(plan, x, tile_samples(length, tile), leaf, most[t]);
        if (Sum::has_identity && ((outside.kind() == SCAND_KIND_EXCLUSIVE && !outside.present()) || outside.halves()))
            leaf_zero_first<Sum, Backward>(x, length, tile, outside.zero());
    }
}

/* Starts the copies of a warp's tiles of an item. */
template <class Sum>
DEVICE void any_cluster_fetch(const struct any_cluster_plan &plan, const struct scan_item *item, int warp, uint4 *tiles)
{
#pragma unroll
    for (int t = 0; t < any_cluster_tiles<Sum>; t++)
        any_fetch_first(plan.any, item, warp * any_cluster_tiles<Sum> + t,
                        tiles + t * WORDS_VECTORS(plan.any.input_bytes));
}

/* All passes over it. The next order block is fetched after the first pass, whose totals would queue up behind samples
 * on their way to other clusters. */
template <class Sum, bool Blocks>
DEVICE void any_cluster_passes(const struct any_cluster_plan &plan, const struct scan_item *items, unsigned iteration,
                               int warp, cluster_tiles<Sum> *memory, uint4 *tiles, any_cluster_leaves<Sum> *leaves)
{
    const struct scan_plan &scan = plan.any.scan;
#pragma unroll 1
    for (int pass = 0;; pass++) {
        const unsigned number = iteration * scan.pass_count + pass;
        const any_cluster_outside<Sum> outside = {{plan.any, &items[iteration % ITEMS], pass}};
        if (scan.backward[pass])
            any_cluster_pass<Sum, true, Blocks>(plan, outside, number, warp, memory, leaves);
        else
            any_cluster_pass<Sum, false, Blocks>(plan, outside, number, warp, memory, leaves);
        if (Blocks && pass == 0)
            any_cluster_fetch<Sum>(plan, &items[(iteration + 1) % ITEMS], warp, tiles);
        if (pass + 1 == scan.pass_count)
            return;
#pragma unroll
        for (int t = 0; t < any_cluster_tiles<Sum>; t++)
            leaf_between_passes<Sum>(leaves->tile[t].x, !plan.any.wide[pass + 1], any_is_bounded<Sum>(plan.any));
    }
}

template <class Sum>
DEVICE void any_cluster_read(const struct any_cluster_plan &plan, const struct scan_item *item, int warp, uint4 *tiles,
                             any_cluster_leaves<Sum> *leaves)
{
#pragma unroll
    for (int t = 0; t < any_cluster_tiles<Sum>; t++) {
        const any_tile_source<FETCH_APART> source = {plan.any, item, NULL, warp * any_cluster_tiles<Sum> + t,
                                                     tiles + t * WORDS_VECTORS(plan.any.input_bytes)};
        any_read_from<Sum, false>(
            plan.any, source, [](auto *) {}, leaves->tile[t].x);
        leaf_pin(leaves->tile[t].x);
        if constexpr (sizeof(typename Sum::sample) == 8)
            leaf_turn<Sum>(leaves->tile[t].x, plan.any.flip);
    }
}

/*
 * Order blocks of rows that no cluster holds: the last warp of each thread block has no samples, and all registers for
 * making carries. That of the cluster's first thread block publishes the order block's total and looks back for all:
 * polls of each would hold up what is published. When totals of all tiles have come, nobody works on the item before,
 * and the warp finds out about a later one in its place, but after it has opened `summed` for the others, who wait: at
 * a __syncthreads of its own, instead, synccheck would report it.
 */
template <class Sum> struct any_cluster_outer {
    cluster_carry<Sum> *carry;
    lookback_memory<Sum> above; /* as a single pass has it: rows of two passes have too few order blocks */
};

template <class Sum, bool Backward>
DEVICE void any_cluster_lookback(const struct any_cluster_plan &plan, const struct scan_item *item, int pass,
                                 unsigned number, cluster_tiles<Sum> *memory, any_cluster_outer<Sum> *outer)
{
    const unsigned blocks = (unsigned)plan.any.scan.blocks;
    const unsigned block = (unsigned)(item->sum % plan.any.scan.sums_per_row);
    tile_state *states = plan.states[pass] + (item->sum - block) * tile_state_words<Sum>();
    const auto outside = [&](typename Sum::sum sum, int last, carry<Sum> before) {
        if (cluster_rank() == 0) {
            const typename Sum::sum total = lane_get(sum, last);
            if (lane_index() == 0)
                tile_state_publish<Sum>(states + block * tile_state_words<Sum>(), total);
            cluster_carry_tell<Sum>(
                outer->carry, lookback_carry_near<Sum, Backward>(states, blocks, block, total, &outer->above).sum);
        }
        const bool present = Sum::has_identity || block != (Backward ? blocks - 1 : 0);
        return carry_join<Sum>({cluster_carry_await<Sum>(outer->carry, number), present}, before);
    };
    cluster_tiles_carries<Sum>(memory, plan.row, number, Backward, 0, (int)(plan.tiles - block * ORDER_FAN), outside);
}

template <class Sum>
DEVICE void any_cluster_lookbacks(const struct any_cluster_plan &plan, struct scan_item *items,
                                  cluster_tiles<Sum> *memory, cluster_carry<Sum> *carry)
{
    const unsigned passes = plan.any.scan.pass_count;
    any_cluster_outer<Sum> outer = {carry};
    for (unsigned number = 0; items[number / passes % ITEMS].length >= 0; number++) {
        const struct scan_item *item = &items[number / passes % ITEMS];
        const int pass = (int)(number % passes);
        if (plan.any.scan.backward[pass])
            any_cluster_lookback<Sum, true>(plan, item, pass, number, memory, &outer);
        else
            any_cluster_lookback<Sum, false>(plan, item, pass, number, memory, &outer);
        mbarrier_arrive(&memory->summed);
        const unsigned later = number / passes + ITEMS_AHEAD;
        if (pass == 0 && lane_index() == 0)
            items[later % ITEMS] = any_cluster_item<true>(plan, later);
    }
}

/* A cluster takes one item after another. Shared memory: scan.smem vectors for each warp, and what the exchange needs.
 */
template <class Sum, bool Blocks>
__global__ void REGISTERS((any_cluster_registers<Sum, Blocks>))
    any_cluster_kernel(const __grid_constant__ struct any_cluster_plan plan)
{
#if __CUDA_ARCH__ >= 900
    extern __shared__ __align__(128) uint4 any_tiles[];
    __shared__ struct scan_item items[ITEMS];
    __shared__ cluster_carry<Sum> carry; /* of order blocks */
    const int warp = warp_index(), warps = plan.row.here / any_cluster_tiles<Sum>;
    uint4 *tiles = any_tiles + warp * plan.any.scan.smem;
    cluster_tiles<Sum> *memory = (cluster_tiles<Sum> *)(any_tiles + warps * plan.any.scan.smem);
    if (threadIdx.x < ITEMS_AHEAD)
        items[threadIdx.x] = any_cluster_item<Blocks>(plan, threadIdx.x);
    if (threadIdx.x == 0)
        cluster_tiles_init(memory, plan.row);
    if (Blocks && threadIdx.x == 0)
        cluster_carry_init<Sum>(&carry);
    if constexpr (sum_is_affine<Sum>)
        affine_begin<typename Sum::number>(plan.powers);
    __syncthreads();
    if (warp < warps)
        any_cluster_fetch<Sum>(plan, &items[0], warp, tiles);
    cluster_sync();
    if constexpr (Blocks)
        if (warp == warps) {
            any_cluster_lookbacks<Sum>(plan, items, memory, &carry);
            return;
        }

    for (unsigned iteration = 0; items[iteration % ITEMS].length >= 0; iteration++) {
        const struct scan_item *item = &items[iteration % ITEMS];
        any_cluster_leaves<Sum> leaves;
        any_cluster_read<Sum>(plan, item, warp, tiles, &leaves);
        if (!Blocks)
            any_cluster_fetch<Sum>(plan, &items[(iteration + 1) % ITEMS], warp, tiles);
        any_cluster_passes<Sum, Blocks>(plan, items, iteration, warp, memory, tiles, &leaves);
        uint4 *stage = tiles + any_cluster_tiles<Sum> * WORDS_VECTORS(plan.any.input_bytes);
#pragma unroll
        for (int t = 0; t < any_cluster_tiles<Sum>; t++) {
            if constexpr (sizeof(typename Sum::sample) == 8)
                leaf_turn<Sum>(leaves.tile[t].x, plan.any.flip);
            any_write<Sum, true>(plan.any,
                                 any_tile_target<true, true>{plan.any, item, warp * any_cluster_tiles<Sum> + t, stage},
                                 leaves.tile[t].x);
        }
        if (!Blocks && threadIdx.x == 0)
            items[(iteration + ITEMS_AHEAD) % ITEMS] = any_cluster_item<Blocks>(plan, iteration + ITEMS_AHEAD);
    }
#endif
}

#endif
