/*
 * Scans along an axis that is not the innermost one: any operator, dtype and kind, of columns that lie side by side in
 * memory, at any pitch; of affine, those with one coefficient for all samples.
 *
 * A strip is 16 columns or, where sums have 4 bytes, 32, and an item a tile of a strip. A thread holds one or two
 * leaves of a column in registers, from their only read to their only write; neighbouring threads have neighbouring
 * columns. Threads change places only for the network: a warp takes a column and turns the totals of its leaves, one
 * per lane, into carries.
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

#include "kernels/cuda/exchange/any_items.cuh"
#include "kernels/cuda/exchange/tile_state.cuh"
#include "kernels/cuda/lane/affine_leaf.cuh"

#define DIRECT_THREADS  512 /* of a thread block, */
#define DIRECT_RESIDENT 2   /* of which an SM has so many */
#define DIRECT_LEVELS   3   /* of a column above its leaves: tiles, order blocks, groups of 32 of these */

/* Leaves of a thread, and columns of a strip, by the bytes of a sum. */
__host__ __device__ constexpr int direct_leaves(size_t sum_bytes)
{
    return sum_bytes == 4 ? 2 : 1;
}

__host__ __device__ constexpr int direct_columns(size_t sum_bytes)
{
    return DIRECT_THREADS / ORDER_FAN * direct_leaves(sum_bytes);
}

template <class Sum> constexpr int direct_leaves_of = direct_leaves(sizeof(typename Sum::sum));
template <class Sum> constexpr int direct_columns_of = direct_columns(sizeof(typename Sum::sum));

/* The tile states of one pass, by level: those of `columns` neighbours are side by side. */
struct direct_states {
    tile_state *levels[DIRECT_LEVELS];
    uint64_t columns;
};

/* What one launch does. */
struct direct_plan {
    struct any_plan any; /* with scan.totals_pass >= 0 only the totals of that pass are published */
    uint64_t columns;
    unsigned strips, tiles, items;
    int levels;                      /* that a column needs */
    unsigned members[DIRECT_LEVELS]; /* of a column */
    unsigned *taken;                 /* items, 0 before */
    bool from_end;                   /* in which order */
    int published_pass;              /* whose totals are published; -1 for none */
    struct direct_states states[SCAND_PASSES_MAX];
    struct direct_states means; /* forward totals in f64, to demean */
    double coefficient;         /* of affine; */
    uint64_t whole;             /* with integers this */
};

/* A tile of a strip. */
struct direct_item {
    unsigned strip, tile;
    int samples, leaves; /* of a column in this tile; 0 where there is no more work */
};

/* The first sample of a column in this tile, on both sides; NULL where there is no such column. */
struct direct_column {
    char *input, *output;
};

/* The shared memory of a thread block. Leaves are one sum further apart than they need be: no bank conflicts. */
template <class Sum> struct alignas(VEC16_BYTES) direct_smem {
    typename Sum::sum sums[ORDER_FAN][direct_columns_of<Sum> + 1]; /* totals of leaves, then carries into them */
    /* Tile states as they were found: of the tiles before this one, the last one first. */
    tile_state_polled<Sum> polled[ORDER_FAN][direct_columns_of<Sum> + 1];
    double means[direct_columns_of<Sum>];
    struct direct_item items[2]; /* of this iteration and the next one */
    struct direct_column columns[2][direct_columns_of<Sum>];
};

DEVICE struct direct_item direct_item_at(const struct direct_plan &plan, unsigned number)
{
    struct direct_item item = {};
    if (number >= plan.items)
        return item;
    const unsigned row = number / plan.strips;
    item.strip = number - row * plan.strips;
    item.tile = plan.from_end ? plan.tiles - 1 - row : row;
    item.samples = (int)min(plan.any.scan.length - (uint64_t)item.tile * ORDER_TILE, (uint64_t)ORDER_TILE);
    item.leaves = (item.samples + ORDER_LEAF - 1) / ORDER_LEAF;
    return item;
}

