/*
 * Common parts of the element-wise kernels: functors, kernels by op, and elements outside packs.
 */
#ifndef KERNELS_TUTORIAL_STEPS_MAP_CUH
#define KERNELS_TUTORIAL_STEPS_MAP_CUH

#include "kernels/steps/map/map.h"
#include "kernels/steps/step.cuh"
#include "kernels/tutorial/scan/launch.cuh"
#include "kernels/tutorial/steps/steps.h"

#define THREADS 256

/* The function of each element: a struct with the constants, called with the samples. */
template <enum map_op OP> struct functor {
    float by, high;
    bool with_other; /* b is a sample, not the constant */

    __device__ __forceinline__ float operator()(float x, float b) const
    {
        return map_f32(OP, x, with_other ? b : by, high);
    }
};

template <enum map_op OP>
GPU_INLINE struct functor<OP> functor_of(const struct step_rows &rows, const struct map &map) {
    return {(float)map.by, (float)map.high, rows.further[MAP_OTHER].origin != NULL};
}

typedef void
map_kernel_function(struct step_rows rows, struct map map, struct step_tiles tiles, uint64_t begin);

static inline int map_run(map_kernel_function *kernel, const struct step_rows *rows, const void *params,
                          const struct step_tiles *tiles, uint64_t begin, uint64_t end, void *stream)
{
    const struct map map = *(const struct map *)params;
    return step_launch_each(begin, end, [&](uint64_t first, unsigned grid) {
        kernel<<<grid, THREADS, 0, (cudaStream_t)stream>>>(*rows, map, *tiles, first);
    });
}

/* True when all operands are elements side by side, and rows and tiles begin at multiples of so many bytes. */
static inline bool map_is_dense(const struct step_rows *rows, const struct step_tiles *tiles, enum scand_dtype dtype,
                                uint32_t bytes)
{
    const struct step_operand *other = &rows->further[MAP_OTHER];
    return step_is_dense(rows, &rows->input, dtype, bytes) && step_is_dense(rows, &rows->output, dtype, bytes) &&
           (!other->origin || step_is_dense(rows, other, dtype, bytes)) &&
           tiles->tiling.elements * codec_bytes(dtype) % bytes == 0;
}

/* The elements of a tile from `skip` on, of each of its rows, one by one. */
template <enum map_op OP, enum scand_dtype DTYPE>
GPU_INLINE void map_rest(const struct step_rows &rows, const struct functor<OP> &apply, const struct step_tile &tile,
                         uint32_t skip)
{
    const struct step_operand &other = rows.further[MAP_OTHER];
    const uint32_t width = (uint32_t)(tile.end - tile.begin) - skip;
    for (uint32_t n = threadIdx.x; n < tile.row_count * width; n += THREADS) {
        const uint64_t row = tile.first_row + n / width;
        const int64_t i = (int64_t)(tile.begin + skip + n % width);
        const float x = step_get_f32(DTYPE, step_row(&rows, &rows.input, row) + i * rows.input.stride);
        const float b = other.origin ? step_get_f32(DTYPE, step_row(&rows, &other, row) + i * other.stride) : 0;
        step_put_f32(DTYPE, apply(x, b), step_row(&rows, &rows.output, row) + i * rows.output.stride);
    }
}

#endif
