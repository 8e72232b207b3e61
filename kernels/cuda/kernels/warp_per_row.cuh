/*
 * Rows of few tiles, sums of 4-byte samples into 4 bytes, contiguous but wherever they begin, so that there may be
 * headers between them. A warp takes a whole row, or two of one tile, with all tiles in registers: no warp waits for
 * another, and while one tile waits for what it has begun, there are the others' instructions. Rows travel as tiles do
 * (tile_io.cuh), the next ones while some are computed, but in requests that begin where lines of device memory do.
 */
#ifndef KERNELS_CUDA_KERNELS_WARP_PER_ROW_CUH
#define KERNELS_CUDA_KERNELS_WARP_PER_ROW_CUH

#include "kernels/cuda/exchange/work_queue.cuh"
#include "kernels/cuda/lane/convert32.cuh"
#include "kernels/cuda/warp/tile_io.cuh"
#include "kernels/cuda/warp/tile_prefixes.cuh"

#define WARP_PER_ROW_WARPS 4 /* warps of a thread block */

/* Rows that a warp takes at once: one tile alone has little to do while it waits. Two of f2 are more instructions than
 * warps that meet nobody find in the cache. */
template <class Sum, int Tiles> constexpr int warp_per_row_rows = Tiles == 1 && Sum::has_identity ? 2 : 1;

struct warp_per_row_plan {
    const char *input; /* the first row */
    char *output;
    int64_t input_stride, output_stride; /* from row to row */
    uint64_t rows;
    int length;
    int pass_count;
    bool backward[SCAND_PASSES_MAX];
    bool intermediate_f32;
    enum scand_dtype input_form, output_form; /* forms of 4 bytes */
    struct work_queue *queue;
};

/* Starts the copies of the rows of a warp's iteration. */
template <int Rows, int Tiles>
DEVICE void warp_per_row_fetch(const struct warp_per_row_plan &plan, uint64_t iteration, uint4 *vectors)
{
#pragma unroll
    for (int r = 0; r < Rows; r++) {
        const uint64_t row = iteration * Rows + r;
        if (row < plan.rows)
            fetch_lines<Tiles>(vectors + r * LINES_SMEM(Tiles), plan.input + (int64_t)row * plan.input_stride,
                               plan.length);
    }
    __pipeline_commit();
}

/* Inclusive prefixes of the totals of each tile's leaves. A row's last tile has `samples`, and `last` is its last leaf,
 * or lane. */
template <class Sum, int Rows, int Tiles, bool Backward>
DEVICE void warp_per_row_prefixes(const struct held_leaf<typename Sum::sample> leaves[Rows * Tiles],
                                  struct leaf_end end, int samples, int last, typename Sum::sum sums[Rows * Tiles])
{
    if constexpr (Sum::has_identity) {
#pragma unroll
        for (int t = 0; t < Rows * Tiles; t++)
            sums[t] = leaf_total<Sum, Backward, false>(leaves[t].x, ORDER_LEAF - 1);
        kogge_stone<Sum, Backward, Rows * Tiles>(sums, [&](int t) { return t % Tiles == Tiles - 1 ? last : WARP - 1; });
    } else {
        const struct leaf_end full = {false, ORDER_LEAF - 1};
        float most;
#pragma unroll
        for (int t = 0; t < Rows * Tiles; t++)
            sums[t] = t % Tiles == Tiles - 1 ? tile_prefixes<Sum, Backward>(leaves[t].x, end, samples, &most)
                                             : tile_prefixes<Sum, Backward>(leaves[t].x, full, ORDER_TILE, &most);
    }
}

/* The carry into the tile that a pass meets after `met` others: what the network makes of up to two totals. */
template <class Sum> DEVICE typename Sum::sum warp_per_row_carry(const typename Sum::sum totals[], int met)
{
    return met == 1 ? totals[0] : Sum::add(totals[0], totals[1]);
}

/* The values of a row, from the inclusive prefixes of its tiles' leaves. */
template <class Sum, int Tiles, bool Backward, int Kind>
DEVICE void warp_per_row_values(struct held_leaf<typename Sum::sample> leaves[Tiles],
                                const typename Sum::sum sums[Tiles], struct leaf_end end, int last)
{
    const struct leaf_end full = {false, ORDER_LEAF - 1};
    typename Sum::sum totals[Tiles];
#pragma unroll
    for (int met = 0; met < Tiles - 1; met++)
        totals[met] = lane_value(sums[Backward ? Tiles - 1 - met : met], Backward ? 0 : WARP - 1);
#pragma unroll
    for (int t = 0; t < Tiles; t++) {
        const int met = Backward ? Tiles - 1 - t : t;
        carry<Sum> leaf = group_before<Sum, Backward>(sums[t], t < Tiles - 1 ? WARP - 1 : last);
        if (met > 0)
            leaf = carry_join<Sum>({warp_per_row_carry<Sum>(totals, met), true}, leaf);
        leaf_values<Sum, Backward, Kind>(leaves[t].x, leaf, t == Tiles - 1 ? end : full);
    }
}

