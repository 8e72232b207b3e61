/*
 * Reductions of rows, by the same order (order.h) as scans: the total of a leaf in a lane, of a tile in a warp. A warp,
 * or a team of a few, takes the tiles of an order block one after the other, the next ones being on their way to shared
 * memory meanwhile; no other warps meet. Of short rows a warp takes as many at a time as it has lanes for their leaves.
 * Samples travel as words of 2, 4 or 8 bytes (tile_words.cuh).
 *
 * Rows of several order blocks leave the totals of their blocks; further launches make the results of them.
 */
#ifndef KERNELS_CUDA_KERNELS_REDUCE_CUH
#define KERNELS_CUDA_KERNELS_REDUCE_CUH

#include <type_traits>

#include "kernels/cuda/exchange/batch.cuh"
#include "kernels/cuda/exchange/spine.cuh"
#include "kernels/cuda/exchange/team.cuh"
#include "kernels/cuda/lane/accumulator.cuh"
#include "kernels/cuda/lane/convert.cuh"
#include "kernels/cuda/warp/item.cuh"
#include "kernels/cuda/warp/kogge_stone.cuh"
#include "kernels/cuda/warp/packed_rows.cuh"
#include "kernels/cuda/warp/tile_words.cuh"
#include "kernels/order1/reduce.h"

#define REDUCE_STAGES 2 /* tiles of a warp that are on their way or being added up */

/* Warps of a thread block, and the bytes of their tiles, for which any GPU has room. */
#define REDUCE_WARPS(BYTES)  ((BYTES) == 8 ? 4 : 8)
#define REDUCE_SHARED(BYTES) (REDUCE_WARPS(BYTES) * REDUCE_STAGES * WORDS_VECTORS(BYTES) * VEC16_BYTES)

struct reduce_plan {
    struct scan_plan scan; /* rows and their order blocks */
    struct packed_rows rows_at_once;
    enum scand_reduction reduction;
    enum scand_dtype output;
    bool output_aligned;
    int team;       /* warps that work on an order block: 1 to all of a thread block, a power of 2 */
    void *totals;   /* totals of order blocks, or of levels above, sums_per_row for each row; NULL: a block is a row */
    uint64_t flip;  /* instance_flip */
    uint64_t empty; /* result of no samples, of integers */
    const uint64_t *offsets; /* offsets of ragged rows, each an item; or NULL */
};

/* By a call, as sums are seldom outside the middle of the range, and the loops would be most of the kernels' code. */
static __device__ __noinline__ struct squares squares_add_apart(struct squares left, struct squares right)
{
    return squares_add(left, right);
}

/* Squares of f64 samples (squares.h); samples are kept as they are. */
struct sum_squares_f64 {
    using sum = struct squares;
    using sample = double;
    static const bool has_identity = true, is_real = true, compares = false;

    DEVICE sample from_f64(double x) { return x; }
    DEVICE sum add(sum left, sum right) { return squares_add_apart(left, right); }
    DEVICE sum identity() { return {0.0, -1}; }
    DEVICE sample absent() { return 0.0; }
    DEVICE sum zero() { return identity(); }
};

/* Squares travel as other sums do. */

DEVICE void pin(struct squares &x)
{
    pin(x.sum);
}

template <bool Backward> DEVICE bool lane_before(struct squares value, struct squares *before, int distance, int last)
{
    unsigned range;
    lane_before<Backward>((unsigned)value.range, &range, distance, last);
    before->range = (int)range;
    return lane_before<Backward>(value.sum, &before->sum, distance, last);
}

DEVICE struct squares lane_get(struct squares sum, int lane)
{
    return {lane_get(sum.sum, lane), lane_get(sum.range, lane)};
}

template <class T> DEVICE T sum_of_lane_before(T sum, int distance)
{
    return __shfl_up_sync(~0u, sum, distance);
}

DEVICE struct squares sum_of_lane_before(struct squares sum, int distance)
{
    return {__shfl_up_sync(~0u, sum.sum, distance), __shfl_up_sync(~0u, sum.range, distance)};
}

/* True when the sums of all lanes are zeros or in the middle of the range: they are added as doubles then, as no zero
 * changes a sum. */
DEVICE bool squares_are_usual(struct squares sum)
{
    return __all_sync(~0u, sum.range == 0 || sum.sum == 0);
}

DEVICE struct squares usual_squares(double sum)
{
    return {sum, sum == 0 ? -1 : 0};
}

