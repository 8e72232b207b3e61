/*
 * Rows of f32 whose samples and outputs lie one after another in whole vectors. A warp takes neighbouring strips of
 * STRIP outputs, STRIP_SUMS neighbours in each thread. The copy engine brings the samples of the next strips and takes
 * the outputs away, so the warp has little else to issue than multiplications and additions. In shared memory samples
 * lie as in the row: STRIP_SUMS is an odd multiple of 4, so that threads that read vectors meet all banks.
 *
 * For each four taps a thread reads the next four samples into a window in registers. A few taps before the first one
 * are skipped, so that these samples are a vector.
 */
#ifndef KERNELS_STEPS_CONVOLVE_STRIPS_CUH
#define KERNELS_STEPS_CONVOLVE_STRIPS_CUH

#include "convolve.h"
#include "kernels/cuda/ptx.cuh"
#include "kernels/steps/step.cuh"

#define STRIP_SUMS     20
#define STRIP_WARPS    4
#define STRIP_BLOCKS   6 /* that a multiprocessor has registers for */
#define STRIP          (32 * STRIP_SUMS)
#define STRIP_QUADS    (STRIP_SUMS / 4 + 1) /* of a thread's window */
#define STRIP_TAPS_MAX 512
#define STRIP_LEAST    1024 /* samples of a row */

/* What all strips of a launch have in common. */
struct strips {
    uint32_t count, per_tile, per_row; /* strips; those of a tile, and of a row in it */
    int64_t first, low;                /* the sample of output 0 and tap 0; the lowest one of output 0 */
    int taps, skipped, quads;          /* quads: fours of taps, with the skipped ones */
};

/* A strip's outputs begin <= i < begin + count of a row, none past a tile's end, and where its samples begin. */
struct strip {
    const char *x, *w;
    char *y;
    int64_t begin, from;
    int64_t rest; /* outputs from begin on, of this strip and later ones of its row and tile */
};

static __device__ __forceinline__ int strip_count(const strip &strip)
{
    return strip.rest <= 0 ? 0 : strip.rest < STRIP ? (int)strip.rest : STRIP;
}

/* Shared memory of a warp, beside samples. */
struct strip_memory {
    float *outputs, *taps;
};

/* Strip `number` of the launch, BACK where samples go down as taps go up; without outputs from `end` on. */
template <bool BACK>
static __device__ __forceinline__ strip strip_at(const step_rows &rows, const step_tiles &tiles, const strips &strips,
                                                 uint64_t begin, uint32_t end, uint32_t number)
{
    const uint32_t tile = number / strips.per_tile, in_tile = number - tile * strips.per_tile;
    const uint32_t row = in_tile / strips.per_row, part = in_tile - row * strips.per_row;
    const uint32_t group = ((uint32_t)begin + tile) / (uint32_t)tiles.per_row;
    const uint32_t along = (uint32_t)begin + tile - group * (uint32_t)tiles.per_row;
    const int64_t in_row = (int64_t)part * STRIP, at = (int64_t)(along * tiles.tiling.elements) + in_row;
    const uint64_t in_rows = group * tiles.tiling.rows + row;
    const int64_t in_tile_left = (int64_t)tiles.tiling.elements - in_row, left = (int64_t)tiles.length - at;
    const int64_t most = in_tile_left < left ? in_tile_left : left;
    const step_operand *const operands[] = {&rows.input, &rows.further[0], &rows.output};
    char *bases[3];
    strip out;
    step_row_of_each(rows, operands, tiles.first + in_rows, bases);
    out.x = bases[0], out.w = bases[1], out.y = bases[2];
    out.begin = at;
    out.from = at + strips.first + (BACK ? strips.skipped - 4 * strips.quads : -strips.skipped);
    out.rest = number >= end || in_rows >= tiles.count ? 0 : most;
    return out;
}

