/*
 * The exchange of sums among the thread blocks of a cluster: by stores into each other's shared memory, counted at
 * mbarriers there.
 */
#ifndef KERNELS_CUDA_EXCHANGE_CLUSTER_CUH
#define KERNELS_CUDA_EXCHANGE_CLUSTER_CUH

#include "kernels/cuda/exchange/mbarrier.cuh"
#include "kernels/order1/f2.h"

/* Store a sum in any thread block's shared memory, and count its bytes at the mbarrier there. */
DEVICE void cluster_store_sum(unsigned address, unsigned barrier, float sum)
{
    cluster_store(address, (uint32_t)__float_as_uint(sum), barrier);
}

DEVICE void cluster_store_sum(unsigned address, unsigned barrier, double sum)
{
    cluster_store(address, (uint64_t)__double_as_longlong(sum), barrier);
}

DEVICE void cluster_store_sum(unsigned address, unsigned barrier, struct f2 sum)
{
    cluster_store_sum(address, barrier,
                      __hiloint2double((int)__float_as_uint(sum.low), (int)__float_as_uint(sum.high)));
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
