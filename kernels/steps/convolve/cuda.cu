/*
 * A warp computes UNIT outputs of a row at a time, OUTPUTS neighbours in each thread. It brings the samples that they
 * need for TAPS taps, and these taps, into shared memory. Then a thread has its sums in registers, and a window of 2
 * OUTPUTS samples: for each OUTPUTS taps it reads as many samples and taps, and adds OUTPUTS times as many products.
 * All warps are alone, so that short rows are computed side by side.
 */
#include "convolve.h"
#include "kernels/steps/step.cuh"

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

/* Of a warp. */
template <class T> struct warp_memory {
    blocks<T> numbers; /* the samples, and then the outputs */
    pack<T> taps[TAPS / pack<T>::count];
};

/*
 * Elements in memory: of type S, aligned, or of any other dtype and place (coded).
 */

struct coded {
};

static __device__ __forceinline__ void decode(enum scand_dtype dtype, const void *at, float *out)
{
    *out = step_get_f32(dtype, (const char *)at);
}
static __device__ __forceinline__ void decode(enum scand_dtype dtype, const void *at, double *out)
{
    *out = step_get_f64(dtype, (const char *)at);
}

static __device__ __forceinline__ void encode(enum scand_dtype dtype, float value, void *at)
{
    step_put_f32(dtype, value, (char *)at);
}
static __device__ __forceinline__ void encode(enum scand_dtype dtype, double value, void *at)
{
    step_put_f64(dtype, value, (char *)at);
}

template <class T, class S> struct element {
    static __device__ __forceinline__ T load(enum scand_dtype, const char *at)
    {
        return (T) * (const S *)at;
    }
    /* With the one NaN that codecs write. */
    static __device__ __forceinline__ void store(enum scand_dtype, T value, char *at)
    {
        S bits;
        encode(sizeof(S) == 4 ? SCAND_DTYPE_F32 : SCAND_DTYPE_F64, value, &bits);
        *(S *)at = bits;
    }
};

/* Bytes of an element that is aligned travel at once. */
template <class T> struct element<T, coded> {
    static __device__ __forceinline__ T load(enum scand_dtype dtype, const char *at)
    {
        const uint32_t bytes = codec_bytes(dtype);
        uint64_t bits = 0;
        T value;
        if ((uintptr_t)at % bytes != 0)
            memcpy(&bits, at, bytes);
        else if (bytes == 2)
            bits = *(const uint16_t *)at;
        else if (bytes == 4)
            bits = *(const uint32_t *)at;
        else
            bits = *(const uint64_t *)at;
        decode(dtype, &bits, &value);
        return value;
    }
    static __device__ __forceinline__ void store(enum scand_dtype dtype, T value, char *at)
    {
        const uint32_t bytes = codec_bytes(dtype);
        uint64_t bits = 0;
        encode(dtype, value, &bits);
        if ((uintptr_t)at % bytes != 0)
            memcpy(at, &bits, bytes);
        else if (bytes == 2)
            *(uint16_t *)at = (uint16_t)bits;
        else if (bytes == 4)
            *(uint32_t *)at = (uint32_t)bits;
        else
            *(uint64_t *)at = bits;
    }
};

/* `value`, or the nearer end of the range. */
static __device__ __forceinline__ int clamped(int64_t value, int most)
{
    return value < 0 ? 0 : value > most ? most : (int)value;
}

/* Numbers 0 <= i < count: samples at + i of a row, or 0 where it has none. Many loads are on their way at once. */
template <class T, class S>
static __device__ __forceinline__ void load_samples(const convolve_row &row, enum scand_dtype dtype, int64_t at,
                                                    int count, int lane, blocks<T> &out)
{
    const int low = clamped(-at, count), high = clamped(row.samples - at, count);
    const int64_t step = 32 * row.x_stride;
    const char *from = row.x + (at + lane) * row.x_stride;
    for (int first = lane; first < count; first += UNIT) {
        T values[OUTPUTS];
#pragma unroll
        for (int k = 0; k < OUTPUTS; k++, from += step) {
            const int i = first + 32 * k;
            values[k] = i >= low && i < high ? element<T, S>::load(dtype, from) : (T)0;
        }
#pragma unroll
        for (int k = 0; k < OUTPUTS; k++)
            if (first + 32 * k < count)
                out.at(first + 32 * k) = values[k];
    }
}

template <class T>
static __device__ __forceinline__ void load_taps(const convolve_row &row, enum scand_dtype dtype, int64_t begin,
                                                 int count, int lane, pack<T> *out)
{
    for (int m = lane; m < count; m += 32)
        out[m / pack<T>::count].values[m % pack<T>::count] =
            element<T, coded>::load(dtype, row.w + (begin + m) * row.w_stride);
}

static __device__ __forceinline__ float fused(float a, float b, float c)
{
    return fmaf(a, b, c);
}
static __device__ __forceinline__ double fused(double a, double b, double c)
{
    return fma(a, b, c);
}

/* Adds `count` taps, at most OUTPUTS, of which sum r has the samples window[r], window[r + 1], ...; of these low <= k
 * < high are the row's. */