template <class Sum, int Rows, int Tiles, bool Backward, int Kind>
DEVICE void warp_per_row_pass(struct held_leaf<typename Sum::sample> leaves[Rows * Tiles], int length)
{
    const int samples = length - (Tiles - 1) * ORDER_TILE;
    const int last = group_last<Sum>((int)((samples + ORDER_LEAF - 1u) / ORDER_LEAF));
    const struct leaf_end end = leaf_end_of<Sum, Backward>(samples);
    typename Sum::sum sums[Rows * Tiles];
    /* Forward, nobody listens to what comes after a row, but exact sums tell large from small. */
    if ((sum_by_f64<Sum> || (Sum::has_identity && Backward)) && samples < ORDER_TILE)
#pragma unroll
        for (int t = Tiles - 1; t < Rows * Tiles; t += Tiles)
            leaf_fill<Sum>(leaves[t].x, samples);
    warp_per_row_prefixes<Sum, Rows, Tiles, Backward>(leaves, end, samples, last, sums);
#pragma unroll
    for (int t = 0; t < Rows * Tiles; t += Tiles) {
        warp_per_row_values<Sum, Tiles, Backward, Kind>(&leaves[t], &sums[t], end, last);
        if (Kind == SCAND_KIND_EXCLUSIVE && Sum::has_identity)
            leaf_zero_first<Sum, Backward>(leaves[t + (Backward ? Tiles - 1 : 0)].x, length, Backward ? Tiles - 1 : 0,
                                           Sum::value(Sum::zero()));
    }
}

template <class Sum, int Rows, int Tiles, int Kind>
DEVICE void warp_per_row_passes(const struct warp_per_row_plan &plan,
                                struct held_leaf<typename Sum::sample> leaves[Rows * Tiles])
{
#pragma unroll 1
    for (int pass = 0;; pass++) {
        if (plan.backward[pass])
            warp_per_row_pass<Sum, Rows, Tiles, true, Kind>(leaves, plan.length);
        else
            warp_per_row_pass<Sum, Rows, Tiles, false, Kind>(leaves, plan.length);
        if (pass + 1 == plan.pass_count)
            return;
#pragma unroll
        for (int t = 0; t < Rows * Tiles; t++)
            leaf_between_passes<Sum>(leaves[t].x, plan.intermediate_f32);
    }
}

/* Registers: as few as suffice without spilling any, but for exclusive passes in f64. Shared memory suffices for 24
 * warps of two tiles on an SM, and 16 of three. */
template <class Sum, int Tiles, int Kind> constexpr int warp_per_row_registers()
{
    const int tiles = warp_per_row_rows<Sum, Tiles> * Tiles;
    const bool wide = sizeof(typename Sum::sample) == 8, exclusive = Kind == SCAND_KIND_EXCLUSIVE;
    if (wide)
        return exclusive ? 24 + 56 * tiles : 40 * tiles;
    return (exclusive || sizeof(typename Sum::sum) == 8 ? 40 : 32) + (exclusive ? 24 : 16) * tiles;
}

/* Rows of more than Tiles - 1 tiles and at most Tiles. */
template <class Sum, int Tiles, int Kind>
__global__ void REGISTERS((warp_per_row_registers<Sum, Tiles, Kind>()))
    warp_per_row_kernel(const __grid_constant__ struct warp_per_row_plan plan)
{
    extern __shared__ uint4 warp_per_row_tiles[];
    const int rows = warp_per_row_rows<Sum, Tiles>, warp = warp_index(), smem = LINES_SMEM(Tiles);
    uint4 *vectors = warp_per_row_tiles + 2 * warp * rows * smem, *other = vectors + rows * smem;
    uint64_t iteration = work_queue_first(WARP_PER_ROW_WARPS, warp),
             next = iteration + work_queue_stride(WARP_PER_ROW_WARPS);
    warp_per_row_fetch<rows, Tiles>(plan, iteration, vectors);
#pragma unroll 1
    while (iteration * rows < plan.rows) {
        const unsigned long long taken = work_queue_take(plan.queue);
        warp_per_row_fetch<rows, Tiles>(plan, next, other);
        __pipeline_wait_prior(1);
        __syncwarp();
        struct held_leaf<float> samples[rows * Tiles];
        struct held_leaf<typename Sum::sample> leaves[rows * Tiles];
#pragma unroll
        for (int t = 0; t < rows * Tiles; t++) {
            const char *source = plan.input + (int64_t)(iteration * rows + t / Tiles) * plan.input_stride;
            leaf_read_at(vectors + t / Tiles * smem + t % Tiles * TILE_VECTORS,
                         vectors_in_line(source) + ORDER_LEAF / 4 * lane_index(), shift_of<float>(source),
                         samples[t].x);
            leaf_decode(plan.input_form, samples[t].x);
            leaf_from_f32<Sum>(samples[t].x, leaves[t].x);
        }
        __syncwarp();
        warp_per_row_passes<Sum, rows, Tiles, Kind>(plan, leaves);
#pragma unroll
        for (int t = 0; t < rows * Tiles; t++) {
            leaf_results<Sum>(leaves[t].x, samples[t].x);
            leaf_encode(plan.output_form, samples[t].x);
        }
#pragma unroll
        for (int r = 0; r < rows; r++)
            if (iteration * rows + r < plan.rows)
                tiles_write<Tiles>(vectors + r * smem,
                                   plan.output + (int64_t)(iteration * rows + r) * plan.output_stride, plan.length,
                                   &samples[r * Tiles]);
        uint4 *done = vectors;
        vectors = other;
        other = done;
        iteration = next;
        next = work_queue_taken(taken, WARP_PER_ROW_WARPS);
    }
    work_queue_finish(plan.queue, WARP_PER_ROW_WARPS);
}

#endif
