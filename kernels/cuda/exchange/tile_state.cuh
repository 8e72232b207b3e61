/*
 * Tile states: how thread blocks that work on one row publish their totals to each other in device memory.
 */
#ifndef KERNELS_CUDA_EXCHANGE_TILE_STATE_CUH
#define KERNELS_CUDA_EXCHANGE_TILE_STATE_CUH

#include <stdint.h>
#include <string.h>

#include "kernels/cuda/ptx.cuh"

/*
 * A sum in device memory that others wait for. Each word holds 4 bytes of it and a mark above them, zero until the sum
 * is there. As both travel in one word, nothing needs to be ordered.
 */
typedef unsigned long long tile_state;
#define TILE_STATE_PUBLISHED (1ull << 32)

/* Words of a tile state. */
template <class Sum> __host__ __device__ constexpr int tile_state_words()
{
    return sizeof(typename Sum::sum) / 4;
}

template <class Sum> DEVICE void tile_state_publish(tile_state *state, typename Sum::sum sum)
{
    unsigned words[tile_state_words<Sum>()];
    memcpy(words, &sum, sizeof(sum));
#pragma unroll
    for (int i = 0; i < tile_state_words<Sum>(); i++)
        store_relaxed(state + i, TILE_STATE_PUBLISHED | words[i]);
}

/* The result of a poll of a tile state. */
template <class Sum> struct tile_state_polled {
    unsigned long long words[tile_state_words<Sum>()];
};

template <class Sum> DEVICE tile_state_polled<Sum> tile_state_poll(const tile_state *state)
{
    tile_state_polled<Sum> polled;
#pragma unroll
    for (int i = 0; i < tile_state_words<Sum>(); i++)
        polled.words[i] = load_relaxed(state + i);
    return polled;
}

template <class Sum> DEVICE bool tile_state_is_published(const tile_state_polled<Sum> &polled)
{
    unsigned long long marks = TILE_STATE_PUBLISHED;
#pragma unroll
    for (int i = 0; i < tile_state_words<Sum>(); i++)
        marks &= polled.words[i];
    return marks != 0;
}

/* The result of a poll before the first one; where no poll is wanted, it looks as if it had found something. */
template <class Sum> DEVICE tile_state_polled<Sum> tile_state_unpolled(bool wanted)
{
    tile_state_polled<Sum> polled;
#pragma unroll
    for (int i = 0; i < tile_state_words<Sum>(); i++)
        polled.words[i] = wanted ? 0 : TILE_STATE_PUBLISHED;
    return polled;
}

/* Polls where nothing was found before: everybody's polls take turns at the few lines that the last tile states lie in.
 */
template <class Sum> DEVICE void tile_state_poll_again(const tile_state *state, tile_state_polled<Sum> *polled)
{
#pragma unroll
    for (int i = 0; i < tile_state_words<Sum>(); i++)
        load_relaxed_below<TILE_STATE_PUBLISHED>(state + i, &polled->words[i]);
}

template <class Sum> DEVICE typename Sum::sum tile_state_sum(const tile_state_polled<Sum> &polled)
{
    unsigned words[tile_state_words<Sum>()];
#pragma unroll
    for (int i = 0; i < tile_state_words<Sum>(); i++)
        words[i] = (unsigned)polled.words[i];
    typename Sum::sum sum;
    memcpy(&sum, words, sizeof(sum));
    return sum;
}

/* The sum, when it is there. */
template <class Sum> DEVICE typename Sum::sum tile_state_await(const tile_state *state)
{
    tile_state_polled<Sum> polled;
    do
        polled = tile_state_poll<Sum>(state);
    while (!tile_state_is_published<Sum>(polled));
    return tile_state_sum<Sum>(polled);
}

#endif
