/*
 * Carries: the sum of all that a pass meets before a sample, a leaf or a tile, which may be nothing.
 */
#ifndef KERNELS_CUDA_LANE_CARRY_CUH
#define KERNELS_CUDA_LANE_CARRY_CUH

#include "kernels/cuda/lane/accumulator.cuh"

/* The sum of everything that a pass meets before some sample; absent where it meets nothing. */
template <class Sum> struct carry {
    typename Sum::sum sum;
    bool present; /* always true where there is an identity */
};

template <class Sum> DEVICE carry<Sum> carry_of(typename Sum::sum sum, bool present)
{
    if (Sum::has_identity)
        return {present ? sum : Sum::identity(), true};
    return {sum, present};
}

/*
 * One of two sums, of which `then` was just added up. An f2 addition is long enough for the compiler to send only those
 * lanes through it that need it, but going apart and coming together again takes longer: so they all add, and select.
 */
template <class Sum>
DEVICE typename Sum::sum sum_choose(bool condition, typename Sum::sum then, typename Sum::sum otherwise)
{
    if (!Sum::has_identity)
        pin(then);
    return condition ? then : otherwise;
}

/* A sum, joined by what comes before it where that is `there`. */
template <class Sum> DEVICE typename Sum::sum sum_join(bool there, typename Sum::sum before, typename Sum::sum sum)
{
    if constexpr (std::is_base_of<sum_f32, Sum>::value || std::is_base_of<sum_f64, Sum>::value) {
        add_where(there, &sum, before);
        return sum;
    } else {
        return sum_choose<Sum>(there, Sum::add(before, sum), sum);
    }
}

template <class Sum> DEVICE carry<Sum> carry_join(carry<Sum> outer, carry<Sum> inner)
{
    if (Sum::has_identity)
        return {Sum::add(outer.sum, inner.sum), true};
    carry<Sum> both = {sum_choose<Sum>(inner.present, Sum::add(outer.sum, inner.sum), outer.sum), true};
    if (!outer.present)
        both = inner;
    return both;
}

#endif
