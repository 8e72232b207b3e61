/*
 * Reads of a warp's tile of an item, and writes of its results.
 */
#ifndef KERNELS_CUDA_WARP_ITEM_IO_CUH
#define KERNELS_CUDA_WARP_ITEM_IO_CUH

#include "kernels/cuda/lane/convert32.cuh"
#include "kernels/cuda/warp/item.cuh"
#include "kernels/cuda/warp/tile_io.cuh"

/* Starts the copy of a warp's tile of an item. `Lines`: in requests that begin where lines of device memory do. */
template <bool Aligned, bool Lines>
DEVICE void scan_fetch(const struct scan_plan &plan, const struct scan_item *item, int warp, uint4 *tile)
{
    const int count = tile_samples(item->length, warp);
    /* Within a row, no last vector is shared with others. */
    if (!Aligned && !Lines && plan.input.access == ACCESS_VEC16 &&
        (warp + 1) * ORDER_TILE + VEC16_BYTES / 4 <= item->length)
        fetch_vectors_inside(tile, item->input + warp * ORDER_TILE * 4, shift_of<float>(item->input));
    else if (!Lines || plan.input.access != ACCESS_VEC16)
        tile_fetch<Aligned>(tile, item->input, plan.input, item->length, warp);
    else if (count > 0)
        fetch_lines<1>(tile, item->input + warp * ORDER_TILE * 4, count);
    __pipeline_commit();
}

/* The samples of this lane's leaf, when they have arrived. Their place is free then. */
template <bool Aligned, bool Lines>
DEVICE void scan_read(const struct scan_plan &plan, const struct scan_item *item, const uint4 *tile,
                      float samples[ORDER_LEAF])
{
    __pipeline_wait_prior(0);
    __syncwarp();
    if (Aligned)
        leaf_read(tile, samples);
    else if (Lines && plan.input.access == ACCESS_VEC16)
        leaf_read_at(tile, vectors_in_line(item->input) + ORDER_LEAF / 4 * lane_index(), shift_of<float>(item->input),
                     samples);
    else
        leaf_read<true, true>(tile, plan.input.access == ACCESS_VEC16 ? shift_of<float>(item->input) : 0, samples);
    __syncwarp();
}

/* f64 results take twice the registers, and shifting samples takes more of them than 40, with which f32 does else. */
template <class First, class Out, bool Aligned>
constexpr int scan_registers = sizeof(Out) == 8                      ? 64
                               : !Aligned && First::has_identity     ? 48
                               : std::is_same<First, sum_f32>::value ? 40
                                                                     : First::registers;

/* True when results may be copied in bulk. Lanes meet the same banks for that, which f64 has no time for (10,000 x
 * 10,000 reach 0.94 of a copy on an H200 instead of 0.96), and f2 no room for a stage. */
template <class Sum, class Out, bool Aligned> constexpr bool scan_has_bulk = false;
template <> constexpr bool scan_has_bulk<sum_f32, float, true> = HAS_BULK;

/* Writes a warp's tile of an item. */
template <class Sum, class Out, bool Aligned>
DEVICE void scan_write(const struct scan_plan &plan, const struct scan_item *item, int warp, uint4 *stage,
                       const typename Sum::sample x[ORDER_LEAF])
{
    Out results[ORDER_LEAF];
    leaf_results<Sum, Out>(x, results);
    if constexpr (scan_registers<Sum, Out, Aligned> == 32)
        leaf_convert_apart<true>(plan.output_form, results);
    else
        leaf_encode<true>(plan.output_form, results);
    if constexpr (scan_has_bulk<Sum, Out, Aligned>)
        if (plan.bulk) {
            bulk_await<false>();
            tile_write_bulk(stage, item->output, item->length, warp, results);
            return;
        }
    tile_write<Out, Sum::stage_vectors, Aligned, scan_registers<Sum, Out, Aligned> == 32>(
        stage, item->output, plan.output, item->length, warp, results);
}

#endif
