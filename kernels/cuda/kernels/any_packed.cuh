/*
 * Short rows of any rule that lie one right after the other, all of one length or ragged: a warp takes as many at a
 * time as have leaves for its lanes, and meets no other. Words of samples pass through shared memory in the vectors
 * that they lie in (tile_words.cuh), those of the next rows while these are computed.
 */
#ifndef KERNELS_CUDA_KERNELS_ANY_PACKED_CUH
#define KERNELS_CUDA_KERNELS_ANY_PACKED_CUH

#include "kernels/cuda/exchange/any_arithmetic.cuh"
#include "kernels/cuda/exchange/work_queue.cuh"
#include "kernels/cuda/warp/affine_level.cuh"
#include "kernels/cuda/warp/packed_rows.cuh"
#include "kernels/cuda/warp/ragged_rows.cuh"

#define ANY_PACKED_WARPS 4 /* warps of a thread block */

struct any_packed_plan : any_operator_plan { /* any.scan.smem: the vectors of a warp's rows */
    struct packed_rows rows;                 /* of ragged ones, items: any.items tells which rows each has */
    struct affine_powers powers;             /* of affine */
};

/* The rows of a warp's iteration. */
struct packed_item {
    uint64_t first; /* sample */
    int samples;
    unsigned row, rows; /* where rows are ragged */
};

DEVICE struct packed_item packed_item_at(const struct any_packed_plan &plan, uint64_t iteration)
{
    if (!plan.any.offsets) {
        const int rows = packed_count(plan.rows, iteration);
        return {iteration * plan.rows.rows_at_once * plan.rows.length, rows * plan.rows.length, 0, (unsigned)rows};
    }
    const struct scan_ragged_item listed =
        iteration < plan.rows.rows ? plan.any.items[iteration] : scan_ragged_item{SCAN_RAGGED_END, 0};
    if (listed.row == SCAN_RAGGED_END)
        return {};
    const uint64_t first = plan.any.offsets[listed.row];
    return {first, (int)(plan.any.offsets[listed.row + listed.sum] - first), listed.row, listed.sum};
}

DEVICE struct ragged_leaf packed_leaf_at(const struct any_packed_plan &plan, const struct packed_item &item)
{
    if (plan.any.offsets && item.rows == 1)
        return ragged_leaf_of(item.samples);
    if (plan.any.offsets)
        return ragged_leaf_among(plan.any.offsets, item.row + item.rows, item.row, (int)item.rows, item.first);
    const struct packed_leaf leaf = packed_leaf_of(plan.rows, 0, (int)item.rows);
    return {leaf.first, leaf.number, plan.rows.leaves, leaf.samples};
}

/* Puts sample i of a leaf, of which `word` makes the words. */
template <int Bytes, class Word> DEVICE void packed_put(char *to, Word word, int i)
{
    if constexpr (Bytes == 2)
        *(uint16_t *)to = (uint16_t)(word(i / 2) >> i % 2 * 16);
    else if constexpr (Bytes == 4)
        *(uint32_t *)to = word(i);
    else
        *(uint2 *)to = {word(2 * i), word(2 * i + 1)};
}

/* A lane's leaf of a warp's rows, whose samples begin `shift` bytes into `vectors`, and whose results take their place
 * from there on. A source and a target of words (any_leaf.cuh). */
struct packed_words {
    uint4 *vectors;
    int shift;
    struct ragged_leaf leaf;
    bool whole_vectors; /* results of every leaf begin and end with a vector */

    /* Vector j of those that the leaf lies in, from a byte on. */
    template <int Bytes> __device__ __forceinline__ uint32_t at(int offset, int j) const
    {
        return smem_address(vectors + swizzle_words(offset / VEC16_BYTES + j, Bytes));
    }
    template <int Bytes> __device__ __forceinline__ void words(uint32_t words[4 * Bytes]) const
    {
        const int offset = shift + leaf.first * Bytes;
        uint32_t all[4 * Bytes + 4];
#pragma unroll
        for (int j = 0; j <= Bytes; j++)
            load_shared_v4(at<Bytes>(offset, j), &all[4 * j]);
        words_shift_down<4 * Bytes>(all, offset & (VEC16_BYTES - Bytes));
#pragma unroll
        for (int i = 0; i < 4 * Bytes; i++)
            words[i] = all[i];
    }
    template <int Bytes, class Word> __device__ __forceinline__ void put(Word word) const
    {
        if (whole_vectors) {
#pragma unroll
            for (int j = 0; j < Bytes; j++)
                if (j * VEC16_BYTES < leaf.samples * Bytes)
                    store_shared_v4(at<Bytes>(leaf.first * Bytes, j), word(4 * j), word(4 * j + 1), word(4 * j + 2),
                                    word(4 * j + 3));
            return;
        }
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            if (i < leaf.samples)
                packed_put<Bytes>(staged_word(vectors, leaf.first + i, Bytes), word, i);
    }
};