/* Has the samples of a strip brought, as far as the row has them; the mbarrier's phase takes them. */
static __device__ __forceinline__ void strip_load(const strip &strip, const strips &strips, int64_t samples,
                                                  float *target, unsigned mbarrier)
{
    const int64_t end = strip.from + STRIP + 4 * strips.quads;
    const int64_t low = strip.from < 0 ? 0 : strip.from, high = end < samples ? end : samples;
    const int bytes = strip.rest > 0 && low < high ? (int)(high - low) * 4 : 0;
    mbarrier_arrive_expect(mbarrier, bytes);
    if (bytes > 0)
        bulk_load(smem_address(target + (low - strip.from)), strip.x + 4 * low, bytes, mbarrier);
}

/* Quad `number` of a thread's samples in the order of taps, `at` being quad 0. */
template <bool BACK> static __device__ __forceinline__ void strip_quad(const float4 *at, int number, float out[4])
{
    const float4 quad = at[BACK ? -number : number];
    out[0] = BACK ? quad.w : quad.x;
    out[1] = BACK ? quad.z : quad.y;
    out[2] = BACK ? quad.y : quad.z;
    out[3] = BACK ? quad.x : quad.w;
}

/* Adds taps low <= k < high of four, all if ALL, where quad TURN of the window is the first. */
template <int TURN, bool ALL>
static __device__ __forceinline__ void strip_add(const float window[STRIP_QUADS][4], const float taps[4], int low,
                                                 int high, float sums[STRIP_SUMS])
{
#pragma unroll
    for (int k = 0; k < 4; k++)
        if (ALL || (k >= low && k < high)) {
#pragma unroll
            for (int r = 0; r < STRIP_SUMS; r++)
                sums[r] = fmaf(taps[k], window[(TURN + (r + k) / 4) % STRIP_QUADS][(r + k) % 4], sums[r]);
        }
}

/* Adds quads of taps from `number` on until the window has gone round; returns false after the last quad. */
template <bool BACK, int TURN>
static __device__ __forceinline__ bool strip_turns(const float4 *samples, const float4 *taps, const strips &strips,
                                                   int number, float window[STRIP_QUADS][4], float sums[STRIP_SUMS])
{
    if constexpr (TURN < STRIP_QUADS) {
        const int left = strips.skipped + strips.taps - 4 * number;
        const int low = TURN == 0 && number == 0 ? strips.skipped : 0;
        strip_quad<BACK>(samples, number + STRIP_QUADS - 1, window[(TURN + STRIP_QUADS - 1) % STRIP_QUADS]);
        const float4 quad = taps[number];
        float four[4] = {quad.x, quad.y, quad.z, quad.w};
#pragma unroll
        for (int k = 0; k < 4; k++)
            pin(four[k]); /* not in uniform registers: they would have to be moved there */
        if (left >= 4 && (TURN > 0 || low == 0))
            strip_add<TURN, true>(window, four, 0, 4, sums);
        else
            strip_add<TURN, false>(window, four, low, left, sums);
        if (left <= 4)
            return false;
        return strip_turns<BACK, TURN + 1>(samples, taps, strips, number + 1, window, sums);
    }
    return true;
}

/* The sums of a thread; of a strip BACK they are in the order of taps, too: from the last to the first. */
template <bool BACK>
static __device__ __forceinline__ void strip_sums(const strip_memory &memory, const float *at, const strips &strips,
                                                  int lane, float sums[STRIP_SUMS])
{
    const float4 *samples = (const float4 *)at + (STRIP_QUADS - 1) * lane;
    const float4 *const taps = (const float4 *)memory.taps;
    float window[STRIP_QUADS][4];
    if (BACK)
        samples += STRIP_QUADS - 2 + strips.quads;
#pragma unroll
    for (int r = 0; r < STRIP_SUMS; r++)
        sums[r] = 0;
#pragma unroll
    for (int q = 0; q < STRIP_QUADS - 1; q++)
        strip_quad<BACK>(samples, q, window[q]);
#pragma unroll 1
    for (int number = 0; strip_turns<BACK, 0>(samples, taps, strips, number, window, sums); number += STRIP_QUADS) {
    }
}

