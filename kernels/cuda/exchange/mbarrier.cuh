/*
 * Mbarriers: where warps of a thread block wait for others, or for copies.
 */
#ifndef KERNELS_CUDA_EXCHANGE_MBARRIER_CUH
#define KERNELS_CUDA_EXCHANGE_MBARRIER_CUH

#include "kernels/cuda/lane/lane.cuh"

/* A barrier in shared memory that some warps arrive at and others wait for. */
typedef unsigned long long gate;

/* It opens whenever `warps` have arrived. */
DEVICE void gate_init(gate *gate, int warps)
{
    mbarrier_init(smem_address(gate), warps * WARP);
}

/* By all lanes, each for itself: compute-sanitizer does not see that one which arrives after a __syncwarp speaks for
 * the others, and it takes no longer. */
DEVICE void gate_arrive(gate *gate)
{
    mbarrier_arrive(smem_address(gate));
}

/* Returns when it has opened for the n-th time, n = 0, 1, ..., where parity is n % 2. */
DEVICE void gate_wait(gate *gate, int parity)
{
    while (!mbarrier_try_wait(smem_address(gate), parity))
        ;
}

/* A gate that opens when the copy engine has brought what one thread announces. By one lane. */
DEVICE void boxes_gate_init(gate *gate)
{
    mbarrier_init(smem_address(gate), 1);
    fence_mbarrier_init();
    fence_proxy_async();
}

DEVICE void boxes_announce(gate *gate, int bytes)
{
    mbarrier_arrive_expect(smem_address(gate), bytes);
}

#endif