DEVICE struct squares leaf_squares(const double x[ORDER_LEAF])
{
    struct squares total = {0.0, 0};
#pragma unroll
    for (int i = 0; i < ORDER_LEAF; i++)
        total.sum += x[i] * x[i];
    total.range = squares_range(total.sum);
    if (total.range == 0)
        return total;
    const double factor = squares_factor(total.range);
    total.sum = 0.0;
#pragma unroll
    for (int i = 0; i < ORDER_LEAF; i++)
        total.sum += (x[i] * factor) * (x[i] * factor);
    return total;
}

/* Stores a result of 1, 2, 4 or 8 bytes. */
DEVICE void result_store(char *to, uint64_t bits, uint32_t bytes, bool aligned)
{
    if (!aligned)
        for (uint32_t i = 0; i < bytes; i++)
            to[i] = (char)(bits >> 8 * i);
    else if (bytes == 1)
        *to = (char)bits;
    else if (bytes == 2)
        *(uint16_t *)to = (uint16_t)bits;
    else if (bytes == 4)
        *(uint32_t *)to = (uint32_t)bits;
    else
        *(uint64_t *)to = bits;
}

template <class Sum>
DEVICE void reduce_write(const struct reduce_plan &plan, uint64_t row, uint64_t length, typename Sum::sum total)
{
    uint64_t bits = 0;
    if constexpr (Sum::compares && Sum::is_real)
        total = plan.flip != 0 ? -total : total;
    if constexpr (!Sum::is_real) {
        bits = length ? total ^ plan.flip : plan.empty;
        bits = codec_bytes(plan.output) == 8 ? codec_ordered64(plan.output, bits)
                                             : codec_ordered32(plan.output, (uint32_t)bits);
    } else {
        double result;
        if constexpr (std::is_same<Sum, sum_squares_f64>::value)
            result = reduce_finish_squares(plan.reduction, total, length);
        else
            result = reduce_finish(plan.reduction, (double)total, length);
        if (codec_class(plan.output) == SCAND_CLASS_F64)
            bits = codec_encoded_f64(plan.output, result);
        else
            bits = codec_encoded_f32(plan.output, (float)result);
    }
    result_store(side_at(plan.scan, plan.scan.output, row, 0), bits, codec_bytes(plan.output), plan.output_aligned);
}

/* Samples from the words of a leaf, which this overwrites. */
template <class Sum, int Bytes>
DEVICE void leaf_samples(const struct reduce_plan &plan, uint32_t words[4 * Bytes], typename Sum::sample x[ORDER_LEAF])
{
    const enum scand_dtype form = plan.scan.input_form;
    if constexpr (!Sum::is_real) {
        leaf_of_words<Bytes>(form, words, x, plan.flip);
    } else if constexpr (Bytes == 8) {
        leaf_of_words<Bytes>(form, words, x);
    } else {
        if constexpr (Bytes == 4 && sizeof(typename Sum::sample) == 8)
            if (codec_class(form) == SCAND_CLASS_F64) {
                leaf_of_words<Bytes>(form, words, x);
                return;
            }
        float reals[ORDER_LEAF];
        leaf_of_words<Bytes>(form, words, reals);
        leaf_from_f32<Sum>(reals, x);
    }
}

/* The total of this lane's leaf, of which `there` samples exist. */
template <class Sum, int Bytes>
DEVICE typename Sum::sum reduce_leaf(const struct reduce_plan &plan, uint32_t words[4 * Bytes], int there)
{
    typename Sum::sample x[ORDER_LEAF];
    leaf_samples<Sum, Bytes>(plan, words, x);
    leaf_turn<Sum>(x, plan.flip);
    if constexpr (std::is_same<Sum, sum_f64>::value && Bytes < 8)
        if (reduce_squares(plan.reduction)) /* those of f32 are exact, and all stay in the range of f64 */
#pragma unroll
            for (int i = 0; i < ORDER_LEAF; i++)
                x[i] *= x[i];
    if (there < ORDER_LEAF)
        leaf_fill_beyond<Sum>(x, there);
    if constexpr (std::is_same<Sum, sum_squares_f64>::value)
        return leaf_squares(x);
    else
        return leaf_total<Sum, false, false>(x, ORDER_LEAF - 1);
}

