/*
 * Words of a leaf whose bytes may lie in another order than this machine's: integers, and samples of class f64. All are
 * permuted, by numbers that registers hold, those in this machine's order as well: that takes fewer registers, which
 * these kernels lack, than two ways to go.
 */
#ifndef KERNELS_CUDA_LANE_CONVERT64_CUH
#define KERNELS_CUDA_LANE_CONVERT64_CUH

#include "kernels/cuda/lane/convert32.cuh"
#include "kernels/order1/dtypes.h"

/* The order of bytes, as permutations: of a word of 4 bytes, and of the lower and the upper half of one of 8 bytes. */
struct word_order {
    uint32_t single, low, high;
};

DEVICE struct word_order word_order_of(enum scand_dtype form)
{
    if (codec_is_swapped(form))
        return {0x0123, 0x4567, 0x0123};
    return {0x3210, 0x3210, 0x7654};
}

/* Between the order of a dtype of 4 bytes and this machine's, either way. */
DEVICE uint32_t word32_ordered(struct word_order order, uint32_t word)
{
    return __byte_perm(word, 0, order.single);
}

DEVICE void words32_order(enum scand_dtype form, uint32_t words[ORDER_LEAF])
{
    const struct word_order order = word_order_of(form);
#pragma unroll
    for (int i = 0; i < ORDER_LEAF; i++)
        words[i] = word32_ordered(order, words[i]);
}

/* Half i of a leaf's words of 8 bytes, of a number with these halves, of which the lower one comes first. */
DEVICE uint32_t word64_ordered(struct word_order order, int i, uint32_t low, uint32_t high)
{
    return __byte_perm(low, high, i % 2 ? order.high : order.low);
}

DEVICE void words64_order(enum scand_dtype form, uint32_t words[2 * ORDER_LEAF])
{
    const struct word_order order = word_order_of(form);
#pragma unroll
    for (int i = 0; i < 2 * ORDER_LEAF; i += 2) {
        const uint32_t low = words[i];
        words[i] = word64_ordered(order, 0, low, words[i + 1]);
        words[i + 1] = word64_ordered(order, 1, low, words[i + 1]);
    }
}

#endif
