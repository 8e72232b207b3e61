/*
 * Rows of several order blocks, each in the registers of the thread blocks of a cluster: as in block_per_row.cuh a lane
 * holds a leaf of each of its warp's tiles from the load to the store, and the next row is on its way meanwhile.
 *
 * In each pass the tiles' totals become carries as cluster_tiles.cuh says.
 *
 * TMA brings the samples, as its requests do not keep a warp's other ones waiting. It sees the input as
 * lines of a leaf, from an address that begins one, and has their vectors change places as swizzle says.
 */
#ifndef KERNELS_CUDA_KERNELS_CLUSTER_PER_ROW_CUH
#define KERNELS_CUDA_KERNELS_CLUSTER_PER_ROW_CUH

#include <cuda.h>

#include "kernels/cuda/exchange/block.cuh"
#include "kernels/cuda/exchange/cluster_tiles.cuh"
#include "kernels/cuda/exchange/work_queue.cuh"
#include "kernels/cuda/lane/convert32.cuh"
#include "kernels/cuda/warp/affine_level.cuh"
#include "kernels/cuda/warp/item_io.cuh"

#define CLUSTER_SIZE_MAX 8  /* thread blocks, as on every device that has clusters */
#define CLUSTER_WARPS    32 /* warps of a thread block, at most */
#define CLUSTER_TILES    2  /* tiles of a warp: they have more to do at a time than one */

/* Registers for two tiles, and the most warps of a thread block, two choices. Of warps with 80 registers, as sums in
 * f64 have, an SM has 24, with 96, which affine would spill without, 20: better in several thread blocks. */
struct cluster_warps {
    int choices[2];
};
template <class Sum> constexpr bool cluster_wide = sizeof(typename Sum::sample) == 8;
template <class Sum> constexpr int cluster_registers = cluster_wide<Sum> ? (sum_is_affine<Sum> ? 96 : 80) : 64;
template <class Sum>
constexpr struct cluster_warps cluster_warps_of = cluster_wide<Sum> ? (sum_is_affine<Sum> ? cluster_warps{{10, 10}}
                                                                                          : cluster_warps{{8, 12}})
                                                                    : cluster_warps{{CLUSTER_WARPS, CLUSTER_WARPS}};

/* Lines that TMA brings for a warp: leaves may begin in the middle of them. What they take in shared
 * memory, where vectors change places by address. */
#define CLUSTER_LINES     (CLUSTER_TILES * ORDER_FAN + 1)
#define CLUSTER_LINE      (ORDER_LEAF * 4) /* bytes */
#define CLUSTER_ALIGNMENT (8 * CLUSTER_LINE)
#define CLUSTER_BUFFER    ((CLUSTER_LINES * CLUSTER_LINE + CLUSTER_ALIGNMENT - 1) / CLUSTER_ALIGNMENT * CLUSTER_ALIGNMENT)

struct cluster_plan {
    CUtensorMap map; /* tensor map of the input */
    char *origin;    /* address from which on the map describes the input */
    struct scan_plan scan;
    struct cluster_row row;
    struct affine_powers powers; /* of affine */
};

struct cluster_shared {
    mbarrier arrived[CLUSTER_WARPS]; /* a warp's samples */
    struct scan_item items[ITEMS];
};

/* The leaves that a lane has of its warp's tiles. */
template <class Sum> using cluster_leaves = struct held_leaf<typename Sum::sample>[CLUSTER_TILES];

/* The part of a row that this thread block has. */
DEVICE struct scan_item cluster_item_at(const struct cluster_plan &plan, uint64_t row)
{
    struct scan_item item = {};
    const int64_t first = (int64_t)cluster_rank() * plan.row.here * ORDER_TILE;
    if (row >= plan.scan.items)
        return item;
    item.input = side_at(plan.scan, plan.scan.input, plan.scan.first_row + row, 0) + first * 4;
    item.output = side_at(plan.scan, plan.scan.output, plan.scan.first_row + row, 0) + first * 4;
    item.length = (int)min((int64_t)plan.scan.length - first, (int64_t)plan.row.here * ORDER_TILE);
    return item;
}

