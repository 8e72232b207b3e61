/*
 * Rows of few tiles, sums of 4-byte samples into 4 bytes. A warp takes a row, or several at a time, and meets no other:
 * it holds a leaf of each of some tiles in each lane, from the load to the store. While one tile waits for what it has
 * begun, there are the others' instructions. Samples travel from line to line of device memory (tile_io.cuh), those of
 * the next rows while these are computed.
 *
 * A struct Rows says which leaves a lane has, how they come and go (fetch, read, write), and what a pass makes of them:
 *
 *   rows_apart    rows of up to three tiles that begin anywhere, so that there may be headers between them. A warp
 *                 takes one, or two of one tile, and each begins with a tile;
 *   rows_packed   rows of up to a tile that lie one right after the other, in memory and in the warp's tiles, where one
 *                 may go on in the next tile. So fewer lanes have no leaf: of 300 samples, 19 leaves, 5 rows take 95
 *                 of 96 lanes, where alone each would leave 13 of 32 idle.
 *
 * A pass in f2 takes ten instructions where f64 takes one. So lanes may hold samples of f2 as f64 (f2_in_f64.cuh): a
 * pass is one in f64 if that comes to the same, which is found out when it has its prefixes, or in f2.
 */
#ifndef KERNELS_CUDA_KERNELS_WARP_PER_ROW_CUH
#define KERNELS_CUDA_KERNELS_WARP_PER_ROW_CUH

#include "kernels/cuda/exchange/work_queue.cuh"
#include "kernels/cuda/lane/convert32.cuh"
#include "kernels/cuda/lane/f2_in_f64.cuh"
#include "kernels/cuda/warp/packed_rows.cuh"
#include "kernels/cuda/warp/stretch_io.cuh"
#include "kernels/cuda/warp/tile_prefixes.cuh"

#define WARP_PER_ROW_WARPS 4 /* warps of a thread block */

struct warp_per_row_plan : packed_rows {
    /* Of rows apart: from row to row, and forms of 4 bytes. */
    int64_t input_stride, output_stride;
    enum scand_dtype input_form, output_form;
};

/*
 * Rows apart, of more than Each - 1 tiles and at most Each.
 */
