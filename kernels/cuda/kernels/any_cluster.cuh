/*
 * Rows of several order blocks of any rule, each in the registers of the thread blocks of a cluster: as in
 * any_layout.cuh a lane holds a leaf of each of its warp's tiles from the load to the store, and the next row is on its
 * way meanwhile. In each pass the tiles' totals become carries as cluster_tiles.cuh says.
 */
#ifndef KERNELS_CUDA_KERNELS_ANY_CLUSTER_CUH
#define KERNELS_CUDA_KERNELS_ANY_CLUSTER_CUH

#include "kernels/cuda/exchange/any_items.cuh"
#include "kernels/cuda/exchange/cluster_tiles.cuh"
#include "kernels/cuda/exchange/work_queue.cuh"
#include "kernels/cuda/lane/affine_leaf.cuh"

/* Tiles of a warp: two have more to do at a time than one. Registers for them: f64 has few to spare, but waits for
 * memory, so that as many warps as can be are worth more. */
template <class Sum> constexpr int any_cluster_tiles = sizeof(typename Sum::sample) == 8 ? 1 : 2;
template <class Sum> constexpr int any_cluster_registers = std::is_same<typename Sum::sample, double>::value ? 48 : 64;

struct any_cluster_plan {
    struct any_plan any; /* items: rows, as many blocks each as a cluster has thread blocks */
    struct cluster_row row;
    double coefficient; /* of affine */
};

/* The leaves that a lane has of its warp's tiles. */
template <class Sum> struct any_cluster_leaves {
    struct held_leaf<typename Sum::sample> tile[any_cluster_tiles<Sum>];
};

/* The coefficient of affine. */
template <class Sum> DEVICE affine_powered<typename Sum::number> any_cluster_factor(const struct any_cluster_plan &plan)
{
    return {number_of<typename Sum::number>(plan.coefficient)};
}

/* The inclusive prefixes of a tile's leaves, and the values of a lane's leaf. */
template <class Sum, bool Backward>
DEVICE typename Sum::sum any_cluster_prefixes(const struct any_cluster_plan &plan,
                                              const typename Sum::sample x[ORDER_LEAF], int samples, float *most)
{
    const struct leaf_end end = leaf_end_of<Sum, Backward>(samples);
    if constexpr (sum_is_affine<Sum>) {
        const typename Sum::sum sum =
            affine_leaf_total<typename Sum::number, Backward>(x, any_cluster_factor<Sum>(plan), end);
        return group_scan<Sum, Backward>(sum, (int)((samples + ORDER_LEAF - 1u) / ORDER_LEAF) - 1);
    } else {
        return tile_prefixes<Sum, Backward>(x, end, samples, most);
    }
}

template <class Sum, bool Backward>
DEVICE void any_cluster_values(const struct any_cluster_plan &plan, typename Sum::sample x[ORDER_LEAF], int samples,
                               carry<Sum> carry, float most)
{
    if constexpr (sum_is_affine<Sum>) {
        affine_leaf_values<typename Sum::number, Backward>(
            x, any_cluster_factor<Sum>(plan), {{carry.sum.term}, carry.present}, leaf_end_of<Sum, Backward>(samples),
            plan.any.kind == SCAND_KIND_EXCLUSIVE);
    } else {
        leaf_values_of<Sum, Backward, KIND_ANY>(x, carry, most, plan.any.kind);
    }
}

/* One pass over this thread block's part of a row, exchange `number` of its cluster. */
template <class Sum, bool Backward>
DEVICE void any_cluster_pass(const struct any_cluster_plan &plan, const any_outside<Sum> &outside, unsigned number,
                             int warp, cluster_tiles<Sum> *memory, any_cluster_leaves<Sum> *leaves)
{
    const int tiles = any_cluster_tiles<Sum>, length = outside.item->length;
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
        if (samples > 0)
            cluster_tell<Sum>(memory, plan.row, number, tile, lane_get(sum, Backward ? 0 : count - 1));
        before[t] = group_before<Sum, Backward>(sum, group_last<Sum>(count));
    }
    cluster_tiles_scan<Sum, Backward>(memory, plan.row, number, warp);
