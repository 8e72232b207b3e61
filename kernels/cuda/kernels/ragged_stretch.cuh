/*
 * A stretch of ragged rows: what a warp has, two tiles at most, in registers from the first pass to the last. They are
 * the tiles of one row, its part of a longer one that a team of 2, 4 or 8 warps shares, which meet once in each pass,
 * or a row each: while one tile waits for what it has begun, there are the other's instructions.
 */
#ifndef KERNELS_CUDA_KERNELS_RAGGED_STRETCH_CUH
#define KERNELS_CUDA_KERNELS_RAGGED_STRETCH_CUH

#include "kernels/cuda/kernels/ragged_tile.cuh"
#include "kernels/cuda/lane/convert32.cuh"
#include "kernels/cuda/warp/tile_prefixes.cuh"

#define STRETCH_SMEM   (RAGGED_SMEM / 2)              /* vectors of it, as the samples of another one come meanwhile */
#define STRETCH_TOTALS (STRETCH_TILES * RAGGED_WARPS) /* totals of the tiles of a row */
static_assert(STRETCH_SMEM >= STRETCH_TILES * TILE_SMEM, "the smem of a warp is for two stretches");

/* The warps of a thread block that work on an item together, and this warp's number among them. */
struct ragged_team {
    int size, member;
    int number; /* 0 to 14: each has a barrier of its own */
};

/* All of a team have to come to the same one of these instructions, whether they have tiles or not: PTX asks no more
 * than that the threads of a warp do, but synccheck reports it. */
DEVICE void ragged_meet(struct ragged_team team)
{
    named_barrier_sync(1 + team.number, team.size * WARP);
}

/* The number of samples of an item that a member of a team has. */
DEVICE int stretch_samples(int samples, int member)
{
    return min(max(samples - member * STRETCH_SAMPLES, 0), STRETCH_SAMPLES);
}

/* Up to two tiles that a warp has at once: one after the other in a row, or, if they are apart, a row each. */
struct stretch {
    uint64_t at[STRETCH_TILES];
    int samples[STRETCH_TILES];
    bool apart;
};

/* Tiles lie TILE_SMEM vectors apart in shared memory, each as in device memory from the start of a line on. */

/* An address in shared memory, settled as `settled` does. */
DEVICE uint4 *settled_vec16(const uint4 *vec16)
{
    unsigned address = smem_address(vec16);
    pin(address);
    return (uint4 *)__cvta_shared_to_generic(address);
}

/* The vector that a lane moves, in the line that a tile begins in and in every fourth one after it. */
DEVICE char *stretch_vec16(const char *tile)
{
    return settled((char *)((uintptr_t)tile & -(uintptr_t)(LINE_VECTORS * VEC16_BYTES)) + lane_index() * VEC16_BYTES);
}

/* Starts to fetch a tile to where `to` is this lane's vector, and with it what comes after it in its last vector. */
DEVICE void stretch_fetch_tile(uint4 *to, const char *source, int samples)
{
    const int lane = lane_index(), first = vectors_in_line(source);
    const int end = samples > 0 ? (4u * first + shift_of<float>(source) + samples + 3) / 4 : 0;
    const char *from = stretch_vec16(source);
#pragma unroll
    for (int k = 0; k <= TILE_VECTORS; k += WARP)
        if ((k > 0 || lane >= first) && k + lane < end)
            __pipeline_memcpy_async(to + k, from + k * VEC16_BYTES, VEC16_BYTES);
}

/* Fetches a stretch, but no vector that all of memory may end in. */
DEVICE void stretch_fetch(const struct ragged_plan &plan, const struct stretch &stretch, uint4 *vectors)
{
    static_assert(STRETCH_TILES == 2, "one of them is the last");
    const int last = stretch.samples[1] > 0;
    const uint64_t end =
        (last ? stretch.at[1] : stretch.at[0]) + (last ? stretch.samples[1] : stretch.samples[0]) * sizeof(float);
    if (end <= plan.whole_bytes || stretch.samples[0] == 0) {
        uint4 *to = settled_vec16(vectors + swizzle<float>(lane_index()));
#pragma unroll
        for (int t = 0; t < STRETCH_TILES; t++)
            stretch_fetch_tile(to + t * TILE_SMEM, plan.input + stretch.at[t], stretch.samples[t]);
    } else {
#pragma unroll 1
        for (int t = 0; t <= last; t++)
            fetch_lines<1>(vectors + t * TILE_SMEM, plan.input + (t == 0 ? stretch.at[0] : stretch.at[1]),
                           t == 0 ? stretch.samples[0] : stretch.samples[1]);
    }
}

