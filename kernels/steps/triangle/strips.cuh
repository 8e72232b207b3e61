/*
 * A strip is a part of a row. Some lanes of a warp, or the warps of a thread block, go along a strip segment by
 * segment, a leaf for each lane. Since an output is made of the sums of three segments at the same place, a thread has
 * all sums of its outputs in registers. Samples are read once, but for the segments on either side of a strip.
 */
#ifndef KERNELS_STEPS_TRIANGLE_STRIPS_CUH
#define KERNELS_STEPS_TRIANGLE_STRIPS_CUH

#include "sums.cuh"

#define THREADS_MAX    (WARPS_MAX * WARP)
#define BLOCKS         2  /* of the longest segments on a multiprocessor: with fewer registers they are slower */
#define SEGMENTS_LEAST 48 /* of a strip: two more are summed for it */
#define SEGMENTS_MOST  (UINT64_C(1) << 20)

/* `count` segments from number `from` on. */
struct range {
    int from;
    unsigned count;

    static __device__ __forceinline__ struct range of(int from, int end)
    {
        return {from, end > from ? (unsigned)(end - from) : 0};
    }
    static __device__ __forceinline__ struct range all() { return of(0, INT32_MAX); }
    __device__ __forceinline__ int end() const { return from + (int)count; }
    __device__ __forceinline__ bool has(int n) const { return (unsigned)(n - from) < count; }
    /* What it has in common with another. */
    __device__ __forceinline__ struct range both(struct range other) const
    {
        return of(max(from, other.from), min(end(), other.end()));
    }
};

/* Outputs begin <= i < end of a row, whose segments are summed from the one before the first of them on, so many. */
template <enum scand_dtype Dtype> struct strip {
    struct line<Dtype> line;
    int64_t begin, end, first;
    int64_t kept_from, kept_to;
    int segments;
    struct range inside;     /* segments whose samples are all the row's */
    struct range whole;      /* segments behind those whose outputs are all written and kept */
    const char *half_widths; /* of the row's outputs that have their own */

    /* The first sample of a segment. */
    __device__ __forceinline__ int64_t at(int number, const struct triangle &triangle) const
    {
        return first + (int64_t)number * (int)triangle.half_width;
    }
    __device__ __forceinline__ int segments_until(int64_t i, int64_t size) const
    {
        return (int)min(max((i - first) / size, INT64_C(0)), (int64_t)INT32_MAX - 1);
    }
};

/* Strip `number` of a tile, of `count` if the tile is one row: else a row is a strip. */
template <enum scand_dtype Dtype>
static __device__ __forceinline__ struct strip<Dtype>
strip_of(const struct step_rows &rows, const struct triangle &triangle, const struct step_tile &tile, uint64_t number,
         uint64_t count) {
    const int64_t size = triangle.half_width;
    const struct step_operand *half_widths = &rows.further[TRIANGLE_HALF_WIDTHS];
    struct strip<Dtype> strip;
    const uint64_t row = tile.first_row + (tile.row_count == 1 ? 0 : number);
    uint64_t kept_from, kept_to;
    strip.line = line<Dtype>::of(rows, row);
    strip.begin = (int64_t)tile.begin;
    strip.end = (int64_t)step_end(&rows, &tile, row);
    strip.half_widths = half_widths->origin ? step_row(&rows, half_widths, row) : NULL;
    int64_t first = strip.begin / size, last = strip.end > strip.begin ? (strip.end - 1) / size + 1 : first;
    if (tile.row_count == 1) {
        const int64_t segments = last - first;
        last = first + segments * ((int64_t)number + 1) / (int64_t)count;
        first += segments * (int64_t)number / (int64_t)count;
    }
    triangle_kept(&triangle, (uint64_t)strip.line.length, &kept_from, &kept_to);
    strip.kept_from = (int64_t)kept_from;
    strip.kept_to = (int64_t)kept_to;
    strip.begin = max(strip.begin, first *size);
    strip.end = min(strip.end, last *size);
    strip.first = (first - 1) * size;
    strip.segments = last > first ? (int)(last - first) + 2 : 0;
    strip.inside = range::of(first == 0, strip.segments_until(strip.line.length, size));
    strip.whole = range::of(strip.segments_until(max(strip.begin, strip.kept_from) + size - 1, size) + 1,
                            strip.segments_until(min(strip.end, strip.kept_to), size) + 1);
    return strip;
}

/* Strips of a tile: its rows, or as many parts of one row as make all strips short. */
static __device__ __forceinline__ uint64_t
strips_of(const struct step_rows &rows, const struct step_tile &tile, const struct triangle &triangle,
          unsigned side_by_side)
{
    if (tile.row_count > 1)
        return tile.row_count;
    const uint64_t samples = step_end(&rows, &tile, tile.first_row) - tile.begin;
    return side_by_side * (samples / (triangle.half_width * (side_by_side * SEGMENTS_MOST)) + 1);
}

/* The strips from number `turn` on that lie side by side in the thread block, which has ended the last ones. */
template <enum scand_dtype Dtype>
static __device__ __forceinline__ void begin_strips(const struct step_rows &rows, const struct triangle &triangle,
                                                    const struct step_tile &tile, const struct place &place,
                                                    uint64_t turn, uint64_t count, struct strip<Dtype> strips[WARP])
{
    __syncthreads();
    if (place.has_strip && place.leaf == 0) {
        if (turn + place.strip < count)
            strips[place.strip] = strip_of<Dtype>(rows, triangle, tile, turn + place.strip, count);
        else
            strips[place.strip].segments = 0;
    }
    __syncthreads();
}

/* The sample of a row that position i stands for, within two segments of the row; as triangle_source. */
static __device__ __forceinline__ int64_t turned(int64_t i, int64_t length)
{
    i = i < 0 ? -1 - i : i;
    if (i >= 2 * length) /* of a row that is shorter than that */
        i = (unsigned)i % (unsigned)(2 * length);
    return i < length ? i : 2 * length - 1 - i;
}

#endif
