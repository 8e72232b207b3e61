/*
 * Rows of triangles on a GPU: how their samples are read and their outputs written.
 */
#ifndef KERNELS_STEPS_TRIANGLE_LINE_CUH
#define KERNELS_STEPS_TRIANGLE_LINE_CUH

#include <type_traits>

#include "kernels/steps/step.cuh"
#include "triangle.h"

#define WARP 32

/* A row. Dtype: of dense, aligned input and output, or COUNT where any may be. */
template <enum scand_dtype Dtype> struct line {
    static constexpr bool narrow = Dtype == SCAND_DTYPE_F32 || Dtype == SCAND_DTYPE_F16;
    using sample = std::conditional_t<narrow, float, double>; /* as a sample or an output waits for its turn */

    static constexpr bool known = Dtype != SCAND_DTYPE_COUNT;

    const char *from;
    char *to;
    int64_t strides[2], length;
    enum scand_dtype dtypes[2];

    __device__ __forceinline__ int64_t from_stride() const { return known ? codec_bytes(Dtype) : strides[0]; }
    __device__ __forceinline__ int64_t to_stride() const { return known ? codec_bytes(Dtype) : strides[1]; }
    __device__ __forceinline__ enum scand_dtype from_dtype() const { return known ? Dtype : dtypes[0]; }

    static __device__ __forceinline__ struct line of(const struct step_rows &rows, uint64_t row)
    {
        struct line line;
        line.from = step_row(&rows, &rows.input, row);
        line.to = step_row(&rows, &rows.output, row);
        line.strides[0] = rows.input.stride;
        line.strides[1] = rows.output.stride;
        line.length = (int64_t)step_length(&rows, &rows.input, row);
        line.dtypes[0] = rows.input.dtype;
        line.dtypes[1] = rows.output.dtype;
        return line;
    }
    __device__ __forceinline__ sample get(const char *at) const
    {
        at = step_aligned(known, from_dtype(), at);
        if constexpr (narrow)
            return step_get_f32(from_dtype(), at);
        else if constexpr (!known)
            return step_call_get_f64(from_dtype(), at);
        else
            return step_get_f64(from_dtype(), at);
    }
    __device__ __forceinline__ sample inside(int64_t i) const { return get(from + i * from_stride()); }
    /* Sample i of the extended row. */
    __device__ __forceinline__ sample beyond(enum boundary boundary, int64_t i) const
    {
        const int64_t source = triangle_source(boundary, i, length);
        return source < 0 ? 0 : inside(source);
    }
    __device__ __forceinline__ void put(int64_t i, double value) const
    {
        char *const at = to + i * to_stride();
        if constexpr (Dtype == SCAND_DTYPE_COUNT)
            step_call_put_f64(dtypes[1], value, at);
        else if constexpr (Dtype == SCAND_DTYPE_F32)
            *(uint32_t *)at = encode((sample)value);
        else if constexpr (Dtype == SCAND_DTYPE_F64)
            *(uint64_t *)at = encode((sample)value);
        else
            *(uint16_t *)at = (uint16_t)encode((sample)value);
    }
    /* Words of a known dtype. */
    template <class Word> static __device__ __forceinline__ sample decode(Word word)
    {
        if constexpr (narrow)
            return codec_decode_f32(Dtype, (const char *)&word);
        else
            return codec_decode_f64(Dtype, (const char *)&word);
    }
    /* A value whose NaN is the one that codecs write. */
    static __device__ __forceinline__ sample one_nan(sample value)
    {
        if constexpr (narrow)
            return __uint_as_float(codec_encoded_f32(SCAND_DTYPE_F32, value));
        else
            return __longlong_as_double((long long)codec_encoded_f64(SCAND_DTYPE_F64, value));
    }
    /* The word of such a value. */
    static __device__ __forceinline__ auto encode_number(sample value)
    {
        if constexpr (Dtype == SCAND_DTYPE_F32)
            return __float_as_uint(value);
        else if constexpr (Dtype == SCAND_DTYPE_F64)
            return (uint64_t)__double_as_longlong(value);
        else
            return codec_encoded_f32(Dtype, value);
    }
    static __device__ __forceinline__ auto encode(sample value)
    {
        if constexpr (narrow)
            return codec_encoded_f32(Dtype, value);
        else
            return codec_encoded_f64(Dtype, value);
    }
};

/* Has the L2 cache fetch what lies there. */
static __device__ __forceinline__ void prefetch(const void *at)
{
    asm volatile("prefetch.L2 [%0];" ::"l"(at));
}

/* COUNT samples at a multiple of 16 bytes in shared memory. */
template <int COUNT, class T> static __device__ __forceinline__ void read_aligned(const T *from, T samples[COUNT])
{
#pragma unroll
    for (int w = 0; w < (int)(COUNT * sizeof(T) / sizeof(uint4)); w++)
        ((uint4 *)samples)[w] = ((const uint4 *)from)[w];
}

template <int COUNT, class T> static __device__ __forceinline__ void write_aligned(T *to, const T samples[COUNT])
{
#pragma unroll
    for (int w = 0; w < (int)(COUNT * sizeof(T) / sizeof(uint4)); w++)
        ((uint4 *)to)[w] = ((const uint4 *)samples)[w];
}

/* A leaf of each thread of a warp, which passes through shared memory: memory is read and written side by side. */
template <class T> struct stage {
    alignas(16) T samples[WARP * TRIANGLE_LEAF];

    __device__ __forceinline__ void get_leaf(int lane, T leaf[TRIANGLE_LEAF]) const
    {
        read_aligned<TRIANGLE_LEAF>(samples + lane * TRIANGLE_LEAF, leaf);
    }
    /* Reads it once more rather than keep it in registers. */
    __device__ __forceinline__ void get_leaf_again(int lane, T leaf[TRIANGLE_LEAF]) const
    {
        asm volatile("" ::: "memory");
        get_leaf(lane, leaf);
    }
    __device__ __forceinline__ void put_leaf(int lane, const T leaf[TRIANGLE_LEAF])
    {
        write_aligned<TRIANGLE_LEAF>(samples + lane * TRIANGLE_LEAF, leaf);
    }
};

#endif