/* The number of a warp's t-th tile in its thread block's part. */
DEVICE int cluster_tile(int warp, int t)
{
    return warp * CLUSTER_TILES + t;
}

/* Starts the copy of a warp's tiles of an item, when all lanes have read what was in their place. */
template <class Sum>
DEVICE void cluster_fetch(const struct cluster_plan &plan, const struct scan_item *item, int warp, uint4 *buffer,
                          mbarrier *arrived)
{
    const int first = cluster_tile(warp, 0);
    if (tile_samples(item->length, first) == 0 || lane_index() > 0)
        return;
    const int line = (int)((item->input + first * ORDER_TILE * 4 - plan.origin) / CLUSTER_LINE);
    mbarrier_expect(arrived, CLUSTER_LINES * CLUSTER_LINE);
    tma_load_2d(smem_address(buffer), &plan.map, 0, line, smem_address(arrived));
}

template <class Sum>
DEVICE void cluster_read(const struct cluster_plan &plan, const struct scan_item *item, const uint4 *buffer,
                         cluster_leaves<Sum> leaves)
{
    const int vec16 = (int)((uintptr_t)item->input / VEC16_BYTES % (ORDER_LEAF / 4)) + ORDER_LEAF / 4 * lane_index();
    float x[CLUSTER_TILES][ORDER_LEAF];
#pragma unroll
    for (int t = 0; t < CLUSTER_TILES; t++)
        leaf_read_at(buffer + t * TILE_VECTORS, vec16, shift_of<float>(item->input), x[t]);
    __syncwarp();
#pragma unroll
    for (int t = 0; t < CLUSTER_TILES; t++) {
        leaf_pin(x[t]);
        leaf_decode(plan.scan.input_form, x[t]);
        leaf_from_f32<Sum>(x[t], leaves[t].x);
    }
}

/* Inclusive prefixes of the totals of the leaves of a warp's tiles, as tiles_prefixes. */
template <class Sum, bool Backward>
DEVICE float cluster_prefixes(const cluster_leaves<Sum> leaves, const int samples[],
                              typename Sum::sum sums[CLUSTER_TILES])
{
    bool alone = false;
#pragma unroll
    for (int t = 0; t < CLUSTER_TILES; t++)
        alone |= Backward && samples[t] % ORDER_LEAF == 1;
    return tiles_prefixes<Sum, CLUSTER_TILES, Backward>(
        leaves, [&](int t) { return leaf_end_of<Sum, Backward>(samples[t]); }, alone, sums,
        [&](auto sum, auto *totals) {
            kogge_stone<decltype(sum), Backward, CLUSTER_TILES>(totals, [&](int t) {
                return group_last<decltype(sum)>((int)((samples[t] + ORDER_LEAF - 1u) / ORDER_LEAF));
            });
        });
}

/* Has each(partial, t, last) do something with a warp's tiles of affine: side by side, in one piece of code, where none
 * ends in a leaf that lacks samples which the pass would have met first. */
template <class Sum, bool Backward, class Each> DEVICE void cluster_affine_tiles(const int samples[], Each each)
{
    bool whole = true;
#pragma unroll
    for (int t = 0; t < CLUSTER_TILES; t++)
        whole &= !leaf_end_of<Sum, Backward>(samples[t]).partial;
#pragma unroll
    for (int t = 0; t < CLUSTER_TILES; t++)
        if (!whole)
            each(std::integral_constant<bool, Backward>(), t, leaf_end_of<Sum, Backward>(samples[t]).last);
    if (whole)
#pragma unroll
        for (int t = 0; t < CLUSTER_TILES; t++)
            each(std::false_type(), t, 0);
}

