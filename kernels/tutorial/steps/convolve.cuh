/*
 * Common parts of the convolutions: the sum of an output, wherever its taps and samples come from, and a filter in
 * constant memory. Taps are added in their order with one rounding each, so the bits are those of the reference.
 */
#ifndef KERNELS_TUTORIAL_STEPS_CONVOLVE_CUH
#define KERNELS_TUTORIAL_STEPS_CONVOLVE_CUH

#include "kernels/steps/convolve/convolve.h"
#include "kernels/steps/step.cuh"
#include "kernels/tutorial/scan/launch.cuh"
#include "kernels/tutorial/steps/steps.h"

#define THREADS 256
#define F32     SCAND_DTYPE_F32

GPU_INLINE float fused(float tap, float sample, float sum)
{
    return fmaf(tap, sample, sum);
}

GPU_INLINE double fused(double tap, double sample, double sum)
{
    return fma(tap, sample, sum);
}

/* Returns output i of a row: sample(k) is the sample of tap k, for the taps that have one. Sum is float or double. */
template <class Sum, class Tap, class Sample>
GPU_INLINE void put_output(const struct convolve_row &row, int64_t taps, int64_t i, Tap tap, Sample sample)
{
    const int64_t at = i + row.start, first = at < 0 ? -at : 0;
    const int64_t end = taps < row.samples - at ? taps : row.samples - at;
    Sum sum = 0;
    for (int64_t m = first; m < end; m++)
        sum = fused((Sum)tap(m), (Sum)sample(m), sum);
    step_put_f32(F32, (float)sum, row.y + i * row.y_stride);
}

GPU_INLINE float sample_at(const struct convolve_row &row, int64_t j)
{
    return step_get_f32(F32, row.x + j * row.x_stride);
}

/* The filter that all rows have, where there is one. The launches of one stream use it in turns. */
static __constant__ float constant_filter[LIMIT_TAPS];

/* True when all rows have the same taps, side by side. */
static inline bool filter_is_shared(const struct step_rows *rows, const struct convolve *convolve)
{
    const struct step_operand *filter = &rows->further[0];
    bool shared = convolve->taps <= LIMIT_TAPS && (filter->stride == sizeof(float) || convolve->taps == 1);
    for (uint32_t k = 0; k < rows->outer_rank; k++)
        shared = shared && (rows->outer_shape[k] == 1 || filter->outer_strides[k] == 0);
    return shared;
}

/* Copies the taps from device memory to where a later launch on the stream reads them as constants. */
static inline cudaError_t filter_copy(const struct step_rows *rows, const struct convolve *convolve, void *stream)
{
    return cudaMemcpyToSymbolAsync(constant_filter, rows->further[0].origin, convolve->taps * sizeof(float), 0,
                                   cudaMemcpyDefault, (cudaStream_t)stream);
}

typedef void convolve_kernel_function(struct step_rows rows, struct convolve convolve, struct step_tiles tiles,
                                      uint64_t begin);

static inline int convolve_run(convolve_kernel_function *kernel, const struct step_rows *rows, const void *params,
                               const struct step_tiles *tiles, uint64_t begin, uint64_t end, void *stream)
{
    const struct convolve convolve = *(const struct convolve *)params;
    return step_launch_each(begin, end, [&](uint64_t first, unsigned grid) {
        kernel<<<grid, THREADS, 0, (cudaStream_t)stream>>>(*rows, convolve, *tiles, first);
    });
}

#endif