DEVICE struct direct_column direct_column_at(const struct direct_plan &plan, const struct direct_item &item,
                                             uint64_t column)
{
    const struct scan_plan &scan = plan.any.scan;
    const int64_t sample = (int64_t)item.tile * ORDER_TILE;
    if (item.leaves == 0 || column >= plan.columns)
        return {};
    return {side_at(scan, scan.input, scan.first_row + column, 0) + sample * scan.input.stride,
            side_at(scan, scan.output, scan.first_row + column, 0) + sample * scan.output.stride};
}

/* Tells all threads about the item that was taken. By the first warp, of which lane 0 knows the number. */
template <class Sum>
DEVICE void direct_tell(const struct direct_plan &plan, unsigned taken, int slot, direct_smem<Sum> *smem)
{
    const struct direct_item item = direct_item_at(plan, __shfl_sync(~0u, taken, 0));
    const int lane = lane_index();
    if (lane < direct_columns_of<Sum>)
        smem->columns[slot][lane] = direct_column_at(plan, item, (uint64_t)item.strip * direct_columns_of<Sum> + lane);
    if (lane == 0)
        smem->items[slot] = item;
}

/* Where a thread is in an item: its column in the strip, and the first one of its leaves. */
template <class Sum> DEVICE int direct_column()
{
    return (int)threadIdx.x % direct_columns_of<Sum>;
}

template <class Sum> DEVICE int direct_leaf()
{
    return (int)threadIdx.x / direct_columns_of<Sum> * direct_leaves_of<Sum>;
}

/* What a thread holds of an item. */
template <class Sum> struct direct_held {
    int samples; /* from its first leaf on; none, or less, where there are none */
    typename Sum::sample x[direct_leaves_of<Sum>][ORDER_LEAF];

    /* Of one of its leaves. */
    __device__ __forceinline__ int samples_of(int leaf) const
    {
        return min(max(samples - leaf * ORDER_LEAF, 0), ORDER_LEAF);
    }
};

/* A leaf's words in device memory, as any_samples and any_write want them. Zeros stand for what is not there. */
struct direct_words {
    char *first;
    int64_t stride;
    int samples;

    /* The word at an address that goes on to the next one: 16 addresses at once would not fit the registers. */
    template <class Word, bool Full> __device__ __forceinline__ Word get(char **at, int i) const
    {
        const Word word = Full || i < samples ? *(const Word *)*at : (Word)0;
        *at = settled(*at + stride);
        return word;
    }
    template <class Word, bool Full> __device__ __forceinline__ void set(char **at, int i, Word word) const
    {
        if (Full || i < samples)
            *(Word *)*at = word;
        *at = settled(*at + stride);
    }
    template <int Bytes, bool Full> __device__ __forceinline__ void words_of(uint32_t words[4 * Bytes]) const
    {
        char *at = first;
        __builtin_assume(__isGlobal(at));
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            if constexpr (Bytes == 8) {
                const uint64_t word = get<uint64_t, Full>(&at, i);
                words[2 * i] = (uint32_t)word;
                words[2 * i + 1] = (uint32_t)(word >> 32);
            } else if constexpr (Bytes == 4) {
                words[i] = get<uint32_t, Full>(&at, i);
            } else if (i % 2 == 0) {
                words[i / 2] = get<uint16_t, Full>(&at, i);
            } else {
                words[i / 2] |= (uint32_t)get<uint16_t, Full>(&at, i) << 16;
            }
    }
    template <int Bytes, bool Full, class Word> __device__ __forceinline__ void put_of(Word word) const
    {
        char *at = first;
        __builtin_assume(__isGlobal(at));
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            if constexpr (Bytes == 8)
                set<uint64_t, Full>(&at, i, (uint64_t)word(2 * i + 1) << 32 | word(2 * i));
            else if constexpr (Bytes == 4)
                set<uint32_t, Full>(&at, i, word(i));
            else
                set<uint16_t, Full>(&at, i, (uint16_t)(word(i / 2) >> i % 2 * 16));
    }
    template <int Bytes> __device__ __forceinline__ void words(uint32_t words[4 * Bytes]) const
    {
        if (samples == ORDER_LEAF)
            words_of<Bytes, true>(words);
        else
            words_of<Bytes, false>(words);
    }
    template <int Bytes, class Word> __device__ __forceinline__ void put(Word word) const
    {
        if (samples == ORDER_LEAF)
            put_of<Bytes, true>(word);
        else
            put_of<Bytes, false>(word);
    }
};

