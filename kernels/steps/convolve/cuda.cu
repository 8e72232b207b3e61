/*
 * A warp computes UNIT outputs of a row at a time, OUTPUTS neighbours in each thread. It brings the samples that they
 * need for TAPS taps, and these taps, into shared memory. Then a thread has its sums in registers, and a window of 2
 * OUTPUTS samples: for each OUTPUTS taps it reads as many samples and taps, and adds OUTPUTS times as many products.
 * All warps are alone, so that short rows are computed side by side.
 */
#include "convolve.h"
#include "kernels/steps/step.cuh"
#include "strips.cuh"

#define WARPS   4
#define OUTPUTS 8
#define UNIT    (32 * OUTPUTS)
#define TAPS    256

/* 16 bytes, which travel at once. */
template <class T> struct alignas(16) pack {
    static constexpr int count = 16 / sizeof(T);
    T values[count];
};

/*
 * Numbers in blocks of OUTPUTS, of which neighbouring threads read neighbouring ones. A block is cut into its packs,
 * and the first packs of all blocks lie side by side, then the second ones, and so on. So threads that read packs, and
 * those that store numbers one by one, meet all banks of shared memory alike.
 */
template <class T> struct blocks {
    static constexpr int packs = OUTPUTS / pack<T>::count;
    static constexpr int plane = (UNIT + TAPS) / OUTPUTS + 8 / packs;
    pack<T> memory[packs * plane];

    __device__ __forceinline__ T &at(int i)
    {
        const int in_block = i % OUTPUTS;
        return memory[in_block / pack<T>::count * plane + i / OUTPUTS].values[in_block % pack<T>::count];
    }
    __device__ __forceinline__ void load(int block, T out[OUTPUTS]) const
    {
#pragma unroll
        for (int p = 0; p < packs; p++) {
            const pack<T> part = memory[p * plane + block];
#pragma unroll
            for (int i = 0; i < pack<T>::count; i++)
                out[p * pack<T>::count + i] = part.values[i];
        }
    }
    __device__ __forceinline__ void store(int block, const T in[OUTPUTS])
    {
#pragma unroll
        for (int p = 0; p < packs; p++) {
            pack<T> part;
#pragma unroll
            for (int i = 0; i < pack<T>::count; i++)
                part.values[i] = in[p * pack<T>::count + i];
            memory[p * plane + block] = part;
        }
    }
};

/* Shared memory of a warp. */
template <class T> struct warp_memory {
    blocks<T> numbers; /* the samples, and then the outputs */
    pack<T> taps[TAPS / pack<T>::count];
};

/*
 * Elements in memory: of type S, aligned, or of any other dtype and place (coded).
 */

struct coded {
};

static __device__ __forceinline__ void get(enum scand_dtype dtype, const char *at, float *out)
{
    *out = step_call_get_f32(dtype, at);
}
static __device__ __forceinline__ void get(enum scand_dtype dtype, const char *at, double *out)
{
    *out = step_call_get_f64(dtype, at);
}

static __device__ __forceinline__ void put(enum scand_dtype dtype, float value, char *at)
{
    step_call_put_f32(dtype, value, at);
}
static __device__ __forceinline__ void put(enum scand_dtype dtype, double value, char *at)
{
    step_call_put_f64(dtype, value, at);
}

template <class T, class S> struct element {
    static __device__ __forceinline__ T load(enum scand_dtype, const char *at) { return (T) * (const S *)at; }
    /* Stores a value with the one NaN that codecs write. */
    static __device__ __forceinline__ void store(enum scand_dtype, T value, char *at)
    {
        if constexpr (sizeof(S) == sizeof(float))
            *(uint32_t *)at = codec_encoded_f32(SCAND_DTYPE_F32, (float)value);
        else
            *(uint64_t *)at = codec_encoded_f64(SCAND_DTYPE_F64, (double)value);
    }
};

template <class T> struct element<T, coded> {
    static __device__ __forceinline__ T load(enum scand_dtype dtype, const char *at)
    {
        T value;
        get(dtype, at, &value);
        return value;
    }
    static __device__ __forceinline__ void store(enum scand_dtype dtype, T value, char *at) { put(dtype, value, at); }
};