/* Fills a leaf as leaf_fill does, in fewer instructions where the end of a row has to be filled in nearly all rows. */
template <class Sum> DEVICE void stretch_fill(typename Sum::sample x[ORDER_LEAF], int samples)
{
    const int there = min(max(samples - lane_index() * ORDER_LEAF, 0), ORDER_LEAF);
    const unsigned missing = ~0u << there;
#pragma unroll
    for (int i = 0; i < ORDER_LEAF; i++)
        if (missing >> i & 1)
            x[i] = Sum::absent();
}

/* Totals of all leaves in a pass, to inclusive prefixes in their tiles. Backward, absent samples come in place of those
 * that are not there; forward, nobody listens to them. */
template <class Sum, bool Backward>
DEVICE void stretch_sums(struct held_leaf<typename Sum::sample> leaves[STRETCH_TILES], const struct stretch &stretch,
                         typename Sum::sum sums[STRETCH_TILES])
{
    static_assert(Sum::has_identity, "all leaves are full then");
    if (Backward)
#pragma unroll
        for (int t = 0; t < STRETCH_TILES; t++)
            if (stretch.samples[t] < ORDER_TILE)
                stretch_fill<Sum>(leaves[t].x, stretch.samples[t]);
#pragma unroll
    for (int t = 0; t < STRETCH_TILES; t++)
        sums[t] = leaf_total<Sum, Backward, false>(leaves[t].x, ORDER_LEAF - 1);
    kogge_stone<Sum, Backward, STRETCH_TILES>(sums, [](int) { return WARP - 1; });
}

/* Tells the totals of this warp's tiles. `totals` are those of the row. */
template <class Sum, bool Backward>
DEVICE void stretch_publish(const typename Sum::sum sums[STRETCH_TILES], const struct stretch &stretch,
                            struct ragged_team team, typename Sum::sum *totals)
{
#pragma unroll
    for (int t = 0; t < STRETCH_TILES; t++)
        if (stretch.samples[t] > 0 && lane_index() == (Backward ? 0 : ragged_leaves(stretch.samples[t]) - 1))
            totals[team.member * STRETCH_TILES + t] = sums[t];
}

/* Replaces samples by their values. `outer` are the carries into the tiles. */
template <class Sum, bool Backward, int Kind>
DEVICE void stretch_values(struct held_leaf<typename Sum::sample> leaves[STRETCH_TILES], const struct stretch &stretch,
                           const typename Sum::sum sums[STRETCH_TILES], const carry<Sum> outer[STRETCH_TILES])
{
#pragma unroll
    for (int t = 0; t < STRETCH_TILES; t++) {
        carry<Sum> leaf = group_before<Sum, Backward>(sums[t], WARP - 1);
        leaf = carry_join<Sum>(outer[t], leaf);
        leaf_values<Sum, Backward, Kind, false>(leaves[t].x, leaf, ORDER_LEAF - 1, Kind);
        if (Kind == SCAND_KIND_EXCLUSIVE && !outer[t].present)
            leaf_zero_at<Sum>(leaves[t].x, (Backward ? stretch.samples[t] - 1 : 0) - lane_index() * ORDER_LEAF);
    }
}

/* The carries into the tiles of a row that this warp has alone. */
template <class Sum, bool Backward>
DEVICE void stretch_carries_alone(const typename Sum::sum sums[STRETCH_TILES], const struct stretch &stretch,
                                  carry<Sum> carries[STRETCH_TILES])
{
    static_assert(STRETCH_TILES == 2, "no more than the other one is met before a tile");
#pragma unroll
    for (int t = 0; t < STRETCH_TILES; t++)
        carries[t] = {Sum::identity(), false};
    if (!stretch.apart && stretch.samples[1] > 0)
        carries[!Backward] = {lane_value(sums[Backward], Backward ? 0 : WARP - 1), true};
}

/* Into this warp's tiles of a row that it shares with its team. All members meet here, whether they have tiles or not.
 */
