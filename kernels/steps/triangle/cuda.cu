#include <type_traits>

#include "kernels/steps/step.cuh"
#include "triangle.h"

/*
 * A thread block goes along the row, chunk by chunk, a leaf of it for each thread. It keeps the sums of three chunks in
 * shared memory: a chunk's outputs need the segments on either side of theirs. So samples are read once, but for those
 * around the tile, while the outputs of the chunk before are computed and written.
 */

#define THREADS 256
#define WARP    32
#define WARPS   (THREADS / WARP)
#define CHUNK   (THREADS * TRIANGLE_LEAF)
#define CHUNKS  3
static_assert(WARP == TRIANGLE_FAN && CHUNK == TRIANGLE_SEGMENT_MAX, "a group for each warp, a segment for a chunk");

/* Two words of 8 bytes more for every 32: of the leaves of a half-warp no two begin in one bank. */
#define PADDED(AT) ((AT) + (AT) / 16)

struct window {
    double sums[CHUNKS][PADDED(CHUNK)];
    struct triangle_sums totals[CHUNKS][CHUNK / TRIANGLE_SEGMENT_MIN]; /* of segments */
    struct triangle_sums groups[WARPS];
};

/* A row, and what a tile needs of it. Dtype: of dense input and output, or COUNT where any may be. */
template <enum scand_dtype Dtype> struct line {
    const char *from;
    char *to;
    int64_t from_stride, to_stride, length, begin, end;
    uint64_t kept_from, kept_to;
    enum scand_dtype from_dtype, to_dtype;

    __device__ __forceinline__ enum scand_dtype dtype_from() const
    {
        return Dtype == SCAND_DTYPE_COUNT ? from_dtype : Dtype;
    }
    __device__ __forceinline__ enum scand_dtype dtype_to() const
    {
        return Dtype == SCAND_DTYPE_COUNT ? to_dtype : Dtype;
    }
};

/* Segments are 1 << shift samples. */
struct segments {
    int shift, fan, per_group; /* leaves that the network joins; warps along a segment */
    int64_t first, end;        /* samples of the segments that are needed */
};

/* The samples of a leaf, as they wait for their turn. */
template <enum scand_dtype Dtype> struct samples {
    static constexpr bool narrow = Dtype == SCAND_DTYPE_F32 || Dtype == SCAND_DTYPE_F16;
    std::conditional_t<narrow, float, double> x[TRIANGLE_LEAF];

    static __device__ __forceinline__ auto get(enum scand_dtype dtype, const char *at)
    {
        if constexpr (narrow)
            return step_get_f32(dtype, at);
        else
            return step_get_f64(dtype, at);
    }
};

/*
 * Samples.
 */

/* A leaf that lies in whole words of 16 bytes. */
template <enum scand_dtype Dtype>
static __device__ __forceinline__ void load_words(const char *from, struct samples<Dtype> *leaf)
{
    constexpr int bytes = Dtype == SCAND_DTYPE_F64 ? 8 : Dtype == SCAND_DTYPE_F32 ? 4 : 2;
    uint4 words[TRIANGLE_LEAF * bytes / 16];
#pragma unroll
    for (int w = 0; w < TRIANGLE_LEAF * bytes / 16; w++)
        words[w] = ((const uint4 *)from)[w];
#pragma unroll
    for (int q = 0; q < TRIANGLE_LEAF; q++)
        leaf->x[q] = samples<Dtype>::get(Dtype, (const char *)words + q * bytes);
}

/* The leaf from `begin` on, if it is needed. */
template <enum scand_dtype Dtype>
static __device__ void load_leaf(const struct line<Dtype> &line, enum boundary boundary,
                                 const struct segments &segments, int64_t begin, struct samples<Dtype> *leaf)
{
    const bool inside = begin >= 0 && begin + TRIANGLE_LEAF <= line.length;
    const bool needed = begin >= segments.first && begin < segments.end;
    const char *at = line.from + begin * line.from_stride;
    if constexpr (Dtype != SCAND_DTYPE_COUNT)
        if (needed && inside && (uintptr_t)at % 16 == 0)
            return load_words(at, leaf);
#pragma unroll
    for (int q = 0; q < TRIANGLE_LEAF; q++) {
        const int64_t source = needed ? triangle_source(boundary, begin + q, line.length) : -1;
        leaf->x[q] = 0;
        if (source >= 0)
            leaf->x[q] = samples<Dtype>::get(line.dtype_from(), line.from + source * line.from_stride);
    }
}

/*
 * Sums.
 */

static __device__ __forceinline__ struct triangle_sums lane_before(struct triangle_sums sums, int distance)
{
    return {__shfl_up_sync(~0u, sums.single, distance), __shfl_up_sync(~0u, sums.twice, distance)};
}

/* The prefix of this thread's leaf in its group. */
static __device__ __forceinline__ struct triangle_sums network(struct triangle_sums total, int fan)
{
    const int place = threadIdx.x % WARP & (fan - 1);
    for (int distance = 1; distance < fan; distance *= 2) {
        const struct triangle_sums before = lane_before(total, distance);
        if (place >= distance)
            total = triangle_join(before, total, (double)(TRIANGLE_LEAF * distance));
    }
    return total;
}

