/*
 * Sums of segments on a GPU. A warp has the leaves of several short segments, a leaf in each lane, or a group of a long
 * one, of which the other groups are those of the other warps of the thread block. A box has no double sums.
 */
#ifndef KERNELS_STEPS_TRIANGLE_SUMS_CUH
#define KERNELS_STEPS_TRIANGLE_SUMS_CUH

#include "line.cuh"

#define WARPS_MAX (TRIANGLE_LEAVES_MAX / TRIANGLE_FAN)
static_assert(WARP == TRIANGLE_FAN, "a group for each warp");

/* How segments lie in a thread block. */
struct layout {
    int leaves; /* of a segment */
    int warps;  /* of the thread block, which share a segment where they are several */
    int lanes;  /* of a warp that are one segment's */
    int strips; /* segments side by side */

    static __host__ __device__ __forceinline__ struct layout of(const struct triangle &triangle)
    {
        const int leaves = triangle_leaves(triangle.half_width);
        const int lanes = leaves < WARP ? leaves : WARP;
        return {leaves, (leaves + WARP - 1) / WARP, lanes, leaves > WARP ? 1 : WARP / lanes};
    }
};

/* A thread's place. */
struct place {
    int strip, lane; /* the segment of those side by side, and the lane of its lanes */
    int leaf;        /* the leaf of that segment, which may be one that it does not have */
    bool has_strip;  /* false for lanes that are left over */

    static __device__ __forceinline__ struct place of(const struct layout &layout)
    {
        const int lane = (int)threadIdx.x % WARP, warp = (int)threadIdx.x / WARP, strip = lane / layout.lanes;
        const int in_strip = lane - strip * layout.lanes;
        return {strip, in_strip, warp * WARP + in_strip, strip < layout.strips};
    }
};

/* The number of this warp. The shuffle tells the compiler that its lanes have it in common. */
static __device__ __forceinline__ int warp_number()
{
    return __shfl_sync(~0u, (int)threadIdx.x / WARP, 0);
}

/* The largest of the lanes' values, which the compiler knows to be the same in all of them. */
static __device__ __forceinline__ int most_of_warp(int value)
{
    for (int distance = WARP / 2; distance > 0; distance /= 2)
        value = max(value, __shfl_xor_sync(~0u, value, distance));
    return __shfl_sync(~0u, value, 0);
}

/* What the threads of a block tell each other, of two segments by turns, so that no warp has to wait for others before
 * it writes. */
struct exchange {
    struct triangle_sums groups[2][WARPS_MAX];
    struct triangle_sums totals[2][WARP]; /* of the strips side by side */
};

template <enum triangle_shape Shape>
static __device__ __forceinline__ struct triangle_sums add(struct triangle_sums before, double x)
{
    if constexpr (Shape == TRIANGLE_BOX)
        return {before.single + x, 0};
    else
        return triangle_add(before, x);
}

/* Joins sums as triangle_join does. Power: `count` is a power of two, whose product with sums of samples of 4 or 2
 * bytes is exact, so that one instruction multiplies and adds. */
template <bool Narrow, enum triangle_shape Shape, bool Power>
static __device__ __forceinline__ struct triangle_sums join(struct triangle_sums left, struct triangle_sums right,
                                                            double count)
{
    if constexpr (Shape == TRIANGLE_BOX)
        return {left.single + right.single, 0};
    else if constexpr (Power && Narrow)
        return {left.single + right.single, fma(left.single, count, left.twice) + right.twice};
    else
        return triangle_join(left, right, count);
}

template <enum triangle_shape Shape>
static __device__ __forceinline__ struct triangle_sums lane_before(struct triangle_sums sums, int distance)
{
    return {__shfl_up_sync(~0u, sums.single, distance),
            Shape == TRIANGLE_BOX ? 0 : __shfl_up_sync(~0u, sums.twice, distance)};
}

