#include <type_traits>

#include "kernels/steps/step.cuh"
#include "triangle.h"

/*
 * A thread block goes along the row, chunk by chunk, a leaf of it for each thread. It keeps the sums of three chunks in
 * shared memory: a chunk's outputs need the segments on either side of theirs. So samples are read once, but for those
 * around the tile, while the outputs of the chunk before are computed and written. Chunks begin at the first segment
 * that the tile needs. A chunk is a segment, or several short ones: the fewer threads wait for each other, the better.
 */

#define WARP         32
#define WARPS_MAX    (TRIANGLE_SEGMENT_MAX / TRIANGLE_GROUP)
#define THREADS_MAX  (WARPS_MAX * WARP)
#define CHUNKS       3
#define OUTPUTS      TRIANGLE_LEAF /* of a thread in a chunk */
#define CHUNK_LEAST  512
#define SEGMENTS_MAX (CHUNK_LEAST / TRIANGLE_SEGMENT_MIN) /* of a chunk */
#define BLOCKS       3 /* of the longest chunks on a multiprocessor: for more there are no registers */
#define BLOCKS_OWN   2 /* where outputs have their own half-widths, which takes registers */
static_assert(WARP == TRIANGLE_FAN, "a group for each warp");

/* A word of 8 bytes more for every 32: leaves that are written, and neighbours that are read anywhere, meet in few
 * banks. PADDED(at + WARP) is PADDED(at) + PADDED(WARP). */
#define PADDED(AT) ((AT) + (AT) / 32)

/* Bits for sums that an output takes from other segments than its own, and how many lines they make. */
enum { FROM_AHEAD = 1, FROM_BEHIND = 2, LINES = 4 };

struct window {
    struct triangle_sums totals[CHUNKS][SEGMENTS_MAX];
    struct triangle_sums groups[WARPS_MAX];
    double starts[SEGMENTS_MAX * LINES]; /* lines of the chunk whose outputs are written */
    double slopes[SEGMENTS_MAX * LINES];
    double sums[]; /* a ring of chunks */
};

/* A chunk is 1 << chunk_shift samples and a segment 1 << shift, of which the network joins so many leaves. */
struct sizes {
    int chunk_shift, shift, fan;

    static __host__ __device__ __forceinline__ struct sizes of(const struct triangle &triangle)
    {
        struct sizes sizes = {0, 0, TRIANGLE_FAN};
        while ((1u << sizes.shift) < triangle_segment(triangle.half_width))
            sizes.shift++;
        for (sizes.chunk_shift = sizes.shift; 1 << sizes.chunk_shift < CHUNK_LEAST;)
            sizes.chunk_shift++;
        while (sizes.fan * TRIANGLE_LEAF > sizes.segment())
            sizes.fan /= 2;
        return sizes;
    }
    __host__ __device__ __forceinline__ int segment() const
    {
        return 1 << shift;
    }
    __host__ __device__ __forceinline__ int chunk() const
    {
        return 1 << chunk_shift;
    }
    __host__ __device__ __forceinline__ int threads() const
    {
        return chunk() / TRIANGLE_LEAF;
    }
    /* Words of a chunk in the ring. */
    __host__ __device__ __forceinline__ int pitch() const
    {
        return PADDED(chunk());
    }
    /* Segments of a chunk; warps along a segment, a power of two. */
    __device__ __forceinline__ int segments() const
    {
        return 1 << (chunk_shift - shift);
    }
    __device__ __forceinline__ int warps() const
    {
        return max(segment() / TRIANGLE_GROUP, 1);
    }
};

