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

#endif