/* As cluster_prefixes. */
template <class Sum, bool Backward>
DEVICE void cluster_terms(const struct cluster_plan &plan, const cluster_leaves<Sum> leaves, const int samples[],
                          typename Sum::sum sums[CLUSTER_TILES])
{
    using T = typename Sum::number;
    cluster_affine_tiles<Sum, Backward>(samples, [&](auto partial, int t, int last) {
        sums[t] = affine_leaf_total<T, Backward, decltype(partial)::value>(leaves[t].x,
                                                                           affine_coefficient<T>(plan.powers), last)
                      .term;
    });
#pragma unroll
    for (int k = 0; k < AFFINE_STEPS; k++)
#pragma unroll
        for (int t = 0; t < CLUSTER_TILES; t++)
            sums[t] = level_of<Sum>(plan.powers)
                          .template step<Backward>(sums[t], k, (int)((samples[t] + ORDER_LEAF - 1u) / ORDER_LEAF) - 1);
}

/* One pass over this thread block's part of a row. */
template <class Sum, bool Backward, int Kind>
DEVICE void cluster_pass(const struct cluster_plan &plan, cluster_tiles<Sum> *memory, const struct scan_item *item,
                         int warp, unsigned number, cluster_leaves<Sum> leaves)
{
    const int first = cluster_rank() * plan.row.here;
    typename Sum::sum sums[CLUSTER_TILES];
    int samples[CLUSTER_TILES];
#pragma unroll
    for (int t = 0; t < CLUSTER_TILES; t++) {
        samples[t] = tile_samples(item->length, cluster_tile(warp, t));
        if (samples[t] < ORDER_TILE && (Sum::has_identity || sum_by_f64<Sum>))
            leaf_fill<Sum>(leaves[t].x, samples[t]);
    }
    const auto level = level_of<Sum>(plan.powers);
    float most = 0;
    if constexpr (sum_is_affine<Sum>)
        cluster_terms<Sum, Backward>(plan, leaves, samples, sums);
    else
        most = cluster_prefixes<Sum, Backward>(leaves, samples, sums);
    typename Sum::sum totals[CLUSTER_TILES];
    carry<Sum> before[CLUSTER_TILES];
#pragma unroll
    for (int t = 0; t < CLUSTER_TILES; t++) {
        const int there = (samples[t] + ORDER_LEAF - 1u) / ORDER_LEAF;
        totals[t] = lane_value(sums[t], Backward ? 0 : there - 1);
        before[t] = group_before<Sum, Backward>(sums[t], group_last<Sum>(there));
    }
    if (samples[0] > 0)
        cluster_tell_pair<Sum>(memory, plan.row, number, cluster_tile(warp, 0), totals);
    const auto factor = level.template factor<Backward>();
    cluster_tiles_scan<Sum, Backward>(memory, plan.row, number, warp, level.above());
#pragma unroll
    for (int t = 0; t < CLUSTER_TILES; t++) {
        const int tile = cluster_tile(warp, t);
        const bool start = first + tile == (Backward ? plan.row.tiles - 1 : 0);
        before[t] = level.join({memory->carries[number % CLUSTER_EXCHANGES][tile], Sum::has_identity || !start},
                               before[t], factor);
        if constexpr (sum_is_affine<Sum>)
            continue;
        else
            leaf_values_of<Sum, Backward, Kind>(leaves[t].x, before[t], leaf_end_of<Sum, Backward>(samples[t]), most,
                                                Kind);
        if (Kind == SCAND_KIND_EXCLUSIVE && Sum::has_identity && start)
            leaf_zero_first<Sum, Backward>(leaves[t].x, item->length, tile, Sum::value(Sum::zero()));
    }
    if constexpr (sum_is_affine<Sum>)
        cluster_affine_tiles<Sum, Backward>(samples, [&](auto partial, int t, int last) {
            using T = typename Sum::number;
            affine_leaf_values<T, Backward, decltype(partial)::value, false>(
                leaves[t].x, affine_coefficient<T>(plan.powers), {before[t].sum, before[t].present}, last);
        });
}