/* The first output of a thread in a chunk; further ones are WARP apart. */
static __device__ __forceinline__ int first_output()
{
    return (int)(threadIdx.x / WARP * TRIANGLE_GROUP + threadIdx.x % WARP);
}

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
    __device__ __forceinline__ void put(char *at, double value) const
    {
        if constexpr (Dtype == SCAND_DTYPE_F32)
            *(uint32_t *)at = codec_encoded_f32(Dtype, (float)value);
        else if constexpr (Dtype == SCAND_DTYPE_F64)
            *(uint64_t *)at = codec_encoded_f64(Dtype, value);
        else if constexpr (Dtype == SCAND_DTYPE_F16)
            *(uint16_t *)at = (uint16_t)codec_encoded_f32(Dtype, (float)value);
        else
            step_put_f64(to_dtype, value, at);
    }
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

/* A leaf whose samples are all the row's. is_aligned: they lie in whole words of 16 bytes. */
template <enum scand_dtype Dtype>
static __device__ __forceinline__ void load_leaf(const struct line<Dtype> &line, const char *at, bool is_aligned,
                                                 struct samples<Dtype> *leaf)
{
    if constexpr (Dtype != SCAND_DTYPE_COUNT)
        if (is_aligned)
            return load_words(at, leaf);
#pragma unroll
    for (int q = 0; q < TRIANGLE_LEAF; q++)
        leaf->x[q] = samples<Dtype>::get(line.dtype_from(), at + q * line.from_stride);
}

/* A leaf of which some samples may lie outside the row. They are found one by one, as leaves like it are few. */
template <enum scand_dtype Dtype>
static __device__ __forceinline__ void load_leaf_beyond(const struct line<Dtype> &line, enum boundary boundary,
                                                        int64_t begin, struct samples<Dtype> *leaf)
{
#pragma unroll 1
    for (int q = 0; q < TRIANGLE_LEAF; q++) {
        const int64_t source = triangle_source(boundary, begin + q, line.length);
        const char *at = line.from + source * line.from_stride;
        const auto x = source < 0 ? 0 : samples<Dtype>::get(line.dtype_from(), at);
#pragma unroll
        for (int k = 0; k < TRIANGLE_LEAF; k++) /* with constants, so that the leaf stays in registers */
            leaf->x[k] = k == q ? x : leaf->x[k];
    }
}

/*
 * Sums. A box has no double sums.
 */

template <enum triangle_shape Shape>
static __device__ __forceinline__ struct triangle_sums add(struct triangle_sums before, double x)
{
    if constexpr (Shape == TRIANGLE_BOX)
        return {before.single + x, 0};
    else
        return triangle_add(before, x);
}

/* Joins sums as triangle_join does. Power: `count` is a power of two, whose product with sums of samples of 4 or 2
 * bytes is exact, so that one instruction multiplies and adds. */
template <enum scand_dtype Dtype, enum triangle_shape Shape, bool Power>
static __device__ __forceinline__ struct triangle_sums join(struct triangle_sums left, struct triangle_sums right,
                                                            double count)
{
    if constexpr (Shape == TRIANGLE_BOX)
        return {left.single + right.single, 0};
    else if constexpr (Power && samples<Dtype>::narrow)
        return {left.single + right.single, fma(left.single, count, left.twice) + right.twice};
    else
        return triangle_join(left, right, count);
}

template <enum triangle_shape Shape>
static __device__ __forceinline__ struct triangle_sums lane_before(struct triangle_sums sums, int distance)
{
    return {__shfl_up_sync(~0u, sums.single, distance),
            Shape == TRIANGLE_BOX ? 0 : __shfl_up_sync(~0u, sums.twice, distance)};
}

/* The prefix of this thread's leaf in its group. */
template <enum scand_dtype Dtype, enum triangle_shape Shape>
static __device__ __forceinline__ struct triangle_sums network(struct triangle_sums total, int fan)
{
    const int place = threadIdx.x % WARP & (fan - 1);
#pragma unroll
    for (int distance = 1; distance < TRIANGLE_FAN; distance *= 2) {
        const struct triangle_sums before = lane_before<Shape>(total, distance);
        if (place >= distance)
            total = join<Dtype, Shape, true>(before, total, (double)(TRIANGLE_LEAF * distance));
    }
    return total;
}

