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
static_assert(STRETCH_ROOM >= LINES_ROOM(STRETCH_TILES), "the room of a warp is for two stretches");

/* Which warps of a thread block work on an item together, and which of them this is. */
struct ragged_team {
    int size, member;
    int number; /* 0 to 14: each has a barrier of its own */
};

/* All of a team have to come to the same one of these instructions, whether they have tiles or not: PTX asks no more
 * than that the threads of a warp do, but synccheck reports it. */
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
DEVICE uint64_t stretch_at(uint64_t row_first, struct ragged_team team)
{
    return (row_first + team.member * STRETCH_SAMPLES) * sizeof(float);
}

/* Starts to fetch them. */
DEVICE void stretch_fetch(uint4 *slots, const char *source, int samples)
{
    if (samples > ORDER_TILE)
        fetch_lines<2>(slots, source, samples);
    else if (samples > 0)
        fetch_lines<1>(slots, source, samples);
}

/* As leaf_fill, in fewer instructions where the end of a row has to be filled in nearly all rows. */
template <class Sum> DEVICE void stretch_fill(typename Sum::sample x[ORDER_LEAF], int samples)
{
    const int there = min(max(samples - lane_index() * ORDER_LEAF, 0), ORDER_LEAF);
    const unsigned missing = ~0u << there;
#pragma unroll
    for (int i = 0; i < ORDER_LEAF; i++)
        if (missing >> i & 1)
            x[i] = Sum::absent();
}

/* Totals of all leaves in a pass, to inclusive prefixes in their tiles: in place of samples that are not there come
 * absent ones. */
template <class Sum, int Tiles, bool Backward>
DEVICE void stretch_sums(struct few_leaf<typename Sum::sample> leaves[Tiles], int samples,
                         typename Sum::sum sums[Tiles])
{
    const int rest = samples - (Tiles - 1) * ORDER_TILE;
    if (Sum::has_identity && Backward && rest < ORDER_TILE) /* forward, nobody listens to what comes after the row */
        stretch_fill<Sum>(leaves[Tiles - 1].x, rest);
    const struct leaf_end end = leaf_end_of<Sum, Backward>(rest);
#pragma unroll
    for (int t = 0; t < Tiles; t++)
        sums[t] = t == Tiles - 1 && end.partial ? leaf_total<Sum, Backward, Backward>(leaves[t].x, end.last)
                                                : leaf_total<Sum, Backward, false>(leaves[t].x, ORDER_LEAF - 1);
    few_scan<Sum, Tiles, Backward>(sums, group_last<Sum>(ragged_leaves(rest)));
}

