/*
 * The numbers of this lane and warp, and values that lanes of a warp have in common.
 */
#ifndef KERNELS_CUDA_LANE_LANE_CUH
#define KERNELS_CUDA_LANE_LANE_CUH

#include "kernels/cuda/ptx.cuh"
#include "kernels/cuda/select/plan.h"
#include "kernels/order1/order.h"

/*
 * Registers per thread decide how many thread blocks an SM holds, of which some compute while others wait. Its
 * 65,536 suffice for 3 blocks of 20 warps, rows of 10,240 samples, with 32, and for 2 with 40 or 48.
 */
#if CUDART_VERSION >= 12040
#define REGISTERS(COUNT) __maxnreg__(COUNT)
#else
#define REGISTERS(COUNT) __launch_bounds__(ORDER_FAN *WARP)
#endif

/* A value that is the same in all lanes of a warp. The shuffle tells the compiler so, which then keeps it in a register
 * that the lanes share; a vector register would be spilled, at a cost of 15 %. */
DEVICE int warp_uniform(int value)
{
    return __shfl_sync(~0u, value, 0);
}

/* An address in shared memory in a register that the lanes share. Otherwise it is made anew wherever it is needed,
 * which costs less where registers are scarce. */
DEVICE uint4 *warp_uniform(uint4 *shared)
{
    return (uint4 *)__cvta_shared_to_generic((unsigned)warp_uniform((int)__cvta_generic_to_shared(shared)));
}

/* The number of this warp. Computed once per kernel, and passed on in a register that the lanes share, unlike
 * lane_index. */
DEVICE int warp_index()
{
    return warp_uniform((int)threadIdx.x / WARP);
}

/* The number of samples of an order block of `length` that lie in a warp's tile. */
DEVICE int tile_samples(int length, int warp)
{
    return min(max(length - warp * ORDER_TILE, 0), ORDER_TILE);
}

#endif