/*
 * Kogge-Stone over the members of a group, one per lane, of which only the prefix of member `last` is wanted: it is
 * right in that lane, whatever the others have. Nobody listens to lanes without a predecessor where the group is whole;
 * where it is not, rounds that reach beyond its first member add nothing to the last.
 */
template <class Sum> DEVICE typename Sum::sum reduce_group(typename Sum::sum total, int last)
{
    if constexpr (std::is_same<Sum, sum_squares_f64>::value)
        if (squares_are_usual(total))
            return usual_squares(reduce_group<sum_f64>(total.sum, last));
    if (last == WARP - 1) {
#pragma unroll
        for (int distance = 1; distance < ORDER_FAN; distance *= 2)
            total = Sum::add(sum_of_lane_before(total, distance), total);
    } else {
        const int lane = lane_index();
#pragma unroll 1
        for (int distance = 1; distance <= last; distance *= 2) {
            typename Sum::sum before = sum_of_lane_before(total, distance);
            if (lane >= distance)
                total = Sum::add(before, total);
        }
    }
    return total;
}

/* A warp's position: at a tile of an order block, or at a block of which it has none. */
struct reduce_step {
    uint64_t item;
    const char *source; /* the tile's first sample */
    int tile;           /* in the block */
    int left;           /* samples of the block from there on; may be negative */
};

/* Samples of an item; of a ragged row of more than an order block, which is left to others, -1. */
DEVICE int item_length(const struct reduce_plan &plan, uint64_t item)
{
    if (plan.offsets) {
        const uint64_t length = plan.offsets[item + 1] - plan.offsets[item];
        return length <= ORDER_BLOCK ? (int)length : -1;
    }
    const uint64_t block = plan.scan.blocks > 1 ? (plan.scan.first_item + item) % plan.scan.blocks : 0;
    return (int)min(plan.scan.length - block * ORDER_BLOCK, (uint64_t)ORDER_BLOCK);
}

DEVICE const char *item_input(const struct reduce_plan &plan, uint64_t item)
{
    const struct scan_side &side = plan.scan.input;
    if (plan.offsets)
        return side.base + (int64_t)plan.offsets[item] * side.stride;
    const uint64_t blocks = plan.scan.blocks;
    item += plan.scan.first_item;
    return side_at(plan.scan, side, plan.scan.first_row + (blocks > 1 ? item / blocks : item),
                   blocks > 1 ? item % blocks : 0);
}

DEVICE struct reduce_step step_into(const struct reduce_plan &plan, struct warp_team team, uint64_t item)
{
    struct reduce_step step = {item, NULL, team.member, 0};
    if (item >= plan.scan.items)
        return step;
    const int first = team.member * ORDER_TILE;
    step.source = item_input(plan, item) + first * plan.scan.input.stride;
    step.left = item_length(plan, item) - first;
    return step;
}

DEVICE struct reduce_step step_after(const struct reduce_plan &plan, struct warp_team team, struct reduce_step step)
{
    const int samples = team.size * ORDER_TILE;
    if (step.left <= samples)
        return step_into(plan, team, step.item + (uint64_t)gridDim.x * team.count);
    return {step.item, step.source + samples * plan.scan.input.stride, step.tile + team.size, step.left - samples};
}

template <int Bytes> DEVICE void step_fetch(const struct reduce_plan &plan, struct reduce_step step, uint4 *stage)
{
    if (step.left > 0)
        words_fetch<Bytes>(stage, step.source, plan.scan.input, 0, min(step.left, ORDER_TILE));
    __pipeline_commit();
}

/* The total of the step's tile, in all lanes. */
template <class Sum, int Bytes>
DEVICE typename Sum::sum step_reduce(const struct reduce_plan &plan, struct reduce_step step, uint4 *stage)
{
    const int lane = lane_index(), count = min(step.left, ORDER_TILE), last = (count - 1) / ORDER_LEAF;
    uint32_t words[4 * Bytes];
    leaf_get<Bytes>(stage, lane, plan.scan.input.access == ACCESS_VEC16 ? shift_of<char>(step.source) : 0, words);
    typename Sum::sum total = reduce_leaf<Sum, Bytes>(plan, words, count - lane * ORDER_LEAF);
    return lane_get(reduce_group<Sum>(total, last), last);
}