template <bool ALL_TAPS, bool ALL_SAMPLES, class T>
static __device__ __forceinline__ void add_taps(const T taps[OUTPUTS], const T window[2 * OUTPUTS], int count, int low,
                                                int high, T sums[OUTPUTS])
{
#pragma unroll
    for (int m = 0; m < OUTPUTS; m++)
        if (ALL_TAPS || m < count) {
#pragma unroll
            for (int r = 0; r < OUTPUTS; r++)
                if (ALL_SAMPLES || (r + m >= low && r + m < high))
                    sums[r] = fused(taps[m], window[r + m], sums[r]);
        }
}

/* Adds the `count` taps that are in shared memory, with the samples there, of which the thread's first is number `at`
 * of the row. */
template <class T>
static __device__ __forceinline__ void add_piece(const warp_memory<T> &memory, const convolve_row &row, int64_t at,
                                                 int count, int lane, T sums[OUTPUTS])
{
    T window[2 * OUTPUTS], taps[OUTPUTS];
    memory.numbers.load(lane, window);
    for (int m = 0; m < count; m += OUTPUTS) {
        const int low = clamped(-(at + m), 2 * OUTPUTS), high = clamped(row.samples - (at + m), 2 * OUTPUTS);
        memory.numbers.load(lane + m / OUTPUTS + 1, window + OUTPUTS);
#pragma unroll
        for (int k = 0; k < OUTPUTS; k++)
            taps[k] = memory.taps[(m + k) / pack<T>::count].values[k % pack<T>::count];
        if (low > 0 || high < 2 * OUTPUTS - 1)
            add_taps<false, false>(taps, window, count - m, low, high, sums);
        else if (count - m < OUTPUTS)
            add_taps<false, true>(taps, window, count - m, low, high, sums);
        else
            add_taps<true, true>(taps, window, OUTPUTS, low, high, sums);
#pragma unroll
        for (int k = 0; k < OUTPUTS; k++)
            window[k] = window[OUTPUTS + k];
    }
}

/* Outputs begin <= i < end of a row, at most UNIT of them. */
template <class T, class S>
static __device__ __forceinline__ void convolve_unit(const step_rows &rows, const convolve &convolve,
                                                     const convolve_row &row, int64_t begin, int64_t end, int lane,
                                                     warp_memory<T> &memory)
{
    T sums[OUTPUTS] = {};
    for (int64_t m = 0; m < (int64_t)convolve.taps; m += TAPS) {
        const int64_t at = begin + row.start + m;
        const int count = convolve.taps - m < TAPS ? (int)(convolve.taps - m) : TAPS;
        if (at >= row.samples || at + UNIT + count <= 0)
            continue; /* none of these taps has a sample */
        __syncwarp();
        load_samples<T, S>(row, rows.input.dtype, at, UNIT + count - 1, lane, memory.numbers);
        load_taps<T>(row, rows.further[0].dtype, m, count, lane, memory.taps);
        __syncwarp();
        add_piece<T>(memory, row, at + lane * OUTPUTS, count, lane, sums);
    }
    __syncwarp();
    memory.numbers.store(lane, sums);
    __syncwarp();
    char *to = row.y + (begin + lane) * row.y_stride;
    for (int i = lane; i < end - begin; i += 32, to += 32 * row.y_stride)
        element<T, S>::store(rows.output.dtype, memory.numbers.at(i), to);
}

/* A warp takes the next UNIT outputs of the tile's rows; of several ragged rows, the next row. */
template <class T, class S>
static __global__ void __launch_bounds__(32 * WARPS)
    convolve_tiles(const __grid_constant__ struct step_rows rows, const __grid_constant__ struct convolve convolve,
                   const __grid_constant__ struct step_tiles tiles, uint64_t begin)
{
    __shared__ warp_memory<T> memories[WARPS];
    const struct step_tile tile = step_block_tile(tiles, begin);
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    const bool whole = rows.offsets && tile.row_count > 1;
    const uint64_t outputs = step_end(&rows, &tile, tile.first_row) - tile.begin;
    const uint64_t per_row = whole ? 1 : (outputs + UNIT - 1) / UNIT;
    for (uint64_t u = (uint64_t)warp; u < tile.row_count * per_row; u += WARPS) {
        const struct convolve_row row = convolve_row_of(&rows, &convolve, &tile, tile.first_row + u / per_row);
        const int64_t first = row.begin + (int64_t)(u % per_row * UNIT);
        for (int64_t i = first; i < row.end && (whole || i == first); i += UNIT)
            convolve_unit<T, S>(rows, convolve, row, i, i + UNIT < row.end ? i + UNIT : row.end, lane, memories[warp]);
    }
}

/* Whether all elements of an operand are of a dtype, and aligned. */
static bool is_plain(const struct step_rows *rows, const struct step_operand *operand, enum scand_dtype dtype)
{
    const int64_t bytes = codec_bytes(dtype);
    bool plain =
        operand->dtype == dtype && (uintptr_t)operand->origin % (uintptr_t)bytes == 0 && operand->stride % bytes == 0;
    for (uint32_t k = 0; k < rows->outer_rank; k++)
        plain = plain && operand->outer_strides[k] % bytes == 0;
    return plain;
}

static bool are_plain(const struct step_rows *rows, enum scand_dtype dtype)
{
    return is_plain(rows, &rows->input, dtype) && is_plain(rows, &rows->output, dtype);
}

extern "C" int convolve_launch(const struct step_rows *rows, const void *params, const struct step_tiles *tiles,
                               uint64_t begin, uint64_t end, void *stream)
{
    const struct convolve convolve = *(const struct convolve *)params;
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
