/*
 * Scans along an axis that is not the innermost one: any operator, dtype and kind, of columns that lie side by side in
 * memory, at any pitch; of affine, those with one coefficient for all samples.
 *
 * A strip is 16 columns or, where samples have 4 bytes, 32, and an item a tile of a strip. A thread holds one or two
 * leaves in registers, from their only read to their only write; neighbouring threads have neighbouring columns. Two
 * leaves are of two columns where these lie in pairs that a thread can read and write at once, else of one. Threads
 * change places only for the network: a warp takes a column and turns the totals of its leaves, one per lane, into what
 * a pass meets before them in the tile. What it meets in tiles before comes from their totals, in a lane per column.
 *
 * Items come in the order in which the last pass meets rows: the first tiles of all strips, then the second ones, as in
 * a copy of rows. A thread block takes the next item that none has taken. So whoever it waits for is at work, and has
 * mostly published long before (tile states, tile_state.cuh): it asks for totals when it asks for samples, and again if
 * need be, once its own are published. An SM has two thread blocks: while one waits for memory, the other one computes.
 *
 * Of two passes over more than a tile the first one's totals are found by a launch before, with the same kernel; and so
 * are the totals that means are made of.
 */
#ifndef KERNELS_CUDA_KERNELS_COLUMNS_DIRECT_CUH
#define KERNELS_CUDA_KERNELS_COLUMNS_DIRECT_CUH

#include "kernels/cuda/exchange/any_arithmetic.cuh"
#include "kernels/cuda/kernels/columns_direct_carries.cuh"
#include "kernels/cuda/kernels/columns_direct_words.cuh"

/* The number in a leaf of the sample that a pass meets first of a column, where an item has that. */
template <bool Backward>
DEVICE int direct_first(const struct direct_plan &plan, const struct direct_item *item,
                        const struct direct_place &place)
{
    const bool begins = item->tile == (Backward ? plan.tiles - 1 : 0);
    return begins ? (Backward ? item->samples - 1 : 0) - place.leaf * ORDER_LEAF : -1;
}

/* The totals of a thread's leaves. */
template <class Sum, bool Backward>
DEVICE void direct_totals(const struct direct_plan &plan, const struct direct_item *item, struct direct_held<Sum> *held,
                          direct_smem<Sum> *smem)
{
#pragma unroll
    for (int l = 0; l < direct_leaves_of<Sum>; l++) {
        const struct direct_place place = direct_place_of<Sum>(plan, l);
        any_arithmetic<Sum>::halve(plan, held->x[l], direct_first<Backward>(plan, item, place));
        smem->sums[place.leaf][place.column] = any_arithmetic<Sum>::template total<Backward>(
            plan, held->x[l], any_leaf_end(direct_samples_of(item, place)));
    }
}

/* The values of a thread's leaves. */
template <class Sum, bool Backward>
DEVICE void direct_values(const struct direct_plan &plan, const struct direct_item *item, struct direct_held<Sum> *held,
                          const direct_smem<Sum> *smem)
{
#pragma unroll
    for (int l = 0; l < direct_leaves_of<Sum>; l++) {
        const struct direct_place place = direct_place_of<Sum>(plan, l);
        any_arithmetic<Sum>::template values<Backward>(plan, held->x[l], any_leaf_end(direct_samples_of(item, place)),
                                                       direct_carry<Sum, Backward>(plan, item, place, smem),
                                                       direct_first<Backward>(plan, item, place));
    }
}

/* One pass over an item; returns whether there are values, and not only totals. All threads meet before the carries are
 * made and after, so what is in shared memory is free again when it has been read. */
template <class Sum, bool Backward>
DEVICE bool direct_pass(const struct direct_plan &plan, const struct direct_item *item, int pass,
                        struct direct_held<Sum> *held, direct_smem<Sum> *smem)
{
    direct_totals<Sum, Backward>(plan, item, held, smem);
    __pipeline_wait_prior(0);
    const bool polled = __syncthreads_and(direct_polled<Sum, Backward>(plan, item, pass, smem));
    const bool last = pass == plan.any.scan.totals_pass || pass + 1 == plan.any.scan.pass_count;
    if (direct_calls<Sum> && last && threadIdx.x < WARP)
        direct_seldom<Sum, direct_tell<Sum>>(plan, (int)(item - smem->items) ^ 1, smem);
    direct_carries<Sum, Backward>(plan, item, pass, polled, smem);
    __syncthreads();
    if (pass == plan.any.scan.totals_pass)
        return false;
    if (pass + 1 < plan.any.scan.pass_count)
        direct_poll<Sum>(plan, item, pass + 1, smem);
    direct_values<Sum, Backward>(plan, item, held, smem);
    return true;
}