template <class Sum, int Each> struct rows_apart {
    using accumulator = Sum;
    /* Two tiles of f2 as f64, with what there is to do where f64 rounds, are as many instructions as the cache holds.
     * With exclusive passes, three tiles, or two rows of one it is faster to hold f32. */
    template <int Kind> using held = std::conditional_t<Each == 2 && Kind == SCAND_KIND_INCLUSIVE, held_sum<Sum>, Sum>;
    /* One tile alone has little to do while it waits. Two of f2 are more instructions than warps that meet nobody find
     * in the cache. */
    static const int rows = Each == 1 && Sum::has_identity ? 2 : 1;
    static const int tiles = rows * Each, smem = rows * LINES_SMEM(Each);

    /* Registers: an SM has shared memory for 16 warps of three tiles, and 24 of two. Exclusive passes take more. */
    static constexpr int registers(int kind)
    {
        const bool exclusive = kind == SCAND_KIND_EXCLUSIVE;
        if (exclusive && sizeof(typename Sum::sample) == 8)
            return tiles == 3 ? 192 : 128;
        if (!exclusive && Each == 2 && sum_by_f64<Sum>)
            return 96;
        return tiles == 3 ? 128 : 56 + 24 * (tiles - 1) + 8 * exclusive;
    }

    DEVICE uint64_t first(const struct warp_per_row_plan &, uint64_t iteration) { return iteration * rows; }

    DEVICE void fetch(const struct warp_per_row_plan &plan, uint64_t iteration, uint4 *vectors)
    {
#pragma unroll
        for (int r = 0; r < rows; r++) {
            const uint64_t row = iteration * rows + r;
            if (row < plan.rows)
                fetch_lines<Each>(vectors + r * LINES_SMEM(Each), plan.input + (int64_t)row * plan.input_stride,
                                  plan.length);
        }
    }

    DEVICE void read(const struct warp_per_row_plan &plan, uint64_t iteration, uint4 *vectors,
                     struct held_leaf<float> samples[tiles])
    {
#pragma unroll
        for (int t = 0; t < tiles; t++) {
            const char *source = plan.input + (int64_t)(iteration * rows + t / Each) * plan.input_stride;
            leaf_read_at(vectors + t / Each * LINES_SMEM(Each) + t % Each * TILE_VECTORS,
                         vectors_in_line(source) + ORDER_LEAF / 4 * lane_index(), shift_of<float>(source),
                         samples[t].x);
            leaf_decode(plan.input_form, samples[t].x);
        }
    }

    DEVICE void write(const struct warp_per_row_plan &plan, uint64_t iteration, uint4 *vectors,
                      struct held_leaf<float> results[tiles])
    {
#pragma unroll
        for (int t = 0; t < tiles; t++)
            leaf_encode(plan.output_form, results[t].x);
#pragma unroll
        for (int r = 0; r < rows; r++)
            if (iteration * rows + r < plan.rows)
                tiles_write<Each>(vectors + r * LINES_SMEM(Each),
                                  plan.output + (int64_t)(iteration * rows + r) * plan.output_stride, plan.length,
                                  &results[r * Each]);
    }

    /* The inclusive prefixes of the totals of each tile's leaves. A row's last tile has `samples`. */
    template <class S, bool Backward>
    DEVICE void prefixes(const struct held_leaf<typename S::sample> leaves[tiles], int samples,
                         typename S::sum sums[tiles])
    {
        const int last = group_last<S>((int)((samples + ORDER_LEAF - 1u) / ORDER_LEAF));
        float most;
#pragma unroll
        for (int t = 0; t < tiles; t++) {
            const int there = t % Each < Each - 1 ? ORDER_TILE : samples;
            const struct leaf_end end = leaf_end_of<S, Backward>(there);
            sums[t] = sum_by_f64<S> ? tile_prefixes<S, Backward>(leaves[t].x, end, there, &most)
                                    : leaf_total<S, Backward>(leaves[t].x, end);
        }
        if (!sum_by_f64<S>)
            kogge_stone<S, Backward, tiles>(sums, [&](int t) { return t % Each < Each - 1 ? WARP - 1 : last; });
    }

    /* The values of a row whose last tile has `samples`, from the inclusive prefixes of its tiles' leaves. Into a tile
     * there is what the network makes of up to two totals. */
    template <class S, bool Backward, int Kind>
    DEVICE void values(struct held_leaf<typename S::sample> leaves[Each], int samples, const typename S::sum sums[Each])
    {
        typename S::sum totals[Each], both = S::identity();
#pragma unroll
        for (int met = 0; met < Each - 1; met++)
            totals[met] = lane_value(sums[Backward ? Each - 1 - met : met], Backward ? 0 : WARP - 1);
        if (Each > 2)
            both = S::add(totals[0], totals[Each - 2]);
#pragma unroll
        for (int t = 0; t < Each; t++) {
            const int met = Backward ? Each - 1 - t : t, there = t < Each - 1 ? ORDER_TILE : samples;
            const int last = group_last<S>((int)((there + ORDER_LEAF - 1u) / ORDER_LEAF));
            carry<S> leaf = group_before<S, Backward>(sums[t], last);
            if (met > 0)
                leaf = carry_join<S>({met == 1 ? totals[0] : both, true}, leaf);
            leaf_values<S, Backward, Kind>(leaves[t].x, leaf, leaf_end_of<S, Backward>(there));
        }
    }

    /* A pass by accumulator S. False, before anything is done, if that is one in place of f2, which has other sums. */
    template <class S, bool Backward, int Kind>
    DEVICE bool pass(const struct warp_per_row_plan &plan, struct held_leaf<typename S::sample> leaves[tiles])
    {
        const bool as_f2 = std::is_same<S, sum_f64_as_f2>::value;
        const int samples = plan.length - (Each - 1) * ORDER_TILE; /* of the last tile */
        typename S::sum sums[tiles];
        /* Forward, nobody listens to what comes after a row, but exact sums tell large from small. */
        if ((as_f2 || sum_by_f64<S> || (S::has_identity && Backward)) && samples < ORDER_TILE)
#pragma unroll
            for (int t = Each - 1; t < tiles; t += Each)
                leaf_fill<S>(leaves[t].x, samples);
        prefixes<S, Backward>(leaves, samples, sums);
        if constexpr (as_f2)
            if (!leaves_are_exact<tiles>(leaves, sums))
                return false;
#pragma unroll
        for (int t = 0; t < tiles; t += Each) {
            typename S::sample *x = leaves[t + (Backward ? Each - 1 : 0)].x; /* of the tile that comes first */
            const int first = leaf_first<Backward>(plan.length, Backward ? Each - 1 : 0);
            bool zero = false;
            if constexpr (as_f2)
                zero = leaf_has_zero(x, first);
            values<S, Backward, Kind>(&leaves[t], samples, &sums[t]);
            if constexpr (as_f2)
                leaf_put_zero(x, first, zero);
            if (Kind == SCAND_KIND_EXCLUSIVE && S::has_identity)
                leaf_zero_first<S, Backward>(x, plan.length, Backward ? Each - 1 : 0, S::value(S::zero()));
        }
        return true;
    }
};

/*
 * Packed rows, plan.rows_at_once of them.
 */