/* An order block's result, or its total, from those of its tiles, one in each lane. */
template <class Sum>
DEVICE void reduce_end(const struct reduce_plan &plan, uint64_t item, int length, typename Sum::sum tile)
{
    const int last = length > 0 ? (length - 1) / ORDER_TILE : 0;
    const uint64_t blocks = plan.scan.blocks;
    typename Sum::sum total = reduce_group<Sum>(tile, last);
    if (lane_index() != last || length < 0)
        return;
    item += plan.scan.first_item;
    if (plan.totals)
        ((typename Sum::sum *)plan.totals)[item / blocks * plan.scan.sums_per_row + item % blocks] = total;
    else
        reduce_write<Sum>(plan, plan.scan.first_row + item, (uint64_t)length, total);
}

/* The totals of all tiles, in the lanes of the first member, from those that each member has. They pass through one of
 * two places in turn: when the members meet, the first one has read those of the block before. */
template <class Sum>
DEVICE typename Sum::sum team_gather(struct warp_team team, typename Sum::sum tile, typename Sum::sum *shared)
{
    const int lane = lane_index();
    if (team.size == 1)
        return tile;
    if (lane % team.size == team.member)
        shared[lane] = tile;
    team_meet(team);
    return shared[lane];
}

/* Reduces the items of thread block `block` of `blocks`. */
template <class Sum, int Bytes>
DEVICE void reduce_items(const struct reduce_plan &plan, unsigned block, unsigned blocks)
{
    extern __shared__ __align__(128) uint4 reduce_stages[];
    __shared__ typename Sum::sum totals[REDUCE_WARPS(Bytes)][2][ORDER_FAN];
    const struct warp_team team = warp_team_of(plan.team, warp_index());
    uint4 *stages = reduce_stages + warp_index() * REDUCE_STAGES * WORDS_VECTORS(Bytes);
    struct reduce_step step = step_into(plan, team, block + (uint64_t)team.number * blocks);
    step_fetch<Bytes>(plan, step, stages);
    typename Sum::sum tile = Sum::zero();
    for (int stage = 0, side = 0; step.item < plan.scan.items; stage ^= 1) {
        const struct reduce_step next = step_after(plan, team, step);
        step_fetch<Bytes>(plan, next, stages + (stage ^ 1) * WORDS_VECTORS(Bytes));
        __pipeline_wait_prior(1);
        __syncwarp();
        if (step.left > 0) {
            typename Sum::sum total = step_reduce<Sum, Bytes>(plan, step, stages + stage * WORDS_VECTORS(Bytes));
            tile = lane_index() == step.tile ? total : tile;
        }
        __syncwarp();
        if (next.item != step.item) {
            tile = team_gather<Sum>(team, tile, totals[team.number][side]);
            if (team.member == 0)
                reduce_end<Sum>(plan, step.item, item_length(plan, step.item), tile);
            tile = Sum::zero();
            side ^= 1;
        }
        step = next;
    }
}

template <class Sum, int Bytes>
__global__ void __launch_bounds__(REDUCE_WARPS(Bytes) * WARP)
    reduce_kernel(const __grid_constant__ struct reduce_plan plan)
{
    reduce_items<Sum, Bytes>(plan, blockIdx.x, gridDim.x);
}

/* A part has as many thread blocks as it takes for each team to have one item. */
template <class Sum, int Bytes>
__global__ void __launch_bounds__(REDUCE_WARPS(Bytes) * WARP)
    reduce_together_kernel(const __grid_constant__ struct batch<struct reduce_plan> batch)
{
    const int number = batch_job(batch);
    const unsigned begin = batch_begin(batch, number);
    reduce_items<Sum, Bytes>(batch.plans[number], blockIdx.x - begin, batch.ends[number] - begin);
}

/* Short rows, one right after the other: a warp's, those of an iteration, are one stretch. */
template <int Bytes> DEVICE const char *packed_at(const struct packed_rows &rows, uint64_t iteration)
{
    return rows.input + iteration * rows.rows_at_once * rows.length * Bytes;
}

template <int Bytes> DEVICE void packed_fetch(const struct packed_rows &rows, uint64_t iteration, uint4 *stage)
{
    const int samples = packed_count(rows, iteration) * rows.length;
    if (samples > 0)
        words_fetch_vectors<Bytes>(stage, packed_at<Bytes>(rows, iteration), samples);
    __pipeline_commit();
}