/* All passes over an item. Narrow and Wide: what passes over f32 and over f64 samples keep, of one size. */
template <class Narrow, class Wide>
DEVICE bool direct_passes(const struct direct_plan &plan, const struct direct_item *item,
                          struct direct_held<Narrow> *held, direct_smem<Narrow> *smem)
{
    const struct scan_plan &scan = plan.any.scan;
#pragma unroll 1
    for (int pass = 0;; pass++) {
        const bool wide = !std::is_same<Narrow, Wide>::value && plan.any.wide[pass];
        struct direct_held<Wide> *const wide_held = (struct direct_held<Wide> *)held;
        direct_smem<Wide> *const wide_smem = (direct_smem<Wide> *)smem;
        bool values;
        if (wide)
            values = scan.backward[pass] ? direct_pass<Wide, true>(plan, item, pass, wide_held, wide_smem)
                                         : direct_pass<Wide, false>(plan, item, pass, wide_held, wide_smem);
        else
            values = scan.backward[pass] ? direct_pass<Narrow, true>(plan, item, pass, held, smem)
                                         : direct_pass<Narrow, false>(plan, item, pass, held, smem);
        if (!values || pass + 1 == scan.pass_count)
            return values;
#pragma unroll
        for (int l = 0; l < direct_leaves_of<Narrow>; l++)
            leaf_between_passes<typename any_arithmetic<Narrow>::samples>(held->x[l], !plan.any.wide[pass + 1]);
    }
}

/* The means of all columns, from the totals of the level that is one group. */
template <class Sum>
DEVICE void direct_means(const struct direct_plan &plan, const struct direct_item *item, direct_smem<Sum> *smem)
{
    using Total = any_real<double, SCAND_OPERATOR_SUM>;
    const int top = plan.levels - 1;
    const unsigned last = plan.members[top] - 1;
    for (int c = warp_index(); c < direct_columns_of<Sum>; c += (int)blockDim.x / WARP) {
        const uint64_t column = (uint64_t)item->strip * direct_columns_of<Sum> + c;
        if (column < plan.columns)
            smem->means[c] =
                direct_await<Total, false>(plan.means, column, top, last, (int)last) / (double)plan.any.scan.length;
    }
    __syncthreads();
}

/* The words of a thread's leaf on a side; `column` is the beginning of its column. */
template <class Sum>
DEVICE struct direct_words direct_words_at(const struct direct_plan &plan, const struct direct_item *item,
                                           const struct scan_side &side, char *column, int l)
{
    const struct direct_place place = direct_place_of<Sum>(plan, l);
    return {column + place.leaf * ORDER_LEAF * side.stride, side.stride, direct_samples_of(item, place)};
}

/* Words of 4 bytes that are samples; of integers less a flip. */
template <class Sum>
DEVICE void direct_read_plain(const struct direct_plan &plan, const struct direct_item *item, char *column,
                              const struct direct_taking &taking, struct direct_held<Sum> *held)
{
    const struct scan_side &side = plan.any.scan.input;
    if (direct_has_pair<Sum>(plan, item)) {
        direct_pairs_plain(direct_words_at<Sum>(plan, item, side, column, 0), taking, held->x);
    } else {
#pragma unroll
        for (int l = 0; l < 2; l++) {
            uint32_t words[ORDER_LEAF];
            direct_words_at<Sum>(plan, item, side, column, l).template words<4>(words);
            memcpy(held->x[l], words, sizeof(words));
        }
        taking.take();
    }
    if constexpr (!any_arithmetic<Sum>::samples::is_real)
#pragma unroll
        for (int i = 0; i < 2 * ORDER_LEAF; i++)
            held->x[i / ORDER_LEAF][i % ORDER_LEAF] ^= any_flip32(plan.any);
}

/* Writes results of any form. A function of its own where a thread has two leaves: inlined, what few columns need would
 * have it spill these for all. */
template <class Samples>
static __device__ __noinline__ void direct_write_apart(const struct direct_plan &plan, struct direct_words side,
                                                       const typename Samples::sample x[ORDER_LEAF])
{
    any_write<Samples, true>(plan.any, side, x);
}

/* Takes the mean of a leaf's column from its samples, if that is wanted. */
template <class Sum> struct direct_demean {
    const struct direct_plan &plan;
    const direct_smem<Sum> *smem;
    int l;

    template <class T> __device__ __forceinline__ void operator()(T *x) const
    {
        if (plan.any.demean)
#pragma unroll
            for (int i = 0; i < ORDER_LEAF; i++)
                x[i] = (T)((double)x[i] - smem->means[direct_place_of<Sum>(plan, l).column]);
    }
};

