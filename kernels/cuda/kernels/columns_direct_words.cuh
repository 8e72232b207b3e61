/*
 * Reads and writes of the leaves of a thread of columns_direct.cuh: one by one, of any form, or two side by side.
 */
#ifndef KERNELS_CUDA_KERNELS_COLUMNS_DIRECT_WORDS_CUH
#define KERNELS_CUDA_KERNELS_COLUMNS_DIRECT_WORDS_CUH

#include "kernels/cuda/kernels/columns_direct_item.cuh"

/* A leaf's words in device memory, as any_samples and any_write want them. Zeros stand for what is not there. */
struct direct_words {
    char *first;
    int64_t stride;
    int samples;

    /* The word at an address that goes on to the next one: 16 addresses at once would not fit the registers. */
    template <class Word, bool Full> __device__ __forceinline__ Word get(char **at, int i) const
    {
        __builtin_assume(__isGlobal(*at));
        const Word word = Full || i < samples ? *(const Word *)*at : Word{};
        *at = settled(*at + stride);
        return word;
    }
    template <class Word, bool Full> __device__ __forceinline__ void set(char **at, int i, Word word) const
    {
        __builtin_assume(__isGlobal(*at));
        if (Full || i < samples)
            *(Word *)*at = word;
        *at = settled(*at + stride);
    }
    template <int Bytes, bool Full> __device__ __forceinline__ void words_of(uint32_t words[4 * Bytes]) const
    {
        char *at = first;
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            if constexpr (Bytes == 8) {
                const uint64_t word = get<uint64_t, Full>(&at, i);
                words[2 * i] = (uint32_t)word;
                words[2 * i + 1] = (uint32_t)(word >> 32);
            } else if constexpr (Bytes == 4) {
                words[i] = get<uint32_t, Full>(&at, i);
            } else if (i % 2 == 0) {
                words[i / 2] = get<uint16_t, Full>(&at, i);
            } else {
                words[i / 2] |= (uint32_t)get<uint16_t, Full>(&at, i) << 16;
            }
    }
    template <int Bytes, bool Full, class Word> __device__ __forceinline__ void put_of(Word word) const
    {
        char *at = first;
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            if constexpr (Bytes == 8)
                set<uint64_t, Full>(&at, i, (uint64_t)word(2 * i + 1) << 32 | word(2 * i));
            else if constexpr (Bytes == 4)
                set<uint32_t, Full>(&at, i, word(i));
            else
                set<uint16_t, Full>(&at, i, (uint16_t)(word(i / 2) >> i % 2 * 16));
    }
    template <int Bytes> __device__ __forceinline__ void words(uint32_t words[4 * Bytes]) const
    {
        if (samples == ORDER_LEAF)
            words_of<Bytes, true>(words);
        else
            words_of<Bytes, false>(words);
    }
    template <int Bytes, class Word> __device__ __forceinline__ void put(Word word) const
    {
        if (samples == ORDER_LEAF)
            put_of<Bytes, true>(word);
        else
            put_of<Bytes, false>(word);
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
template <bool Full, class T>
DEVICE void direct_pairs_plain(const struct direct_words &side, const struct direct_taking &taking, T x[2][ORDER_LEAF])
{
    char *at = side.first;
#pragma unroll
    for (int i = 0; i < ORDER_LEAF; i++) {
        const uint2 pair = side.template get<uint2, Full>(&at, i);
        memcpy(&x[0][i], &pair.x, sizeof(T));
        memcpy(&x[1][i], &pair.y, sizeof(T));
    }
    taking.take();
}

template <bool Full>
DEVICE void direct_pairs_short(const struct any_plan &plan, const struct direct_words &side,
                               const struct direct_taking &taking, float x[2][ORDER_LEAF])
{
    char *at = side.first;
    uint32_t pairs[ORDER_LEAF];
#pragma unroll
    for (int i = 0; i < ORDER_LEAF; i++)
        pairs[i] = side.template get<uint32_t, Full>(&at, i);
    taking.take();
#pragma unroll
    for (int first = 0; first < ORDER_LEAF; first += WORDS16) {
        float samples[ORDER_LEAF];
        convert16_decode(plan.input, pairs + first, samples);
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            x[i % 2][first + i / 2] = samples[i];
    }
}

template <class Sum, bool Full>
DEVICE void direct_pairs_put(const struct any_plan &plan, const struct direct_words &side,
                             const uint32_t x[2][ORDER_LEAF])
{
    char *at = side.first;
#pragma unroll
    for (int i = 0; i < ORDER_LEAF; i++)
        side.template set<uint2, Full>(&at, i, {x[0][i] ^ any_flip32(plan), x[1][i] ^ any_flip32(plan)});
}

template <class Sum, bool Full>
DEVICE void direct_pairs_put(const struct any_plan &plan, const struct direct_words &side, const float x[2][ORDER_LEAF])
{
    const bool half = Sum::has_half && kind_is_half(plan.kind);
    float results[2][ORDER_LEAF];
    bool nan = any_results<Sum>(x[0], half, results[0]);
    nan |= any_results<Sum>(x[1], half, results[1]);
    char *at = side.first;
    if (plan.output_bytes == 4) {
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            side.template set<float2, Full>(&at, i, {results[0][i], results[1][i]});
        return;
    }
#pragma unroll
    for (int first = 0; first < ORDER_LEAF; first += WORDS16) {
        float samples[ORDER_LEAF];
        uint32_t pairs[WORDS16];
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            samples[i] = results[i % 2][first + i / 2];
        convert16_encode(plan.output, samples, nan, pairs);
#pragma unroll
        for (int i = 0; i < WORDS16; i++)
            side.template set<uint32_t, Full>(&at, first + i, pairs[i]);
    }
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