/* Puts the one NaN that codecs write in the place of others. */
static __device__ __forceinline__ void strip_canonical(float sums[STRIP_SUMS])
{
    bool any = false;
#pragma unroll
    for (int r = 0; r < STRIP_SUMS; r++)
        any |= sums[r] != sums[r];
    if (any) {
#pragma unroll
        for (int r = 0; r < STRIP_SUMS; r++)
            sums[r] = __uint_as_float(codec_encoded_f32(SCAND_DTYPE_F32, sums[r]));
    }
}

template <bool BACK>
static __device__ __forceinline__ void strip_stage(const float sums[STRIP_SUMS], int lane, float *outputs)
{
    float4 *const to = (float4 *)outputs + (STRIP_QUADS - 1) * lane;
#pragma unroll
    for (int q = 0; q < STRIP_QUADS - 1; q++)
        if (BACK)
            to[STRIP_QUADS - 2 - q] = make_float4(sums[4 * q + 3], sums[4 * q + 2], sums[4 * q + 1], sums[4 * q]);
        else
            to[q] = make_float4(sums[4 * q], sums[4 * q + 1], sums[4 * q + 2], sums[4 * q + 3]);
}

/* Zeros where the row has no samples. */
static __device__ __forceinline__ void strip_fill(const strip &strip, const strips &strips, int64_t samples, float *at,
                                                  int lane)
{
    const int64_t after = samples - strip.from;
    const int count = STRIP + 4 * strips.quads;
    for (int i = lane; i < -strip.from && i < count; i += 32)
        at[i] = 0;
    for (int i = (after < 0 ? 0 : after < count ? (int)after : count) + lane; i < count; i += 32)
        at[i] = 0;
    __syncwarp();
}

/* The outputs that lack samples before the row or after it, one in each thread. Zeros in their place add +0 or -0 to a
 * sum, if taps are `finite`: so only a sum of 0 may have the wrong sign. */
template <bool BACK>
static __device__ __noinline__ void strip_ends(const strip &strip, const strips &strips, int64_t samples,
                                               const float *at, const float *taps, bool finite, int lane,
                                               float *outputs)
{
    const int64_t inner = -strips.low - strip.begin; /* the first output that has all samples, and the end of them */
    const int64_t inner_end = samples - strips.taps - strips.low + 1 - strip.begin;
    const int count = strip_count(strip), before = inner < 0 ? 0 : inner < count ? (int)inner : count;
    const int after = inner_end < before ? before : inner_end < count ? (int)inner_end : count;
    for (int j = lane; j < before + count - after; j += 32) {
        const int i = j < before ? j : j - before + after;
        if (finite && outputs[i] != 0)
            continue;
        const int64_t zero = strip.begin + i + strips.first; /* the sample of tap 0 */
        const int64_t least = BACK ? zero - samples + 1 : -zero, most = BACK ? zero + 1 : samples - zero;
        const int low = least > 0 ? (int)least : 0, high = most < strips.taps ? (int)most : strips.taps;
        const float *sample = at + (zero - strip.from) + (BACK ? -low : low), *tap = taps + strips.skipped;
        float sum = 0;
#pragma unroll 4
        for (int m = low; m < high; m++, sample += BACK ? -1 : 1)
            sum = fmaf(tap[m], *sample, sum);
        outputs[i] = __uint_as_float(codec_encoded_f32(SCAND_DTYPE_F32, sum));
    }
}

