/*
 * The exchange of sums among the thread blocks of a cluster: by stores into each other's shared memory, counted at
 * mbarriers there.
 */
#ifndef KERNELS_CUDA_EXCHANGE_CLUSTER_CUH
#define KERNELS_CUDA_EXCHANGE_CLUSTER_CUH

#include <string.h>
#include <type_traits>

#include "kernels/cuda/exchange/mbarrier.cuh"

/* Stores a sum of 4 or 8 bytes in any thread block's shared memory, and counts its bytes at the mbarrier there. */
template <class T> DEVICE void cluster_store_sum(unsigned address, unsigned barrier, T sum)
{
    typename std::conditional<sizeof(T) == 4, uint32_t, uint64_t>::type word;
    memcpy(&word, &sum, sizeof(word));
    cluster_store(address, word, barrier);
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