/* The prefix of a leaf, whose total is given, in its group. */
template <bool Narrow, enum triangle_shape Shape>
static __device__ __forceinline__ struct triangle_sums network(struct triangle_sums total, const struct layout &layout,
                                                               int lane)
{
#pragma unroll
    for (int distance = 1; distance < TRIANGLE_FAN; distance *= 2)
        if (distance < TRIANGLE_FAN / 2 || distance < layout.lanes) {
            const struct triangle_sums before = lane_before<Shape>(total, distance);
            if (lane >= distance)
                total = join<Narrow, Shape, true>(before, total, (double)(TRIANGLE_LEAF * distance));
        }
    return total;
}

/* The carry into a leaf, and the single sum that goes into the next one, if it is of the same segment. */
struct carry {
    struct triangle_sums into;
    double next;
};

/* Of a leaf of the thread block's warp number `warp`. */
template <bool Narrow, enum triangle_shape Shape, class T>
static __device__ __forceinline__ struct carry carry_of(const T leaf[TRIANGLE_LEAF], const struct layout &layout,
                                                        const struct place &place, int warp,
                                                        struct triangle_sums groups[WARPS_MAX])
{
    struct triangle_sums prefix = {0, 0}, group = {0, 0};
#pragma unroll
    for (int q = 0; q < TRIANGLE_LEAF; q++)
        prefix = add<Shape>(prefix, (double)leaf[q]);
    prefix = network<Narrow, Shape>(prefix, layout, place.lane);
    const struct triangle_sums before = lane_before<Shape>(prefix, 1);
    struct carry carry = {before, prefix.single};
    if (layout.warps > 1) {
        if (place.lane == WARP - 1)
            groups[warp] = prefix;
        __syncthreads();
        if (warp > 0) {
            group = groups[0];
#pragma unroll 1
            for (int w = 1; w < warp; w++)
                group = join<Narrow, Shape, true>(group, groups[w], TRIANGLE_GROUP);
            carry.into = join<Narrow, Shape, false>(group, before, (double)(TRIANGLE_LEAF * place.lane));
            carry.next = group.single + prefix.single;
        }
    }
    if (place.lane == 0)
        carry.into = group;
    return carry;
}

/*
 * Makes the outputs of the segment before this one, whose leaf is summed from the carry on; `here` and `before` are the
 * totals of the one before and of the one behind that. Of a triangle, kept_behind has the sums two segments ago less
 * twice the last ones, and kept_here the last ones; they are left so that, for the next segment, each has the other's
 * place. Of a box they have the single sums that follow on the places. Returns what the leaf leaves.
 */
template <bool Narrow, enum triangle_shape Shape, class Sample, class T>
static __device__ __forceinline__ struct triangle_sums
outputs_of_leaf(const struct triangle &triangle, const T leaf[TRIANGLE_LEAF], const struct carry &carry, int number,
                bool is_last, struct triangle_sums here, struct triangle_sums before,
                double (&kept_behind)[TRIANGLE_LEAF], double (&kept_here)[TRIANGLE_LEAF], Sample y[TRIANGLE_LEAF])
{
    const struct triangle_line along = triangle_line(&triangle, triangle.half_width, true, true, here, before);
    const double at = triangle_line_at(along, number);
    struct triangle_sums sums = carry.into;
#pragma unroll
    for (int q = 0; q < TRIANGLE_LEAF; q++) {
        if constexpr (Shape == TRIANGLE_BOX) {
            y[q] = (Sample)(((sums.single - kept_behind[q]) + at) * triangle.scale);
            sums = add<Shape>(sums, (double)leaf[q]);
            kept_behind[q] = q < TRIANGLE_LEAF - 1 || is_last ? sums.single : carry.next;
        } else {
            const double e = sums.twice;
            y[q] = (Sample)(((kept_behind[q] + e) + fma(along.slope, (double)q, at)) * triangle.scale);
            if constexpr (Narrow) /* as below, since twice a sum of theirs is exact */
                kept_here[q] = fma(-2.0, e, kept_here[q]);
            else
                kept_here[q] = kept_here[q] - 2 * e;
            kept_behind[q] = e;
            sums = add<Shape>(sums, (double)leaf[q]);
        }
    }
    return sums;
}

#endif