template <bool BACK>
static __device__ __forceinline__ void strip_compute(const strip &strip, const strips &strips, int64_t samples,
                                                     const strip_memory &memory, bool finite, float *at, int lane)
{
    float sums[STRIP_SUMS];
    const bool ends = strip.begin + strips.low < 0 || strip.begin + STRIP - 1 + strips.low + strips.taps > samples;
    if (ends)
        strip_fill(strip, strips, samples, at, lane);
    strip_sums<BACK>(memory, at, strips, lane, sums);
    strip_canonical(sums);
    if (lane == 0)
        bulk_wait_read();
    __syncwarp();
    strip_stage<BACK>(sums, lane, memory.outputs);
    if (ends) {
        __syncwarp();
        strip_ends<BACK>(strip, strips, samples, at, memory.taps, finite, lane, memory.outputs);
    }
    fence_proxy_async_shared();
    __syncwarp();
    if (lane == 0) {
        bulk_store(strip.y + 4 * strip.begin, smem_address(memory.outputs), 4 * strip_count(strip));
        bulk_commit();
    }
}

/* Returns whether all taps are finite. */
static __device__ __forceinline__ bool strip_taps(const step_rows &rows, const strips &strips, const char *w, int lane,
                                                  float *taps)
{
    bool finite = true;
    __syncwarp();
#pragma unroll 1
    for (int m = lane; m < strips.taps; m += 32) {
        const float tap = step_get_f32(rows.further[0].dtype, w + m * rows.further[0].stride);
        taps[strips.skipped + m] = tap;
        finite &= fabsf(tap) < INFINITY;
    }
    __syncwarp();
    return __all_sync(~0u, finite);
}

/* Floats of a strip's samples, and of all that a warp has in shared memory. */
static __host__ __device__ __forceinline__ int strip_samples(int quads)
{
    return STRIP + 4 * quads;
}
static __host__ __device__ __forceinline__ int strip_floats(int quads)
{
    return 2 * strip_samples(quads) + STRIP + 4 * quads;
}

/* Two strips of a warp take turns: samples of the next one are on their way while one is computed. */
template <bool BACK>
static __global__ void __launch_bounds__(32 * STRIP_WARPS, STRIP_BLOCKS)
    convolve_strips(const __grid_constant__ struct step_rows rows, const __grid_constant__ struct step_tiles tiles,
                    const __grid_constant__ struct strips strips, uint64_t begin)
{
#if __CUDA_ARCH__ >= 900
    extern __shared__ __align__(16) float floats[];
    __shared__ uint64_t mbarriers[2 * STRIP_WARPS];
    __shared__ strip queue[2 * STRIP_WARPS];
    const int warp = __shfl_sync(~0u, (int)threadIdx.x / 32, 0), lane = (int)threadIdx.x % 32;
    const int64_t samples = (int64_t)rows.input.length;
    const uint32_t warps = gridDim.x * STRIP_WARPS, own = blockIdx.x * STRIP_WARPS + (unsigned)warp;
    const uint32_t end = (uint32_t)((uint64_t)strips.count * (own + 1) / warps);
    const int buffer = strip_samples(strips.quads);
    float *const mine = floats + warp * strip_floats(strips.quads);
    const strip_memory memory = {mine + 2 * buffer, mine + 2 * buffer + STRIP};
    uint32_t number = (uint32_t)((uint64_t)strips.count * own / warps);
    const char *held = NULL;
    bool finite = false;
    if (lane < 2) {
        mbarrier_init(smem_address(mbarriers + 2 * warp + lane), 1);
        fence_mbarrier_init();
        fence_proxy_async_shared();
    }
    __syncwarp();
    if (lane < 2) {
        queue[2 * warp + lane] = strip_at<BACK>(rows, tiles, strips, begin, end, number + lane);
        strip_load(queue[2 * warp + lane], strips, samples, mine + lane * buffer,
                   smem_address(mbarriers + 2 * warp + lane));
    }
    __syncwarp();
#pragma unroll 1
    for (unsigned turn = 0; number < end; turn++, number++) {
        strip &now = queue[2 * warp + (turn & 1)];
        const unsigned mbarrier = smem_address(mbarriers + 2 * warp + (turn & 1));
        float *const at = mine + (turn & 1) * buffer;
        if (now.rest > 0 && held != now.w)
            finite = strip_taps(rows, strips, held = now.w, lane, memory.taps);
        while (!mbarrier_try_wait(mbarrier, turn / 2 & 1)) {
        }
        if (now.rest > 0)
            strip_compute<BACK>(now, strips, samples, memory, finite, at, lane);
        __syncwarp();
        if (lane == 0) {
            const strip &next = queue[2 * warp + (~turn & 1)];
            if (next.rest > STRIP) {
                now = next;
                now.begin += STRIP;
                now.from += STRIP;
                now.rest = number + 2 < end ? next.rest - STRIP : 0;
            } else {
                now = strip_at<BACK>(rows, tiles, strips, begin, end, number + 2);
            }
            strip_load(now, strips, samples, at, mbarrier);
        }
        __syncwarp();
    }
    if (lane == 0)
        bulk_wait_read();
#endif
}

