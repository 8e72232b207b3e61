/*
 * The affine recurrence over contiguous rows with one coefficient for all samples: in the manner of the general kernel,
 * and by the same order (block.cuh).
 *
 * What a map multiplies by depends only on how many samples it stands for. So the factors that the network meets are
 * the same in every tile, but where a backward pass begins with less than a leaf or a tile: they are made once and lie
 * in shared memory, and lanes hold, add up and send terms alone.
 */
#ifndef KERNELS_CUDA_AFFINE_AHEAD_CUH
#define KERNELS_CUDA_AFFINE_AHEAD_CUH

#include "kernels/cuda/affine_sum.cuh"
#include "kernels/cuda/general.cuh"

struct affine_ahead_plan {
    struct general_plan general;
    double coefficient;
    uint64_t whole; /* with integers this */
};

/* How samples of type T come, go, and are rounded between passes: as those of sums. */
template <class T> struct affine_samples {
    using sum = general_real<T, SCAND_OPERATOR_SUM>;
};
template <> struct affine_samples<struct f2> {
    using sum = general_f2<SCAND_OPERATOR_SUM, true>;
};
template <> struct affine_samples<uint64_t> {
    using sum = general_whole<SCAND_OPERATOR_SUM>;
};

/* For block.cuh's sum_choose. */
template <class T> struct affine_term {
    using sum = T;
    static const bool has_identity = false;
};

#define AFFINE_STEPS 5 /* of the network */

/* The factors of a group's members after each step, by the position at which a pass meets them. */
template <class T> struct affine_factors {
    T after[AFFINE_STEPS + 1][WARP];
};

/* Of leaves and tiles: those of which all are full, and those of which the first that is met may not be. */
template <class T> struct affine_powers {
    affine_factors<T> leaves, tiles, last_leaves, last_tiles;
    int length; /* of the order block that the last ones are for, or 0 */
};

/* By one warp. The network multiplies as it joins maps (affine_sum.cuh). */
template <class T> DEVICE void affine_factors_make(affine_factors<T> *factors, T first, T other)
{
    const int lane = lane_index();
    T factor = lane == 0 ? first : other;
#pragma unroll
    for (int step = 0; step < AFFINE_STEPS; step++) {
        T before;
        factors->after[step][lane] = factor;
        if (lane_before<false>(factor, &before, 1 << step, WARP - 1))
            factor = affine_mul(factor, before);
    }
    factors->after[AFFINE_STEPS][lane] = factor;
    __syncwarp();
}

/* That of so many samples, met one after the other. */
template <class T> DEVICE T affine_power(T factor, int samples)
{
    T power = factor;
#pragma unroll 1
    for (int i = 1; i < samples; i++)
        power = affine_mul(factor, power);
    return power;
}

template <class T> DEVICE void affine_powers_make(affine_powers<T> *powers, T factor)
{
    const T leaf = affine_power(factor, ORDER_LEAF);
    affine_factors_make(&powers->leaves, leaf, leaf);
    const T tile = powers->leaves.after[AFFINE_STEPS][WARP - 1];
    affine_factors_make(&powers->tiles, tile, tile);
    powers->length = 0;
}

/* Those that depend on the length of an order block, if it has samples. */
template <class T> DEVICE void affine_powers_make_last(affine_powers<T> *powers, T factor, int length)
{
    powers->length = length;
    if (length == 0)
        return;
    const int samples = (length - 1) % ORDER_TILE + 1, leaves = (samples + ORDER_LEAF - 1) / ORDER_LEAF;
    const T leaf = powers->leaves.after[0][0];
    affine_factors_make(&powers->last_leaves, affine_power(factor, samples - (leaves - 1) * ORDER_LEAF), leaf);
    affine_factors_make(&powers->last_tiles, powers->last_leaves.after[AFFINE_STEPS][leaves - 1],
                        powers->leaves.after[AFFINE_STEPS][WARP - 1]);
}

/* Where a lane's member stands in its group, in the order of the pass; of one that does not exist, anywhere. */
template <bool Backward> DEVICE int affine_position(int last)
{
    return Backward ? (last - lane_index()) & (WARP - 1) : lane_index();
}

/* The network over terms. */
template <class T, bool Backward> DEVICE T affine_scan(T term, const affine_factors<T> *factors, int last)
{
#pragma unroll
    for (int step = 0; step < AFFINE_STEPS; step++) {
        T before;
        const bool there = lane_before<Backward>(term, &before, 1 << step, last);
        const T factor = factors->after[step][affine_position<Backward>(last)];
        term = sum_choose<affine_term<T>>(there, affine_apply(factor, before, term), term);
    }
    return term;
}

