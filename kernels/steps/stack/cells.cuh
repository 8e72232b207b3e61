/* Samples as sums have them, and what bins have before and after. */
#ifndef KERNELS_STEPS_STACK_CELLS_CUH
#define KERNELS_STEPS_STACK_CELLS_CUH

#include <type_traits>

#include "kernels/steps/step.cuh"
#include "stack.h"

#define WARP  32
#define ALL   0xffffffffu
#define ANY   SCAND_DTYPE_COUNT /* dtype that is not known when this is compiled */
#define BINS  WARP              /* bins of a thread block that makes lists */
#define LOOKS 8                 /* samples that a thread looks up the bins of at a time */

/* A sample as sums have it: T is double or, of integers, uint64_t. */
template <class T> static __device__ __forceinline__ T get_sample(enum scand_dtype dtype, const char *at);
template <> __device__ __forceinline__ double get_sample(enum scand_dtype dtype, const char *at)
{
    return step_get_f64(dtype, at);
}
template <> __device__ __forceinline__ uint64_t get_sample(enum scand_dtype dtype, const char *at)
{
    return step_decode_integer(dtype, at);
}

/* The factor of samples, which is mostly 1. */
template <class T> static __device__ __forceinline__ T factor_of(const struct stack &stack)
{
    if constexpr (std::is_same_v<T, double>)
        return stack.alpha;
    else
        return (T)(int64_t)stack.alpha;
}

/* Element 0 of a row of each operand that has an element for each bin, or one of its bins. */
struct cells {
    char *output, *fold;
    const char *onto;
};

static __device__ __forceinline__ struct cells cells_of(const struct step_rows &rows, uint64_t row)
{
    const struct step_operand &fold = rows.further[STACK_FOLD], &onto = rows.further[STACK_ONTO];
    return {step_row(&rows, &rows.output, row), fold.origin ? step_row(&rows, &fold, row) : NULL,
            onto.origin ? step_row(&rows, &onto, row) : NULL};
}

/* A bin of the row that lies so many rows further along the last dimension. */
static __device__ __forceinline__ struct cells cells_at(const struct step_rows &rows, const struct cells &cells,
                                                        unsigned further, uint64_t bin)
{
    const struct step_operand &fold = rows.further[STACK_FOLD], &onto = rows.further[STACK_ONTO];
    const uint32_t last = further > 0 ? rows.outer_rank - 1 : 0;
    const int64_t i = (int64_t)bin, k = further;
    return {cells.output + i * rows.output.stride + k * rows.output.outer_strides[last],
            cells.fold ? cells.fold + i * fold.stride + k * fold.outer_strides[last] : NULL,
            cells.onto ? cells.onto + i * onto.stride + k * onto.outer_strides[last] : NULL};
}

/* Returns what a bin of a row has before the rows are added. */
template <class T> static __device__ __noinline__ T get_cell(enum scand_dtype dtype, const char *onto)
{
    return get_sample<T>(dtype, onto);
}

template <class T>
static __device__ __forceinline__ T first_sum(const struct step_rows &rows, const struct cells &cells)
{
    return cells.onto ? get_cell<T>(rows.further[STACK_ONTO].dtype, cells.onto) : 0;
}

static __device__ __noinline__ void put_sum(const struct stack &stack, enum scand_dtype dtype, double sum,
                                            uint32_t fold, char *at)
{
    step_put_f64(dtype, stack_value(&stack, sum, fold), at);
}

static __device__ __noinline__ void put_integer(enum scand_dtype dtype, uint64_t value, char *at)
{
    step_encode_integer(dtype, value, at);
}

/* A bin of a row is done. */
template <class T>
static __device__ __forceinline__ void put_cell(const struct step_rows &rows, const struct stack &stack,
                                                const struct cells &cells, T sum, uint32_t fold)
{
    if constexpr (!std::is_same_v<T, double>)
        put_integer(rows.output.dtype, sum, cells.output);
    else if (rows.output.dtype == SCAND_DTYPE_F32 && stack.norm == STACK_NORM_NONE)
        step_put_f64(SCAND_DTYPE_F32, sum, cells.output);
    else
        put_sum(stack, rows.output.dtype, sum, fold, cells.output);
    if (cells.fold)
        put_integer(rows.further[STACK_FOLD].dtype, fold, cells.fold);
}

static __host__ __device__ __forceinline__ uint64_t parts(uint64_t count, uint64_t each)
{
    return (count + each - 1) / each;
}

#endif
