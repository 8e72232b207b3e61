/*
 * A stretch of a ragged row: its part that a warp has, two tiles at most, in registers from the first pass to the last.
 * A row of more is shared out among a team of 2, 4 or 8 warps, which meet once in each pass.
 */
#ifndef KERNELS_CUDA_RAGGED_STRETCH_CUH
#define KERNELS_CUDA_RAGGED_STRETCH_CUH

#include "kernels/cuda/few.cuh"
#include "kernels/cuda/ragged_items.cuh"

#define STRETCH_SAMPLES (STRETCH_TILES * ORDER_TILE)
#define STRETCH_ROOM    (RAGGED_ROOM / 2)              /* slots of it, as the samples of another one come meanwhile */
#define STRETCH_TOTALS  (STRETCH_TILES * RAGGED_WARPS) /* of the tiles of a row */
static_assert(STRETCH_ROOM >= FEW_ROOM(STRETCH_TILES), "the room of a warp is for two stretches");

/* Which warps of a thread block work on an item together, and which of them this is. */
struct ragged_team {
    int size, member;
    int number; /* 0 to 14: each has a barrier of its own */
};

/* Warps with fewer tiles come to another of these instructions than the rest of their team. PTX asks no more than that
 * a warp's threads come to the same one; synccheck reports it all the same. */
DEVICE void ragged_meet(struct ragged_team team)
{
    asm volatile("bar.sync %0, %1;" : : "r"(1 + team.number), "r"(team.size * WARP) : "memory");
}

/* How many samples of an item a member of a team has. */
DEVICE int stretch_samples(int samples, int member)
{
    return min(max(samples - member * STRETCH_SAMPLES, 0), STRETCH_SAMPLES);
}

/* Where they begin, in bytes. */
DEVICE uint64_t stretch_at(const struct ragged_item *item, struct ragged_team team)
{
    return (item->first + team.member * STRETCH_SAMPLES) * sizeof(float);
}

/* Starts to fetch them. */
DEVICE void stretch_fetch(uint4 *slots, const char *source, int samples)
{
    if (samples > ORDER_TILE)
        fetch_lines<2>(slots, source, samples);
    else if (samples > 0)
        fetch_lines<1>(slots, source, samples);
}

/* Totals of all leaves in a pass, to inclusive prefixes in their tiles: in place of samples that are not there come
 * absent ones. */
template <class Sum, int Tiles, bool Backward>
DEVICE void stretch_sums(struct few_leaf<typename Sum::sample> leaves[Tiles], int samples,
                         typename Sum::sum sums[Tiles])
{
    const int rest = samples - (Tiles - 1) * ORDER_TILE;
    if (Sum::has_identity && Backward && rest < ORDER_TILE) /* forward, nobody listens to what comes after the row */
        leaf_fill<Sum>(leaves[Tiles - 1].x, rest);
    const struct leaf_end end = leaf_end_of<Sum, Backward>(rest);
#pragma unroll
    for (int t = 0; t < Tiles; t++)
        sums[t] = t == Tiles - 1 && end.partial ? leaf_total<Sum, Backward, Backward>(leaves[t].x, end.last)
                                                : leaf_total<Sum, Backward, false>(leaves[t].x, ORDER_LEAF - 1);
    few_scan<Sum, Tiles, Backward>(sums, group_last<Sum>(ragged_leaves(rest)));
}

/* Tells the totals of tiles, the first of which is to be at `totals`. */
template <class Sum, int Tiles, bool Backward>
DEVICE void stretch_tell(const typename Sum::sum sums[Tiles], int samples, typename Sum::sum totals[Tiles])
{
    const int last = ragged_leaves(samples - (Tiles - 1) * ORDER_TILE) - 1;
#pragma unroll
    for (int t = 0; t < Tiles; t++)
        if (lane_index() == (Backward ? 0 : t < Tiles - 1 ? WARP - 1 : last))
            totals[t] = sums[t];
}

/* Replaces samples by their values. `outer` are the carries into the tiles. */
template <class Sum, int Tiles, bool Backward, int Kind>
DEVICE void stretch_values(struct few_leaf<typename Sum::sample> leaves[Tiles], int samples,
                           const typename Sum::sum sums[Tiles], const carry<Sum> outer[Tiles])
{
    const int rest = samples - (Tiles - 1) * ORDER_TILE, last = group_last<Sum>(ragged_leaves(rest));
    const struct leaf_end end = leaf_end_of<Sum, Backward>(rest);
#pragma unroll
    for (int t = 0; t < Tiles; t++) {
        carry<Sum> leaf = group_before<Sum, Backward>(sums[t], t < Tiles - 1 ? WARP - 1 : last);
        if (outer[t].present)
            leaf = carry_join<Sum>(outer[t], leaf);
        if (t == Tiles - 1 && end.partial)
            leaf_values<Sum, Backward, Kind, Backward>(leaves[t].x, leaf, end.last, Kind);
        else
            leaf_values<Sum, Backward, Kind, false>(leaves[t].x, leaf, ORDER_LEAF - 1, Kind);
        if (Kind == SCAND_KIND_EXCLUSIVE && Sum::has_identity && !outer[t].present)
            leaf_zero_first<Sum, Backward>(leaves[t].x, rest + t * ORDER_TILE, t, Sum::value(Sum::zero()));
    }
}

