/*
 * What all variants of the scan share, so that their files hold little but the kernel: rows in the order of a pass, one
 * launch per pass, accumulators.
 */
#ifndef KERNELS_VARIANTS_COMMON_CUH
#define KERNELS_VARIANTS_COMMON_CUH

#include <cuda_runtime.h>

#include "kernels/f2.h"
#include "kernels/variants/variants.h"

#define DEVICE   static __device__ __forceinline__
#define WARP     32
#define ALL      (~0u) /* lanes of a warp */
#define GRID_MAX 65535 /* thread blocks of a launch; kernels loop over what is left */

/* One row, seen in the order of a pass: a backward pass meets the last sample first. */
struct row {
    float *first;
    int64_t step;

    __device__ __forceinline__ float &operator[](uint64_t i) const
    {
        return first[(int64_t)i * step];
    }
};

/* All rows, seen in the order of a pass. */
struct side {
    char *first; /* the first sample that the pass meets, of row 0 */
    int64_t pitch;
    int64_t step; /* 1, or -1 backward */

    __device__ __forceinline__ struct row operator[](uint64_t number) const
    {
        return {(float *)(first + (int64_t)number * pitch), step};
    }
};

/* What a kernel does: y = the scan of x. Both may be the same memory, so a sample is read before its sum is written. */
struct pass {
    struct side x, y;
    uint64_t rows, length;
};

static inline struct side side_of(const float *base, int64_t pitch, uint64_t length, bool backward)
{
    return {(char *)(base + (backward ? length - 1 : 0)), pitch, backward ? -1 : 1};
}

/* Pass `number` of a scan. The second one reads what the first one wrote. */
static inline struct pass pass_of(const struct variant_scan *scan, uint32_t number)
{
    bool backward = scan->passes[number] == SCAND_PASS_BACKWARD;
    struct side y = side_of(scan->output, scan->output_pitch, scan->length, backward);
    struct side x = side_of(scan->input, scan->input_pitch, scan->length, backward);
    return {number == 0 ? x : y, y, scan->rows, scan->length};
}

/* The status of the launches just made, and none left for the next call to find. */
static inline cudaError_t launch_status()
{
    return cudaGetLastError();
}

/* Calls launch(pass) for each pass in order, until one fails. */
template <class Launch> static int passes_run(const struct variant_scan *scan, Launch launch)
{
    cudaError_t error = cudaSuccess;
    for (uint32_t number = 0; number < scan->pass_count && !error; number++) {
        launch(pass_of(scan, number));
        error = launch_status();
    }
    return error;
}

static inline uint64_t parts_of(uint64_t whole, uint64_t part)
{
    return (whole + part - 1) / part;
}

static inline unsigned grid_of(uint64_t blocks)
{
    return (unsigned)(blocks < GRID_MAX ? blocks : GRID_MAX);
}

/* What a sum is kept in: how samples and sums are added, and what is stored. */
struct sum_f32 {
    using type = float;
    DEVICE type of(float x)
    {
        return x;
    }
    DEVICE type add_sample(type sum, float x)
    {
        return sum + x;
    }
    DEVICE type add(type left, type right)
    {
        return left + right;
    }
    DEVICE float rounded(type sum)
    {
        return sum;
    }
};

struct sum_f64 {
    using type = double;
    DEVICE type of(float x)
    {
        return x;
    }
    DEVICE type add_sample(type sum, float x)
    {
        return sum + x;
    }
    DEVICE type add(type left, type right)
    {
        return left + right;
    }
    DEVICE float rounded(type sum)
    {
        return (float)sum;
    }
};

struct sum_f2 {
    using type = struct f2;
    DEVICE type of(float x)
    {
        return f2_from_f32(x);
    }
    DEVICE type add_sample(type sum, float x)
    {
        return f2_add_f32(sum, x);
    }
    DEVICE type add(type left, type right)
    {
        return f2_add(left, right);
    }
    DEVICE float rounded(type sum)
    {
        return sum.high;
    }
};

/* Calls launch(Sum()) for the accumulator that the scan asks for. */
template <class Launch> static void with_accumulator(const struct variant_scan *scan, Launch launch)
{
    if (scan->accumulator == SCAND_ACCUMULATOR_F32)
        launch(sum_f32());
    else if (scan->accumulator == SCAND_ACCUMULATOR_F64)
        launch(sum_f64());
    else
        launch(sum_f2());
}

#endif