/* The carry into a member, from inclusive prefixes and what the group meets before its first member. */
template <class T, bool Backward>
DEVICE carry<affine_term<T>> affine_carry(T inclusive, const affine_factors<T> *factors, int last,
                                          carry<affine_term<T>> outer)
{
    carry<affine_term<T>> carry;
    carry.present = lane_before<Backward>(inclusive, &carry.sum, 1, last);
    if (outer.present) {
        const T factor = factors->after[AFFINE_STEPS][(affine_position<Backward>(last) - 1) & (WARP - 1)];
        carry.sum = sum_choose<affine_term<T>>(carry.present, affine_apply(factor, outer.sum, carry.sum), outer.sum);
        carry.present = true;
    }
    return carry;
}

/* `Partial`: the leaf may lack samples that the pass would have met first, and begins at `last`. */
template <class T, bool Backward, bool Partial> DEVICE T affine_total(const T x[ORDER_LEAF], T factor, int last)
{
    T term = x[Backward ? ORDER_LEAF - 1 : 0];
#pragma unroll
    for (int i = 1; i < ORDER_LEAF; i++) {
        const int k = Backward ? ORDER_LEAF - 1 - i : i;
        const T next = affine_apply(factor, term, x[k]);
        term = Partial && k == last ? x[k] : next;
    }
    return term;
}

template <class T, bool Backward, bool Partial, bool Exclusive>
DEVICE void affine_values(T x[ORDER_LEAF], T factor, carry<affine_term<T>> carry, int last)
{
    T y = carry.present ? carry.sum : T{};
#pragma unroll
    for (int i = 0; i < ORDER_LEAF; i++) {
        const int k = Backward ? ORDER_LEAF - 1 - i : i;
        const bool start = Partial ? k == last : i == 0;
        const T before = Partial && start ? (carry.present ? carry.sum : T{}) : y;
        y = affine_apply(factor, before, x[k]);
        if (start && !carry.present)
            y = x[k];
        x[k] = Exclusive ? before : y;
    }
}

/* The pins keep apart what the kinds have in common: computed before they part, it would not fit the registers. */
template <class T, bool Backward, bool Partial>
DEVICE void affine_values(T x[ORDER_LEAF], T factor, carry<affine_term<T>> carry, int last, bool exclusive)
{
    if (exclusive) {
        pin(carry.sum);
        affine_values<T, Backward, Partial, true>(x, factor, carry, last);
    } else {
        pin(carry.sum);
        affine_values<T, Backward, Partial, false>(x, factor, carry, last);
    }
}

/* By the first warp: the totals of tiles become the carries into them. */
template <class T, bool Backward>
DEVICE void affine_tiles(tile_sums<typename affine_samples<T>::sum> *shared, const affine_factors<T> *factors,
                         int tiles, const general_outside<affine_sum<T>> &outside)
{
    const int tile = lane_index(), last = tiles - 1;
    T term = shared->totals[tile];
    term = affine_scan<T, Backward>(term, factors, last);
    if (outside.total_wanted() && tile == (Backward ? 0 : last))
        *outside.sum() = {term, factors->after[AFFINE_STEPS][affine_position<Backward>(last)]};
    carry<affine_term<T>> outer = {T{}, outside.present()};
    if (outer.present)
        outer.sum = outside.sum()->term;
    shared->carries[tile] = affine_carry<T, Backward>(term, factors, last, outer).sum;
}

/* As block_pass. */
template <class T, bool Backward>
DEVICE void affine_ahead_pass(T x[ORDER_LEAF], T factor, int length, int warp, bool exclusive,
                              tile_sums<typename affine_samples<T>::sum> *shared, const affine_powers<T> *powers,
                              const general_outside<affine_sum<T>> &outside)
{
    const int samples = tile_samples(length, warp), leaves = (samples + ORDER_LEAF - 1u) / ORDER_LEAF;
    const int tiles = (length + ORDER_TILE - 1u) / ORDER_TILE;
    const struct leaf_end end = leaf_end_of<affine_term<T>, Backward>(samples);
    const affine_factors<T> *factors = Backward && warp == tiles - 1 ? &powers->last_leaves : &powers->leaves;
    T term = end.partial ? affine_total<T, Backward, Backward>(x, factor, end.last)
                         : affine_total<T, Backward, false>(x, factor, end.last);
    term = affine_scan<T, Backward>(term, factors, leaves - 1);
    if (lane_index() == (Backward ? 0 : leaves - 1))
        shared->totals[warp] = term;
    __syncthreads();
    if (warp == 0)
        affine_tiles<T, Backward>(shared, Backward ? &powers->last_tiles : &powers->tiles, tiles, outside);
    __syncthreads();
    if (outside.total_wanted())
        return;
    const bool present = outside.present() || warp != (Backward ? tiles - 1 : 0);
    carry<affine_term<T>> carry =
        affine_carry<T, Backward>(term, factors, leaves - 1, {shared->carries[warp], present});
    if (end.partial)
        affine_values<T, Backward, Backward>(x, factor, carry, end.last, exclusive);
    else
        affine_values<T, Backward, false>(x, factor, carry, end.last, exclusive);
}