template <class Sum, bool Backward>
DEVICE void stretch_carries(const typename Sum::sum sums[STRETCH_TILES], const struct stretch &stretch, int row_samples,
                            struct ragged_team team, typename Sum::sum *totals, carry<Sum> carries[STRETCH_TILES])
{
    stretch_publish<Sum, Backward>(sums, stretch, team, totals);
    ragged_meet(team);
    const int tiles = ragged_tiles(row_samples);
    typename Sum::sum sum = lane_index() < tiles ? totals[lane_index()] : Sum::identity();
    sum = group_before<Sum, Backward>(group_scan<Sum, Backward>(sum, WARP - 1), WARP - 1).sum;
#pragma unroll
    for (int t = 0; t < STRETCH_TILES; t++) {
        const int tile = team.member * STRETCH_TILES + t;
        carries[t] = {lane_value(sum, tile), tile != (Backward ? tiles - 1 : 0)};
    }
}

/* One pass over the tiles that this warp has. */
template <class Sum, bool Backward, int Kind>
DEVICE void stretch_pass(struct held_leaf<typename Sum::sample> leaves[STRETCH_TILES], const struct stretch &stretch,
                         int row_samples, struct ragged_team team, typename Sum::sum *totals)
{
    typename Sum::sum sums[STRETCH_TILES];
    carry<Sum> carries[STRETCH_TILES];
    stretch_sums<Sum, Backward>(leaves, stretch, sums);
    if (team.size > 1)
        stretch_carries<Sum, Backward>(sums, stretch, row_samples, team, totals, carries);
    else
        stretch_carries_alone<Sum, Backward>(sums, stretch, carries);
    stretch_values<Sum, Backward, Kind>(leaves, stretch, sums, carries);
}

/* A leaf that begins `shift` samples after the start of vector `first`: as leaf_read_at, but rows begin anywhere, so
 * without branches. */
DEVICE void stretch_leaf_read(const uint4 *vectors, int first, int shift, float x[ORDER_LEAF])
{
    float from[ORDER_LEAF + 4], half[ORDER_LEAF + 1];
#pragma unroll
    for (int j = 0; j <= ORDER_LEAF / 4; j++)
        vec16_get(&vectors[swizzle<float>(first + j)], &from[4 * j]);
#pragma unroll
    for (int i = 0; i <= ORDER_LEAF; i++)
        half[i] = shift & 2 ? from[i + 2] : from[i];
#pragma unroll
    for (int i = 0; i < ORDER_LEAF; i++)
        x[i] = shift & 1 ? half[i + 1] : half[i];
}

/* Reads this lane's leaves. Their place is free then. */
template <class Sum>
DEVICE void stretch_read(const struct stretch &stretch, const char *input, const uint4 *vectors,
                         struct held_leaf<typename Sum::sample> leaves[STRETCH_TILES])
{
    vectors = settled_vec16(vectors);
#pragma unroll
    for (int t = 0; t < STRETCH_TILES; t++) {
        const char *source = input + stretch.at[t];
        float samples[ORDER_LEAF];
        stretch_leaf_read(vectors + t * TILE_SMEM, vectors_in_line(source) + ORDER_LEAF / 4 * lane_index(),
                          shift_of<float>(source), samples);
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            leaves[t].x[i] = Sum::from_f32(samples[i]);
    }
    __syncwarp();
}

/* The way back: moves results up to where they lie in vectors, into the next lane's leaf at the end. */
DEVICE void stretch_leaf_write(uint4 *vectors, const char *target, float x[ORDER_LEAF])
{
    const int lane = lane_index(), shift = shift_of<float>(target), first = vectors_in_line(target);
    float before[3], *beyond = (float *)(vectors + swizzle<float>(first + TILE_VECTORS)) + shift - 3;
#pragma unroll
    for (int i = 0; i < 3; i++) {
        const float last = x[ORDER_LEAF - 3 + i];
        if (lane == WARP - 1 && shift >= 3 - i)
            beyond[i] = last;
        before[i] = __shfl_up_sync(~0u, last, 1);
    }
#pragma unroll
    for (int i = ORDER_LEAF - 1; i >= 0; i--)
        x[i] = shift & 2 ? (i < 2 ? before[i + 1] : x[i - 2]) : x[i];
    before[2] = shift & 2 ? before[0] : before[2];
#pragma unroll
    for (int i = ORDER_LEAF - 1; i >= 0; i--)
        x[i] = shift & 1 ? (i < 1 ? before[2] : x[i - 1]) : x[i];
#pragma unroll
    for (int j = 0; j < ORDER_LEAF / 4; j++)
        vec16_put(&vectors[swizzle<float>(first + ORDER_LEAF / 4 * lane + j)], &x[4 * j]);
}

