/*
 * Common parts of all variants of the scan, so that their files hold little but the kernel: rows in the order of a
 * pass, one launch per pass, accumulators.
 */
#ifndef KERNELS_TUTORIAL_SCAN_COMMON_CUH
#define KERNELS_TUTORIAL_SCAN_COMMON_CUH

#include "kernels/order1/f2.h"
#include "kernels/tutorial/scan/launch.cuh"
#include "kernels/tutorial/scan/variants.h"

/* One row, seen in the order of a pass: a backward pass meets the last sample first. */
struct row {
    float *first;
    int64_t step;

    __device__ __forceinline__ float &operator[](uint64_t i) const { return first[(int64_t)i * step]; }
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

/* The arguments of a kernel: y = the scan of x. Both may be the same memory, so a sample is read before its sum is
 * written. */
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

/* The accumulators of a sum: how samples and sums are added, and what is stored. */
struct sum_f32 {
    using type = float;
    GPU_INLINE type of(float x) { return x; }
    GPU_INLINE type add_sample(type sum, float x) { return sum + x; }
    GPU_INLINE type add(type left, type right) { return left + right; }
    GPU_INLINE float rounded(type sum) { return sum; }
};

struct sum_f64 {
    using type = double;
    GPU_INLINE type of(float x) { return x; }
    GPU_INLINE type add_sample(type sum, float x) { return sum + x; }
    GPU_INLINE type add(type left, type right) { return left + right; }
    GPU_INLINE float rounded(type sum) { return (float)sum; }
};

struct sum_f2 {
    using type = struct f2;
    GPU_INLINE type of(float x) { return f2_from_f32(x); }
    GPU_INLINE type add_sample(type sum, float x) { return f2_add_f32(sum, x); }
    GPU_INLINE type add(type left, type right) { return f2_add(left, right); }
    GPU_INLINE float rounded(type sum) { return sum.high; }
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