/* A member of a level, and where it is in its group. */
struct direct_member {
    unsigned number;
    int before; /* members of the group that a pass meets earlier */
    bool last;  /* whether it is the last one that is met */
};

/* The member of a level in which a tile lies. */
template <bool Backward>
DEVICE struct direct_member direct_member_of(const struct direct_plan &plan, unsigned tile, int level)
{
    unsigned number = tile;
    for (int i = 0; i < level; i++)
        number /= ORDER_FAN;
    const unsigned first = number / ORDER_FAN * ORDER_FAN;
    const int count = (int)min(plan.members[level] - first, (unsigned)ORDER_FAN), place = (int)(number - first);
    const int before = Backward ? count - 1 - place : place;
    return {number, before, before == count - 1};
}

template <class Sum>
DEVICE tile_state *direct_state(const struct direct_states &states, uint64_t column, int level, unsigned number)
{
    return states.levels[level] + (number * states.columns + column) * tile_state_words<Sum>();
}

/* The inclusive prefix of a member of a group: lane i of a warp has the total of the i-th one before it, up to
 * `before`, and step by step the network leads to that of lane 0. */
template <class Sum> DEVICE typename Sum::sum direct_prefix(typename Sum::sum total, int before)
{
    if (lane_index() > before)
        total = Sum::identity();
    return lane_get(group_scan<Sum, true>(total, group_last<Sum>(before + 1)), 0);
}

/* The same from tile states, which are waited for. */
template <class Sum, bool Backward>
DEVICE typename Sum::sum direct_await(const struct direct_states &states, uint64_t column, int level, unsigned number,
                                      int before)
{
    const unsigned lane = (unsigned)lane_index();
    typename Sum::sum total = Sum::identity();
    if ((int)lane <= before)
        total =
            tile_state_await<Sum>(direct_state<Sum>(states, column, level, Backward ? number + lane : number - lane));
    __syncwarp();
    return direct_prefix<Sum>(total, before);
}

/* The carry into an order block from the levels above tiles. By a warp. */
template <class Sum, bool Backward>
DEVICE carry<Sum> direct_outer(const struct direct_plan &plan, const struct direct_states &states, uint64_t column,
                               unsigned tile)
{
    carry<Sum> outer = carry_of<Sum>(typename Sum::sum{}, false);
#pragma unroll 1
    for (int level = plan.levels - 1; level > 0; level--) {
        const struct direct_member member = direct_member_of<Backward>(plan, tile, level);
        if (member.before == 0)
            continue;
        const unsigned number = Backward ? member.number + 1 : member.number - 1;
        const typename Sum::sum inner = direct_await<Sum, Backward>(states, column, level, number, member.before - 1);
        outer = carry_join<Sum>(outer, carry_of<Sum>(inner, true));
    }
    return outer;
}

/* Publishes the total of a tile of a column, and those of an order block and a group that end with it. By a warp. */
template <class Sum, bool Backward>
DEVICE void direct_publish(const struct direct_plan &plan, const struct direct_states &states, uint64_t column,
                           unsigned tile, typename Sum::sum total)
{
#pragma unroll 1
    for (int level = 0; level < plan.levels; level++) {
        const struct direct_member member = direct_member_of<Backward>(plan, tile, level);
        if (lane_index() == 0)
            tile_state_publish<Sum>(direct_state<Sum>(states, column, level, member.number), total);
        if (!member.last || level + 1 == plan.levels)
            break;
        total = direct_await<Sum, Backward>(states, column, level, member.number, member.before);
    }
}

