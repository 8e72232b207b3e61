/*
 * f16 and bf16 in columns_direct.cuh: leaves of columns side by side, which a thread holds two samples to a word, as
 * they are in memory. So it has twice as many on their way as decoded ones would leave registers for.
 */
#ifndef KERNELS_CUDA_KERNELS_COLUMNS_DIRECT_PACKED_CUH
#define KERNELS_CUDA_KERNELS_COLUMNS_DIRECT_PACKED_CUH

#include "kernels/cuda/kernels/columns_direct_words.cuh"

/* What a thread reads and writes at once: a sample of each of its columns. */
template <class Sum> using direct_row = std::conditional_t<direct_leaves_of<Sum> == 4, uint2, uint32_t>;

template <class Sum, bool Full>
DEVICE void direct_packed_get(const struct direct_words &side, uint32_t pairs[ORDER_LEAF][direct_leaves_of<Sum> / 2])
{
    char *at = side.first;
#pragma unroll
    for (int i = 0; i < ORDER_LEAF; i++) {
        const direct_row<Sum> row = side.template get<direct_row<Sum>, Full>(&at, i);
        memcpy(pairs[i], &row, sizeof(row));
    }
}

/* Pairs of columns become pairs of samples. */
template <class Sum>
DEVICE void direct_pack(const uint32_t pairs[ORDER_LEAF][direct_leaves_of<Sum> / 2], direct_held<Sum> *held)
{
#pragma unroll
    for (int i = 0; i < ORDER_LEAF; i++)
#pragma unroll
        for (int l = 0; l < direct_leaves_of<Sum> / 2; l++)
            held->words[2 * l + i % 2][i / 2] =
                __byte_perm(pairs[i / 2 * 2][l], pairs[i / 2 * 2 + 1][l], i % 2 ? 0x7632 : 0x5410);
}

/* And back. */
template <class Sum, bool Full> DEVICE void direct_packed_put(const struct direct_words &side, direct_held<Sum> *held)
{
    char *at = side.first;
#pragma unroll
    for (int i = 0; i < ORDER_LEAF; i++) {
        uint32_t pairs[direct_leaves_of<Sum> / 2];
#pragma unroll
        for (int l = 0; l < direct_leaves_of<Sum> / 2; l++)
            pairs[l] = __byte_perm(held->words[2 * l][i / 2], held->words[2 * l + 1][i / 2], i % 2 ? 0x7632 : 0x5410);
        direct_row<Sum> row;
        memcpy(&row, pairs, sizeof(row));
        side.template set<direct_row<Sum>, Full>(&at, i, row);
    }
}

/* Decodes the words of a leaf. They look like new ones, else what becomes of them would be kept for the next pass, and
 * spilled. */
template <class Sum>
DEVICE void direct_decode(enum scand_dtype form, uint32_t words[WORDS16], typename Sum::sample x[ORDER_LEAF])
{
    float reals[ORDER_LEAF];
#pragma unroll
    for (int i = 0; i < WORDS16; i++)
        pin(words[i]);
#pragma unroll
    for (int i = 0; i < WORDS16; i++)
        if (form == SCAND_DTYPE_F16)
            f32x2_of_f16x2(words[i], &reals[2 * i]);
        else
            bf16_decode(words[i], &reals[2 * i]);
    leaf_from_f32<Sum>(reals, x);
}

template <class Sum>
DEVICE void direct_encode(enum scand_dtype form, const typename Sum::sample x[ORDER_LEAF], uint32_t words[WORDS16])
{
    float results[ORDER_LEAF];
    const bool nan = any_results<Sum>(x, false, results);
#pragma unroll
    for (int i = 0; i < WORDS16; i++)
        words[i] = form == SCAND_DTYPE_F16 ? f16_encode(&results[2 * i]) : bf16_encode(&results[2 * i]);
    if (nan)
        convert16_encode_nan(form, results, words);
}

#endif
