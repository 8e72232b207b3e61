/*
 * A warp's stretch of packed rows in shared memory, where a leaf begins anywhere, in each lane differently: reads and
 * writes of leaves in the order in which a pass meets samples. Of a backward pass they are mirrored, so that one code
 * for forward passes does for both.
 */
#ifndef KERNELS_CUDA_WARP_STRETCH_IO_CUH
#define KERNELS_CUDA_WARP_STRETCH_IO_CUH

#include "kernels/cuda/warp/tile_io.cuh"

/* A stretch, and which way a pass goes through it. */
struct stretch {
    uint4 *vectors;
    int first; /* the first sample there */
    bool backward;
    bool whole_vectors; /* every leaf begins and ends with a vector */
};

/* A vector's samples in the order of a pass. */
DEVICE void stretch_turn(bool backward, float x[4])
{
    const float a = x[0], b = x[1], c = x[2], d = x[3];
    x[0] = backward ? d : a;
    x[1] = backward ? c : b;
    x[2] = backward ? b : c;
    x[3] = backward ? a : d;
}

/* The vector `j` from the one that a leaf begins in, in the order of a pass. */
DEVICE uint4 *stretch_vec16(const struct stretch &pass, int begin, int j)
{
    return &pass.vectors[swizzle(begin / 4 + (pass.backward ? -j : j))];
}

DEVICE void stretch_get(const struct stretch &pass, int begin, int j, float x[4])
{
    vec16_get(stretch_vec16(pass, begin, j), x);
    stretch_turn(pass.backward, x);
}

DEVICE void stretch_put(const struct stretch &pass, int begin, int j, const float x[4])
{
    float turned[4] = {x[0], x[1], x[2], x[3]};
    stretch_turn(pass.backward, turned);
    vec16_put(stretch_vec16(pass, begin, j), turned);
}

/* Samples of its first vector that a pass meets before a leaf. */
DEVICE int stretch_shift(const struct stretch &pass, int begin)
{
    return (pass.backward ? ~begin : begin) & 3;
}

/* A leaf of which a pass meets `begin` first; the samples after its last one are any. */
DEVICE void stretch_read(const struct stretch &pass, int begin, float x[ORDER_LEAF])
{
    if (pass.whole_vectors) {
#pragma unroll
        for (int j = 0; j < ORDER_LEAF / 4; j++)
            stretch_get(pass, begin, j, &x[4 * j]);
        return;
    }
    const int shift = stretch_shift(pass, begin);
    const bool by_one = shift & 1, by_two = shift & 2;
    float from[ORDER_LEAF + 4];
#pragma unroll
    for (int j = 0; j <= ORDER_LEAF / 4; j++)
        stretch_get(pass, begin, j, &from[4 * j]);
#pragma unroll
    for (int i = 0; i < ORDER_LEAF + 2; i++)
        from[i] = by_one ? from[i + 1] : from[i];
#pragma unroll
    for (int i = 0; i < ORDER_LEAF; i++)
        x[i] = by_two ? from[i + 2] : from[i];
}

/* Writes the values of a leaf that begins anywhere. First all lanes write whole vectors, also those in which the next
 * leaf begins, but not their first ones. Of these they write their samples then. `Keep`: what the last leaf in memory,
 * that of `last_lane`, ends in may have samples that are yet to be read, or results, which are kept. */
template <bool Keep>
DEVICE void stretch_write_across(const struct stretch &pass, int begin, int samples, const float x[ORDER_LEAF],
                                 int last_lane)
{
    const int shift = stretch_shift(pass, begin), end = shift + samples, last = ORDER_LEAF - 1;
    const bool by_one = shift & 1, by_two = shift & 2, ends_inside = samples > 0 && end % 4 > 0;
    const bool shared = Keep && lane_index() == last_lane && ends_inside; /* else there may be no such vector */
    float once[ORDER_LEAF + 1], to[ORDER_LEAF + 4];
    uint4 kept = {};
    if (shared)
        kept = *stretch_vec16(pass, begin, end / 4);
#pragma unroll
    for (int i = 0; i <= last + 1; i++)
        once[i] = by_one ? x[max(i - 1, 0)] : x[min(i, last)];
#pragma unroll
    for (int i = 0; i < ORDER_LEAF + 4; i++)
        to[i] = by_two ? once[min(max(i - 2, 0), last + 1)] : once[min(i, last + 1)];
    __syncwarp();
#pragma unroll
    for (int j = 1; j <= ORDER_LEAF / 4; j++)
        if (4 * j < end)
            stretch_put(pass, begin, j, &to[4 * j]);
    __syncwarp();
    float *head = (float *)stretch_vec16(pass, begin, 0), *tail = (float *)stretch_vec16(pass, begin, end / 4);
    const float old[4] = {__uint_as_float(kept.x), __uint_as_float(kept.y), __uint_as_float(kept.z),
                          __uint_as_float(kept.w)};
    const int turn = pass.backward ? 3 : 0;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        if (i >= shift && i < end)
            head[i ^ turn] = to[i];
        if (shared && (i ^ turn) >= end % 4)
            tail[i] = old[i];
    }
}

template <bool Keep>
DEVICE void stretch_write(const struct stretch &pass, int begin, int samples, const float x[ORDER_LEAF])
{
    if (!pass.whole_vectors) {
        stretch_write_across<Keep>(pass, begin, samples, x, WARP - 1);
        return;
    }
#pragma unroll
    for (int j = 0; j < ORDER_LEAF / 4; j++)
        if (4 * j < samples)
            stretch_put(pass, begin, j, &x[4 * j]);
}

#endif
