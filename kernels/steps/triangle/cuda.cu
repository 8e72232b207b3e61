#include <type_traits>

#include "kernels/steps/step.cuh"
#include "triangle.h"

/*
 * A thread block goes along the row, chunk by chunk, a leaf of it for each thread. It keeps the sums of three chunks in
 * shared memory: a chunk's outputs need the segments on either side of theirs. So samples are read once, but for those
 * around the tile, while the outputs of the chunk before are computed and written.
 */

#define THREADS    256
#define WARP       32
#define WARPS      (THREADS / WARP)
#define CHUNK      (THREADS * TRIANGLE_LEAF)
#define CHUNKS     3
#define BLOCKS     4 /* at a time on a multiprocessor: for one more there is shared memory, but no registers */
#define BLOCKS_OWN 2 /* where outputs have their own half-widths, which takes registers */
static_assert(WARP == TRIANGLE_FAN && CHUNK == TRIANGLE_SEGMENT_MAX, "a group for each warp, a segment for a chunk");

/* Two words of 8 bytes more for every 32: of the leaves of a half-warp no two begin in one bank. */
#define PADDED(AT) ((AT) + (AT) / 16)

#define PITCH    PADDED(CHUNK)
#define SEGMENTS (CHUNK / TRIANGLE_SEGMENT_MIN)

/* Bits for sums that an output takes from other segments than its own. */
enum { FROM_AHEAD = 1, FROM_BEHIND = 2, LINES = 4 };

struct window {
    double sums[CHUNKS * PITCH]; /* a ring of chunks */
    struct triangle_sums totals[CHUNKS][SEGMENTS];
    struct triangle_line lines[SEGMENTS][LINES]; /* lines of the chunk whose outputs are computed */
    struct triangle_sums groups[WARPS];
};

/* The half-widths of a row's outputs. */
struct half_widths {
    const char *at;
    int64_t stride;
    enum scand_dtype dtype;

    __device__ __forceinline__ uint64_t get(int64_t i) const
    {
        return step_decode_integer(dtype, at + i * stride);
    }
};

