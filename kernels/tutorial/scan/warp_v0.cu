/*
 * warp-v0: a warp per row; lanes exchange sums by shuffles.
 *
 * The change from smem-v1: the 32 lanes work on 32 samples of one row instead of on 32 rows. What they load is what
 * they scan, so nothing is transposed and no shared memory is needed; a batch keeps 32 times as many warps busy. The
 * price is the scan across lanes: five shuffles and additions for a sample where a thread alone needs one addition.
 *
 * Association: 32 samples by the Kogge-Stone network (distance 1, 2, 4, 8, 16; left operand first); then carry +
 * prefix, the carry being the last sum of the 32 samples before.
 */
#include "kernels/tutorial/scan/common.cuh"

#define WARPS 4 /* warps of a thread block */
#define AHEAD 4 /* steps whose samples are loaded at once */

GPU_INLINE float lane_before(float value, int distance)
{
    return __shfl_up_sync(ALL, value, distance);
}

GPU_INLINE double lane_before(double value, int distance)
{
    return __shfl_up_sync(ALL, value, distance);
}

GPU_INLINE struct f2 lane_before(struct f2 value, int distance)
{
    return {lane_before(value.high, distance), lane_before(value.low, distance)};
}

GPU_INLINE float lane_last(float value)
{
    return __shfl_sync(ALL, value, WARP - 1);
}

GPU_INLINE double lane_last(double value)
{
    return __shfl_sync(ALL, value, WARP - 1);
}

GPU_INLINE struct f2 lane_last(struct f2 value)
{
    return {lane_last(value.high), lane_last(value.low)};
}

/* Returns this lane's inclusive prefix. */
template <class Sum> GPU_INLINE typename Sum::type warp_scan(typename Sum::type sum, int lane)
{
#pragma unroll
    for (int distance = 1; distance < WARP; distance *= 2) {
        typename Sum::type left = lane_before(sum, distance);
        if (lane >= distance)
            sum = Sum::add(left, sum);
    }
    return sum;
}

/* The next 32 sums of a row, from the carry, which becomes their last. */
template <class Sum>
GPU_INLINE typename Sum::type sums_after(typename Sum::type *carry, typename Sum::type sum, int lane)
{
    sum = Sum::add(*carry, warp_scan<Sum>(sum, lane));
    *carry = lane_last(sum);
    return sum;
}

/* Samples for several steps are on their way before the first one is scanned. */
template <class Sum> GPU_INLINE void row_scan(struct row x, struct row y, uint32_t length, int lane)
{
    typename Sum::type carry = Sum::of(0);
    uint32_t first = 0;
    for (; first + AHEAD * WARP <= length; first += AHEAD * WARP) {
        float samples[AHEAD];
#pragma unroll
        for (int k = 0; k < AHEAD; k++)
            samples[k] = x[first + k * WARP + lane];
#pragma unroll
        for (int k = 0; k < AHEAD; k++)
            y[first + k * WARP + lane] = Sum::rounded(sums_after<Sum>(&carry, Sum::of(samples[k]), lane));
    }
    for (; first < length; first += WARP) {
        bool inside = first + lane < length;
        typename Sum::type sum = sums_after<Sum>(&carry, Sum::of(inside ? x[first + lane] : 0), lane);
        if (inside)
            y[first + lane] = Sum::rounded(sum);
    }
}

template <class Sum> static __global__ void warp_v0_kernel(struct pass pass)
{
    uint64_t row = (uint64_t)blockIdx.x * WARPS + threadIdx.x / WARP;
    for (; row < pass.rows; row += (uint64_t)gridDim.x * WARPS)
        row_scan<Sum>(pass.x[row], pass.y[row], (uint32_t)pass.length, threadIdx.x % WARP);
}

extern "C" int warp_v0(const struct variant_scan *scan, void *, cudaStream_t stream)
{
    return passes_run(scan, [=](const struct pass &pass) {
        unsigned grid = grid_of(parts_of(pass.rows, WARPS));
        with_accumulator(scan,
                         [=](auto sum) { warp_v0_kernel<decltype(sum)><<<grid, WARPS * WARP, 0, stream>>>(pass); });
    });
}
