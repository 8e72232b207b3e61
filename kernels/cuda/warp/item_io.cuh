/*
 * Reads of a warp's tile of an item, and writes of its results.
 */
#ifndef KERNELS_CUDA_WARP_ITEM_IO_CUH
#define KERNELS_CUDA_WARP_ITEM_IO_CUH

#include "kernels/cuda/lane/convert32.cuh"
#include "kernels/cuda/warp/item.cuh"
#include "kernels/cuda/warp/tile_io.cuh"

/* Shifting samples takes more registers than 40, with which f32 does else. */
template <class Sum, bool Aligned>
constexpr int scan_registers = !Aligned && Sum::has_identity       ? 48
                               : std::is_same<Sum, sum_f32>::value ? 40
                                                                   : Sum::registers;

/* True when results may be copied in bulk. Lanes meet the same banks for that, which f64 has no time for (10,000 x
 * 10,000 reach 0.94 of a copy on an H200 instead of 0.96), and f2 no room for a stage. */
template <class Sum, bool Aligned> constexpr bool scan_has_bulk = false;
template <> constexpr bool scan_has_bulk<sum_f32, true> = HAS_BULK;

/* The results of values in the form in which they are written. */
template <class Sum, bool Aligned>
DEVICE void scan_results(enum scand_dtype form, const typename Sum::sample x[ORDER_LEAF], float results[ORDER_LEAF])
{
    if constexpr (std::is_same<Sum, sum_f64>::value)
        if (form == SCAND_DTYPE_IBM32 && leaf_ibm32_of_f64(x, results))
            return;
    leaf_results<Sum>(x, results);
    if constexpr (scan_registers<Sum, Aligned> == 32)
        leaf_convert_apart<true>(form, results);
    else
        leaf_encode<true>(form, results);
}

/* Writes a warp's tile of an item. */
template <class Sum, bool Aligned>
DEVICE void scan_write(const struct scan_plan &plan, const struct scan_item *item, int warp, uint4 *stage,
                       const typename Sum::sample x[ORDER_LEAF])
{
    struct held_leaf<float> results;
    scan_results<Sum, Aligned>(plan.output_form, x, results.x);
    if constexpr (scan_has_bulk<Sum, Aligned>)
        if (plan.bulk) {
            bulk_wait_read();
            __syncwarp();
            tile_write_bulk(stage, item->output, item->length, warp, results.x);
            return;
        }
    char *target = Aligned ? (char *)__builtin_assume_aligned(item->output, VEC16_BYTES) : item->output;
    tile_write<Sum::stage_vectors, !Aligned && scan_registers<Sum, Aligned> == 32, !Sum::has_identity>(
        stage, target, item->length, warp, &results);
}

/* The moves and conversions of samples of 4 bytes by block_per_row. */
template <class Sum, bool Aligned> struct item_io {
    static const int registers = scan_registers<Sum, Aligned>;
    static const int tile_vectors = TILE_SMEM, stage_vectors = Sum::stage_vectors;
    static const bool has_bulk = scan_has_bulk<Sum, Aligned>;
    static const bool lines =
        !Aligned && Sum::has_identity; /* f2 has no instructions to spare, aligned rows need it less */
    using words = struct held_leaf<float>;

    /* Starts the copy of a warp's tile. */
    DEVICE void fetch(const struct scan_item *item, int warp, uint4 *tile)
    {
        const int count = tile_samples(item->length, warp);
        const char *source = item->input + warp * ORDER_TILE * 4;
        /* Within a row, no last vector is shared with others. */
        if (!Aligned && !lines && (warp + 1) * ORDER_TILE + VEC16_BYTES / 4 <= item->length)
            fetch_vectors_inside(tile, source, shift_of<float>(source));
        else if (count > 0 && lines)
            fetch_lines<1>(tile, source, count);
        else if (count > 0)
            fetch_vectors(tile, source, Aligned ? 0 : shift_of<float>(source), count);
        __pipeline_commit();
    }
    /* The samples of this lane's leaf, when they have arrived. Their place is free then. */
    DEVICE void read(const struct scan_item *item, const uint4 *tile, words *samples)
    {
        __pipeline_wait_prior(0);
        __syncwarp();
        const int shift = shift_of<float>(item->input);
        if (Aligned)
            leaf_read(tile, samples->x);
        else if (lines)
            leaf_read_at(tile, vectors_in_line(item->input) + ORDER_LEAF / 4 * lane_index(), shift, samples->x);
        else
            leaf_read<true, true>(tile, shift, samples->x);
        __syncwarp();
    }
    DEVICE void decode(enum scand_dtype form, words *samples, typename Sum::sample x[ORDER_LEAF])
    {
        leaf_pin(samples->x); /* else sums are spilled */
        if constexpr (registers == 32)
            leaf_convert_apart<false>(form, samples->x);
        else
            leaf_decode(form, samples->x);
        leaf_from_f32<Sum>(samples->x, x);
    }
    DEVICE void write(const struct scan_plan &plan, const struct scan_item *item, int warp, uint4 *stage,
                      const typename Sum::sample x[ORDER_LEAF])
    {
        scan_write<Sum, Aligned>(plan, item, warp, stage, x);
    }
};

#endif