/* A row, and what a tile needs of it. Dtype: of dense, aligned input and output, or COUNT where any may be. */
template <enum scand_dtype Dtype> struct line {
    const char *from;
    char *to;
    int64_t from_stride, to_stride, length, begin, end;
    int64_t kept_from, kept_to;
    enum scand_dtype from_dtype, to_dtype;
    struct half_widths own; /* half-widths of outputs that have their own */

    __device__ __forceinline__ enum scand_dtype dtype_from() const
    {
        return Dtype == SCAND_DTYPE_COUNT ? from_dtype : Dtype;
    }
    __device__ __forceinline__ void put(int64_t i, double value) const
    {
        if constexpr (Dtype == SCAND_DTYPE_F32)
            ((uint32_t *)to)[i] = codec_encoded_f32(Dtype, (float)value);
        else if constexpr (Dtype == SCAND_DTYPE_F64)
            ((uint64_t *)to)[i] = codec_encoded_f64(Dtype, value);
        else if constexpr (Dtype == SCAND_DTYPE_F16)
            ((uint16_t *)to)[i] = (uint16_t)codec_encoded_f32(Dtype, (float)value);
        else
            step_put_f64(to_dtype, value, to + i * to_stride);
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
        at = step_aligned(Dtype != SCAND_DTYPE_COUNT, dtype, at);
        if constexpr (narrow)
            return step_get_f32(dtype, at);
        else
            return step_get_f64(dtype, at);
    }
    /* Decodes a word that is in registers as get() decodes one in memory. */
    static __device__ __forceinline__ auto decode(const char *at)
    {
        if constexpr (narrow)
            return codec_decode_f32(Dtype, at);
        else
            return codec_decode_f64(Dtype, at);
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
        leaf->x[q] = samples<Dtype>::decode((const char *)words + q * bytes);
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

/* The sums up to this thread's leaf in its group, whose samples it has. */
template <enum scand_dtype Dtype>
static __device__ __forceinline__ struct triangle_sums
group_sums(struct window *window, const struct segments &segments, const double leaf[TRIANGLE_LEAF])
{
    struct triangle_sums sums = {0, 0};
#pragma unroll
    for (int q = 0; q < TRIANGLE_LEAF; q++)
        sums = triangle_add(sums, leaf[q]);
    sums = network(sums, segments.fan);
    if (threadIdx.x % WARP == WARP - 1)
        window->groups[threadIdx.x / WARP] = sums;
    return lane_before(sums, 1);
}

static __device__ __forceinline__ void write_sums(struct window *window, enum triangle_shape shape,
                                                  const struct segments &segments, const double leaf[TRIANGLE_LEAF],
                                                  struct triangle_sums before, int slot)
{
    const int at = (int)threadIdx.x * TRIANGLE_LEAF;
    struct triangle_sums sums = carry(window, segments, before);
    double *const to = window->sums + slot * PITCH + PADDED(at);
#pragma unroll
    for (int q = 0; q < TRIANGLE_LEAF; q++) {
        to[q] = shape == TRIANGLE_BOX ? sums.single : sums.twice;
        sums = triangle_add(sums, leaf[q]);
    }
    if (((at + TRIANGLE_LEAF) & ((1 << segments.shift) - 1)) == 0)
        window->totals[slot][at >> segments.shift] = sums;
}

/*
 * Outputs.
 */

static __device__ __forceinline__ int slot_after(int slot, int chunks)
{
    return slot + chunks < CHUNKS ? slot + chunks : slot + chunks - CHUNKS;
}

/* Every line that an output of the chunk may need, a thread for each. */
static __device__ __forceinline__ void find_lines(struct window *window, const struct triangle &triangle, int shift,
                                                  int slot)
{
    const int segment = (int)threadIdx.x / LINES, from = (int)threadIdx.x % LINES;
    if (segment >= CHUNK >> shift)
        return;
    const struct triangle_sums *before = segment > 0
                                             ? &window->totals[slot][segment - 1]
                                             : &window->totals[slot_after(slot, CHUNKS - 1)][(CHUNK >> shift) - 1];
    window->lines[segment][from] = triangle_line(&triangle, 1 << shift, from & FROM_AHEAD, from & FROM_BEHIND,
                                                 window->totals[slot][segment], *before);
}

/* The outputs of a chunk, which begins at `origin`; those that the tile does not have are computed in vain. */
template <enum scand_dtype Dtype, enum triangle_shape Shape>
static __device__ __forceinline__ void write_chunk(const struct window *window, const struct line<Dtype> &line,
                                                   const struct triangle &triangle, int shift, int slot, int64_t origin)
{
    constexpr unsigned ring = CHUNKS * PITCH;
    const int size = 1 << shift, width = (int)triangle.half_width, mine = (int)threadIdx.x;
    const int reach = Shape == TRIANGLE_BOX ? width - 1 : width;
    const unsigned here = (unsigned)(slot * PITCH + PADDED(mine));
    const unsigned ahead = (unsigned)(slot * PITCH + PADDED(mine + width));
    const unsigned behind = (unsigned)(slot_after(slot, CHUNKS - 1) * PITCH + PADDED(mine + CHUNK - reach));
    const int begin = (int)(line.begin > origin ? line.begin - origin : 0);
    const int end = (int)(line.end - origin < CHUNK ? line.end - origin : CHUNK);
#pragma unroll 4
    for (int k = 0; k < CHUNK / THREADS; k++) {
        const int at = mine + k * THREADS, r = at & (size - 1);
        const int from = (r + width >= size ? FROM_AHEAD : 0) + (r < reach ? FROM_BEHIND : 0);
        const unsigned step = (unsigned)PADDED(k * THREADS);
        const struct triangle_line straight = window->lines[at >> shift][from];
        const double y =
            triangle_output(Shape, window->sums[min(ahead + step, ahead + step - ring)],
                            window->sums[min(behind + step, behind + step - ring)],
                            Shape == TRIANGLE_BOX ? 0 : window->sums[here + step], straight, r, triangle.scale);
        const int64_t i = origin + at;
        if (at >= begin && at < end)
            line.put(i, i >= line.kept_from && i < line.kept_to ? y : 0);
    }
}

/* Output `at` of a chunk, the i-th of the row, with a half-width of its own. */
template <enum scand_dtype Dtype, enum triangle_shape Shape>
static __device__ __forceinline__ double own_output(const struct window *window, const struct line<Dtype> &line,
                                                    const struct triangle &own, int shift, int slot, int at, int64_t i)
{
    constexpr unsigned ring = CHUNKS * PITCH;
    const int size = 1 << shift, width = (int)own.half_width, r = at & (size - 1), segment = at >> shift;
    const int reach = Shape == TRIANGLE_BOX ? width - 1 : width, slot_before = slot_after(slot, CHUNKS - 1);
    const unsigned ahead = (unsigned)(slot * PITCH + PADDED(at + width));
    const unsigned behind = (unsigned)(slot_before * PITCH + PADDED(at + CHUNK - reach));
    const struct triangle_sums before =
        segment > 0 ? window->totals[slot][segment - 1] : window->totals[slot_before][(CHUNK >> shift) - 1];
    if (width == 1)
        return (double)samples<Dtype>::get(line.dtype_from(), line.from + i * line.from_stride);
    return triangle_output(
        Shape, window->sums[min(ahead, ahead - ring)], window->sums[min(behind, behind - ring)],
        Shape == TRIANGLE_BOX ? 0 : window->sums[slot * PITCH + PADDED(at)],
        triangle_line(&own, size, r + width >= size, r < reach, window->totals[slot][segment], before), r, own.scale);
}

/* Writes a chunk as write_chunk does, of outputs with half-widths of their own. */
template <enum scand_dtype Dtype, enum triangle_shape Shape>
static __device__ __forceinline__ void write_own_chunk(const struct window *window, const struct line<Dtype> &line,
                                                       const struct triangle &triangle, int shift, int slot,
                                                       int64_t origin)
{
#pragma unroll 1
    for (int at = (int)threadIdx.x; at < CHUNK; at += THREADS) {
        const int64_t i = origin + at;
        if (i < line.begin || i >= line.end)
            continue;
        const struct triangle own = triangle_with(&triangle, line.own.get(i));
        const bool keeps = triangle_keeps(&own, i, line.length);
        line.put(i, keeps ? own_output<Dtype, Shape>(window, line, own, shift, slot, at, i) : 0);
    }
}

/*
 * Rows.
 */

static __device__ __forceinline__ int64_t chunk_of(int64_t i)
{
    return (i + CHUNK) / CHUNK - 1; /* which is before the row at most by a chunk */
}

/* Two barriers for each chunk: before its sums go where the last chunk but two was, and behind them. */
template <enum scand_dtype Dtype, enum triangle_shape Shape, bool Own>
static __device__ __forceinline__ void filter_row(struct window *window, const struct line<Dtype> &line,
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
        const int64_t begin = chunk * CHUNK;
        const bool needed =
            chunk <= last && __any_sync(~0u, begin + mine >= segments.first && begin + mine < segments.end);
        const bool writes = begin > line.begin && begin - CHUNK < line.end; /* outputs of the chunk before it */
        const int before = slot_after(slot, CHUNKS - 1);
        struct triangle_sums sums;
        double x[TRIANGLE_LEAF];
        if (needed) {
#pragma unroll
            for (int q = 0; q < TRIANGLE_LEAF; q++)
                x[q] = (double)leaf.x[q];
            sums = group_sums<Dtype>(window, segments, x);
        }
        __syncthreads();
        if (writes && !Own)
            find_lines(window, triangle, segments.shift, before);
        if (needed)
            write_sums(window, Shape, segments, x, sums, slot);
        __syncthreads();
        if (chunk < last)
            load_leaf(line, triangle.boundary, segments, begin + CHUNK + mine, &leaf);
        if (writes && Own)
            write_own_chunk<Dtype, Shape>(window, line, triangle, segments.shift, before, begin - CHUNK);
        else if (writes)
            write_chunk<Dtype, Shape>(window, line, triangle, segments.shift, before, begin - CHUNK);
        slot = slot_after(slot, 1);
    }
}

template <enum scand_dtype Dtype> static __device__ void copy_row(const struct line<Dtype> &line)
{
    for (int64_t i = line.begin + (int)threadIdx.x; i < line.end; i += THREADS) {
        const bool kept = i >= line.kept_from && i < line.kept_to;
        line.put(i, kept ? step_get_f64(line.dtype_from(), line.from + i * line.from_stride) : 0);
    }
}

/* Own: outputs have half-widths of their own. */
template <enum scand_dtype Dtype, enum triangle_shape Shape, bool Own>
static __global__ void __launch_bounds__(THREADS, Own ? BLOCKS_OWN : BLOCKS)
    triangle_tiles(const __grid_constant__ struct step_rows rows, const __grid_constant__ struct triangle triangle,
                   const __grid_constant__ struct step_tiles tiles, uint64_t begin)
{
    extern __shared__ unsigned char step_shared[];
    struct window *window = (struct window *)step_shared;
    const struct step_operand *half_widths = &rows.further[TRIANGLE_HALF_WIDTHS];
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
        uint64_t kept_from, kept_to;
        line.from = step_row(&rows, &rows.input, row);
        line.to = step_row(&rows, &rows.output, row);
        line.length = (int64_t)step_length(&rows, &rows.input, row);
        line.begin = (int64_t)tile.begin;
        line.end = (int64_t)step_end(&rows, &tile, row);
        if constexpr (Own)
            line.own = {step_row(&rows, half_widths, row), half_widths->stride, half_widths->dtype};
        triangle_kept(&triangle, (uint64_t)line.length, &kept_from, &kept_to);
        line.kept_from = (int64_t)kept_from;
        line.kept_to = (int64_t)kept_to;
        if (triangle.half_width == 1 && !Own)
            copy_row(line);
        else if (line.begin < line.end)
            filter_row<Dtype, Shape, Own>(window, line, triangle, segments);
    }
}