/* Writes a tile's vectors but for those that it shares with others. `from`: this lane's. */
DEVICE void stretch_drain_tile(const uint4 *from, char *target, int samples)
{
    const int lane = lane_index(), first = vectors_in_line(target), shift = shift_of<float>(target);
    const int begin = first + (shift > 0), end = (unsigned)(4 * first + shift + samples) / 4;
    char *to = stretch_vec16(target);
    __builtin_assume(__isGlobal(to));
#pragma unroll
    for (int k = 0; k <= TILE_VECTORS; k += WARP)
        if ((k > 0 || lane >= begin) && k + lane < end)
            *(uint4 *)(to + k * VEC16_BYTES) = from[k];
}

/* Writes the samples at either end of a tile one by one, by 4 lanes each. */
DEVICE void stretch_edges(const struct stretch &stretch, char *output, const uint4 *vectors)
{
    static_assert(STRETCH_TILES == 2, "8 lanes for each");
    const unsigned lane = lane_index(), tile = lane / 8;
    char *target = output + (tile == 0 ? stretch.at[0] : stretch.at[1]);
    const unsigned shift = shift_of<float>(target), end = shift + (tile == 0 ? stretch.samples[0] : stretch.samples[1]);
    const unsigned k = (lane & 4 ? end & ~3u : 0) + lane % 4;
    if (tile < STRETCH_TILES && k >= shift && k < end && (lane & 4 ? k >= 4 || shift == 0 : shift > 0))
        *(float *)(target + ((int)k - (int)shift) * 4) =
            *staged_sample<float>(vectors + tile * TILE_SMEM, 4 * vectors_in_line(target) + k);
}

template <class Sum>
DEVICE void stretch_write(const struct stretch &stretch, char *output, uint4 *vectors,
                          const struct held_leaf<typename Sum::sample> leaves[STRETCH_TILES])
{
    vectors = settled_vec16(vectors);
#pragma unroll
    for (int t = 0; t < STRETCH_TILES; t++) {
        float results[ORDER_LEAF];
        leaf_results<Sum>(leaves[t].x, results);
        stretch_leaf_write(vectors + t * TILE_SMEM, output + stretch.at[t], results);
    }
    __syncwarp();
    const uint4 *from = settled_vec16(vectors + swizzle<float>(lane_index()));
#pragma unroll
    for (int t = 0; t < STRETCH_TILES; t++)
        stretch_drain_tile(from + t * TILE_SMEM, output + stretch.at[t], stretch.samples[t]);
    stretch_edges(stretch, output, vectors);
    __syncwarp();
}

/*
 * All passes over a warp's stretch of a row. `totals`, of the team, has room for those of a row, twice: those of one
 * pass are written while others may still read those of the pass before. `meetings`: how often the team has met. Counts
 * down, or else there would be two copies of the loop's body, one of them for the first pass.
 */
template <class Sum, int Kind>
DEVICE void stretch_scan(const struct ragged_plan &plan, const struct stretch &stretch, int row_samples,
                         struct ragged_team team, uint4 *vectors, typename Sum::sum (*totals)[STRETCH_TOTALS],
                         unsigned meetings)
{
    struct held_leaf<typename Sum::sample> leaves[STRETCH_TILES];
    stretch_read<Sum>(stretch, plan.input, vectors, leaves);
#pragma unroll 1
    for (int left = plan.pass_count;; left--, meetings++) {
        if (plan.backward[plan.pass_count - left])
            stretch_pass<Sum, true, Kind>(leaves, stretch, row_samples, team, totals[meetings % 2]);
        else
            stretch_pass<Sum, false, Kind>(leaves, stretch, row_samples, team, totals[meetings % 2]);
        if (left == 1)
            break;
#pragma unroll
        for (int t = 0; t < STRETCH_TILES; t++)
            leaf_between_passes<Sum>(leaves[t].x, true);
    }
    stretch_write<Sum>(stretch, plan.output, vectors, leaves);
}

#endif
