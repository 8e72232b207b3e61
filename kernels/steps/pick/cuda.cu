/* A thread for each pick, which reads six samples at most: picks that are neighbours read what lies close together. */
#include "kernels/steps/elements.cuh"
#include "pick.h"

#define THREADS 256
#define ANY     SCAND_DTYPE_COUNT /* dtype that is not known when this is compiled */

/* A row, and its operands. */
struct line {
    const char *x, *positions, *half_widths;
    char *y;
};

static __device__ __forceinline__ struct line line_of(const struct step_rows &rows, uint64_t row)
{
    return {step_row(&rows, &rows.input, row), step_row(&rows, &rows.further[PICK_POSITION], row),
            step_row(&rows, &rows.further[PICK_HALF_WIDTH], row), step_row(&rows, &rows.output, row)};
}

/* Positions and half-widths, which are mostly f32, as results are. */
static __device__ __forceinline__ double number(const struct step_operand &operand, const char *row, uint64_t k)
{
    const char *const at = row + (int64_t)k * operand.stride;
    return operand.dtype == SCAND_DTYPE_F32 ? step_get_f64(SCAND_DTYPE_F32, at) : step_call_get_f64(operand.dtype, at);
}

static __device__ __forceinline__ void put_result(const struct step_operand &operand, double result, char *at)
{
    if (operand.dtype == SCAND_DTYPE_F32)
        step_put_f64(SCAND_DTYPE_F32, result, at);
    else
        step_call_put_f64(operand.dtype, result, at);
}

/* Between two samples of a row, whose places are known to be multiples of their size, or not. */
static __device__ __forceinline__ double interpolated(bool aligned, enum scand_dtype dtype, int64_t stride,
                                                      const char *x, double at)
{
    const struct pick_place place = pick_place(at);
    const char *first = step_aligned(aligned, dtype, x + (int64_t)place.first * stride);
    const char *second = step_aligned(aligned, dtype, x + (int64_t)place.second * stride);
    return pick_between(step_get_f64(dtype, first), step_get_f64(dtype, second), place.share);
}

static __device__ __noinline__ double call_interpolated(enum scand_dtype dtype, int64_t stride, const char *x,
                                                        double at)
{
    return interpolated(false, dtype, stride, x, at);
}

/* Dtype: of an input of which all elements lie at multiples of their size, or ANY. */
template <enum scand_dtype Dtype>
static __device__ __forceinline__ double value_at(const struct step_operand &input, const char *x, double at)
{
    if constexpr (Dtype == ANY)
        return call_interpolated(input.dtype, input.stride, x, at);
    else
        return interpolated(true, Dtype, input.stride, x, at);
}

template <enum scand_dtype Dtype>
static __global__ void __launch_bounds__(THREADS)
    pick_tiles(const __grid_constant__ struct step_rows rows, const __grid_constant__ struct step_tiles tiles,
               uint64_t begin)
{
    elements_each(
        rows, step_block_tile(tiles, begin), [&](uint64_t row) { return line_of(rows, row); },
        [&](const struct line &line, uint64_t k) {
            const double at = number(rows.further[PICK_POSITION], line.positions, k);
            const double half_width = number(rows.further[PICK_HALF_WIDTH], line.half_widths, k);
            const double width = half_width + 1;
            double result = 0;
            if (pick_is_inside(at, half_width, rows.input.length))
                result =
                    pick_value(value_at<Dtype>(rows.input, line.x, at - width), value_at<Dtype>(rows.input, line.x, at),
                               value_at<Dtype>(rows.input, line.x, at + width), width);
            put_result(rows.output, result, line.y + (int64_t)k * rows.output.stride);
        });
}

template <enum scand_dtype Dtype>
static cudaError_t launch(const struct step_rows *rows, const struct step_tiles *tiles, uint64_t begin, uint64_t end,
                          void *stream)
{
    return step_launch_each(begin, end, [&](uint64_t first, unsigned grid) {
        pick_tiles<Dtype><<<grid, THREADS, 0, (cudaStream_t)stream>>>(*rows, *tiles, first);
    });
}

extern "C" int pick_launch(const struct step_rows *rows, const void *params, const struct step_tiles *tiles,
                           uint64_t begin, uint64_t end, void *stream)
{
    const bool aligned = step_is_aligned(rows, &rows->input);
    (void)params;
    if (aligned && rows->input.dtype == SCAND_DTYPE_F32)
        return launch<SCAND_DTYPE_F32>(rows, tiles, begin, end, stream);
    if (aligned && rows->input.dtype == SCAND_DTYPE_F64)
        return launch<SCAND_DTYPE_F64>(rows, tiles, begin, end, stream);
    return launch<ANY>(rows, tiles, begin, end, stream);
}