DEVICE void packed_fetch(const struct any_packed_plan &plan, const struct packed_item &item, uint4 *vectors)
{
    const char *source = plan.rows.input + item.first * plan.any.input_bytes;
    if (item.samples > 0 && plan.any.input_bytes == 2)
        words_fetch_vectors<2>(vectors, source, item.samples);
    else if (item.samples > 0 && plan.any.input_bytes == 4)
        words_fetch_vectors<4>(vectors, source, item.samples);
    else if (item.samples > 0)
        words_fetch_vectors<8>(vectors, source, item.samples);
    __pipeline_commit();
}

DEVICE void packed_drain(const struct any_packed_plan &plan, const struct packed_item &item, uint4 *vectors)
{
    char *target = plan.rows.output + item.first * plan.any.output_bytes;
    __syncwarp();
    if (plan.any.output_bytes == 2)
        words_drain_vectors<2, WARP * 2>(vectors, target, item.samples);
    else if (plan.any.output_bytes == 4)
        words_drain_vectors<4, WARP * 4>(vectors, target, item.samples);
    else
        words_drain_vectors<8, WARP * 8>(vectors, target, item.samples);
    __syncwarp();
}

/* The parts of a pass: any_arithmetic's, but of affine, of which terms alone travel (affine_level.cuh). */
template <class Sum> struct any_packed_sums : any_arithmetic<Sum> {
    template <bool Backward>
    DEVICE typename Sum::sum scan(const struct any_packed_plan &, typename Sum::sum sum, int position, int leaves)
    {
        return segmented_scan<Sum, Backward>(sum, position, leaves);
    }
};

template <class Samples> struct any_packed_sums<affine_of<Samples>> {
    using samples = Samples;
    using T = typename Samples::sum;
    using sample = typename Samples::sample;

    DEVICE void halve(const struct any_packed_plan &, sample[ORDER_LEAF], int) {}
    template <bool Backward>
    DEVICE T total(const struct any_packed_plan &plan, sample x[ORDER_LEAF], struct leaf_end end)
    {
        end.partial &= Backward;
        return affine_leaf_total<T, Backward>(x, affine_coefficient<T>(plan.powers), end).term;
    }
    template <bool Backward> DEVICE T scan(const struct any_packed_plan &plan, T term, int position, int leaves)
    {
        const T *const squares = (const T *)plan.powers.words + 1;
#pragma unroll
        for (int k = 0; k < AFFINE_STEPS; k++) {
            if (1 << k >= leaves)
                break;
            const T before = segment_before<1, Backward>(&term, 0, lane_index(), 1 << k);
            term = sum_choose<affine_of<Samples>>(position >= 1 << k, affine_apply(squares[k], before, term), term);
        }
        return term;
    }
    template <bool Backward>
    DEVICE void values(const struct any_packed_plan &plan, sample x[ORDER_LEAF], struct leaf_end end,
                       carry<affine_of<Samples>> carry, int)
    {
        end.partial &= Backward;
        affine_leaf_values<T, Backward>(x, affine_coefficient<T>(plan.powers), {carry.sum, carry.present}, end,
                                        plan.any.kind == SCAND_KIND_EXCLUSIVE);
    }
};