/* The carry into this thread's leaf, `before` being the prefix of the leaves before it in its group. */
template <enum scand_dtype Dtype, enum triangle_shape Shape>
static __device__ __forceinline__ struct triangle_sums carry(const struct window *window, const struct sizes &sizes,
                                                             struct triangle_sums before)
{
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, first = warp & -sizes.warps();
    struct triangle_sums group = {0, 0};
    if (warp > first) {
        group = window->groups[first];
#pragma unroll 1
        for (int w = first + 1; w < warp; w++)
            group = join<Dtype, Shape, true>(group, window->groups[w], TRIANGLE_GROUP);
    }
    if ((lane & (sizes.fan - 1)) == 0)
        return group;
    return warp == first ? before : join<Dtype, Shape, false>(group, before, (double)(TRIANGLE_LEAF * lane));
}

/* The sums up to this thread's leaf in its group, whose samples it has. */
template <enum scand_dtype Dtype, enum triangle_shape Shape>
static __device__ __forceinline__ struct triangle_sums group_sums(struct window *window, const struct sizes &sizes,
                                                                  const double leaf[TRIANGLE_LEAF])
{
    struct triangle_sums sums = {0, 0};
#pragma unroll
    for (int q = 0; q < TRIANGLE_LEAF; q++)
        sums = add<Shape>(sums, leaf[q]);
    sums = network<Dtype, Shape>(sums, sizes.fan);
    if (threadIdx.x % WARP == WARP - 1)
        window->groups[threadIdx.x / WARP] = sums;
    return lane_before<Shape>(sums, 1);
}

template <enum scand_dtype Dtype, enum triangle_shape Shape>
static __device__ __forceinline__ void write_sums(struct window *window, const struct sizes &sizes,
                                                  const double leaf[TRIANGLE_LEAF], struct triangle_sums before,
                                                  int slot)
{
    const int at = (int)threadIdx.x * TRIANGLE_LEAF;
    struct triangle_sums sums = carry<Dtype, Shape>(window, sizes, before);
    double *const to = window->sums + slot * sizes.pitch() + PADDED(at);
#pragma unroll
    for (int q = 0; q < TRIANGLE_LEAF; q++) {
        to[q] = Shape == TRIANGLE_BOX ? sums.single : sums.twice;
        sums = add<Shape>(sums, leaf[q]);
    }
    if (((at + TRIANGLE_LEAF) & (sizes.segment() - 1)) == 0)
        window->totals[slot][at >> sizes.shift] = sums;
}

/*
 * Outputs.
 */

static __device__ __forceinline__ int slot_after(int slot, int chunks)
{
    return slot + chunks < CHUNKS ? slot + chunks : slot + chunks - CHUNKS;
}

/* The total of the segment before segment `segment` of the chunk in a slot. */
static __device__ __forceinline__ struct triangle_sums total_before(const struct window *window,
                                                                    const struct sizes &sizes, int slot, int segment)
{
    return segment > 0 ? window->totals[slot][segment - 1]
                       : window->totals[slot_after(slot, CHUNKS - 1)][sizes.segments() - 1];
}

/* Every line that an output of the chunk may need, a thread for each. */
static __device__ __forceinline__ void find_lines(struct window *window, const struct triangle &triangle,
                                                  const struct sizes &sizes, int slot)
{
    const int segment = (int)threadIdx.x / LINES, from = (int)threadIdx.x % LINES;
    if (segment >= sizes.segments())
        return;
    const struct triangle_line line =
        triangle_line(&triangle, sizes.segment(), from & FROM_AHEAD, from & FROM_BEHIND, window->totals[slot][segment],
                      total_before(window, sizes, slot, segment));
    window->starts[threadIdx.x] = line.start;
    window->slopes[threadIdx.x] = line.slope;
}
static_assert(SEGMENTS_MAX * LINES <= CHUNK_LEAST / TRIANGLE_LEAF, "threads enough for all lines");