/* The carry into this thread's leaf, `before` being the prefix of the leaves before it in its group. */
static __device__ __forceinline__ struct triangle_sums
carry(const struct window *window, const struct segments &segments, struct triangle_sums before)
{
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const int first = warp / segments.per_group * segments.per_group;
    struct triangle_sums group = {0, 0};
    for (int w = first; w < warp; w++)
        group = w == first ? window->groups[w] : triangle_join(group, window->groups[w], TRIANGLE_GROUP);
    if ((lane & (segments.fan - 1)) == 0)
        return group;
    return warp == first ? before : triangle_join(group, before, (double)(TRIANGLE_LEAF * lane));
}

/* Of a chunk, whose samples the threads have. Ends with a barrier behind the sums; before it writes them there is one,
 * which all threads meet when they are done with the chunk that had the slot. */
template <enum scand_dtype Dtype>
static __device__ __forceinline__ void chunk_sums(struct window *window, enum triangle_shape shape,
                                                  const struct segments &segments, const struct samples<Dtype> &leaf,
                                                  int slot)
{
    const int at = (int)threadIdx.x * TRIANGLE_LEAF;
    struct triangle_sums sums = {0, 0};
#pragma unroll
    for (int q = 0; q < TRIANGLE_LEAF; q++)
        sums = triangle_add(sums, (double)leaf.x[q]);
    sums = network(sums, segments.fan);
    const struct triangle_sums before = lane_before(sums, 1);
    if (threadIdx.x % WARP == WARP - 1)
        window->groups[threadIdx.x / WARP] = sums;
    __syncthreads();
    sums = carry(window, segments, before);
#pragma unroll
    for (int q = 0; q < TRIANGLE_LEAF; q++) {
        window->sums[slot][PADDED(at + q)] = shape == TRIANGLE_BOX ? sums.single : sums.twice;
        sums = triangle_add(sums, (double)leaf.x[q]);
    }
    if (((at + TRIANGLE_LEAF) & ((1 << segments.shift) - 1)) == 0)
        window->totals[slot][at >> segments.shift] = sums;
    __syncthreads();
}

/*
 * Outputs.
 */

/* A chunk with those on either side: at `at` samples from its begin. */
struct around {
    const struct window *window;
    int slot; /* of the chunk before it */

    __device__ __forceinline__ int slot_of(int at) const
    {
        const int there = slot + (at + CHUNK) / CHUNK;
        return there < CHUNKS ? there : there - CHUNKS;
    }
    __device__ __forceinline__ double sum(int at) const
    {
        return window->sums[slot_of(at)][PADDED(at & (CHUNK - 1))];
    }
    __device__ __forceinline__ struct triangle_sums total(int at, int shift) const
    {
        return window->totals[slot_of(at)][(at & (CHUNK - 1)) >> shift];
    }
};

static __device__ __forceinline__ double output(const struct around &around, const struct triangle &triangle, int shift,
                                                int at)
{
    const int size = 1 << shift, r = at & (size - 1), width = (int)triangle.half_width;
    const int reach = triangle.shape == TRIANGLE_BOX ? width - 1 : width;
    struct triangle_line line = {0, 0};
    if (r + width >= size || r < reach)
        line = triangle_line(&triangle, size, r + width >= size, r < reach, around.total(at, shift),
                             around.total(at - size, shift));
    return triangle_output(triangle.shape, around.sum(at + width), around.sum(at - reach), around.sum(at), line, r,
                           triangle.scale);
}

template <enum scand_dtype Dtype>
static __device__ __forceinline__ void write_chunk(const struct line<Dtype> &line, const struct triangle &triangle,
                                                   const struct around &around, int shift, int64_t origin)
{
    for (int at = (int)threadIdx.x; at < CHUNK; at += THREADS) {
        const int64_t i = origin + at;
        if (i < line.begin || i >= line.end)
            continue;
        const bool kept = (uint64_t)i >= line.kept_from && (uint64_t)i < line.kept_to;
        step_put_f64(line.dtype_to(), kept ? output(around, triangle, shift, at) : 0, line.to + i * line.to_stride);
    }
}

/*
 * Rows.
 */

static __device__ __forceinline__ int64_t chunk_of(int64_t i)
{
    return (i + CHUNK) / CHUNK - 1; /* which is before the row at most by a chunk */
}