/* `value`, or the nearer end of the range. */
static __device__ __forceinline__ int clamped(int64_t value, int most)
{
    return value < 0 ? 0 : value > most ? most : (int)value;
}

/* Numbers 0 <= i < count: samples at + i of a row, or 0 where it has none, which is never if ALL. Many loads are on
 * their way at once. */
template <bool ALL, class T, class S>
static __device__ __forceinline__ void load_samples(const convolve_row &row, enum scand_dtype dtype, int64_t at,
                                                    int count, int lane, blocks<T> &out)
{
    constexpr int apart = 32 / OUTPUTS * pack<T>::count; /* distance of numbers i and i + 32 */
    const int low = ALL ? 0 : clamped(-at, count), high = ALL ? count : clamped(row.samples - at, count);
    const int64_t step = 32 * row.x_stride;
    const char *from = row.x + (at + lane) * row.x_stride;
    T *to = &out.at(lane), values[OUTPUTS + 1];
#pragma unroll
    for (int k = 0; k <= OUTPUTS; k++, from += step) {
        const int i = lane + 32 * k;
        const bool has = ALL ? k < OUTPUTS || i < count : i >= low && i < high;
        values[k] = has ? element<T, S>::load(dtype, from) : (T)0;
    }
#pragma unroll
    for (int k = 0; k <= OUTPUTS; k++)
        if (k < OUTPUTS || lane + UNIT < count)
            to[k * apart] = values[k];
    to += (OUTPUTS + 1) * apart;
#pragma unroll 4
    for (int i = UNIT + 32 + lane; i < count; i += 32, from += step, to += apart)
        *to = ALL || (i >= low && i < high) ? element<T, S>::load(dtype, from) : (T)0;
}

template <class T>
static __device__ __forceinline__ void load_taps(const convolve_row &row, enum scand_dtype dtype, int64_t begin,
                                                 int count, int lane, pack<T> *out)
{
    const char *from = row.w + (begin + lane) * row.w_stride;
    T *const to = (T *)out;
#pragma unroll 4
    for (int m = lane; m < count; m += 32, from += 32 * row.w_stride)
        to[m] = element<T, coded>::load(dtype, from);
}

static __device__ __forceinline__ float fused(float a, float b, float c)
{
    return fmaf(a, b, c);
}
static __device__ __forceinline__ double fused(double a, double b, double c)
{
    return fma(a, b, c);
}

/* Adds `count` taps, at most OUTPUTS, of which sum r has the samples r, r + 1, ... of those in two blocks; of these low
 * <= k < high are the row's. */
template <bool ALL_TAPS, bool ALL_SAMPLES, class T>
static __device__ __forceinline__ void add_taps(const T taps[OUTPUTS], const T block[OUTPUTS], const T next[OUTPUTS],
                                                int count, int low, int high, T sums[OUTPUTS])
{
#pragma unroll
    for (int m = 0; m < OUTPUTS; m++)
        if (ALL_TAPS || m < count) {
#pragma unroll
            for (int r = 0; r < OUTPUTS; r++)
                if (ALL_SAMPLES || (r + m >= low && r + m < high))
                    sums[r] = fused(taps[m], r + m < OUTPUTS ? block[r + m] : next[r + m - OUTPUTS], sums[r]);
        }
}

template <class T>
static __device__ __forceinline__ void load_block_taps(const warp_memory<T> &memory, int m, T taps[OUTPUTS])
{
#pragma unroll
    for (int p = 0; p < OUTPUTS / pack<T>::count; p++) {
        const pack<T> part = memory.taps[m / pack<T>::count + p];
#pragma unroll
        for (int k = 0; k < pack<T>::count; k++)
            taps[p * pack<T>::count + k] = part.values[k];
    }
}

/* Adds OUTPUTS taps from m on, of a block of samples and the next one, which is loaded. */
template <class T>
static __device__ __forceinline__ void add_block(const warp_memory<T> &memory, int m, int lane, const T block[OUTPUTS],
                                                 T next[OUTPUTS], T sums[OUTPUTS])
{
    T taps[OUTPUTS];
    memory.numbers.load(lane + m / OUTPUTS + 1, next);
    load_block_taps(memory, m, taps);
    add_taps<true, true>(taps, block, next, OUTPUTS, 0, 0, sums);
}

