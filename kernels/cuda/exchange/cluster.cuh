/*
 * The exchange of sums among the thread blocks of a cluster: by stores into each other's shared memory, counted at
 * mbarriers there.
 */
#ifndef KERNELS_CUDA_EXCHANGE_CLUSTER_CUH
#define KERNELS_CUDA_EXCHANGE_CLUSTER_CUH

#include <string.h>
#include <type_traits>

#include "kernels/cuda/exchange/mbarrier.cuh"

/* Stores a sum of 4 bytes, or of 8 or 16, in any thread block's shared memory, and counts its bytes at the mbarrier
 * there. */
template <class T> DEVICE void cluster_store_sum(unsigned address, unsigned barrier, T sum)
{
    typename std::conditional<sizeof(T) == 4, uint32_t, uint64_t>::type words[(sizeof(T) + 4) / 8];
    memcpy(words, &sum, sizeof(sum));
#pragma unroll
    for (int i = 0; i < (int)(sizeof(words) / sizeof(words[0])); i++)
        cluster_store(address + i * (int)sizeof(words[0]), words[i], barrier);
}

/* An mbarrier that opens when so many bytes have come as are announced each time. By one thread. */
DEVICE void mbarrier_init_cluster(mbarrier *barrier)
{
    mbarrier_init(smem_address(barrier), 1);
    fence_mbarrier_init();
}

/* Waits as mbarrier_wait does, for arrivals from other thread blocks. */
DEVICE void mbarrier_wait_cluster(mbarrier *barrier, int parity)
{
    while (!mbarrier_try_wait_cluster(smem_address(barrier), parity))
        ;
}

/* A carry that one thread block of a cluster finds for all, again and again. There is memory for one: nobody finds the
 * next carry before all have read this one. Its mbarrier is known to the cluster when it has met. */
template <class Sum> struct cluster_carry {
    mbarrier come;
    typename Sum::sum sum;
};

template <class Sum> DEVICE void cluster_carry_init(cluster_carry<Sum> *carry)
{
    mbarrier_init_cluster(&carry->come);
    mbarrier_expect(&carry->come, (int)sizeof(carry->sum));
}

template <class Sum> DEVICE void cluster_carry_tell(cluster_carry<Sum> *carry, typename Sum::sum sum)
{
    const int rank = lane_index();
    if (rank < cluster_size())
        cluster_store_sum(cluster_address(smem_address(&carry->sum), rank),
                          cluster_address(smem_address(&carry->come), rank), sum);
}

/* The carry of that number, by a warp of each thread block. */
template <class Sum> DEVICE typename Sum::sum cluster_carry_await(cluster_carry<Sum> *carry, unsigned number)
{
    mbarrier_wait_cluster(&carry->come, number % 2);
    if (lane_index() == 0)
        mbarrier_expect(&carry->come, (int)sizeof(carry->sum));
    return carry->sum;
}

#endif