/* What a thread's outputs are made of, the same in every chunk. */
struct places {
    unsigned ahead, behind;      /* bytes to sums of output 0, from the chunk's and from those of the chunk before */
    unsigned lines[OUTPUTS / 2]; /* bytes to the lines of two outputs, 16 bits each */
    unsigned changes;            /* bits of outputs whose line is another one than that of the output before */
    unsigned mask;               /* samples of a segment less 1 */
};

static __device__ __forceinline__ struct places places_of(const struct triangle &triangle, const struct sizes &sizes)
{
    const int size = sizes.segment(), width = (int)triangle.half_width, first = first_output();
    const int reach = triangle.shape == TRIANGLE_BOX ? width - 1 : width;
    struct places places = {(unsigned)(PADDED(first + width) * sizeof(double)),
                            (unsigned)(PADDED(first + sizes.chunk() - reach) * sizeof(double)),
                            {},
                            1,
                            (unsigned)size - 1};
    int before = 0;
#pragma unroll
    for (int k = 0; k < OUTPUTS; k++) {
        const int at = first + k * WARP, r = at & (size - 1);
        const int from = (r + width >= size ? FROM_AHEAD : 0) + (r < reach ? FROM_BEHIND : 0);
        const int line = (at >> sizes.shift) * LINES + from;
        places.lines[k / 2] |= (unsigned)(line * sizeof(double)) << 16 * (k % 2);
        places.changes |= k > 0 && line != before ? 1u << k : 0;
        before = line;
    }
    return places;
}

/* Chunk number `chunk` of those along the tile, whose sums are in `slot`: where a thread finds what it needs. */
struct turn {
    unsigned ahead, behind, here;       /* bytes to sums of output 0 in the ring; of the first two, if it has no end */
    unsigned ahead_again, behind_again; /* and if they lie beyond its end */
    unsigned at;                        /* output 0 among those of the tile's chunks */

    static __device__ __forceinline__ struct turn of(const struct places &places, const struct sizes &sizes, int chunk,
                                                     int slot)
    {
        const unsigned pitch = (unsigned)(sizes.pitch() * sizeof(double)), first = (unsigned)first_output();
        const unsigned ahead = slot * pitch + places.ahead;
        const unsigned behind = slot_after(slot, CHUNKS - 1) * pitch + places.behind;
        return {ahead,
                behind,
                slot * pitch + (unsigned)(PADDED(first) * sizeof(double)),
                ahead - CHUNKS * pitch,
                behind - CHUNKS * pitch,
                ((unsigned)chunk << sizes.chunk_shift) + first};
    }
};

template <class T> static __device__ __forceinline__ T at_byte(const T *from, unsigned bytes)
{
    return *(const T *)((const char *)from + bytes);
}

/* Returns output k. *kept: the line of the output before, which is replaced where this one has another. */
template <enum scand_dtype Dtype, enum triangle_shape Shape>
static __device__ __forceinline__ double output(const struct window *window, const struct places &places,
                                                const struct turn &turn, int k, double scale,
                                                struct triangle_line *kept)
{
    const unsigned step = (unsigned)(PADDED(k * WARP) * sizeof(double));
    if (places.changes & 1u << k) {
        const unsigned place = k % 2 ? places.lines[k / 2] >> 16 : places.lines[k / 2] & 0xffff;
        kept->start = at_byte(window->starts, place);
        kept->slope = Shape == TRIANGLE_BOX ? 0 : at_byte(window->slopes, place);
    }
    const struct triangle_line line = *kept;
    const double ahead = at_byte(window->sums, min(turn.ahead + step, turn.ahead_again + step));
    const double behind = at_byte(window->sums, min(turn.behind + step, turn.behind_again + step));
    const double here = Shape == TRIANGLE_BOX ? 0 : at_byte(window->sums, turn.here + step);
    const int r = (int)((turn.at + k * WARP) & places.mask);
    if constexpr (Shape == TRIANGLE_TRIANGLE &&
                  samples<Dtype>::narrow) /* as below, since twice a sum of theirs is exact */
        return fma(-2.0, here, (ahead + behind) + (line.start + line.slope * r)) * scale;
    return triangle_output(Shape, ahead, behind, here, line, r, scale);
}