/* Adds the `count` taps that are in shared memory, with the samples there, which are all the row's. Two blocks take
 * turns, so that none is copied. */
template <class T>
static __device__ __forceinline__ void add_inner(const warp_memory<T> &memory, int count, int lane, T sums[OUTPUTS])
{
    T even[OUTPUTS], odd[OUTPUTS], taps[OUTPUTS];
    int m = 0;
    memory.numbers.load(lane, even);
#pragma unroll 1
    for (; m + 2 * OUTPUTS <= count; m += 2 * OUTPUTS) {
        add_block(memory, m, lane, even, odd, sums);
        add_block(memory, m + OUTPUTS, lane, odd, even, sums);
    }
    if (m + OUTPUTS <= count) {
        add_block(memory, m, lane, even, odd, sums);
        m += OUTPUTS;
#pragma unroll
        for (int k = 0; k < OUTPUTS; k++)
            even[k] = odd[k];
    }
    if (m == count)
        return;
    memory.numbers.load(lane + m / OUTPUTS + 1, odd);
    load_block_taps(memory, m, taps);
    add_taps<false, true>(taps, even, odd, count - m, 0, 0, sums);
}

/* Adds taps as above where some samples lie outside the row; the thread's first is sample `at` of the row. */
template <class T>
static __device__ __forceinline__ void add_outer(const warp_memory<T> &memory, int64_t samples, int64_t at, int count,
                                                 int lane, T sums[OUTPUTS])
{
    T block[OUTPUTS], next[OUTPUTS], taps[OUTPUTS];
    for (int m = 0; m < count; m += OUTPUTS) {
        const int low = clamped(-(at + m), 2 * OUTPUTS), high = clamped(samples - (at + m), 2 * OUTPUTS);
        memory.numbers.load(lane + m / OUTPUTS, block);
        memory.numbers.load(lane + m / OUTPUTS + 1, next);
        load_block_taps(memory, m, taps);
        add_taps<false, false>(taps, block, next, count - m, low, high, sums);
    }
}

/* The outputs of a warp, neighbouring ones by neighbouring threads. */
template <class T, class S>
static __device__ __forceinline__ void store_outputs(enum scand_dtype dtype, const convolve_row &row, int64_t begin,
                                                     int count, int lane, const T sums[OUTPUTS], blocks<T> &numbers)
{
    constexpr int apart = 32 / OUTPUTS * pack<T>::count;
    const int64_t step = 32 * row.y_stride;
    char *to = row.y + (begin + lane) * row.y_stride;
    __syncwarp();
    numbers.store(lane, sums);
    __syncwarp();
    const T *from = &numbers.at(lane);
#pragma unroll
    for (int k = 0; k < OUTPUTS; k++, to += step)
        if (lane + 32 * k < count)
            element<T, S>::store(dtype, from[k * apart], to);
}

/* Outputs begin <= i < end of a row, at most UNIT of them. held: where the taps begin that are in shared memory. */
template <class T, class S>
static __device__ __forceinline__ void convolve_unit(const step_rows &rows, const convolve &convolve,
                                                     const convolve_row &row, int64_t begin, int64_t end, int lane,
                                                     warp_memory<T> &memory, const char **held)
{
    T sums[OUTPUTS] = {};
#pragma unroll 1
    for (int m = 0; m < (int)convolve.taps; m += TAPS) {
        const int64_t at = begin + row.start + m;
        const int count = (int)convolve.taps - m < TAPS ? (int)convolve.taps - m : TAPS;
        const bool all = at >= 0 && at + UNIT + count <= row.samples;
        if (at >= row.samples || at + UNIT + count <= 0)
            continue; /* none of these taps has a sample */
        __syncwarp();
        if (all)
            load_samples<true, T, S>(row, rows.input.dtype, at, UNIT + count - 1, lane, memory.numbers);
        else
            load_samples<false, T, S>(row, rows.input.dtype, at, UNIT + count - 1, lane, memory.numbers);
        if (*held != row.w + m * row.w_stride)
            load_taps<T>(row, rows.further[0].dtype, m, count, lane, memory.taps);
        *held = row.w + m * row.w_stride;
        __syncwarp();
        if (all)
            add_inner(memory, count, lane, sums);
        else
            add_outer(memory, row.samples, at + lane * OUTPUTS, count, lane, sums);
    }
    store_outputs<T, S>(rows.output.dtype, row, begin, (int)(end - begin), lane, sums, memory.numbers);
}