template <enum scand_dtype Dtype>
static __device__ void filter_row(struct window *window, const struct line<Dtype> &line,
                                  const struct triangle &triangle, struct segments segments)
{
    const int64_t size = INT64_C(1) << segments.shift;
    segments.first = line.begin / size * size - size;
    segments.end = (line.end - 1) / size * size + 2 * size;
    const int64_t first = chunk_of(segments.first), last = chunk_of(segments.end - 1);
    const int mine = (int)threadIdx.x * TRIANGLE_LEAF;
    struct samples<Dtype> leaf;
    load_leaf(line, triangle.boundary, segments, first * CHUNK + mine, &leaf);
    int slot = 0;
    for (int64_t chunk = first; chunk <= last + 1; chunk++) {
        if (chunk <= last)
            chunk_sums(window, triangle.shape, segments, leaf, slot);
        if (chunk < last)
            load_leaf(line, triangle.boundary, segments, (chunk + 1) * CHUNK + mine, &leaf);
        slot = slot + 1 < CHUNKS ? slot + 1 : 0;
        if (chunk > first)
            write_chunk(line, triangle, {window, slot}, segments.shift, (chunk - 1) * CHUNK);
    }
}

template <enum scand_dtype Dtype> static __device__ void copy_row(const struct line<Dtype> &line)
{
    for (int64_t i = line.begin + (int)threadIdx.x; i < line.end; i += THREADS) {
        const bool kept = (uint64_t)i >= line.kept_from && (uint64_t)i < line.kept_to;
        step_put_f64(line.dtype_to(), kept ? step_get_f64(line.dtype_from(), line.from + i * line.from_stride) : 0,
                     line.to + i * line.to_stride);
    }
}

template <enum scand_dtype Dtype>
static __global__ void __launch_bounds__(THREADS)
    triangle_tiles(const __grid_constant__ struct step_rows rows, const __grid_constant__ struct triangle triangle,
                   const __grid_constant__ struct step_tiles tiles, uint64_t begin)
{
    extern __shared__ unsigned char step_shared[];
    struct window *window = (struct window *)step_shared;
    const struct step_tile tile = step_block_tile(tiles, begin);
    const int size = (int)triangle_segment(triangle.half_width), leaves = size / TRIANGLE_LEAF;
    struct segments segments = {.shift = 31 - __clz(size),
                                .fan = leaves < TRIANGLE_FAN ? leaves : TRIANGLE_FAN,
                                .per_group = leaves < TRIANGLE_FAN ? 1 : leaves / TRIANGLE_FAN};
    struct line<Dtype> line = {
        .from_dtype = rows.input.dtype, .to_dtype = rows.output.dtype
    };
    line.from_stride = Dtype == SCAND_DTYPE_COUNT ? rows.input.stride : codec_bytes(Dtype);
    line.to_stride = Dtype == SCAND_DTYPE_COUNT ? rows.output.stride : codec_bytes(Dtype);
    for (uint64_t row = tile.first_row; row < tile.first_row + tile.row_count; row++) {
        line.from = step_row(&rows, &rows.input, row);
        line.to = step_row(&rows, &rows.output, row);
        line.length = (int64_t)step_length(&rows, &rows.input, row);
        line.begin = (int64_t)tile.begin;
        line.end = (int64_t)step_end(&rows, &tile, row);
        triangle_kept(&triangle, (uint64_t)line.length, &line.kept_from, &line.kept_to);
        if (triangle.half_width == 1)
            copy_row(line);
        else if (line.begin < line.end)
            filter_row(window, line, triangle, segments);
    }
}

static bool is_dense(const struct step_operand *operand, enum scand_dtype dtype)
{
    return operand->dtype == dtype && operand->stride == codec_bytes(dtype);
}

template <enum scand_dtype Dtype>
static cudaError_t launch(const struct step_rows *rows, const struct triangle *triangle, const struct step_tiles *tiles,
                          uint64_t begin, uint64_t end, void *stream)
{
    const cudaError_t error = cudaFuncSetAttribute(triangle_tiles<Dtype>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                   (int)sizeof(struct window));
    if (error)
        return error;
    return step_launch_each(begin, end, [&](uint64_t first, unsigned grid) {
        triangle_tiles<Dtype>
            <<<grid, THREADS, sizeof(struct window), (cudaStream_t)stream>>>(*rows, *triangle, *tiles, first);
    });
}

extern "C" int triangle_launch(const struct step_rows *rows, const void *params, const struct step_tiles *tiles,
                               uint64_t begin, uint64_t end, void *stream)
{
    const struct triangle *triangle = (const struct triangle *)params;
    if (is_dense(&rows->input, SCAND_DTYPE_F32) && is_dense(&rows->output, SCAND_DTYPE_F32))
        return launch<SCAND_DTYPE_F32>(rows, triangle, tiles, begin, end, stream);
    if (is_dense(&rows->input, SCAND_DTYPE_F64) && is_dense(&rows->output, SCAND_DTYPE_F64))
        return launch<SCAND_DTYPE_F64>(rows, triangle, tiles, begin, end, stream);
    if (is_dense(&rows->input, SCAND_DTYPE_F16) && is_dense(&rows->output, SCAND_DTYPE_F16))
        return launch<SCAND_DTYPE_F16>(rows, triangle, tiles, begin, end, stream);
    return launch<SCAND_DTYPE_COUNT>(rows, triangle, tiles, begin, end, stream);
}