/* Returns whether there are results: no total was wanted. */
template <class T>
DEVICE bool affine_ahead_passes(const struct affine_ahead_plan &plan, const struct scan_item *item, int warp, T factor,
                                general_shared<typename affine_samples<T>::sum> *shared, const affine_powers<T> *powers,
                                T x[ORDER_LEAF])
{
    const struct scan_plan &scan = plan.general.scan;
    const bool exclusive = plan.general.kind == SCAND_KIND_EXCLUSIVE;
#pragma unroll 1
    for (int pass = 0;; pass++) {
        const general_outside<affine_sum<T>> outside = {plan.general, item, pass};
        if (scan.backward[pass])
            affine_ahead_pass<T, true>(x, factor, item->length, warp, exclusive, &shared->pass, powers, outside);
        else
            affine_ahead_pass<T, false>(x, factor, item->length, warp, exclusive, &shared->pass, powers, outside);
        if (pass == scan.totals_pass)
            return false;
        if (pass + 1 == scan.pass_count)
            return true;
        leaf_between_passes<typename affine_samples<T>::sum>(x, !plan.general.wide[pass + 1]);
    }
}

template <class T> DEVICE T affine_factor(const struct affine_ahead_plan &plan)
{
    if constexpr (std::is_same<T, uint64_t>::value)
        return plan.whole;
    else
        return number_of<T>(plan.coefficient);
}

/* Takes items as general_kernel does, with the same shared memory. */
template <class T>
__global__ void REGISTERS(affine_samples<T>::sum::registers)
    affine_ahead_kernel(const __grid_constant__ struct affine_ahead_plan plan)
{
    using Sum = typename affine_samples<T>::sum;
    extern __shared__ __align__(128) uint4 affine_ahead_tiles[];
    __shared__ struct scan_item items[ITEMS];
    __shared__ general_shared<Sum> shared;
    __shared__ affine_powers<T> powers;
    __shared__ uint64_t taken;
    const struct general_plan &general = plan.general;
    if (threadIdx.x < ITEMS_AHEAD)
        items[threadIdx.x] = general_item_at(general, blockIdx.x + (uint64_t)threadIdx.x * gridDim.x);
    const int warp = warp_index();
    if (warp == 0)
        affine_powers_make(&powers, affine_factor<T>(plan));
    __syncthreads();
    uint4 *tile = affine_ahead_tiles + warp * general.scan.room;
    general_fetch_first(general, &items[0], warp, tile);

    for (unsigned turn = 0; items[turn % ITEMS].length >= 0; turn++) {
        const int number = warp_uniform(turn % ITEMS);
        const struct scan_item *item = &items[number], *next = &items[(number + 1) % ITEMS];
        T x[ORDER_LEAF];
        if (warp == 0 && lane_index() == 0)
            taken = scan_take(general.scan, turn); /* while the samples are on their way */
        if (item->length != powers.length) {
            __syncthreads(); /* nobody looks at the old ones any more */
            if (warp == 0)
                affine_powers_make_last(&powers, affine_factor<T>(plan), item->length);
            __syncthreads();
        }
        general_read<Sum, true>(general, item, next, warp, tile, &shared, x);
        __syncwarp();
        if (affine_ahead_passes<T>(plan, item, warp, affine_factor<T>(plan), &shared, &powers, x))
            general_write<Sum, true>(general, item, warp, tile + WORDS_SLOTS(general.input_bytes), x);
        if (warp == 0 && lane_index() == 0)
            items[(turn + ITEMS_AHEAD) % ITEMS] = general_item_at(general, taken);
    }
    if (general.scan.progress && threadIdx.x == 0)
        scan_finish(general.scan.progress);
}

#endif