template <class Sum, int Kind>
DEVICE void cluster_passes(const struct cluster_plan &plan, cluster_tiles<Sum> *memory, const struct scan_item *item,
                           int warp, unsigned iteration, cluster_leaves<Sum> leaves)
{
#pragma unroll 1
    for (int pass = 0;; pass++) {
        const unsigned number = iteration * plan.scan.pass_count + pass;
        if (plan.scan.backward[pass])
            cluster_pass<Sum, true, Kind>(plan, memory, item, warp, number, leaves);
        else
            cluster_pass<Sum, false, Kind>(plan, memory, item, warp, number, leaves);
        if (pass + 1 == plan.scan.pass_count)
            return;
#pragma unroll
        for (int t = 0; t < CLUSTER_TILES; t++)
            leaf_between_passes<Sum>(leaves[t].x, plan.scan.intermediate_f32);
    }
}

/* Makes the mbarriers. When the cluster has met, they are known to all its thread blocks. */
template <class Sum>
DEVICE void cluster_begin(const struct cluster_plan &plan, struct cluster_shared *shared, cluster_tiles<Sum> *memory,
                          int warp)
{
    const int thread = (int)threadIdx.x;
    if (thread < ITEMS_AHEAD)
        shared->items[thread] =
            cluster_item_at(plan, (blockIdx.x + (uint64_t)thread * gridDim.x) / (unsigned)cluster_size());
    if (thread == 0)
        cluster_tiles_init(memory, plan.row);
    if constexpr (sum_is_affine<Sum>)
        affine_begin<typename Sum::number>(plan.powers);
    if (lane_index() == 0)
        mbarrier_init_cluster(&shared->arrived[warp]);
    __syncthreads();
    cluster_sync();
}

template <class Sum, int Kind>
__global__ void REGISTERS((cluster_registers<Sum>)) cluster_kernel(const __grid_constant__ struct cluster_plan plan)
{
#if __CUDA_ARCH__ >= 900
    extern __shared__ __align__(CLUSTER_ALIGNMENT) uint4 buffers[];
    __shared__ struct cluster_shared shared;
    const int warp = warp_index(), warps = (int)blockDim.x / WARP;
    uint4 *buffer = buffers + warp * (CLUSTER_BUFFER / VEC16_BYTES);
    uint4 *stages = buffers + warps * (CLUSTER_BUFFER / VEC16_BYTES), *stage = stages + warp * Sum::stage_vectors;
    cluster_tiles<Sum> *memory = (cluster_tiles<Sum> *)(stages + warps * Sum::stage_vectors);
    cluster_begin<Sum>(plan, &shared, memory, warp);
    cluster_fetch<Sum>(plan, &shared.items[0], warp, buffer, &shared.arrived[warp]);

    for (unsigned iteration = 0; shared.items[iteration % ITEMS].length > 0; iteration++) {
        const struct scan_item *item = &shared.items[iteration % ITEMS];
        cluster_leaves<Sum> leaves;
        if (tile_samples(item->length, cluster_tile(warp, 0)) > 0)
            mbarrier_wait(&shared.arrived[warp], iteration % 2);
        cluster_read<Sum>(plan, item, buffer, leaves);
        cluster_fetch<Sum>(plan, &shared.items[(iteration + 1) % ITEMS], warp, buffer, &shared.arrived[warp]);
        cluster_passes<Sum, Kind>(plan, memory, item, warp, iteration, leaves);
#pragma unroll
        for (int t = 0; t < CLUSTER_TILES; t++)
            scan_write<Sum, false>(plan.scan, item, cluster_tile(warp, t), stage, leaves[t].x);
        if (threadIdx.x == 0)
            shared.items[(iteration + ITEMS_AHEAD) % ITEMS] = cluster_item_at(
                plan, (blockIdx.x + (uint64_t)(iteration + ITEMS_AHEAD) * gridDim.x) / (unsigned)cluster_size());
    }
#endif
}

#endif