/* Asks for the totals of the tiles before an item's, of which a thread stands for as many as it has leaves. */
template <class Sum, bool Backward>
DEVICE void direct_poll_of(const struct direct_plan &plan, const struct direct_item *item, int pass,
                           direct_smem<Sum> *smem)
{
    const struct direct_member member = direct_member_of<Backward>(plan, item->tile, 0);
    const uint64_t column = (uint64_t)item->strip * direct_columns_of<Sum> + direct_column<Sum>();
#pragma unroll
    for (int l = 0; l < direct_leaves_of<Sum>; l++) {
        const int number = direct_leaf<Sum>() + l, back = number + 1;
        if (back > member.before)
            continue;
        tile_state_polled<Sum> *const polled = &smem->polled[number][direct_column<Sum>()];
        const tile_state *const state =
            direct_state<Sum>(plan.states[pass], column, 0, Backward ? member.number + back : member.number - back);
#pragma unroll
        for (int i = 0; i < tile_state_words<Sum>(); i += 2)
            __pipeline_memcpy_async(&polled->words[i], state + i,
                                    tile_state_words<Sum>() == 1 ? sizeof(tile_state) : 2 * sizeof(tile_state));
    }
    __pipeline_commit();
}

template <class Sum>
DEVICE void direct_poll(const struct direct_plan &plan, const struct direct_item *item, int pass,
                        direct_smem<Sum> *smem)
{
    if (pass == plan.any.scan.totals_pass)
        return;
    if (plan.any.scan.backward[pass])
        direct_poll_of<Sum, true>(plan, item, pass, smem);
    else
        direct_poll_of<Sum, false>(plan, item, pass, smem);
}

/* The carry into a tile of a column of the strip. By a warp. */
template <class Sum, bool Backward>
DEVICE carry<Sum> direct_outside(const struct direct_plan &plan, const struct direct_item *item, int pass, int c,
                                 const direct_smem<Sum> *smem)
{
    const uint64_t column = (uint64_t)item->strip * direct_columns_of<Sum> + c;
    const struct direct_member member = direct_member_of<Backward>(plan, item->tile, 0);
    const carry<Sum> outer = direct_outer<Sum, Backward>(plan, plan.states[pass], column, item->tile);
    if (member.before == 0)
        return outer;
    const tile_state_polled<Sum> polled = smem->polled[lane_index()][c];
    const bool there = lane_index() >= member.before || tile_state_is_published<Sum>(polled);
    const typename Sum::sum inner =
        __all_sync(~0u, there)
            ? direct_prefix<Sum>(tile_state_sum<Sum>(polled), member.before - 1)
            : direct_await<Sum, Backward>(plan.states[pass], column, 0,
                                          Backward ? member.number + 1 : member.number - 1, member.before - 1);
    return carry_join<Sum>(outer, carry_of<Sum>(inner, true));
}

/* Totals of a strip's leaves become carries into them, and the totals of the tile are published. Each warp takes
 * columns. */
template <class Sum, bool Backward>
DEVICE void direct_carries(const struct direct_plan &plan, const struct direct_item *item, int pass,
                           direct_smem<Sum> *smem)
{
    const struct scan_plan &scan = plan.any.scan;
    const int lane = lane_index(), last = group_last<Sum>(item->leaves);
#pragma unroll 1
    for (int c = warp_index(); c < direct_columns_of<Sum>; c += (int)blockDim.x / WARP) {
        typename Sum::sum prefix = lane < item->leaves ? smem->sums[lane][c] : Sum::identity();
        prefix = group_scan<Sum, Backward>(prefix, last);
        if (pass == plan.published_pass)
            direct_publish<Sum, Backward>(plan, plan.states[pass], (uint64_t)item->strip * direct_columns_of<Sum> + c,
                                          item->tile, lane_get(prefix, Backward ? 0 : item->leaves - 1));
        if (pass == scan.totals_pass)
            continue;
        const carry<Sum> inner = group_before<Sum, Backward>(prefix, last);
        const carry<Sum> outside = direct_outside<Sum, Backward>(plan, item, pass, c, smem);
        if (lane < item->leaves)
            smem->sums[lane][c] = carry_join<Sum>(outside, inner).sum;
    }
}