/* The carries into this warp's tiles of a row, from its own totals if it has all of them. */
template <class Sum, int Tiles, bool Backward>
DEVICE void stretch_carries_alone(const typename Sum::sum sums[Tiles], carry<Sum> carries[Tiles])
{
    typename Sum::sum totals[Tiles];
#pragma unroll
    for (int met = 0; met < Tiles; met++) {
        const int t = Backward ? Tiles - 1 - met : met;
        if (met + 1 < Tiles)
            totals[met] = lane_value(sums[t], Backward ? 0 : WARP - 1);
        carries[t] = {met > 0 ? few_carry<Sum>(totals, met) : Sum::identity(), met > 0};
    }
}

/* From those of all tiles. */
template <class Sum, int Tiles, bool Backward>
DEVICE void stretch_carries(const typename Sum::sum *totals, int tiles, int first, carry<Sum> carries[Tiles])
{
    const int last = group_last<Sum>(tiles);
    typename Sum::sum sum = lane_index() < tiles ? totals[lane_index()] : Sum::identity();
    sum = group_before<Sum, Backward>(group_scan<Sum, Backward>(sum, last), last).sum;
#pragma unroll
    for (int t = 0; t < Tiles; t++)
        carries[t] = {lane_value(sum, first + t), first + t != (Backward ? tiles - 1 : 0)};
}

/* One pass over this warp's tiles, of which there are as many as its samples have. */
template <class Sum, int Tiles, bool Backward, int Kind>
DEVICE void stretch_pass(struct few_leaf<typename Sum::sample> leaves[Tiles], int row_samples, struct ragged_team team,
                         typename Sum::sum *totals)
{
    const int samples = stretch_samples(row_samples, team.member), first = team.member * STRETCH_TILES;
    typename Sum::sum sums[Tiles];
    carry<Sum> carries[Tiles];
    stretch_sums<Sum, Tiles, Backward>(leaves, samples, sums);
    if (team.size == 1) {
        stretch_carries_alone<Sum, Tiles, Backward>(sums, carries);
    } else {
        stretch_tell<Sum, Tiles, Backward>(sums, samples, totals + first);
        ragged_meet(team);
        stretch_carries<Sum, Tiles, Backward>(totals, ragged_tiles(row_samples), first, carries);
    }
    stretch_values<Sum, Tiles, Backward, Kind>(leaves, samples, sums, carries);
}

/* Reads this lane's leaves. Their place is free then. */
template <class Sum, int Tiles>
DEVICE void stretch_read(const uint4 *slots, const char *source, struct few_leaf<typename Sum::sample> leaves[Tiles])
{
#pragma unroll
    for (int t = 0; t < Tiles; t++) {
        float samples[ORDER_LEAF];
        leaf_read_at(slots + t * TILE_SLOTS, slots_in_line(source) + ORDER_LEAF / 4 * lane_index(),
                     shift_of<float>(source), samples);
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            leaves[t].x[i] = Sum::from_f32(samples[i]);
    }
    __syncwarp();
}

template <class Sum, int Tiles>
DEVICE void stretch_write(uint4 *slots, char *target, int samples,
                          const struct few_leaf<typename Sum::sample> leaves[Tiles])
{
    struct few_leaf<float> results[Tiles];
#pragma unroll
    for (int t = 0; t < Tiles; t++)
        leaf_results<Sum, float>(leaves[t].x, results[t].x);
    few_write<Tiles>(slots, target, samples, results);
}

/*
 * All passes over a warp's stretch of a row. `totals`, of the team, has room for those of a row, twice: those of one
 * pass are written while others may still read those of the pass before. `meetings`: how often the team has met.
 */
template <class Sum, int Tiles, int Kind>
DEVICE void stretch_scan(const struct ragged_plan &plan, const struct ragged_item *item, struct ragged_team team,
                         uint4 *slots, typename Sum::sum (*totals)[STRETCH_TOTALS], unsigned meetings)
{
    struct few_leaf<typename Sum::sample> leaves[Tiles];
    stretch_read<Sum, Tiles>(slots, plan.input + stretch_at(item, team), leaves);
#pragma unroll 1
    for (int pass = 0;; pass++, meetings++) {
        if (plan.backward[pass])
            stretch_pass<Sum, Tiles, true, Kind>(leaves, item->samples, team, totals[meetings % 2]);
        else
            stretch_pass<Sum, Tiles, false, Kind>(leaves, item->samples, team, totals[meetings % 2]);
        if (pass + 1 == plan.pass_count)
            break;
#pragma unroll
        for (int t = 0; t < Tiles; t++)
            leaf_between_passes<Sum>(leaves[t].x, true);
    }
    stretch_write<Sum, Tiles>(slots, plan.output + stretch_at(item, team), stretch_samples(item->samples, team.member),
                              leaves);
}

#endif