template <class Sum, bool Backward>
DEVICE void any_packed_pass(const struct any_packed_plan &plan, const struct ragged_leaf &leaf,
                            typename any_packed_sums<Sum>::samples::sample x[ORDER_LEAF])
{
    using Sums = any_packed_sums<Sum>;
    const int position = Backward ? leaf.leaves - 1 - leaf.number : leaf.number;
    const int first = position > 0 ? -1 : Backward ? leaf.samples - 1 : 0;
    /* Some leaf of the warp may be partial: lanes whose leaf is would go another way than the others. */
    const struct leaf_end end = {plan.any.offsets || plan.rows.length % ORDER_LEAF != 0, leaf.samples - 1};
    Sums::halve(plan, x, first);
    const typename Sum::sum total = Sums::template total<Backward>(plan, x, end);
    const typename Sum::sum sum =
        Sums::template scan<Backward>(plan, total, position, plan.any.offsets ? WARP : plan.rows.leaves);
    const typename Sum::sum before = segment_before<1, Backward>(&sum, 0, lane_index(), 1);
    Sums::template values<Backward>(plan, x, end, carry_of<Sum>(before, position > 0), first);
}

/* Narrow and Wide: what passes over f32 and over f64 samples keep, of one size. */
template <class Narrow, class Wide>
DEVICE void any_packed_passes(const struct any_packed_plan &plan, const struct ragged_leaf &leaf,
                              typename any_packed_sums<Narrow>::samples::sample x[ORDER_LEAF])
{
    using Samples = typename any_packed_sums<Narrow>::samples;
#pragma unroll 1
    for (int pass = 0;; pass++) {
        const bool wide = !std::is_same<Narrow, Wide>::value && plan.any.wide[pass];
        if (wide && plan.any.scan.backward[pass])
            any_packed_pass<Wide, true>(plan, leaf, x);
        else if (wide)
            any_packed_pass<Wide, false>(plan, leaf, x);
        else if (plan.any.scan.backward[pass])
            any_packed_pass<Narrow, true>(plan, leaf, x);
        else
            any_packed_pass<Narrow, false>(plan, leaf, x);
        if (pass + 1 == plan.any.scan.pass_count)
            return;
        leaf_between_passes<Samples>(x, !plan.any.wide[pass + 1], any_is_bounded<Samples>(plan.any));
    }
}

/* Registers of a thread: with 64 an SM holds 32 warps, with 96 20. With 80, 24 warps, affine of 256 samples in f64
 * would reach 0.53 of a copy and not 0.79, products of 100 in f2 0.38 and not 0.56. */
template <class Sum>
constexpr int any_packed_registers = sizeof(typename any_packed_sums<Sum>::samples::sample) == 8 && !Sum::has_identity
                                         ? 96
                                         : 64;

template <class Narrow, class Wide>
__global__ void REGISTERS(any_packed_registers<Narrow>)
    any_packed_kernel(const __grid_constant__ struct any_packed_plan plan)
{
    using Samples = typename any_packed_sums<Narrow>::samples;
    extern __shared__ __align__(128) uint4 any_packed_vectors[];
    const int warp = warp_index(), smem = plan.any.scan.smem;
    uint4 *vectors = any_packed_vectors + 2 * warp * smem, *other = vectors + smem;
    const uint64_t iteration = work_queue_first(ANY_PACKED_WARPS, warp);
    struct packed_item item = packed_item_at(plan, iteration),
                       next = packed_item_at(plan, iteration + work_queue_stride(ANY_PACKED_WARPS));
    packed_fetch(plan, item, vectors);
#pragma unroll 1
    while (item.samples > 0) {
        const unsigned long long taken = work_queue_take(plan.rows.queue);
        packed_fetch(plan, next, other);
        __pipeline_wait_prior(1);
        __syncwarp();
        const struct packed_words words = {
            vectors, shift_of<char>(plan.rows.input + item.first * plan.any.input_bytes), packed_leaf_at(plan, item),
            !plan.any.offsets && plan.rows.length * plan.any.output_bytes % VEC16_BYTES == 0};
        typename Samples::sample x[ORDER_LEAF];
        any_read_from<Samples, false, false>(
            plan.any, words, [](auto *) {}, x);
        __syncwarp();
        leaf_turn<Samples>(x, plan.any.flip);
        any_packed_passes<Narrow, Wide>(plan, words.leaf, x);
        leaf_turn<Samples>(x, plan.any.flip);
        any_write<Samples, false>(plan.any, words, x);
        packed_drain(plan, item, vectors);
        uint4 *const done = vectors;
        vectors = other;
        other = done;
        item = next;
        next = packed_item_at(plan, work_queue_taken(taken, ANY_PACKED_WARPS));
    }
    work_queue_finish(plan.rows.queue, ANY_PACKED_WARPS);
}

#endif