/* Tells the totals of this warp's tiles. `totals` are those of the row. */
template <class Sum, bool Backward>
DEVICE void stretch_tell(const typename Sum::sum sums[STRETCH_TILES], int samples, struct ragged_team team,
                         typename Sum::sum *totals)
{
#pragma unroll
    for (int t = 0; t < STRETCH_TILES; t++) {
        const int rest = samples - t * ORDER_TILE;
        if (rest > 0 && lane_index() == (Backward ? 0 : min(ragged_leaves(rest), WARP) - 1))
            totals[team.member * STRETCH_TILES + t] = sums[t];
    }
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

/* The carries into the tiles of a row that this warp has alone. */
template <class Sum, bool Backward>
DEVICE void stretch_carries_alone(const typename Sum::sum sums[STRETCH_TILES], int row_samples,
                                  carry<Sum> carries[STRETCH_TILES])
{
    static_assert(STRETCH_TILES == 2, "no more than the other one is met before a tile");
#pragma unroll
    for (int t = 0; t < STRETCH_TILES; t++)
        carries[t] = {Sum::identity(), false};
    if (row_samples > ORDER_TILE)
        carries[!Backward] = {lane_value(sums[Backward], Backward ? 0 : WARP - 1), true};
}

/* Into this warp's tiles of a row that it shares with its team. All members meet here, whether they have tiles or not.
 */
template <class Sum, bool Backward>
DEVICE void stretch_carries(const typename Sum::sum sums[STRETCH_TILES], int row_samples, struct ragged_team team,
                            typename Sum::sum *totals, carry<Sum> carries[STRETCH_TILES])
{
    stretch_tell<Sum, Backward>(sums, stretch_samples(row_samples, team.member), team, totals);
    ragged_meet(team);
    const int tiles = ragged_tiles(row_samples), last = group_last<Sum>(tiles);
    typename Sum::sum sum = lane_index() < tiles ? totals[lane_index()] : Sum::identity();
    sum = group_before<Sum, Backward>(group_scan<Sum, Backward>(sum, last), last).sum;
#pragma unroll
    for (int t = 0; t < STRETCH_TILES; t++) {
        const int tile = team.member * STRETCH_TILES + t;
        carries[t] = {lane_value(sum, tile), tile != (Backward ? tiles - 1 : 0)};
    }
}

/* One pass over the tiles that this warp has of a row: two, one or, where a row has fewer than the team, none. */
template <class Sum, bool Backward, int Kind>
DEVICE void stretch_pass(struct few_leaf<typename Sum::sample> leaves[STRETCH_TILES], int row_samples,
                         struct ragged_team team, typename Sum::sum *totals)
{
    const int samples = stretch_samples(row_samples, team.member);
    typename Sum::sum sums[STRETCH_TILES];
    carry<Sum> carries[STRETCH_TILES];
    if (samples > ORDER_TILE)
        stretch_sums<Sum, 2, Backward>(leaves, samples, sums);
    else if (samples > 0)
        stretch_sums<Sum, 1, Backward>(leaves, samples, sums);
    if (team.size > 1)
        stretch_carries<Sum, Backward>(sums, row_samples, team, totals, carries);
    else
        stretch_carries_alone<Sum, Backward>(sums, row_samples, carries);
    if (samples > ORDER_TILE)
        stretch_values<Sum, 2, Backward, Kind>(leaves, samples, sums, carries);
    else if (samples > 0)
        stretch_values<Sum, 1, Backward, Kind>(leaves, samples, sums, carries);
}

/* As leaf_read_at, but rows begin anywhere, so without branches. */
DEVICE void stretch_leaf_read(const uint4 *slots, int first, int shift, float x[ORDER_LEAF])
{
    float from[ORDER_LEAF + 4], half[ORDER_LEAF + 1];
#pragma unroll
    for (int j = 0; j <= ORDER_LEAF / 4; j++)
        slot_get(&slots[slot_place<float>(first + j)], &from[4 * j]);
#pragma unroll
    for (int i = 0; i <= ORDER_LEAF; i++)
        half[i] = shift & 2 ? from[i + 2] : from[i];
#pragma unroll
    for (int i = 0; i < ORDER_LEAF; i++)
        x[i] = shift & 1 ? half[i + 1] : half[i];
}

/* Reads this lane's leaves. Their place is free then. */
template <class Sum, int Tiles>
DEVICE void stretch_read(const uint4 *slots, const char *source, struct few_leaf<typename Sum::sample> leaves[Tiles])
{
#pragma unroll
    for (int t = 0; t < Tiles; t++) {
        float samples[ORDER_LEAF];
        stretch_leaf_read(slots + t * TILE_SLOTS, slots_in_line(source) + ORDER_LEAF / 4 * lane_index(),
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
 * pass are written while others may still read those of the pass before. `meetings`: how often the team has met. Counts
 * down, or else there would be two copies of the loop's body, one of them for the first pass.
 */
template <class Sum, int Kind>
DEVICE void stretch_scan(const struct ragged_plan &plan, uint64_t row_first, int row_samples, struct ragged_team team,
                         uint4 *slots, typename Sum::sum (*totals)[STRETCH_TOTALS], unsigned meetings)
{
    const uint64_t at = stretch_at(row_first, team);
    const int samples = stretch_samples(row_samples, team.member);
    struct few_leaf<typename Sum::sample> leaves[STRETCH_TILES];
    if (samples > ORDER_TILE)
        stretch_read<Sum, 2>(slots, plan.input + at, leaves);
    else if (samples > 0)
        stretch_read<Sum, 1>(slots, plan.input + at, leaves);
#pragma unroll 1
    for (int left = plan.pass_count;; left--, meetings++) {
        if (plan.backward[plan.pass_count - left])
            stretch_pass<Sum, true, Kind>(leaves, row_samples, team, totals[meetings % 2]);
        else
            stretch_pass<Sum, false, Kind>(leaves, row_samples, team, totals[meetings % 2]);
        if (left == 1)
            break;
#pragma unroll
        for (int t = 0; t < STRETCH_TILES; t++)
            leaf_between_passes<Sum>(leaves[t].x, true);
    }
    if (samples > ORDER_TILE)
        stretch_write<Sum, 2>(slots, plan.output + at, samples, leaves);
    else if (samples > 0)
        stretch_write<Sum, 1>(slots, plan.output + at, samples, leaves);
}

#endif