/* The words of the leaf that begins with word `first` of a stage. `whole_vectors`: all leaves begin with a vector. */
template <int Bytes> DEVICE void packed_get(uint4 *stage, int first, bool whole_vectors, uint32_t words[4 * Bytes])
{
    if (whole_vectors) {
#pragma unroll
        for (int j = 0; j < Bytes; j++)
            load_shared_v4(smem_address(stage + swizzle_words(first * Bytes / VEC16_BYTES + j, Bytes)), &words[4 * j]);
    } else if constexpr (Bytes == 2) {
#pragma unroll
        for (int i = 0; i < WORDS16; i++) {
            uint32_t low = *(const uint16_t *)staged_word(stage, first + 2 * i, 2);
            words[i] = low | (uint32_t) * (const uint16_t *)staged_word(stage, first + 2 * i + 1, 2) << 16;
        }
    } else {
#pragma unroll
        for (int i = 0; i < 4 * Bytes; i++)
            words[i] = ((const uint32_t *)staged_word(stage, first + i * 4 / Bytes, Bytes))[i % (Bytes / 4)];
    }
}

/* Prefixes of the leaves of each row. */
template <class Sum> DEVICE typename Sum::sum short_total(typename Sum::sum total, int number, int leaves)
{
    if constexpr (std::is_same<Sum, sum_squares_f64>::value)
        if (squares_are_usual(total))
            return usual_squares(segmented_scan<sum_f64, false>(total.sum, number, leaves));
    return segmented_scan<Sum, false>(total, number, leaves);
}

template <class Sum, int Bytes>
__global__ void __launch_bounds__(REDUCE_WARPS(Bytes) * WARP)
    reduce_short_kernel(const __grid_constant__ struct reduce_plan plan)
{
    extern __shared__ __align__(128) uint4 reduce_stages[];
    const struct packed_rows &rows = plan.rows_at_once;
    const int warp = warp_index();
    const uint64_t stride = (uint64_t)gridDim.x * REDUCE_WARPS(Bytes);
    uint4 *stages = reduce_stages + warp * REDUCE_STAGES * WORDS_VECTORS(Bytes);
    uint64_t iteration = blockIdx.x + (uint64_t)warp * gridDim.x;
    packed_fetch<Bytes>(rows, iteration, stages);
    for (int stage = 0; packed_count(rows, iteration) > 0; iteration += stride, stage ^= 1) {
        const struct packed_leaf leaf = packed_leaf_of(rows, 0, packed_count(rows, iteration));
        const int shift = shift_of<char>(packed_at<Bytes>(rows, iteration));
        const bool whole_vectors = (shift | rows.length * Bytes) % VEC16_BYTES == 0;
        uint32_t words[4 * Bytes];
        packed_fetch<Bytes>(rows, iteration + stride, stages + (stage ^ 1) * WORDS_VECTORS(Bytes));
        __pipeline_wait_prior(1);
        __syncwarp();
        packed_get<Bytes>(stages + stage * WORDS_VECTORS(Bytes), shift / Bytes + leaf.first, whole_vectors, words);
        __syncwarp();
        typename Sum::sum total = reduce_leaf<Sum, Bytes>(plan, words, leaf.samples);
        total = short_total<Sum>(total, leaf.number, rows.leaves);
        if (leaf.samples > 0 && leaf.number == rows.leaves - 1)
            reduce_write<Sum>(plan, plan.scan.first_row + iteration * rows.rows_at_once + lane_index() / rows.leaves,
                              (uint64_t)rows.length, total);
    }
}

/* The results of rows, each from a level of totals that is one group, or of rows without samples. A warp takes a row.
 */
template <class Sum>
__global__ void reduce_finish_kernel(const __grid_constant__ struct reduce_plan plan,
                                     const __grid_constant__ struct scan_spine_rows level)
{
    const int last = (int)max(level.members, (uint64_t)1) - 1, lane = lane_index();
    const uint64_t warps = gridDim.x * (uint64_t)(blockDim.x / WARP);
    for (uint64_t row = blockIdx.x * (uint64_t)(blockDim.x / WARP) + warp_index(); row < level.rows; row += warps) {
        const typename Sum::sum *totals = (const typename Sum::sum *)plan.totals + row * level.sums_per_row;
        typename Sum::sum total = Sum::zero();
        if (level.members > 0)
            total = reduce_group<Sum>(totals[min(lane, last)], last);
        if (lane == last)
            reduce_write<Sum>(plan, plan.scan.first_row + row, plan.scan.length, total);
    }
}

#endif
