/*
 * The arithmetic of any rule on a leaf that a lane holds, affine with one coefficient among them: for kernels in which
 * a map takes the place of a sum.
 */
#ifndef KERNELS_CUDA_EXCHANGE_ANY_ARITHMETIC_CUH
#define KERNELS_CUDA_EXCHANGE_ANY_ARITHMETIC_CUH

#include "kernels/cuda/exchange/any_items.cuh"
#include "kernels/cuda/lane/affine_leaf.cuh"

struct any_operator_plan {
    struct any_plan any;
    double coefficient; /* coefficient of affine; */
    uint64_t whole;     /* with integers this */
};

/* The value of a pass that has met nothing. */
template <class Sum> DEVICE typename Sum::sample any_zero(const struct any_operator_plan &plan)
{
    return any_outside<Sum>{plan.any, NULL, 0}.zero();
}

/* The end of a leaf of which so many samples are there. */
DEVICE struct leaf_end any_leaf_end(int samples)
{
    return {samples < ORDER_LEAF, samples - 1};
}

/* The arithmetic on a leaf, which may be partial: the change of samples before a pass; the leaf's total; its values,
 * from the carry before it. `first` is the number in the leaf of the sample that the pass meets first of all, if that
 * lies in this leaf. */
template <class Sum> struct any_arithmetic {
    using samples = Sum; /* reading, writing and rounding of samples between passes */

    DEVICE bool is_trapezoid(const struct any_operator_plan &plan)
    {
        return Sum::has_half && plan.any.kind == SCAND_KIND_TRAPEZOID;
    }
    DEVICE void halve(const struct any_operator_plan &plan, typename Sum::sample x[ORDER_LEAF], int first)
    {
        if constexpr (Sum::has_half)
            if (is_trapezoid(plan))
                leaf_halve_at<Sum>(x, first);
    }
    template <bool Backward>
    DEVICE typename Sum::sum total(const struct any_operator_plan &, typename Sum::sample x[ORDER_LEAF],
                                   struct leaf_end end)
    {
        if (Sum::has_identity && end.partial)
            leaf_fill_beyond<Sum>(x, end.last + 1);
        if (Backward && !Sum::has_identity && end.partial)
            return leaf_total<Sum, Backward, Backward>(x, end.last);
        if constexpr (sum_has_plain<Sum>)
            if (leaf_is_plain(x))
                return leaf_total<typename sum_plain<Sum>::sum, Backward, false>(x, 0);
        return leaf_total<Sum, Backward, false>(x, 0);
    }
    template <bool Backward>
    DEVICE void values(const struct any_operator_plan &plan, typename Sum::sample x[ORDER_LEAF], struct leaf_end end,
                       carry<Sum> carry, int first)
    {
        const bool exclusive = plan.any.kind == SCAND_KIND_EXCLUSIVE;
        if constexpr (!Sum::has_identity) {
            if (Backward && end.partial)
                leaf_values<Sum, Backward, KIND_ANY, Backward>(x, carry, end.last, plan.any.kind);
            else
                leaf_values<Sum, Backward, KIND_ANY, false>(x, carry, ORDER_LEAF - 1, plan.any.kind);
            if (is_trapezoid(plan))
                leaf_zero_at<Sum>(x, first, any_zero<Sum>(plan));
            return;
        }
        const typename Sum::sample begin = Sum::value(carry.sum);
        if constexpr (Sum::has_half)
            if (kind_is_half(plan.any.kind)) {
                leaf_values<Sum, Backward, SCAND_KIND_HALF, false>(x, carry, ORDER_LEAF - 1);
                if (is_trapezoid(plan))
                    leaf_zero_at<Sum>(x, first, any_zero<Sum>(plan));
                return;
            }
        float most = INFINITY;
        if constexpr (sum_has_plain<Sum>)
            most = leaf_is_plain(x) ? 0.0f : most;
        leaf_values_of<Sum, Backward, SCAND_KIND_INCLUSIVE>(x, carry, {false, ORDER_LEAF - 1}, most,
                                                            SCAND_KIND_INCLUSIVE);
        if (exclusive) {
            leaf_shift<Backward>(x, ORDER_LEAF, begin);
            leaf_zero_at<Sum>(x, first, any_zero<Sum>(plan));
        }
    }
};

template <class T> struct any_arithmetic<affine_sum<T>> {
    using samples = typename affine_samples<T>::sum;

    DEVICE void halve(const struct any_operator_plan &, T[ORDER_LEAF], int) {}
    DEVICE affine_same<T> factors(const struct any_operator_plan &plan)
    {
        if constexpr (std::is_same<T, uint64_t>::value)
            return {plan.whole};
        else
            return {number_of<T>(plan.coefficient)};
    }
    template <bool Backward>
    DEVICE affine_map<T> total(const struct any_operator_plan &plan, T x[ORDER_LEAF], struct leaf_end end)
    {
        if (Backward && end.partial)
            return affine_leaf_total<T, Backward, Backward>(x, factors(plan), end.last);
        return affine_leaf_total<T, Backward, false>(x, factors(plan), 0);
    }
    template <bool Backward>
    DEVICE void values(const struct any_operator_plan &plan, T x[ORDER_LEAF], struct leaf_end end,
                       carry<affine_sum<T>> carry, int)
    {
        const bool exclusive = plan.any.kind == SCAND_KIND_EXCLUSIVE;
        if (Backward && end.partial)
            affine_leaf_values<T, Backward, Backward>(x, factors(plan), {carry.sum.term, carry.present}, end.last,
                                                      exclusive);
        else
            affine_leaf_values<T, Backward, false>(x, factors(plan), {carry.sum.term, carry.present}, ORDER_LEAF - 1,
                                                   exclusive);
    }
};

/* Rules in the order of the any_layout kernels; then those of integers of 4 bytes; of sums of f32 in f2; and of affine,
 * by accumulator: X(NAME, ..., RULE) as in ANY_RULES, BY<SUM>(). */
#define ANY_OPERATOR_RULES(X, BY)                                                                        \
    ANY_RULES(X)                                                                                         \
    NUMBER_OPERATORS(X, , , ANY_RULE_SHORT)                                                              \
    BY<any_f2_of_f32>(), BY<affine_sum<float>>(), BY<affine_sum<double>>(), BY<affine_sum<struct f2>>(), \
        BY<affine_sum<uint64_t>>(),

#endif