/* Some samples of a chunk, from `begin` on. */
struct span {
    int begin;
    unsigned count;

    /* Samples begin <= i < end of the row in the chunk that begins at `origin`. */
    static __device__ __forceinline__ struct span of(int64_t begin, int64_t end, int64_t origin)
    {
        const int64_t most = TRIANGLE_SEGMENT_MAX;
        const int from = (int)min(max(begin - origin, INT64_C(0)), most);
        const int to = (int)min(max(end - origin, INT64_C(0)), most);
        return {from, to > from ? (unsigned)(to - from) : 0};
    }
    __device__ __forceinline__ bool has(int at) const
    {
        return (unsigned)(at - begin) < count;
    }
};

/* Writes a chunk's outputs, this thread's to `to` and so on: all of them, or those that the tile has, of which some are
 * kept. */
template <bool All, enum scand_dtype Dtype, enum triangle_shape Shape>
static __device__ __forceinline__ void write_chunk(const struct window *window, const struct line<Dtype> &line,
                                                   const struct places &places, const struct turn &turn, double scale,
                                                   char *to, struct span tile, struct span kept)
{
    struct triangle_line line_of_output = {0, 0};
#pragma unroll
    for (int k = 0; k < OUTPUTS; k++) {
        const int at = first_output() + k * WARP;
        const double y = output<Dtype, Shape>(window, places, turn, k, scale, &line_of_output);
        if (All || tile.has(at))
            line.put(to + k * WARP * line.to_stride, All || kept.has(at) ? y : 0);
    }
}

/* Output `at` of a chunk, the i-th of the row, with a half-width of its own. */
template <enum scand_dtype Dtype, enum triangle_shape Shape>
static __device__ __forceinline__ double own_output(const struct window *window, const struct line<Dtype> &line,
                                                    const struct triangle &own, const struct sizes &sizes, int slot,
                                                    int at, int64_t i)
{
    const int size = sizes.segment(), width = (int)own.half_width, r = at & (size - 1), segment = at >> sizes.shift;
    const int reach = Shape == TRIANGLE_BOX ? width - 1 : width, slot_before = slot_after(slot, CHUNKS - 1);
    const int pitch = sizes.pitch();
    const unsigned ring = (unsigned)(CHUNKS * pitch), ahead = (unsigned)(slot * pitch + PADDED(at + width));
    const unsigned behind = (unsigned)(slot_before * pitch + PADDED(at + sizes.chunk() - reach));
    if (width == 1)
        return (double)samples<Dtype>::get(line.dtype_from(), line.from + i * line.from_stride);
    return triangle_output(Shape, window->sums[min(ahead, ahead - ring)], window->sums[min(behind, behind - ring)],
                           Shape == TRIANGLE_BOX ? 0 : window->sums[slot * pitch + PADDED(at)],
                           triangle_line(&own, size, r + width >= size, r < reach, window->totals[slot][segment],
                                         total_before(window, sizes, slot, segment)),
                           r, own.scale);
}

/* Writes a chunk as write_chunk does, of outputs with half-widths of their own. */
template <enum scand_dtype Dtype, enum triangle_shape Shape>
static __device__ __forceinline__ void write_own_chunk(const struct window *window, const struct line<Dtype> &line,
                                                       const struct triangle &triangle, const struct sizes &sizes,
                                                       int slot, int64_t origin)
{
#pragma unroll 1
    for (int at = (int)threadIdx.x; at < sizes.chunk(); at += (int)blockDim.x) {
        const int64_t i = origin + at;
        if (i < line.begin || i >= line.end)
            continue;
        const struct triangle own = triangle_with(&triangle, line.own.get(i));
        const bool keeps = triangle_keeps(&own, i, line.length);
        line.put(line.to + i * line.to_stride,
                 keeps ? own_output<Dtype, Shape>(window, line, own, sizes, slot, at, i) : 0);
    }
}