#pragma unroll
    for (int t = 0; t < tiles; t++) {
        typename Sum::sample *x = leaves->tile[t].x;
        const int tile = warp * tiles + t;
        const bool present =
            Sum::has_identity || outside.present() || tile != (Backward ? (length - 1) / ORDER_TILE : 0);
        const carry<Sum> leaf =
            carry_join<Sum>({memory->carries[number % CLUSTER_EXCHANGES][tile], present}, before[t]);
        any_cluster_values<Sum, Backward>(plan, x, tile_samples(length, tile), leaf, most[t]);
        if (Sum::has_identity && ((outside.kind() == SCAND_KIND_EXCLUSIVE && !outside.present()) || outside.halves()))
            leaf_zero_first<Sum, Backward>(x, length, tile, outside.zero());
    }
}

template <class Sum>
DEVICE void any_cluster_passes(const struct any_cluster_plan &plan, const struct scan_item *item, unsigned iteration,
                               int warp, cluster_tiles<Sum> *memory, any_cluster_leaves<Sum> *leaves)
{
    const struct scan_plan &scan = plan.any.scan;
#pragma unroll 1
    for (int pass = 0;; pass++) {
        const unsigned number = iteration * scan.pass_count + pass;
        const any_outside<Sum> outside = {plan.any, item, pass};
        if (scan.backward[pass])
            any_cluster_pass<Sum, true>(plan, outside, number, warp, memory, leaves);
        else
            any_cluster_pass<Sum, false>(plan, outside, number, warp, memory, leaves);
        if (pass + 1 == scan.pass_count)
            return;
#pragma unroll
        for (int t = 0; t < any_cluster_tiles<Sum>; t++)
            leaf_between_passes<Sum>(leaves->tile[t].x, !plan.any.wide[pass + 1]);
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
    }
}

/* A cluster takes one row after another. Shared memory: scan.smem vectors for each warp, and what the exchange needs.
 */
template <class Sum>
__global__ void REGISTERS((any_cluster_registers<Sum>))
    any_cluster_kernel(const __grid_constant__ struct any_cluster_plan plan)
{
#if __CUDA_ARCH__ >= 900
    extern __shared__ __align__(128) uint4 any_tiles[];
    __shared__ struct scan_item items[ITEMS];
    const struct scan_plan &scan = plan.any.scan;
    const int warp = warp_index(), warps = (int)blockDim.x / WARP;
    uint4 *tiles = any_tiles + warp * scan.smem;
    cluster_tiles<Sum> *memory = (cluster_tiles<Sum> *)(any_tiles + warps * scan.smem);
    if (threadIdx.x < ITEMS_AHEAD)
        items[threadIdx.x] =
            scan_item_at(scan, blockIdx.x + (uint64_t)threadIdx.x * gridDim.x, plan.row.here * ORDER_TILE);
    if (threadIdx.x == 0)
        cluster_tiles_init(memory, plan.row);
    if constexpr (sum_is_affine<Sum>)
        affine_begin(any_cluster_factor<Sum>(plan).factor);
    __syncthreads();
    any_cluster_fetch<Sum>(plan, &items[0], warp, tiles);
    cluster_sync();

    for (unsigned iteration = 0; items[iteration % ITEMS].length > 0; iteration++) {
        const struct scan_item *item = &items[iteration % ITEMS];
        any_cluster_leaves<Sum> leaves;
        any_cluster_read<Sum>(plan, item, warp, tiles, &leaves);
        any_cluster_fetch<Sum>(plan, &items[(iteration + 1) % ITEMS], warp, tiles);
        any_cluster_passes<Sum>(plan, item, iteration, warp, memory, &leaves);
        uint4 *stage = tiles + any_cluster_tiles<Sum> * WORDS_VECTORS(plan.any.input_bytes);
#pragma unroll
        for (int t = 0; t < any_cluster_tiles<Sum>; t++)
            any_write<Sum>(plan.any,
                           any_tile_target<true, true>{plan.any, item, warp * any_cluster_tiles<Sum> + t, stage},
                           leaves.tile[t].x);
        if (threadIdx.x == 0)
            items[(iteration + ITEMS_AHEAD) % ITEMS] = scan_item_at(
                scan, blockIdx.x + (uint64_t)(iteration + ITEMS_AHEAD) * gridDim.x, plan.row.here * ORDER_TILE);
    }
#endif
}

#endif
