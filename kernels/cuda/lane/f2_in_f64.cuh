/*
 * Whole passes of f2 in f64, where neither rounds (f2_by_f64.cuh).
 *
 * Of packed rows, if neither the magnitudes of a leaf exceed 2^46 q nor what a row adds up to with any of its leaves,
 * all sums of neighbouring leaves are differences of two such, no more than 2^47 q.
 *
 * Rows of two tiles, of which lanes hold samples of f2 as f64 from pass to pass, add up prefixes of tiles as well.
 * Where the magnitudes of each leaf and a prefix of its tile add up to no more than 2^46 q, values of rows of two tiles
 * are sums of no more than 2^48 q, to which f2 takes samples without rounding. The f32 that a pass leaves of a sum is
 * that rounded, either way.
 */
#ifndef KERNELS_CUDA_LANE_F2_IN_F64_CUH
#define KERNELS_CUDA_LANE_F2_IN_F64_CUH

#include <limits.h>
#include <type_traits>

#include "kernels/cuda/lane/leaf.cuh"

/* Sums in f64 in place of f2: a sum of zeros is +0, whatever their signs. */
struct sum_f64_as_f2 : sum_f64 {
    DEVICE double first(double x) { return x + 0.0; }
    DEVICE double identity() { return 0.0; }
    DEVICE double absent() { return 0.0; }
};

/* The accumulator whose samples lanes hold: another one than Sum for f2, where f64 is fast. */
#if __CUDA_ARCH__ == 800 || __CUDA_ARCH__ == 900 || __CUDA_ARCH__ == 1000
template <class Sum> using held_sum = std::conditional_t<sum_by_f64<Sum>, sum_f64_as_f2, Sum>;
#else
template <class Sum> using held_sum = Sum;
#endif

/* True, in all lanes, if f2 has the same sums of these leaves, of which `sums` are prefixes. */
template <int Tiles>
DEVICE bool leaves_are_exact(const struct held_leaf<double> leaves[Tiles], const double sums[Tiles])
{
    unsigned least = ~0u; /* as in by_f64_range, of upper halves */
    double most[Tiles];
#pragma unroll
    for (int t = 0; t < Tiles; t++) {
        most[t] = fabs(sums[t]);
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++) {
            least = min(least, 2 * (unsigned)__double2hiint(leaves[t].x[i]) - 1);
            most[t] += fabs(leaves[t].x[i]);
        }
    }
    bool exact = true;
    const double limit = by_f64_limit_f64(least);
#pragma unroll
    for (int t = 0; t < Tiles; t++)
        exact &= most[t] <= limit;
    return __all_sync(~0u, exact);
}

/* The values of a leaf, in the order of memory, whose row's sum with it is `upto`, and its own `total`. No sum rounds,
 * so that a backward pass may as well take away what it is yet to meet. */
template <int Kind>
DEVICE void leaf_values_in_f64(bool backward, const double x[ORDER_LEAF], double upto, double total,
                               float results[ORDER_LEAF])
{
    double sum = backward ? upto : upto - total;
    if (backward) {
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++) {
            const double before = sum;
            sum -= x[i];
            results[i] = (float)(Kind == SCAND_KIND_EXCLUSIVE ? sum : before);
        }
    } else {
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++) {
            const double before = sum;
            sum += x[i];
            results[i] = (float)(Kind == SCAND_KIND_EXCLUSIVE ? before : sum);
        }
    }
}

/* Whether sample `first` of a leaf, if it is one of its samples, is -0. */
DEVICE bool leaf_has_zero(const double x[ORDER_LEAF], int first)
{
    int high = 0;
#pragma unroll
    for (int i = 0; i < ORDER_LEAF; i++)
        high = i == first ? __double2hiint(x[i]) : high;
    return high == INT_MIN;
}

/* Puts it back, if it was `there`: a sample alone stays as it is. */
DEVICE void leaf_put_zero(double x[ORDER_LEAF], int first, bool there)
{
    if (__any_sync(~0u, there))
        leaf_zero_at<sum_f64>(x, there ? first : -1, -0.0);
}

#endif