/*
 * Rows.
 */

/* The chunks along a tile, by their numbers: 0 begins at the first segment that the tile needs. */
struct chunks {
    int64_t first;               /* sample of the row that is the first of chunk 0 */
    int shift;                   /* of a chunk's samples */
    int summed, written;         /* chunks that this warp makes sums of; chunks that have outputs */
    int inside_from, inside_end; /* chunks whose samples are all the row's */
    int plain_from, plain_end;   /* chunks whose outputs are all written and kept */

    /* The first chunk that begins at `sample` or behind it; the end of those that end at `sample` or before. */
    __device__ __forceinline__ int from(int64_t sample) const
    {
        return sample <= first ? 0 : (int)((sample - first - 1) >> shift) + 1;
    }
    __device__ __forceinline__ int until(int64_t sample) const
    {
        return sample <= first ? 0 : (int)((sample - first) >> shift);
    }
    __device__ __forceinline__ int64_t origin(int chunk) const
    {
        return first + (int64_t)chunk * (1 << shift);
    }
};

template <enum scand_dtype Dtype>
static __device__ __forceinline__ struct chunks chunks_of(const struct line<Dtype> &line, const struct sizes &sizes)
{
    struct chunks chunks;
    chunks.shift = sizes.chunk_shift;
    chunks.first = ((line.begin >> sizes.shift) - 1) * sizes.segment();
    const int64_t end = (((line.end - 1) >> sizes.shift) + 2) * sizes.segment(); /* of the segments that are needed */
    chunks.summed = chunks.from(end - (int)threadIdx.x / WARP * TRIANGLE_GROUP);
    chunks.written = chunks.from(line.end);
    chunks.inside_from = chunks.from(0);
    chunks.inside_end = chunks.until(line.length);
    chunks.plain_from = chunks.from(max(line.begin, line.kept_from));
    chunks.plain_end = chunks.until(min(line.end, line.kept_to));
    return chunks;
}

template <enum scand_dtype Dtype>
static __device__ __forceinline__ void load_chunk(const struct line<Dtype> &line, enum boundary boundary,
                                                  const struct chunks &chunks, int chunk, const char *at,
                                                  bool is_aligned, struct samples<Dtype> *leaf)
{
    if (chunk >= chunks.inside_from && chunk < chunks.inside_end)
        return load_leaf(line, at, is_aligned, leaf);
    const int64_t begin = chunks.origin(chunk) + (int)threadIdx.x * TRIANGLE_LEAF;
    if (begin >= 0 && begin + TRIANGLE_LEAF <= line.length)
        load_leaf(line, at, is_aligned, leaf);
    else
        load_leaf_beyond(line, boundary, begin, leaf);
}