/* What a pass leaves where it has met nothing. */
template <class Sum> DEVICE typename Sum::sample direct_zero(const struct direct_plan &plan)
{
    if constexpr (Sum::is_real)
        return Sum::value(Sum::zero());
    else
        return plan.any.zero;
}

/* What is done with a leaf of which `samples` are there: its total; its values, from what a pass meets before it;
 * `first` is the number of the sample that the pass meets first of all, if it is one of this leaf. */
template <class Sum> struct direct_arithmetic {
    using samples = Sum; /* how they come, go, and are rounded between passes */

    template <bool Backward>
    DEVICE typename Sum::sum total(const struct direct_plan &, typename Sum::sample x[ORDER_LEAF], int samples)
    {
        if (Sum::has_identity && samples < ORDER_LEAF)
            leaf_fill_beyond<Sum>(x, samples);
        if (Backward && !Sum::has_identity && samples < ORDER_LEAF)
            return leaf_total<Sum, Backward, Backward>(x, samples - 1);
        return leaf_total<Sum, Backward, false>(x, 0);
    }
    template <bool Backward>
    DEVICE void values(const struct direct_plan &plan, typename Sum::sample x[ORDER_LEAF], int samples,
                       carry<Sum> carry, int first)
    {
        if (Backward && !Sum::has_identity && samples < ORDER_LEAF)
            leaf_values<Sum, Backward, KIND_ANY, Backward>(x, carry, samples - 1, plan.any.kind);
        else
            leaf_values<Sum, Backward, KIND_ANY, false>(x, carry, ORDER_LEAF - 1, plan.any.kind);
        if (plan.any.kind == SCAND_KIND_EXCLUSIVE && Sum::has_identity)
            leaf_zero_at<Sum>(x, first, direct_zero<Sum>(plan));
    }
};

template <class T> struct direct_arithmetic<affine_sum<T>> {
    using samples = typename affine_samples<T>::sum;

    DEVICE affine_same<T> factors(const struct direct_plan &plan)
    {
        if constexpr (std::is_same<T, uint64_t>::value)
            return {plan.whole};
        else
            return {number_of<T>(plan.coefficient)};
    }
    template <bool Backward> DEVICE affine_map<T> total(const struct direct_plan &plan, T x[ORDER_LEAF], int samples)
    {
        if (Backward && samples < ORDER_LEAF)
            return affine_leaf_total<T, Backward, Backward>(x, factors(plan), samples - 1);
        return affine_leaf_total<T, Backward, false>(x, factors(plan), 0);
    }
    template <bool Backward>
    DEVICE void values(const struct direct_plan &plan, T x[ORDER_LEAF], int samples, carry<affine_sum<T>> carry, int)
    {
        const bool exclusive = plan.any.kind == SCAND_KIND_EXCLUSIVE;
        if (Backward && samples < ORDER_LEAF)
            affine_leaf_values<T, Backward, Backward>(x, factors(plan), {carry.sum.term, carry.present}, samples - 1,
                                                      exclusive);
        else
            affine_leaf_values<T, Backward, false>(x, factors(plan), {carry.sum.term, carry.present}, ORDER_LEAF - 1,
                                                   exclusive);
    }
};

/* The totals of a thread's leaves. */
template <class Sum, bool Backward>
DEVICE void direct_totals(const struct direct_plan &plan, struct direct_held<Sum> *held, direct_smem<Sum> *smem)
{
#pragma unroll
    for (int l = 0; l < direct_leaves_of<Sum>; l++)
        smem->sums[direct_leaf<Sum>() + l][direct_column<Sum>()] =
            direct_arithmetic<Sum>::template total<Backward>(plan, held->x[l], held->samples_of(l));
}