template <class Sum, int Tiles> struct rows_packed {
    using accumulator = Sum;
    template <int Kind> using held = Sum;
    static const int tiles = Tiles, smem = LINES_SMEM(Tiles);
    static const bool lines = Sum::has_identity; /* f2 has no instructions to spare */

    /* Registers: with 128 an SM holds 16 warps, as many as its shared memory suffices for with three tiles; with 64 it
     * holds 32. */
    static constexpr int registers(int) { return Tiles > 1 ? 128 : sizeof(typename Sum::sample) == 8 ? 80 : 64; }

    DEVICE uint64_t first(const struct warp_per_row_plan &plan, uint64_t iteration)
    {
        return iteration * plan.rows_at_once;
    }

    DEVICE void fetch(const struct warp_per_row_plan &plan, uint64_t iteration, uint4 *vectors)
    {
        const int samples = packed_count(plan, iteration) * plan.length;
        const char *source = plan.input + packed_offset(plan, iteration);
        if (samples > 0 && lines)
            fetch_lines<Tiles, 0>(vectors, source, samples);
        else if (samples > 0)
            fetch_vectors(vectors, source, shift_of<float>(source), samples);
    }

    /* The samples, or results, of an iteration in shared memory. */
    DEVICE struct stretch stretch_of(const struct warp_per_row_plan &plan, uint4 *vectors, const char *address)
    {
        const int first = lines ? word_in_line(address) : shift_of<float>(address);
        return {vectors, first, false, (first | plan.length) % 4 == 0};
    }

    DEVICE void read(const struct warp_per_row_plan &plan, uint64_t iteration, uint4 *vectors,
                     struct held_leaf<float> samples[Tiles])
    {
        const struct stretch stretch = stretch_of(plan, vectors, plan.input + packed_offset(plan, iteration));
#pragma unroll
        for (int t = 0; t < Tiles; t++)
            stretch_read(stretch, stretch.first + packed_leaf_of(plan, t, plan.rows_at_once).first, samples[t].x);
    }

    DEVICE void write(const struct warp_per_row_plan &plan, uint64_t iteration, uint4 *vectors,
                      const struct held_leaf<float> results[Tiles])
    {
        char *target = plan.output + packed_offset(plan, iteration);
        const struct stretch stretch = stretch_of(plan, vectors, target);
#pragma unroll
        for (int t = 0; t < Tiles; t++) {
            const struct packed_leaf leaf = packed_leaf_of(plan, t, plan.rows_at_once);
            stretch_write<false>(stretch, stretch.first + leaf.first, leaf.samples, results[t].x);
        }
        __syncwarp();
        const int count = packed_count(plan, iteration) * plan.length;
        if (lines)
            drain_lines<Tiles, 0>(vectors, target, count);
        else
            packed_drain(vectors, target, shift_of<float>(target), count);
        __syncwarp();
    }

    /* Makes absent what last leaves, of `rest` samples, lack. */
    DEVICE void fill(struct held_leaf<typename Sum::sample> leaves[Tiles], const struct leaf_end ends[Tiles], int rest)
    {
#pragma unroll
        for (int i = ORDER_LEAF - 1; i > 0; i--) {
            if (i < rest)
                break;
#pragma unroll
            for (int t = 0; t < Tiles; t++)
                leaves[t].x[i] = i > ends[t].last ? Sum::absent() : leaves[t].x[i];
        }
    }

    template <class, bool Backward, int Kind>
    DEVICE bool pass(const struct warp_per_row_plan &plan, struct held_leaf<typename Sum::sample> leaves[Tiles])
    {
        const int rest = plan.length % ORDER_LEAF;
        int positions[Tiles];
        struct leaf_end ends[Tiles];
        typename Sum::sum sums[Tiles];
#pragma unroll
        for (int t = 0; t < Tiles; t++) {
            const int number = packed_leaf_of(plan, t, 0).number;
            positions[t] = Backward ? plan.leaves - 1 - number : number;
            ends[t] = {!Sum::has_identity && Backward && rest > 0,
                       rest > 0 && number == plan.leaves - 1 ? rest - 1 : ORDER_LEAF - 1};
        }
        /* Forward, nobody listens to them. */
        if (Backward && rest > 0 && (Sum::has_identity || sum_by_f64<Sum>))
            fill(leaves, ends, rest);
        tiles_prefixes<Sum, Tiles, Backward>(
            leaves, [&](int t) { return ends[t]; }, Backward && rest == 1, sums,
            [&](auto sum, auto *totals) {
                segmented_scans<decltype(sum), Tiles, Backward>(totals, positions, plan.leaves);
            });
#pragma unroll
        for (int t = 0; t < Tiles; t++) {
            const typename Sum::sum before = segment_before<Tiles, Backward>(sums, t, lane_index(), 1);
            leaf_values<Sum, Backward, Kind>(leaves[t].x, carry_of<Sum>(before, positions[t] > 0), ends[t]);
            if (Kind == SCAND_KIND_EXCLUSIVE && Sum::has_identity && positions[t] == 0)
                leaf_zero_at<Sum>(leaves[t].x, Backward ? ends[t].last : 0, Sum::value(Sum::zero()));
        }
        return true;
    }
};