template <enum scand_dtype Dtype, enum triangle_shape Shape, bool Own>
static cudaError_t launch_shape(const struct step_rows *rows, const struct triangle *triangle,
                                const struct step_tiles *tiles, uint64_t begin, uint64_t end, void *stream)
{
    const cudaError_t error = cudaFuncSetAttribute(
        triangle_tiles<Dtype, Shape, Own>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)sizeof(struct window));
    if (error)
        return error;
    return step_launch_each(begin, end, [&](uint64_t first, unsigned grid) {
        triangle_tiles<Dtype, Shape, Own>
            <<<grid, THREADS, sizeof(struct window), (cudaStream_t)stream>>>(*rows, *triangle, *tiles, first);
    });
}

template <enum scand_dtype Dtype, bool Own>
static cudaError_t launch(const struct step_rows *rows, const struct triangle *triangle, const struct step_tiles *tiles,
                          uint64_t begin, uint64_t end, void *stream)
{
    return triangle->shape == TRIANGLE_BOX
               ? launch_shape<Dtype, TRIANGLE_BOX, Own>(rows, triangle, tiles, begin, end, stream)
               : launch_shape<Dtype, TRIANGLE_TRIANGLE, Own>(rows, triangle, tiles, begin, end, stream);
}

static bool are_dense(const struct step_rows *rows, enum scand_dtype dtype)
{
    return step_is_dense(rows, &rows->input, dtype, codec_bytes(dtype)) &&
           step_is_dense(rows, &rows->output, dtype, codec_bytes(dtype));
}

extern "C" int triangle_launch(const struct step_rows *rows, const void *params, const struct step_tiles *tiles,
                               uint64_t begin, uint64_t end, void *stream)
{
    const struct triangle *triangle = (const struct triangle *)params;
    const bool own = rows->further[TRIANGLE_HALF_WIDTHS].origin;
    if (own && are_dense(rows, SCAND_DTYPE_F32))
        return launch<SCAND_DTYPE_F32, true>(rows, triangle, tiles, begin, end, stream);
    if (own)
        return launch<SCAND_DTYPE_COUNT, true>(rows, triangle, tiles, begin, end, stream);
    if (are_dense(rows, SCAND_DTYPE_F32))
        return launch<SCAND_DTYPE_F32, false>(rows, triangle, tiles, begin, end, stream);
    if (are_dense(rows, SCAND_DTYPE_F64))
        return launch<SCAND_DTYPE_F64, false>(rows, triangle, tiles, begin, end, stream);
    if (are_dense(rows, SCAND_DTYPE_F16))
        return launch<SCAND_DTYPE_F16, false>(rows, triangle, tiles, begin, end, stream);
    return launch<SCAND_DTYPE_COUNT, false>(rows, triangle, tiles, begin, end, stream);
}
