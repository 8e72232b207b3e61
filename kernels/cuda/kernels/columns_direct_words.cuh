/*
 * Reads and writes of the leaves of a thread of columns_direct.cuh: one by one, of any form, or two side by side.
 */
#ifndef KERNELS_CUDA_KERNELS_COLUMNS_DIRECT_WORDS_CUH
#define KERNELS_CUDA_KERNELS_COLUMNS_DIRECT_WORDS_CUH

#include "kernels/cuda/kernels/columns_direct_item.cuh"
#include "kernels/cuda/lane/column_leaf.cuh"

/* A leaf's words in device memory, as any_samples and any_write want them. Zeros stand for what is not there. */
struct direct_words {
    char *first;
    int64_t stride;
    int samples;

    /* take(i, word) gets the word of each sample, make(i) makes it. An address goes on to the next one: 16 at once
     * would not fit the registers. */
    template <class Word, bool Full, class Take> __device__ __forceinline__ void load_of(const Take &take) const
    {
        char *at = first;
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++) {
            __builtin_assume(__isGlobal(at));
            take(i, Full || i < samples ? *(const Word *)at : Word{});
            at = settled(at + stride);
        }
    }
    template <class Word, bool Full, class Make> __device__ __forceinline__ void store_of(const Make &make) const
    {
        char *at = first;
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++) {
            const Word word = make(i);
            __builtin_assume(__isGlobal(at));
            if (Full || i < samples)
                *(Word *)at = word;
            at = settled(at + stride);
        }
    }
    template <class Word, class Take> __device__ __forceinline__ void load(const Take &take) const
    {
        if (samples == ORDER_LEAF)
            load_of<Word, true>(take);
        else
            load_of<Word, false>(take);
    }
    template <class Word, class Make> __device__ __forceinline__ void store(const Make &make) const
    {
        if (samples == ORDER_LEAF)
            store_of<Word, true>(make);
        else
            store_of<Word, false>(make);
    }
    template <int Bytes> __device__ __forceinline__ void words(uint32_t words[4 * Bytes]) const
    {
        if constexpr (Bytes == 8)
            load<uint64_t>([&](int i, uint64_t word) {
                words[2 * i] = (uint32_t)word;
                words[2 * i + 1] = (uint32_t)(word >> 32);
            });
        else if constexpr (Bytes == 4)
            load<uint32_t>([&](int i, uint32_t word) { words[i] = word; });
        else
            load<uint16_t>([&](int i, uint32_t word) { words[i / 2] = i % 2 == 0 ? word : words[i / 2] | word << 16; });
    }
    template <int Bytes, class Word> __device__ __forceinline__ void put(Word word) const
    {
        if constexpr (Bytes == 8)
            store<uint64_t>([&](int i) { return (uint64_t)word(2 * i + 1) << 32 | word(2 * i); });
        else if constexpr (Bytes == 4)
            store<uint32_t>(word);
        else
            store<uint16_t>([&](int i) { return (uint16_t)(word(i / 2) >> i % 2 * 16); });
    }
};

/* A leaf's words to read; when all loads are on their way, the next item is taken. */
struct direct_source {
    struct direct_words side;
    struct direct_taking taking;

    template <int Bytes> __device__ __forceinline__ void words(uint32_t words[4 * Bytes]) const
    {
        side.template words<Bytes>(words);
        taking.take();
    }
};

/* Two leaves side by side, which lie in pairs: of f32, of integers of 4 bytes, or of a form of 2 bytes. */
template <class T>
DEVICE void direct_pairs_plain(const struct direct_words &side, const struct direct_taking &taking, T x[2][ORDER_LEAF])
{
    side.template load<uint2>([&](int i, uint2 pair) {
        memcpy(&x[0][i], &pair.x, sizeof(T));
        memcpy(&x[1][i], &pair.y, sizeof(T));
    });
    taking.take();
}

DEVICE void direct_pairs_short(const struct any_plan &plan, const struct direct_words &side,
                               const struct direct_taking &taking, float x[2][ORDER_LEAF])
{
    uint32_t pairs[ORDER_LEAF];
    side.template load<uint32_t>([&](int i, uint32_t pair) { pairs[i] = pair; });
    taking.take();
    pairs_decode<true>(plan.input, pairs, x);
}

template <class Sum>
DEVICE void direct_pairs_put(const struct any_plan &plan, const struct direct_words &side,
                             const uint32_t x[2][ORDER_LEAF])
{
    side.template store<uint2>([&](int i) -> uint2 {
        return {x[0][i] ^ any_flip32(plan), x[1][i] ^ any_flip32(plan)};
    });
}

template <class Sum>
DEVICE void direct_pairs_put(const struct any_plan &plan, const struct direct_words &side, const float x[2][ORDER_LEAF])
{
    const bool half = Sum::has_half && kind_is_half(plan.kind);
    float results[2][ORDER_LEAF];
    bool nan = any_results<Sum>(x[0], half, results[0]);
    nan |= any_results<Sum>(x[1], half, results[1]);
    if (plan.output_bytes == 4) {
        side.template store<float2>([&](int i) -> float2 { return {results[0][i], results[1][i]}; });
        return;
    }
    uint32_t pairs[ORDER_LEAF];
    pairs_encode<true>(plan.output, results, nan, pairs);
    side.template store<uint32_t>([&](int i) { return pairs[i]; });
}

/* Results of 4 bytes as they are. */
template <class Sum>
DEVICE void direct_put_plain(const struct any_plan &plan, const struct direct_words &side, const float x[ORDER_LEAF])
{
    float results[ORDER_LEAF];
    any_results<Sum>(x, Sum::has_half && kind_is_half(plan.kind), results);
    side.template put<4>([&](int i) { return __float_as_uint(results[i]); });
}

template <class Sum>
DEVICE void direct_put_plain(const struct any_plan &plan, const struct direct_words &side, const uint32_t x[ORDER_LEAF])
{
    side.template put<4>([&](int i) { return x[i] ^ any_flip32(plan); });
}

#endif