/* Tiles of packed rows, as many as registers suffice for. f2 has instructions enough, and more than the cache holds if
 * there are two. */
template <class Sum, int Kind>
constexpr int rows_packed_tiles = !Sum::has_identity                                                  ? 1
                                  : Kind == SCAND_KIND_EXCLUSIVE && sizeof(typename Sum::sample) == 8 ? 1
                                                                                                      : 3;

/* A pass by what lanes hold, or where that has other sums by what they hold it for. */
template <class Rows, bool Backward, int Kind>
DEVICE void warp_per_row_pass(const struct warp_per_row_plan &plan,
                              struct held_leaf<typename Rows::template held<Kind>::sample> leaves[Rows::tiles])
{
    using Held = typename Rows::template held<Kind>;
    const bool done = Rows::template pass<Held, Backward, Kind>(plan, leaves);
    if constexpr (std::is_same<Held, sum_f64_as_f2>::value) {
        if (done)
            return;
        struct held_leaf<float> samples[Rows::tiles];
#pragma unroll
        for (int t = 0; t < Rows::tiles; t++)
#pragma unroll
            for (int i = 0; i < ORDER_LEAF; i++)
                samples[t].x[i] = (float)leaves[t].x[i];
        Rows::template pass<any_f2_of_f32, Backward, Kind>(plan, samples);
#pragma unroll
        for (int t = 0; t < Rows::tiles; t++)
            leaf_from_f32<Held>(samples[t].x, leaves[t].x);
    }
}

template <class Rows, int Kind>
DEVICE void warp_per_row_passes(const struct warp_per_row_plan &plan,
                                struct held_leaf<typename Rows::template held<Kind>::sample> leaves[Rows::tiles])
{
    using Held = typename Rows::template held<Kind>;
#pragma unroll 1
    for (int pass = 0;; pass++) {
        if (plan.backward[pass])
            warp_per_row_pass<Rows, true, Kind>(plan, leaves);
        else
            warp_per_row_pass<Rows, false, Kind>(plan, leaves);
        if (pass + 1 == plan.pass_count)
            return;
#pragma unroll
        for (int t = 0; t < Rows::tiles; t++)
            leaf_between_passes<Held>(leaves[t].x, std::is_same<Held, sum_f64_as_f2>::value || plan.intermediate_f32);
    }
}

/* Shared memory of a thread block. */
template <class Rows> constexpr int warp_per_row_bytes = WARP_PER_ROW_WARPS * 2 * Rows::smem *VEC16_BYTES;

template <class Rows, int Kind>
__global__ void REGISTERS(Rows::registers(Kind))
    warp_per_row_kernel(const __grid_constant__ struct warp_per_row_plan plan)
{
    extern __shared__ uint4 warp_per_row_vectors[];
    using Held = typename Rows::template held<Kind>;
    const int warp = warp_index();
    uint4 *vectors = warp_per_row_vectors + 2 * warp * Rows::smem, *other = vectors + Rows::smem;
    uint64_t iteration = work_queue_first(WARP_PER_ROW_WARPS, warp),
             next = iteration + work_queue_stride(WARP_PER_ROW_WARPS);
    Rows::fetch(plan, iteration, vectors);
    __pipeline_commit();
#pragma unroll 1
    while (Rows::first(plan, iteration) < plan.rows) {
        const unsigned long long taken = work_queue_take(plan.queue);
        Rows::fetch(plan, next, other);
        __pipeline_commit();
        __pipeline_wait_prior(1);
        __syncwarp();
        struct held_leaf<float> samples[Rows::tiles];
        struct held_leaf<typename Held::sample> leaves[Rows::tiles];
        Rows::read(plan, iteration, vectors, samples);
        __syncwarp();
#pragma unroll
        for (int t = 0; t < Rows::tiles; t++)
            leaf_from_f32<Held>(samples[t].x, leaves[t].x);
        warp_per_row_passes<Rows, Kind>(plan, leaves);
#pragma unroll
        for (int t = 0; t < Rows::tiles; t++)
            leaf_results<Held>(leaves[t].x, samples[t].x);
        Rows::write(plan, iteration, vectors, samples);
        uint4 *done = vectors;
        vectors = other;
        other = done;
        iteration = next;
        next = work_queue_taken(taken, WARP_PER_ROW_WARPS);
    }
    work_queue_finish(plan.queue, WARP_PER_ROW_WARPS);
}

#endif
