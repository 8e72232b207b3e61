/*
 * Macros and functions with which every kernel here is written and launched.
 */
#ifndef KERNELS_TUTORIAL_SCAN_LAUNCH_CUH
#define KERNELS_TUTORIAL_SCAN_LAUNCH_CUH

#include <cuda_runtime.h>
#include <stdint.h>

#define GPU_INLINE static __device__ __forceinline__
#define WARP       32
#define ALL        (~0u) /* lanes of a warp */
#define GRID_MAX   65535 /* thread blocks of a launch; kernels loop over what is left */

static inline uint64_t parts_of(uint64_t whole, uint64_t part)
{
    return (whole + part - 1) / part;
}

static inline unsigned grid_of(uint64_t blocks)
{
    return (unsigned)(blocks < GRID_MAX ? blocks : GRID_MAX);
}

#endif