/* True when strips can take these rows and tiles. */
static bool strips_can(const struct step_rows *rows, const struct convolve *convolve, const struct step_tiles *tiles)
{
    const uint64_t samples = rows->input.length, outputs = rows->output.length;
    return !rows->offsets && !convolve->wide && convolve->taps <= STRIP_TAPS_MAX && samples >= STRIP_LEAST &&
           samples < (1u << 30) && (samples | outputs) % 4 == 0 &&
           (tiles->tiling.elements % 4 == 0 || tiles->per_row == 1) && tiles->tiling.elements <= 1u << 20 &&
           tiles->tiling.rows <= 1u << 10 && tiles->tile_count < 1u << 30 &&
           step_is_dense(rows, &rows->input, SCAND_DTYPE_F32, 16) &&
           step_is_dense(rows, &rows->output, SCAND_DTYPE_F32, 16);
}

static struct strips strips_of(const struct convolve *convolve, const struct step_tiles *tiles)
{
    const uint64_t length = tiles->tiling.elements < tiles->length ? tiles->tiling.elements : tiles->length;
    struct strips strips;
    strips.count = 0;
    strips.per_row = (uint32_t)((length + STRIP - 1) / STRIP);
    strips.per_tile = strips.per_row * (uint32_t)tiles->tiling.rows;
    strips.first = convolve->first;
    strips.taps = (int)convolve->taps;
    strips.low = convolve->correlate ? convolve->first : convolve->first - (strips.taps - 1);
    strips.skipped = (int)((convolve->correlate ? convolve->first : -convolve->first) & 3);
    strips.quads = (strips.taps + strips.skipped + 3) / 4;
    return strips;
}

/* Returns cudaErrorInvalidValue where the GPU has no engine that copies in bulk, or too little shared memory. */
static cudaError_t strips_launch(const struct step_rows *rows, const struct convolve *convolve,
                                 const struct step_tiles *tiles, uint64_t begin, uint64_t end, cudaStream_t stream)
{
    struct strips strips = strips_of(convolve, tiles);
    auto *const kernel = convolve->correlate ? convolve_strips<false> : convolve_strips<true>;
    const int bytes = STRIP_WARPS * strip_floats(strips.quads) * (int)sizeof(float);
    const uint64_t most = (UINT32_C(1) << 30) / strips.per_tile;
    int device = 0, processors = 0, resident = 0;
    if (!step_is_of_9((const void *)kernel))
        return cudaErrorInvalidValue;
    cudaError_t error = cudaGetDevice(&device);
    if (!error)
        error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    if (!error)
        error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    if (!error)
        error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, 32 * STRIP_WARPS, bytes);
    for (uint64_t count; begin < end && !error; begin += count) {
        count = end - begin < most ? end - begin : most;
        strips.count = (uint32_t)count * strips.per_tile;
        const unsigned blocks = (strips.count + STRIP_WARPS - 1) / STRIP_WARPS,
                       room = (unsigned)(processors * resident);
        const unsigned grid = blocks < room ? blocks : room, threads = 32 * STRIP_WARPS;
        kernel<<<grid, threads, bytes, stream>>>(*rows, *tiles, strips, begin);
        error = cudaGetLastError();
    }
    return error;
}

#endif
