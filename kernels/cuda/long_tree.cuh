/*
 * How thread blocks that work on one row tell each other their totals, and how each of them makes the carry into its
 * order block from those of the others: the tree of order 1 above the order block. Also gates, at which warps of one
 * thread block wait for others.
 */
#ifndef KERNELS_CUDA_LONG_TREE_CUH
#define KERNELS_CUDA_LONG_TREE_CUH

#include <stdint.h>
#include <string.h>

#include "kernels/cuda/block.cuh"

/* A barrier in shared memory that some warps arrive at and others wait for. */
typedef unsigned long long gate;

DEVICE unsigned gate_address(gate *gate)
{
    return (unsigned)__cvta_generic_to_shared(gate);
}

/* It opens whenever `warps` have arrived. */
DEVICE void gate_init(gate *gate, int warps)
{
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" : : "r"(gate_address(gate)), "r"(warps * WARP) : "memory");
}

/* By all lanes, each for itself: compute-sanitizer does not see that one which arrives after a __syncwarp speaks for
 * the others, and it takes no longer. */
DEVICE void gate_arrive(gate *gate)
{
    asm volatile("{ .reg .b64 state; mbarrier.arrive.shared.b64 state, [%0]; }" : : "r"(gate_address(gate)) : "memory");
}

/* Returns when it has opened for the n-th time, n = 0, 1, ..., where parity is n % 2. */
DEVICE void gate_wait(gate *gate, int parity)
{
#if __CUDA_ARCH__ >= 900
    unsigned open;
    do
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                     : "=r"(open)
                     : "r"(gate_address(gate)), "r"(parity)
                     : "memory");
    while (!open);
#endif
}

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
        asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" : : "l"(record + i), "l"(RECORD_MARK | words[i]) : "memory");
}

template <class Sum> DEVICE typename Sum::sum record_await(const record *record)
{
    unsigned long long found[record_words<Sum>()], marks;
    do {
        marks = RECORD_MARK;
#pragma unroll
        for (int i = 0; i < record_words<Sum>(); i++)
            asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(found[i]) : "l"(record + i) : "memory");
#pragma unroll
        for (int i = 0; i < record_words<Sum>(); i++)
            marks &= found[i];
    } while (!marks);
    unsigned words[record_words<Sum>()];
    typename Sum::sum sum;
#pragma unroll
    for (int i = 0; i < record_words<Sum>(); i++)
        words[i] = (unsigned)found[i];
    memcpy(&sum, words, sizeof(sum));
    return sum;
}

/* The value of one lane, in all. */
template <class T> DEVICE T lane_get(T value, int lane)
{
    unsigned words[sizeof(T) / 4];
    memcpy(words, &value, sizeof(T));
#pragma unroll
    for (int i = 0; i < (int)(sizeof(T) / 4); i++)
        words[i] = __shfl_sync(~0u, words[i], lane);
    memcpy(&value, words, sizeof(T));
    return value;
}

/*
 * Puts the total of a row's order block `index` of `members`, and returns the carry into it, in all lanes. `records`
 * are those of the row: of all its blocks, then of all groups of these, and so on. At each level a lane stands for a
 * member of the group; who has the last total of a group puts that of the group. Prefixes are found innermost first, so
 * that nobody waits longer than for the level it needs, and added outermost first.
 */
template <class Sum, bool Backward>
DEVICE carry<Sum> tree_carry(record *records, unsigned members, unsigned index, typename Sum::sum total)
{
    const int lane = lane_index();
    typename Sum::sum prefix = total; /* lane l: that of level l */
    unsigned present = 0;             /* bit l: whether there is one */
    bool known = true;                /* whether `total` is that of the member at this level */
    int level = 0;
    for (;; level++) {
        const int position = (int)(index % ORDER_FAN);
        const int count = (int)min(members - (index - position), (unsigned)ORDER_FAN), last = group_last<Sum>(count);
        record *record = records + (index - position + lane) * record_words<Sum>();
        if (known && lane == position)
            record_put<Sum>(record, total);
        typename Sum::sum sum = lane == position ? total : Sum::identity();
        if (Backward ? lane > position && lane < count : lane < position)
            sum = record_await<Sum>(record);
        __syncwarp();
        sum = group_scan<Sum, Backward>(sum, last);
        typename Sum::sum before = lane_get(group_before<Sum, Backward>(sum, last).sum, position);
        if (lane == level)
            prefix = before;
        present |= (unsigned)(position != (Backward ? count - 1 : 0)) << level;
        if (members <= ORDER_FAN)
            break;
        known = known && position == (Backward ? 0 : count - 1);
        total = lane_get(sum, position);
        records += (uint64_t)members * record_words<Sum>();
        members = (members + ORDER_FAN - 1) / ORDER_FAN;
        index /= ORDER_FAN;
    }
    carry<Sum> carry = carry_of<Sum>(total, false);
    for (; level >= 0; level--)
        carry = carry_join<Sum>(carry, carry_of<Sum>(lane_get(prefix, level), present >> level & 1));
    return carry;
}

#endif
