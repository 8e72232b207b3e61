/* Samples of a list on their way, and the sums that they are added to: of one row of each lane, or of several. */
#ifndef KERNELS_STEPS_STACK_SAMPLES_CUH
#define KERNELS_STEPS_STACK_SAMPLES_CUH

#include "cells.cuh"

/* The rows of a lane, and sample 0 in its first one. */
template <class Form> struct lane_rows {
    const char *x;
    int64_t stride;
    bool present[Form::rows];
};

/* A sample as it is on its way: floats wait for their conversion until they are here. */
template <class T, enum scand_dtype Dtype> using raw = std::conditional_t<Dtype == SCAND_DTYPE_F32, float, T>;

template <class T, enum scand_dtype Dtype>
static __device__ __forceinline__ raw<T, Dtype> get_raw(enum scand_dtype dtype, const char *at)
{
    if constexpr (Dtype == ANY)
        return get_sample<T>(dtype, at);
    else
        return *(const raw<T, Dtype> *)at;
}

/* Samples of a list that were asked for together, of each row. */
template <class T, enum scand_dtype Dtype, class Form> struct flight { raw<T, Dtype> x[Form::samples][Form::rows]; };

/* Sums and folds of a lane. */
template <class T, class Form> struct sums {
    T sum[Form::rows];
    uint32_t fold[Form::rows];
};

template <bool Counts, class T, enum scand_dtype Dtype, class Form>
static __device__ __forceinline__ void add_sample(const struct flight<T, Dtype, Form> &flight, unsigned k, T alpha,
                                                  struct sums<T, Form> *sums)
{
#pragma unroll
    for (unsigned r = 0; r < Form::rows; r++) {
        const T x = (T)flight.x[k][r];
        sums->sum[r] = sums->sum[r] + alpha * x; /* a product by 1 has the bits of x */
        if (Counts)
            sums->fold[r] += x != 0;
    }
}

/* Adds so many samples that are here. Whole chunks are not looked at one by one: sums wait for nothing but sums. */
template <bool Counts, class T, enum scand_dtype Dtype, class Form>
static __device__ __forceinline__ void add(const struct flight<T, Dtype, Form> &flight, unsigned count, T alpha,
                                           struct sums<T, Form> *sums)
{
#pragma unroll
    for (unsigned first = 0; first < Form::samples; first += Form::chunk) {
        if (first >= count)
            return;
        if (first + Form::chunk <= count) {
#pragma unroll
            for (unsigned k = first; k < first + Form::chunk; k++)
                add_sample<Counts>(flight, k, alpha, sums);
        } else {
#pragma unroll
            for (unsigned k = first; k < first + Form::chunk; k++)
                if (k < count)
                    add_sample<Counts>(flight, k, alpha, sums);
        }
    }
}

#endif
