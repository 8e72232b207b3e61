/*
 * How the thread blocks of a cluster tell each other sums: by stores into each other's shared memory, counted at
 * mbarriers there.
 */
#ifndef KERNELS_CUDA_EXCHANGE_CLUSTER_CUH
#define KERNELS_CUDA_EXCHANGE_CLUSTER_CUH

#include "kernels/cuda/exchange/mbarrier.cuh"
#include "kernels/order1/f2.h"

/* Store a sum in any thread block's shared memory, and count its bytes at the gate there. */
DEVICE void cluster_store_sum(unsigned address, unsigned told, float sum)
{
    cluster_store(address, (uint32_t)__float_as_uint(sum), told);
}

DEVICE void cluster_store_sum(unsigned address, unsigned told, double sum)
{
    cluster_store(address, (uint64_t)__double_as_longlong(sum), told);
}

DEVICE void cluster_store_sum(unsigned address, unsigned told, struct f2 sum)
{
    cluster_store_sum(address, told, __hiloint2double((int)__float_as_uint(sum.low), (int)__float_as_uint(sum.high)));
}

/* A gate that opens when so many bytes have come as are announced each time. By one thread. */
DEVICE void cluster_gate_init(gate *gate)
{
    mbarrier_init(smem_address(gate), 1);
    fence_mbarrier_init();
}

DEVICE void cluster_announce(gate *gate, int bytes)
{
    mbarrier_arrive_expect(smem_address(gate), bytes);
}

/* As gate_wait, where they come from other thread blocks. */
DEVICE void cluster_wait(gate *gate, int parity)
{
    while (!mbarrier_try_wait_cluster(smem_address(gate), parity))
        ;
}

#endif