/* Two barriers for each chunk: before its sums go where the last chunk but two was, and behind them. */
template <enum scand_dtype Dtype, enum triangle_shape Shape, bool Own>
static __device__ __forceinline__ void filter_row(struct window *window, const struct line<Dtype> &line,
                                                  const struct triangle &triangle, const struct sizes &sizes,
                                                  const struct places &places)
{
    const struct chunks chunks = chunks_of(line, sizes);
    const char *from = line.from + (chunks.first + (int)threadIdx.x * TRIANGLE_LEAF) * line.from_stride;
    char *to = line.to + (chunks.first + first_output() - sizes.chunk()) * line.to_stride;
    const bool is_aligned = (uintptr_t)from % 16 == 0;
    struct samples<Dtype> leaf = {
    };
    if (chunks.summed > 0)
        load_chunk(line, triangle.boundary, chunks, 0, from, is_aligned, &leaf);
    int slot = 0;
    /* The outputs of the chunk before are written, whose sums and those on either side are there. */
    for (int chunk = 0; chunk <= chunks.written; chunk++) {
        const int before = slot_after(slot, CHUNKS - 1);
        struct triangle_sums sums;
        double x[TRIANGLE_LEAF];
        if (chunk < chunks.summed) {
#pragma unroll
            for (int q = 0; q < TRIANGLE_LEAF; q++)
                x[q] = (double)leaf.x[q];
            sums = group_sums<Dtype, Shape>(window, sizes, x);
        }
        __syncthreads();
        if (chunk > 0 && !Own)
            find_lines(window, triangle, sizes, before);
        if (chunk < chunks.summed)
            write_sums<Dtype, Shape>(window, sizes, x, sums, slot);
        __syncthreads();
        from += sizes.chunk() * line.from_stride;
        if (chunk + 1 < chunks.summed)
            load_chunk(line, triangle.boundary, chunks, chunk + 1, from, is_aligned, &leaf);
        const int64_t origin = chunks.origin(chunk - 1);
        const struct turn turn = turn::of(places, sizes, chunk - 1, before);
        if (chunk > 0 && Own)
            write_own_chunk<Dtype, Shape>(window, line, triangle, sizes, before, origin);
        else if (chunk > chunks.plain_from && chunk <= chunks.plain_end)
            write_chunk<true, Dtype, Shape>(window, line, places, turn, triangle.scale, to, {}, {});
        else if (chunk > 0)
            write_chunk<false, Dtype, Shape>(window, line, places, turn, triangle.scale, to,
                                             span::of(line.begin, line.end, origin),
                                             span::of(line.kept_from, line.kept_to, origin));
        to += sizes.chunk() * line.to_stride;
        slot = slot_after(slot, 1);
    }
}

template <enum scand_dtype Dtype> static __device__ void copy_row(const struct line<Dtype> &line)
{
    for (int64_t i = line.begin + (int)threadIdx.x; i < line.end; i += (int)blockDim.x) {
        const bool kept = i >= line.kept_from && i < line.kept_to;
        line.put(line.to + i * line.to_stride,
                 kept ? step_get_f64(line.dtype_from(), line.from + i * line.from_stride) : 0);
    }
}

/* Own: outputs have half-widths of their own. */
template <enum scand_dtype Dtype, enum triangle_shape Shape, bool Own>
static __global__ void __launch_bounds__(THREADS_MAX, Own ? BLOCKS_OWN : BLOCKS)
    triangle_tiles(const __grid_constant__ struct step_rows rows, const __grid_constant__ struct triangle triangle,
                   const __grid_constant__ struct step_tiles tiles, uint64_t begin)
{
    extern __shared__ unsigned char step_shared[];
    struct window *window = (struct window *)step_shared;
    const struct step_operand *half_widths = &rows.further[TRIANGLE_HALF_WIDTHS];
    const struct step_tile tile = step_block_tile(tiles, begin);
    const struct sizes sizes = sizes::of(triangle);
    const struct places places = places_of(triangle, sizes);
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
            filter_row<Dtype, Shape, Own>(window, line, triangle, sizes, places);
    }
}

template <enum scand_dtype Dtype, enum triangle_shape Shape, bool Own>
static cudaError_t launch_shape(const struct step_rows *rows, const struct triangle *triangle,
                                const struct step_tiles *tiles, uint64_t begin, uint64_t end, void *stream)
{
    const struct sizes sizes = sizes::of(*triangle);
    const int bytes = (int)(sizeof(struct window) + CHUNKS * sizes.pitch() * sizeof(double));
    const cudaError_t error =
        cudaFuncSetAttribute(triangle_tiles<Dtype, Shape, Own>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    if (error)
        return error;
    return step_launch_each(begin, end, [&](uint64_t first, unsigned grid) {
        triangle_tiles<Dtype, Shape, Own>
            <<<grid, sizes.threads(), bytes, (cudaStream_t)stream>>>(*rows, *triangle, *tiles, first);
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
