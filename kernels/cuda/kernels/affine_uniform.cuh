/*
 * The affine recurrence over contiguous rows with one coefficient for all samples: in the manner of the any_layout
 * kernel, and by the same order (block.cuh).
 *
 * What a map multiplies by depends only on how many samples it stands for. So the factors that the network meets are
 * the same in every tile, but where a backward pass begins with less than a leaf or a tile: they are made once and lie
 * in shared memory, and lanes hold, add up and send terms alone.
 */
#ifndef KERNELS_CUDA_KERNELS_AFFINE_UNIFORM_CUH
#define KERNELS_CUDA_KERNELS_AFFINE_UNIFORM_CUH

#include "kernels/cuda/kernels/affine.cuh"

/* The factors of what a group's members and all before them make, by the position at which a pass meets them. */
template <class T> struct affine_factors {
    T prefix[WARP];
};

/* The powers for leaves and tiles: for those that are all full, and for those of which the first that is met may not
 * be. */
template <class T> struct affine_powers {
    affine_factors<T> leaves, tiles, last_leaves, last_tiles;
    int length; /* samples of the order block that the last ones are for, or 0 */
};

/* Makes factors, by one warp. The network multiplies as it joins maps (affine_accumulator.cuh). It is written out here:
 * as an instance of kogge_stone the compiler makes eight instructions more of it in f2. */
template <class T> DEVICE void affine_factors_make(affine_factors<T> *factors, T first, T other)
{
    const int lane = lane_index();
    T factor = lane == 0 ? first : other;
#pragma unroll
    for (int distance = 1; distance < WARP; distance *= 2) {
        T before;
        if (lane_before<false>(factor, &before, distance, WARP - 1))
            factor = affine_mul(factor, before);
    }
    factors->prefix[lane] = factor;
    __syncwarp();
}

/* The power of a factor for so many samples, multiplied one after the other. */
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
    const T tile = powers->leaves.prefix[WARP - 1];
    affine_factors_make(&powers->tiles, tile, tile);
    powers->length = 0;
}

/* Makes the powers that depend on the length of an order block, if it has samples. */
template <class T> DEVICE void affine_powers_make_last(affine_powers<T> *powers, T factor, int length)
{
    powers->length = length;
    if (length == 0)
        return;
    const int samples = (length - 1) % ORDER_TILE + 1, leaves = (samples + ORDER_LEAF - 1) / ORDER_LEAF;
    affine_factors_make(&powers->last_leaves, affine_power(factor, samples - (leaves - 1) * ORDER_LEAF),
                        powers->leaves.prefix[0]);
    affine_factors_make(&powers->last_tiles, powers->last_leaves.prefix[leaves - 1], powers->tiles.prefix[0]);
}

/* The position of a lane's member in its group, in the order of the pass; any position for a member that does not
 * exist. */
template <bool Backward> DEVICE int affine_position(int last)
{
    return Backward ? (last - lane_index()) & (WARP - 1) : lane_index();
}

/* The network over terms. What joins those before it at some distance stands for as many members, which are full: only
 * the first one of all may not be. (By its position a lane only asks for no factor before it needs one: all five would
 * not fit the registers.) */
template <class T, bool Backward, bool Early> DEVICE T affine_scan(T term, const affine_factors<T> *full, int last)
{
#pragma unroll
    for (int distance = 1; distance < WARP; distance *= 2) {
        T before;
        if (Early && distance > last)
            break;
        const bool there = lane_before<Backward>(term, &before, distance, last);
        const T factor = full->prefix[min(affine_position<Backward>(last), distance - 1)];
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
        const T factor = factors->prefix[(affine_position<Backward>(last) - 1) & (WARP - 1)];
        carry.sum = sum_choose<affine_term<T>>(carry.present, affine_apply(factor, outer.sum, carry.sum), outer.sum);
        carry.present = true;
    }
    return carry;
}

/* Makes the totals of tiles the carries into them, by the first warp. */
template <class Samples, bool Backward, class T>
DEVICE void affine_tiles(tile_sums<Samples> *shared, const affine_powers<T> *powers, int tiles,
                         const any_outside<affine_sum<T>> &outside, tile_state *states)
{
    const int tile = lane_index(), last = tiles - 1;
    const affine_factors<T> *factors = Backward ? &powers->last_tiles : &powers->tiles;
    T term = shared->totals[tile];
    term = affine_scan<T, Backward, true>(term, &powers->tiles, last);
    if (outside.total_wanted() && tile == (Backward ? 0 : last))
        *outside.sum() = {term, factors->prefix[affine_position<Backward>(last)]};
    carry<affine_term<T>> outer = {T{}, outside.present()};
    if (states) {
        const affine_map<T> total = {term, factors->prefix[affine_position<Backward>(last)]};
        outer.sum = affine_await<T, Backward>(outside.plan.scan, outside.item, states, total, Backward ? 0 : last).term;
    } else if (outer.present) {
        outer.sum = outside.sum()->term;
    }
    shared->carries[tile] = affine_carry<T, Backward>(term, factors, last, outer).sum;
}

