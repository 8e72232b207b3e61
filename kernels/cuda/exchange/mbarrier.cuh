/*
 * Mbarriers: where warps of a thread block wait for others, or for copies.
 */
#ifndef KERNELS_CUDA_EXCHANGE_MBARRIER_CUH
#define KERNELS_CUDA_EXCHANGE_MBARRIER_CUH

#include "kernels/cuda/lane/lane.cuh"

/* A barrier in shared memory that some warps arrive at and others wait for. */
typedef unsigned long long mbarrier;

/* Makes a barrier that opens whenever `warps` have arrived. */
DEVICE void mbarrier_init_warps(mbarrier *barrier, int warps)
{
    mbarrier_init(smem_address(barrier), warps * WARP);
}

/* All lanes arrive, each for itself: compute-sanitizer does not see that one which arrives after a __syncwarp speaks
 * for the others, and it takes no longer. */
DEVICE void mbarrier_arrive(mbarrier *barrier)
{
    mbarrier_arrive(smem_address(barrier));
}

/* Returns when it has opened for the n-th time, n = 0, 1, ..., where parity is n % 2. */
DEVICE void mbarrier_wait(mbarrier *barrier, int parity)
{
    while (!mbarrier_try_wait(smem_address(barrier), parity))
        ;
}

/* An mbarrier that opens when TMA has brought what one thread announces. By one lane. */
DEVICE void mbarrier_init_tx(mbarrier *barrier)
{
    mbarrier_init(smem_address(barrier), 1);
    fence_mbarrier_init();
    fence_proxy_async();
}

DEVICE void mbarrier_expect(mbarrier *barrier, int bytes)
{
    mbarrier_arrive_expect(smem_address(barrier), bytes);
}

#endif