/* The values of a thread's leaves. */
template <class Sum, bool Backward>
DEVICE void direct_values(const struct direct_plan &plan, const struct direct_item *item, struct direct_held<Sum> *held,
                          const direct_smem<Sum> *smem)
{
    const bool begins = item->tile == (Backward ? plan.tiles - 1 : 0);
#pragma unroll
    for (int l = 0; l < direct_leaves_of<Sum>; l++) {
        const int number = direct_leaf<Sum>() + l;
        const bool present = Sum::has_identity || !begins || number != (Backward ? item->leaves - 1 : 0);
        const int first = begins ? (Backward ? item->samples - 1 : 0) - number * ORDER_LEAF : -1;
        direct_arithmetic<Sum>::template values<Backward>(plan, held->x[l], held->samples_of(l),
                                                          {smem->sums[number][direct_column<Sum>()], present}, first);
    }
}

/* One pass over an item; returns whether there are values, and not only totals. All threads meet before the carries are
 * made and after, so what is in shared memory is free again when it has been read. */
template <class Sum, bool Backward>
DEVICE bool direct_pass(const struct direct_plan &plan, const struct direct_item *item, int pass,
                        struct direct_held<Sum> *held, direct_smem<Sum> *smem)
{
    direct_totals<Sum, Backward>(plan, held, smem);
    __pipeline_wait_prior(0);
    __syncthreads();
    direct_carries<Sum, Backward>(plan, item, pass, smem);
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
            leaf_between_passes<typename direct_arithmetic<Narrow>::samples>(held->x[l], !plan.any.wide[pass + 1]);
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

template <class Sum>
DEVICE void direct_read(const struct direct_plan &plan, const struct direct_item *item, char *column,
                        const direct_smem<Sum> *smem, struct direct_held<Sum> *held)
{
    const int64_t stride = plan.any.scan.input.stride;
    auto demean = [&](auto *reals) {
        if (plan.any.demean)
#pragma unroll
            for (int i = 0; i < ORDER_LEAF; i++)
                reals[i] =
                    (std::remove_reference_t<decltype(*reals)>)((double)reals[i] - smem->means[direct_column<Sum>()]);
    };
    held->samples = column ? item->samples - direct_leaf<Sum>() * ORDER_LEAF : 0;
#pragma unroll
    for (int l = 0; l < direct_leaves_of<Sum>; l++) {
        const struct direct_words words = {column + (direct_leaf<Sum>() + l) * ORDER_LEAF * stride, stride,
                                           held->samples_of(l)};
        any_read_from<typename direct_arithmetic<Sum>::samples, true>(plan.any, words, demean, held->x[l]);
    }
}

template <class Sum>
DEVICE void direct_write(const struct direct_plan &plan, char *column, const struct direct_held<Sum> *held)
{
    const int64_t stride = plan.any.scan.output.stride;
#pragma unroll
    for (int l = 0; l < direct_leaves_of<Sum>; l++) {
        const struct direct_words words = {column + (direct_leaf<Sum>() + l) * ORDER_LEAF * stride, stride,
                                           held->samples_of(l)};
        any_write<typename direct_arithmetic<Sum>::samples, true>(plan.any, words, held->x[l]);
    }
}

template <class Narrow, class Wide>
__global__ void __launch_bounds__(DIRECT_THREADS, DIRECT_RESIDENT)
    columns_direct_kernel(const __grid_constant__ struct direct_plan plan)
{
    __shared__ direct_smem<Narrow> smem;
    unsigned taken = 0;
    if (threadIdx.x == 0)
        taken = atomicAdd(plan.taken, 1);
    for (int slot = 0;; slot ^= 1) {
        if (threadIdx.x < WARP)
            direct_tell<Narrow>(plan, taken, slot, &smem);
        __syncthreads();
        const struct direct_item *const item = &smem.items[slot];
        if (item->leaves == 0)
            return;
        struct direct_held<Narrow> held;
        direct_poll<Narrow>(plan, item, 0, &smem);
        if (plan.any.demean)
            direct_means<Narrow>(plan, item, &smem);
        direct_read<Narrow>(plan, item, smem.columns[slot][direct_column<Narrow>()].input, &smem, &held);
        if (threadIdx.x == 0)
            taken = atomicAdd(plan.taken, 1);
        if (direct_passes<Narrow, Wide>(plan, item, &held, &smem))
            direct_write<Narrow>(plan, smem.columns[slot][direct_column<Narrow>()].output, &held);
    }
}

#endif