/* A warp takes the next UNIT outputs of the tile's rows; of several ragged rows, the next row. */
template <class T, class S>
static __global__ void __launch_bounds__(32 * WARPS, sizeof(T) == sizeof(float) ? 5 : 4)
    convolve_tiles(const __grid_constant__ struct step_rows rows, const __grid_constant__ struct convolve convolve,
                   const __grid_constant__ struct step_tiles tiles, uint64_t begin)
{
    __shared__ warp_memory<T> memories[WARPS];
    const struct step_tile tile = step_block_tile(tiles, begin);
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    const bool whole = rows.offsets && tile.row_count > 1;
    const uint64_t outputs = step_end(&rows, &tile, tile.first_row) - tile.begin;
    const uint64_t per_row = whole || outputs == 0 ? 1 : (outputs + UNIT - 1) / UNIT;
    const char *held = NULL;
    struct convolve_row row;
    uint64_t known = UINT64_MAX, number = 0,
             part = (uint64_t)warp; /* of the row that is known; the unit's, and its own */
    for (;; part += WARPS) {
        for (; part >= per_row; part -= per_row)
            number++;
        if (number >= tile.row_count)
            return;
        if (number != known)
            row = convolve_row_of(&rows, &convolve, &tile, tile.first_row + number);
        known = number;
        const int64_t first = row.begin + (int64_t)(part * UNIT);
        for (int64_t i = first; i < row.end && (whole || i == first); i += UNIT)
            convolve_unit<T, S>(rows, convolve, row, i, i + UNIT < row.end ? i + UNIT : row.end, lane, memories[warp],
                                &held);
    }
}

/* True when all samples and outputs are aligned elements of a dtype. */
static bool are_plain(const struct step_rows *rows, enum scand_dtype dtype)
{
    return rows->input.dtype == dtype && rows->output.dtype == dtype && step_is_aligned(rows, &rows->input) &&
           step_is_aligned(rows, &rows->output);
}

extern "C" int convolve_launch(const struct step_rows *rows, const void *params, const struct step_tiles *tiles,
                               uint64_t begin, uint64_t end, void *stream)
{
    const struct convolve convolve = *(const struct convolve *)params;
    if (strips_can(rows, &convolve, tiles)) {
        const cudaError_t error = strips_launch(rows, &convolve, tiles, begin, end, (cudaStream_t)stream);
        if (error != cudaErrorInvalidValue)
            return error;
        cudaGetLastError();
    }
    const bool f32 = are_plain(rows, SCAND_DTYPE_F32), f64 = are_plain(rows, SCAND_DTYPE_F64);
    return step_launch_each(begin, end, [&](uint64_t first, unsigned grid) {
        const cudaStream_t on = (cudaStream_t)stream;
        const unsigned threads = 32 * WARPS;
        if (convolve.wide && f32)
            convolve_tiles<double, float><<<grid, threads, 0, on>>>(*rows, convolve, *tiles, first);
        else if (convolve.wide && f64)
            convolve_tiles<double, double><<<grid, threads, 0, on>>>(*rows, convolve, *tiles, first);
        else if (convolve.wide)
            convolve_tiles<double, coded><<<grid, threads, 0, on>>>(*rows, convolve, *tiles, first);
        else if (f32)
            convolve_tiles<float, float><<<grid, threads, 0, on>>>(*rows, convolve, *tiles, first);
        else
            convolve_tiles<float, coded><<<grid, threads, 0, on>>>(*rows, convolve, *tiles, first);
    });
}