/* The two leaves of a thread. */
template <class Sum>
DEVICE void direct_read_two(const struct direct_plan &plan, const struct direct_item *item, char *column,
                            const struct direct_taking &taking, const direct_smem<Sum> *smem,
                            struct direct_held<Sum> *held)
{
    using Samples = typename any_arithmetic<Sum>::samples;
    const struct scan_side &side = plan.any.scan.input;
    if constexpr (!Samples::is_real) {
        direct_read_plain<Sum>(plan, item, column, taking, held);
    } else {
        if (plan.plain)
            return direct_read_plain<Sum>(plan, item, column, taking, held);
        if (direct_has_pair<Sum>(plan, item))
            return direct_pairs_short(plan.any, direct_words_at<Sum>(plan, item, side, column, 0), taking, held->x);
#pragma unroll
        for (int l = 0; l < 2; l++)
            any_read_from<Samples, true>(plan.any, direct_words_at<Sum>(plan, item, side, column, l),
                                         direct_demean<Sum>{plan, smem, l}, held->x[l]);
        taking.take();
    }
}

template <class Sum>
DEVICE void direct_write_two(const struct direct_plan &plan, const struct direct_item *item, char *column,
                             const struct direct_held<Sum> *held)
{
    using Samples = typename any_arithmetic<Sum>::samples;
    const struct scan_side &side = plan.any.scan.output;
    if (direct_has_pair<Sum>(plan, item)) {
        direct_pairs_put<Samples>(plan.any, direct_words_at<Sum>(plan, item, side, column, 0), held->x);
    } else if (plan.plain_output) {
#pragma unroll
        for (int l = 0; l < 2; l++) {
            const struct direct_words words = direct_words_at<Sum>(plan, item, side, column, l);
            direct_put_plain<Samples>(plan.any, words, held->x[l]);
        }
    } else if constexpr (Samples::is_real) {
        typename Sum::sample x[2][ORDER_LEAF];
        memcpy(x, held->x, sizeof(x));
#pragma unroll 1
        for (int l = 0; l < 2; l++)
            direct_write_apart<Samples>(plan, direct_words_at<Sum>(plan, item, side, column, l), x[l]);
    }
}

template <class Sum>
DEVICE void direct_read(const struct direct_plan &plan, const struct direct_item *item,
                        const struct direct_column columns[], direct_smem<Sum> *smem, struct direct_held<Sum> *held)
{
    const struct direct_taking taking = {plan.taken, &smem->taken};
    char *const column = columns[direct_place_of<Sum>(plan, 0).column].input;
    if constexpr (direct_leaves_of<Sum> == 2) {
        direct_read_two<Sum>(plan, item, column, taking, smem, held);
    } else {
        any_read_from<typename any_arithmetic<Sum>::samples, true>(
            plan.any, direct_source{direct_words_at<Sum>(plan, item, plan.any.scan.input, column, 0), taking},
            direct_demean<Sum>{plan, smem, 0}, held->x[0]);
    }
}

template <class Sum>
DEVICE void direct_write(const struct direct_plan &plan, const struct direct_item *item,
                         const struct direct_column columns[], const struct direct_held<Sum> *held)
{
    char *const column = columns[direct_place_of<Sum>(plan, 0).column].output;
    if constexpr (direct_leaves_of<Sum> == 2)
        direct_write_two<Sum>(plan, item, column, held);
    else
        any_write<typename any_arithmetic<Sum>::samples, true>(
            plan.any, direct_words_at<Sum>(plan, item, plan.any.scan.output, column, 0), held->x[0]);
}

template <class Sum> DEVICE void direct_turn(const struct direct_plan &plan, struct direct_held<Sum> *held)
{
#pragma unroll
    for (int l = 0; l < direct_leaves_of<Sum>; l++)
        leaf_turn<typename any_arithmetic<Sum>::samples>(held->x[l], plan.any.flip);
}

template <class Narrow, class Wide>
__global__ void __launch_bounds__(DIRECT_THREADS, DIRECT_RESIDENT)
    columns_direct_kernel(const __grid_constant__ struct direct_plan plan)
{
    __shared__ direct_smem<Narrow> smem;
    direct_taking{plan.taken, &smem.taken}.take();
    if (threadIdx.x < WARP)
        direct_tell<Narrow>(plan, 0, &smem);
    __syncthreads();
    for (int slot = 0;; slot ^= 1) {
        const struct direct_item *const item = &smem.items[slot];
        if (item->leaves == 0)
            return;
        struct direct_held<Narrow> held;
        direct_poll<Narrow>(plan, item, 0, &smem);
        if (plan.any.demean)
            direct_means<Narrow>(plan, item, &smem);
        direct_read<Narrow>(plan, item, smem.columns[slot], &smem, &held);
        direct_turn<Narrow>(plan, &held);
        if (direct_passes<Narrow, Wide>(plan, item, &held, &smem)) {
            direct_turn<Narrow>(plan, &held);
            direct_write<Narrow>(plan, item, smem.columns[slot], &held);
        }
        if (!direct_calls<Narrow> && threadIdx.x < WARP)
            direct_tell<Narrow>(plan, slot ^ 1, &smem);
        __syncthreads();
    }
}

#endif
