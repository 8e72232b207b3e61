/*
 * Tile states: how thread blocks that work on one row tell each other their totals in device memory.
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
typedef unsigned long long record;
#define RECORD_MARK (1ull << 32)

/* Words of a record. */
template <class Sum> __host__ __device__ constexpr int record_words()
{
    return sizeof(typename Sum::sum) / 4;
}

template <class Sum> DEVICE void record_put(record *record, typename Sum::sum sum)
{
    unsigned words[record_words<Sum>()];
    memcpy(words, &sum, sizeof(sum));
#pragma unroll
    for (int i = 0; i < record_words<Sum>(); i++)
        store_relaxed(record + i, RECORD_MARK | words[i]);
}

/* What a look at a record found. */
template <class Sum> struct record_seen {
    unsigned long long words[record_words<Sum>()];
};

template <class Sum> DEVICE record_seen<Sum> record_look(const record *record)
{
    record_seen<Sum> seen;
#pragma unroll
    for (int i = 0; i < record_words<Sum>(); i++)
        seen.words[i] = load_relaxed(record + i);
    return seen;
}

template <class Sum> DEVICE bool record_there(const record_seen<Sum> &seen)
{
    unsigned long long marks = RECORD_MARK;
#pragma unroll
    for (int i = 0; i < record_words<Sum>(); i++)
        marks &= seen.words[i];
    return marks != 0;
}

/* Before the first look; as if one had found it where none is wanted. */
template <class Sum> DEVICE record_seen<Sum> record_unseen(bool wanted)
{
    record_seen<Sum> seen;
#pragma unroll
    for (int i = 0; i < record_words<Sum>(); i++)
        seen.words[i] = wanted ? 0 : RECORD_MARK;
    return seen;
}

/* Looks where nothing was found before: everybody's looks take turns at the few lines that the last records lie in. */
template <class Sum> DEVICE void record_look_again(const record *record, record_seen<Sum> *seen)
{
#pragma unroll
    for (int i = 0; i < record_words<Sum>(); i++)
        load_relaxed_below<RECORD_MARK>(record + i, &seen->words[i]);
}

template <class Sum> DEVICE typename Sum::sum record_sum(const record_seen<Sum> &seen)
{
    unsigned words[record_words<Sum>()];
#pragma unroll
    for (int i = 0; i < record_words<Sum>(); i++)
        words[i] = (unsigned)seen.words[i];
    typename Sum::sum sum;
    memcpy(&sum, words, sizeof(sum));
    return sum;
}

/* The sum, when it is there. */
template <class Sum> DEVICE typename Sum::sum record_await(const record *record)
{
    record_seen<Sum> seen;
    do
        seen = record_look<Sum>(record);
    while (!record_there<Sum>(seen));
    return record_sum<Sum>(seen);
}

#endif