/* A pass over an order block, as block_pass. */
template <class Samples, bool Backward, class T>
DEVICE void affine_ahead_pass(typename Samples::sample x[ORDER_LEAF], T factor, int length, int warp, bool exclusive,
                              tile_sums<Samples> *shared, const affine_powers<T> *powers,
                              const any_outside<affine_sum<T>> &outside, tile_state *states)
{
    const int samples = tile_samples(length, warp), leaves = (samples + ORDER_LEAF - 1u) / ORDER_LEAF;
    const int tiles = (length + ORDER_TILE - 1u) / ORDER_TILE;
    const struct leaf_end end = leaf_end_of<affine_term<T>, Backward>(samples);
    const affine_factors<T> *factors = Backward && warp == tiles - 1 ? &powers->last_leaves : &powers->leaves;
    const struct affine_same<T> same = {
        factor
    };
    T term = end.partial ? affine_leaf_total<T, Backward, Backward>(x, same, end.last).term
                         : affine_leaf_total<T, Backward, false>(x, same, end.last).term;
    term = affine_scan<T, Backward, false>(term, &powers->leaves, leaves - 1);
    if (lane_index() == (Backward ? 0 : leaves - 1))
        shared->totals[warp] = term;
    __syncthreads();
    if (warp == 0)
        affine_tiles<Samples, Backward>(shared, powers, tiles, outside, states);
    __syncthreads();
    if (outside.total_wanted())
        return;
    const bool present = outside.present() || warp != (Backward ? tiles - 1 : 0);
    carry<affine_term<T>> carry =
        affine_carry<T, Backward>(term, factors, leaves - 1, {shared->carries[warp], present});
    if (end.partial)
        affine_leaf_values<T, Backward, Backward>(x, same, carry, end.last, exclusive);
    else
        affine_leaf_values<T, Backward, false>(x, same, carry, end.last, exclusive);
}

/* Returns whether there are results: no total was wanted. */
template <class Samples, bool Long, class T>
DEVICE bool affine_ahead_passes(const struct affine_one_plan &plan, const struct scan_item *item, int warp, T factor,
                                any_shared<Samples> *shared, const affine_powers<T> *powers,
                                typename Samples::sample x[ORDER_LEAF])
{
    const struct scan_plan &scan = plan.samples.scan;
    const bool exclusive = plan.samples.kind == SCAND_KIND_EXCLUSIVE;
#pragma unroll 1
    for (int pass = 0;; pass++) {
        const any_outside<affine_sum<T>> outside = {plan.samples, item, pass};
        tile_state *published = Long ? plan.states.passes[pass] : NULL;
        if (scan.backward[pass])
            affine_ahead_pass<Samples, true>(x, factor, item->length, warp, exclusive, &shared->pass, powers, outside,
                                             published);
        else
            affine_ahead_pass<Samples, false>(x, factor, item->length, warp, exclusive, &shared->pass, powers, outside,
                                              published);
        if (pass == scan.totals_pass)
            return false;
        if (pass + 1 == scan.pass_count)
            return true;
        leaf_between_passes<Samples>(x, !plan.samples.wide[pass + 1]);
    }
}

/* Registers: as few as suffice for two thread blocks of 20 warps on an SM, where nearly all values have them. */
template <class Samples> constexpr int affine_ahead_registers = Samples::registers;
template <> constexpr int affine_ahead_registers<any_f2_of_f32> = 48;

/* Takes items as any_layout_kernel does, with the same shared memory. `Long`: rows have several order blocks, and tile
 * states: an SM holds one thread block of 32 warps at most. */
template <class Samples, bool Long>
__global__ void REGISTERS((Long ? 64 : affine_ahead_registers<Samples>))
    affine_ahead_kernel(const __grid_constant__ struct affine_one_plan plan)
{
    using T = typename Samples::sum;
    extern __shared__ __align__(128) uint4 affine_ahead_tiles[];
    __shared__ struct scan_item items[ITEMS];
    __shared__ any_shared<Samples> shared;
    __shared__ affine_powers<T> powers;
    __shared__ uint64_t taken;
    const struct any_plan &general = plan.samples;
    if (threadIdx.x < ITEMS_AHEAD)
        items[threadIdx.x] = any_item_at(general, blockIdx.x + (uint64_t)threadIdx.x * gridDim.x);
    const int warp = warp_index();
    if (warp == 0)
        affine_powers_make(&powers, affine_factor<T>(plan));
    __syncthreads();
    uint4 *tile = affine_ahead_tiles + warp * general.scan.smem;
    any_fetch_first(general, &items[0], warp, tile);

    for (unsigned iteration = 0; items[iteration % ITEMS].length >= 0; iteration++) {
        const int number = warp_uniform(iteration % ITEMS);
        const struct scan_item *item = &items[number], *next = &items[(number + 1) % ITEMS];
        typename Samples::sample x[ORDER_LEAF];
        if (warp == 0 && lane_index() == 0)
            taken = scan_take(general.scan, iteration); /* while the samples are on their way */
        if (item->length != powers.length) {
            __syncthreads(); /* nobody looks at the old ones any more */
            if (warp == 0)
                affine_powers_make_last(&powers, affine_factor<T>(plan), item->length);
            __syncthreads();
        }
        any_read<Samples, FETCH_AHEAD, true>(general, item, next, warp, tile, &shared, x);
        __syncwarp();
        if (affine_ahead_passes<Samples, Long>(plan, item, warp, affine_factor<T>(plan), &shared, &powers, x))
            any_write<Samples, true>(
                general, any_tile_target<true>{general, item, warp, tile + WORDS_VECTORS(general.input_bytes)}, x);
        if (warp == 0 && lane_index() == 0)
            items[(iteration + ITEMS_AHEAD) % ITEMS] = any_item_at(general, taken);
    }
    if (general.scan.progress && threadIdx.x == 0)
        scan_finish(general.scan.progress);
}

#endif
