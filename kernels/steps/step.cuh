/*
 * Tiles on a GPU have a thread block each, in launches of STEP_GRID_MAX at most.
 */
#ifndef KERNELS_STEPS_STEP_CUH
#define KERNELS_STEPS_STEP_CUH

#include <cuda_runtime.h>

#include "kernels/steps/step.h"

#define STEP_GRID_MAX (UINT64_C(1) << 30)

/* Thread blocks that a multiprocessor is to have registers for; one of 7.5 has no more than 1,024 threads. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#define STEP_BLOCKS(THREADS, BLOCKS) ((BLOCKS) * (THREADS) > 1024 ? 1024 / (THREADS) : (BLOCKS))
#else
#define STEP_BLOCKS(THREADS, BLOCKS) (BLOCKS)
#endif

/* True when the device runs a kernel's code for 9.0 or later, and not what its driver has made of PTX for older GPUs.
 */
static inline bool step_is_of_9(const void *kernel)
{
    struct cudaFuncAttributes attributes;
    return cudaFuncGetAttributes(&attributes, kernel) == cudaSuccess && attributes.ptxVersion >= 90;
}

/* The tile of this thread block. */
static __device__ __forceinline__ struct step_tile step_block_tile(const struct step_tiles &tiles, uint64_t begin)
{
    return step_tile_at(&tiles, begin + blockIdx.x);
}

/* Element 0 of a row of several operands: as step_row, but they share divisions, and the code is short. Ragged rows
 * have one outer dimension at most. */
template <unsigned COUNT>
static __device__ __forceinline__ void step_row_of_each(const struct step_rows &rows,
                                                        const struct step_operand *const (&operands)[COUNT],
                                                        uint64_t row, char *(&at)[COUNT])
{
#pragma unroll
    for (unsigned n = 0; n < COUNT; n++)
        at[n] = operands[n]->origin;
#pragma unroll 1
    for (uint32_t k = rows.outer_rank; k-- > 1;) {
        const uint64_t next = row / rows.outer_shape[k], place = row - next * rows.outer_shape[k];
#pragma unroll
        for (unsigned n = 0; n < COUNT; n++)
            at[n] += (int64_t)place * operands[n]->outer_strides[k];
        row = next;
    }
#pragma unroll
    for (unsigned n = 0; n < COUNT; n++)
        if (operands[n]->on_line)
            at[n] += (int64_t)step_offsets(&rows)[row] * operands[n]->stride;
        else if (rows.outer_rank > 0)
            at[n] += (int64_t)row * operands[n]->outer_strides[0];
}

/* Elements of a dtype that nobody knows when a kernel is compiled, by a call: inlined, they would be most of its code,
 * and of the time that this takes to compile. */
static __device__ __noinline__ float step_call_get_f32(enum scand_dtype dtype, const char *at)
{
    return step_get_f32(dtype, at);
}

static __device__ __noinline__ double step_call_get_f64(enum scand_dtype dtype, const char *at)
{
    return step_get_f64(dtype, at);
}

static __device__ __noinline__ void step_call_put_f32(enum scand_dtype dtype, float value, char *at)
{
    step_put_f32(dtype, value, at);
}

static __device__ __noinline__ void step_call_put_f64(enum scand_dtype dtype, double value, char *at)
{
    step_put_f64(dtype, value, at);
}

/* True when all rows of an operand are elements of a dtype, one after another, that begin at multiples of so many
 * bytes. */
static inline bool step_is_dense(const struct step_rows *rows, const struct step_operand *operand,
                                 enum scand_dtype dtype, uint32_t bytes)
{
    uint64_t misaligned = (uint64_t)(uintptr_t)operand->origin;
    for (uint32_t k = 0; k < rows->outer_rank; k++)
        misaligned |= rows->outer_shape[k] > 1 ? (uint64_t)operand->outer_strides[k] : 0;
    return operand->dtype == dtype && operand->stride == (int64_t)codec_bytes(dtype) && (misaligned & (bytes - 1)) == 0;
}

/* True when all elements of an operand lie at multiples of their size. */
static inline bool step_is_aligned(const struct step_rows *rows, const struct step_operand *operand)
{
    uint64_t misaligned = (uint64_t)(uintptr_t)operand->origin | (uint64_t)operand->stride;
    for (uint32_t k = 0; k < rows->outer_rank; k++)
        misaligned |= rows->outer_shape[k] > 1 ? (uint64_t)operand->outer_strides[k] : 0;
    return (misaligned & (codec_bytes(operand->dtype) - 1)) == 0;
}

/* Has launch(begin, grid) start a thread block for each of the tiles. */
template <class Launch> static cudaError_t step_launch_each(uint64_t begin, uint64_t end, Launch launch)
{
    cudaError_t error = cudaSuccess;
    for (uint64_t grid; begin < end && !error; begin += grid) {
        grid = end - begin < STEP_GRID_MAX ? end - begin : STEP_GRID_MAX;
        launch(begin, (unsigned)grid);
        error = cudaGetLastError();
    }
    return error;
}

#endif
