/*
 * A strip is a part of a row. Some lanes of a warp, or the warps of a thread block, go along a strip segment by
 * segment, a leaf for each lane. Since an output is made of the sums of three segments at the same place, a thread has
 * all sums of its outputs in registers. Samples are read once, but for the segments on either side of a strip.
 */
#include "sums.cuh"

#define THREADS_MAX    (WARPS_MAX * WARP)
#define BLOCKS         2  /* of the longest segments on a multiprocessor: with fewer registers they are slower */
#define SEGMENTS_LEAST 48 /* of a strip: two more are summed for it */
#define SEGMENTS_AHEAD 2  /* behind the one that is loaded, which the L2 cache is asked for */
#define SEGMENTS_MOST  (UINT64_C(1) << 20)
#define PARTS_MAX      1024
#define SEGMENTS       3 /* whose sums are kept where outputs have their own half-widths */

/* How samples and outputs reach a thread: a leaf in words of QUAD samples; through shared memory, so that threads that
 * read and write are side by side; likewise, with outputs that have half-widths of their own. */
enum reach { WORDS, STAGED, OWN };
#define QUAD 4
static_assert(TRIANGLE_LEAF % QUAD == 0, "a leaf is words");

static __device__ __forceinline__ int after(int slot)
{
    return slot + 1 < SEGMENTS ? slot + 1 : 0;
}

/* `count` segments from number `from` on. */
struct range {
    int from;
    unsigned count;

    static __device__ __forceinline__ struct range of(int from, int end)
    {
        return {from, end > from ? (unsigned)(end - from) : 0};
    }
    __device__ __forceinline__ bool has(int n) const
    {
        return (unsigned)(n - from) < count;
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

/*
 * Samples and outputs, of a segment from sample `at` on. r is the place in it of a thread's first one, others are
 * `apart` from each other.
 */

/* Samples of which some may lie beyond the row. They are found one by one, as segments like it are few. */
template <enum scand_dtype Dtype>
static __device__ __forceinline__ void load_beyond(const struct strip<Dtype> &strip, const struct triangle &triangle,
                                                   int64_t at, int r, int apart,
                                                   typename line<Dtype>::sample x[TRIANGLE_LEAF])
{
#pragma unroll 1
    for (int k = 0; k < TRIANGLE_LEAF; k++, r += apart) {
        const auto sample = r < (int)triangle.half_width ? strip.line.beyond(triangle.boundary, at + r) : 0;
#pragma unroll
        for (int n = 0; n < TRIANGLE_LEAF; n++) /* with constants, so that x stays in registers */
            x[n] = n == k ? sample : x[n];
    }
}

template <enum scand_dtype Dtype>
static __device__ __forceinline__ void load_apart(const struct strip<Dtype> &strip, const struct triangle &triangle,
                                                  int64_t at, int r, int apart,
                                                  typename line<Dtype>::sample x[TRIANGLE_LEAF])
{
    const char *from = strip.line.from + (at + r) * strip.line.from_stride;
#pragma unroll
    for (int k = 0; k < TRIANGLE_LEAF; k++, r += apart, from += apart * strip.line.from_stride)
        x[k] = r < (int)triangle.half_width ? strip.line.get(from) : 0;
}

/* QUAD samples in memory. */
template <enum scand_dtype Dtype> struct alignas(Dtype == SCAND_DTYPE_F16 ? 8 : 16) quad {
    using word = std::conditional_t<Dtype == SCAND_DTYPE_F64, uint64_t,
                                    std::conditional_t<Dtype == SCAND_DTYPE_F32, uint32_t, uint16_t>>;
    word words[QUAD];
};

/* A leaf, from the r-th sample of a segment of so many on. */
template <enum scand_dtype Dtype>
static __device__ __forceinline__ void load_words(const char *leaf, int r, int size,
                                                  typename line<Dtype>::sample x[TRIANGLE_LEAF])
{
#pragma unroll
    for (int w = 0; w < TRIANGLE_LEAF / QUAD; w++) {
        quad<Dtype> words = {};
        if (r + w * QUAD < size)
            words = ((const quad<Dtype> *)leaf)[w];
#pragma unroll
        for (int q = 0; q < QUAD; q++)
            x[w * QUAD + q] = line<Dtype>::decode(words.words[q]);
    }
}

template <enum scand_dtype Dtype>
static __device__ __forceinline__ void store_words(char *leaf, int r, int size,
                                                   typename line<Dtype>::sample y[TRIANGLE_LEAF])
{
    bool has_nan = false;
#pragma unroll
    for (int q = 0; q < TRIANGLE_LEAF; q += 2)
        has_nan |= (y[q] != y[q]) | (y[q + 1] != y[q + 1]);
    if (has_nan) /* which are few: a look at all of them takes less than at each */
#pragma unroll
        for (int q = 0; q < TRIANGLE_LEAF; q++)
            y[q] = line<Dtype>::one_nan(y[q]);
#pragma unroll
    for (int w = 0; w < TRIANGLE_LEAF / QUAD; w++) {
        quad<Dtype> words;
#pragma unroll
        for (int q = 0; q < QUAD; q++)
            words.words[q] = line<Dtype>::encode_number(y[w * QUAD + q]);
        if (r + w * QUAD < size)
            ((quad<Dtype> *)leaf)[w] = words;
    }
}

/* Samples of the segment `number` of a strip. */
template <enum reach Reach, enum scand_dtype Dtype>
static __device__ __forceinline__ void load_samples(const struct strip<Dtype> &strip, const struct triangle &triangle,
                                                    int number, const char *leaf, int r, int apart,
                                                    typename line<Dtype>::sample x[TRIANGLE_LEAF])
{
    if (!strip.inside.has(number))
        load_beyond(strip, triangle, strip.at(number, triangle), r, apart, x);
    else if constexpr (Reach == WORDS)
        load_words<Dtype>(leaf, r, (int)triangle.half_width, x);
    else
        load_apart(strip, triangle, strip.at(number, triangle), r, apart, x);
}

/* Outputs of which some may not be the strip's, or not kept. */
template <enum scand_dtype Dtype>
static __device__ __forceinline__ void store_some(const struct strip<Dtype> &strip, const struct triangle &triangle,
                                                  int64_t at, int r, int apart,
                                                  const typename line<Dtype>::sample y[TRIANGLE_LEAF])
{
#pragma unroll
    for (int k = 0; k < TRIANGLE_LEAF; k++, r += apart) {
        const int64_t i = at + r;
        if (r < (int)triangle.half_width && i >= strip.begin && i < strip.end)
            strip.line.put(i, i >= strip.kept_from && i < strip.kept_to ? y[k] : 0);
    }
}

template <enum scand_dtype Dtype>
static __device__ __forceinline__ void store_apart(const struct strip<Dtype> &strip, const struct triangle &triangle,
                                                   int64_t at, int r, int apart,
                                                   const typename line<Dtype>::sample y[TRIANGLE_LEAF])
{
#pragma unroll
    for (int k = 0; k < TRIANGLE_LEAF; k++, r += apart)
        if (r < (int)triangle.half_width)
            strip.line.put(at + r, y[k]);
}

/* A sum of taps about sample i. */
template <enum scand_dtype Dtype, enum triangle_shape Shape>
static __device__ double taps_at(const struct line<Dtype> &line, const struct triangle &own, int64_t i)
{
    double sum = triangle_middle(&own, line.inside(i));
#pragma unroll 1
    for (int m = 1; m < (int)own.half_width; m++)
        sum = triangle_taps(&own, sum, m,
                            (double)line.beyond(own.boundary, i - m) + (double)line.beyond(own.boundary, i + m));
    return sum * own.scale;
}

/* The sums of three segments of a strip, in shared memory, as those of outputs with their own half-widths. */
struct ring {
    const double *sums;                /* of the strip's segment in slot 0 */
    int pitch;                         /* from slot to slot */
    int slot;                          /* of the segment whose outputs are made */
    struct triangle_sums here, before; /* totals of that segment and of the one behind it */

    __device__ __forceinline__ double sum(int of, int r) const
    {
        return sums[of * pitch + r];
    }
};

/* Output r of a segment. */
template <enum triangle_shape Shape>
static __device__ __forceinline__ double output_of_segments(const struct ring &ring, const struct triangle &own,
                                                            int size, int r)
{
    const int width = (int)own.half_width, ahead = r + width, before = after(after(ring.slot));
    const int behind = Shape == TRIANGLE_BOX ? r - width + 1 : r - width;
    const struct triangle_line along =
        triangle_line(&own, (uint32_t)size, ahead >= size, r < width, ring.here, ring.before);
    return triangle_output(&own, ahead < size ? ring.sum(ring.slot, ahead) : ring.sum(after(ring.slot), ahead - size),
                           r >= width    ? ring.sum(ring.slot, behind)
                           : behind == 0 ? ring.before.single
                                         : ring.sum(before, behind + size),
                           ring.sum(ring.slot, r), triangle_line_at(along, r / TRIANGLE_LEAF), along.slope,
                           r % TRIANGLE_LEAF);
}

/* The half-widths of a thread's outputs, on their way all at once; those that are out of range are 0. */
template <enum scand_dtype Dtype>
static __device__ __forceinline__ void load_half_widths(const struct strip<Dtype> &strip,
                                                        const struct step_operand &half_widths, int size, int64_t at,
                                                        int r, int apart, uint32_t widths[TRIANGLE_LEAF])
{
#pragma unroll
    for (int k = 0; k < TRIANGLE_LEAF; k++, r += apart) {
        const int64_t i = at + r;
        widths[k] = 0;
        if (r < size && i >= strip.begin && i < strip.end) {
            const uint64_t width = step_decode_integer(half_widths.dtype, strip.half_widths + i * half_widths.stride);
            widths[k] = width <= (uint64_t)size ? (uint32_t)width : 0;
        }
    }
}

/* Writes outputs that have half-widths of their own, which lie WARP apart in shared memory, as store_some does. */
template <enum scand_dtype Dtype, enum triangle_shape Shape>
static __device__ __forceinline__ void write_own_outputs(const struct strip<Dtype> &strip,
                                                         const struct triangle &triangle, int64_t at, int r, int apart,
                                                         const uint32_t *widths, const struct ring &ring)
{
    const int size = (int)triangle.half_width;
#pragma unroll 1
    for (int k = 0; k < TRIANGLE_LEAF; k++, r += apart) {
        const int64_t i = at + r;
        if (r >= size || i < strip.begin || i >= strip.end)
            continue;
        const struct triangle own = triangle_with(&triangle, widths[k * WARP]);
        double y = 0;
        if (triangle_keeps(&own, i, strip.line.length))
            y = triangle_has_taps(&triangle, &own) ? taps_at<Dtype, Shape>(strip.line, own, i)
                                                   : output_of_segments<Shape>(ring, own, size, r);
        strip.line.put(i, y);
    }
}

/* What a thread keeps of the last two segments for the outputs at its places: of a triangle the sums behind less twice
 * those here, and those here; of a box the sums that follow on the places, of both. */
struct kept {
    double behind[TRIANGLE_LEAF], here[TRIANGLE_LEAF];
};

/* The line of the segment whose outputs are made, as the leaf needs it. */
struct line_of_leaf {
    double at, slope;
};

/* Makes the outputs of the segment before this one, which is summed from the carry on. Returns what the leaf leaves. */
template <enum scand_dtype Dtype, enum triangle_shape Shape>
static __device__ __forceinline__ struct triangle_sums
outputs_of_leaf(double scale, const typename line<Dtype>::sample leaf[TRIANGLE_LEAF], const struct carry &carry,
                bool is_last, struct line_of_leaf along, struct kept *kept,
                typename line<Dtype>::sample y[TRIANGLE_LEAF])
{
    using sample = typename line<Dtype>::sample;
    struct triangle_sums sums = carry.into;
#pragma unroll
    for (int q = 0; q < TRIANGLE_LEAF; q++) {
        if constexpr (Shape == TRIANGLE_BOX) {
            y[q] = (sample)(((sums.single - kept->behind[q]) + along.at) * scale);
            sums = add<Shape>(sums, (double)leaf[q]);
            kept->behind[q] = kept->here[q];
            kept->here[q] = q < TRIANGLE_LEAF - 1 || is_last ? sums.single : carry.next;
        } else {
            const double e = sums.twice;
            y[q] = (sample)(((kept->behind[q] + e) + fma(along.slope, (double)q, along.at)) * scale);
            if constexpr (line<Dtype>::narrow) /* as below, since twice a sum of theirs is exact */
                kept->behind[q] = fma(-2.0, e, kept->here[q]);
            else
                kept->behind[q] = kept->here[q] - 2 * e;
            kept->here[q] = e;
            sums = add<Shape>(sums, (double)leaf[q]);
        }
    }
    return sums;
}

/* Puts the sums of a leaf into shared memory. Returns what the leaf leaves. */
template <enum triangle_shape Shape, class T>
static __device__ __forceinline__ struct triangle_sums sums_of_leaf(const T leaf[TRIANGLE_LEAF],
                                                                    struct triangle_sums sums, double *to)
{
    double of_leaf[TRIANGLE_LEAF];
#pragma unroll
    for (int q = 0; q < TRIANGLE_LEAF; q++) {
        of_leaf[q] = Shape == TRIANGLE_BOX ? sums.single : sums.twice;
        sums = add<Shape>(sums, (double)leaf[q]);
    }
    write_aligned<TRIANGLE_LEAF>(to, of_leaf);
    return sums;
}

/* Strips of a tile: its rows, or as many parts of one row as make all strips short. */
static __device__ __forceinline__ uint64_t strips_of(const struct step_rows &rows, const struct step_tile &tile,
                                                     const struct triangle &triangle, unsigned side_by_side)
{
    if (tile.row_count > 1)
        return tile.row_count;
    const uint64_t samples = step_end(&rows, &tile, tile.first_row) - tile.begin;
    return side_by_side * (samples / (triangle.half_width * (side_by_side * SEGMENTS_MOST)) + 1);
}

template <enum scand_dtype Dtype, enum triangle_shape Shape, enum reach Reach>
static __global__ void __launch_bounds__(THREADS_MAX, STEP_BLOCKS(THREADS_MAX, BLOCKS))
    triangle_strips(const __grid_constant__ struct step_rows rows, const __grid_constant__ struct triangle any,
                    const __grid_constant__ struct step_tiles tiles, uint64_t begin)
{
    using sample = typename line<Dtype>::sample;
    constexpr bool narrow = line<Dtype>::narrow;
    extern __shared__ __align__(16) unsigned char step_shared[];
    __shared__ struct exchange exchange;
    __shared__ struct strip<Dtype> strips[WARP];
    struct triangle triangle = any;
    triangle.shape = Shape; /* which the compiler knows then */
    const struct layout layout = layout::of(triangle);
    const struct place place = place::of(layout);
    const struct step_tile tile = step_block_tile(tiles, begin);
    const int warp = (int)threadIdx.x / WARP, lane = (int)threadIdx.x % WARP, size = (int)triangle.half_width;
    const int apart = Reach == WORDS ? 1 : layout.lanes;
    const int first = Reach == WORDS ? place.leaf * TRIANGLE_LEAF : warp * TRIANGLE_GROUP + place.lane;
    const int staged = place.strip * layout.lanes * TRIANGLE_LEAF;
    struct stage<sample> &in = ((struct stage<sample> *)step_shared)[warp];
    struct stage<sample> &out = ((struct stage<sample> *)step_shared)[layout.warps + warp];
    double *const sums = (double *)((struct stage<sample> *)step_shared + 2 * layout.warps);
    const int pitch = layout.warps * TRIANGLE_GROUP;
    const unsigned side_by_side = gridDim.y * (unsigned)layout.strips;
    const uint64_t count = strips_of(rows, tile, triangle, side_by_side);
    const struct strip<Dtype> &strip = strips[place.has_strip ? place.strip : 0];
    struct kept kept = {};
    sample x[TRIANGLE_LEAF] = {};
    for (uint64_t turn = blockIdx.y * (unsigned)layout.strips; turn < count; turn += side_by_side) {
        __syncthreads();
        if (place.has_strip && place.leaf == 0) {
            if (turn + place.strip < count)
                strips[place.strip] = strip_of<Dtype>(rows, triangle, tile, turn + place.strip, count);
            else
                strips[place.strip].segments = 0;
        }
        __syncthreads();
        const int own_segments = place.has_strip ? strip.segments : 0;
        int segments = own_segments;
        for (int distance = WARP / 2; distance > 0; distance /= 2)
            segments = max(segments, __shfl_xor_sync(~0u, segments, distance));
        const char *from = strip.line.from + (strip.first + first) * strip.line.from_stride;
        char *to = strip.line.to + (strip.first - size + first) * strip.line.to_stride;
        if (own_segments > 0)
            load_samples<Reach>(strip, triangle, 0, from, first, apart, x);
        struct triangle_sums before = {0, 0};
        int slot = 0;
        for (int segment = 0; segment < segments; segment++, slot = after(slot)) {
            sample leaf[TRIANGLE_LEAF], y[TRIANGLE_LEAF];
            if constexpr (Reach == WORDS) {
#pragma unroll
                for (int q = 0; q < TRIANGLE_LEAF; q++)
                    leaf[q] = x[q];
            } else {
                if (place.has_strip)
#pragma unroll
                    for (int k = 0; k < TRIANGLE_LEAF; k++)
                        in.samples[staged + place.lane + k * apart] = x[k];
                __syncwarp();
                in.get_leaf(lane, leaf);
            }
            from += size * strip.line.from_stride;
            if (segment + 1 < own_segments)
                load_samples<Reach>(strip, triangle, segment + 1, from, first, apart, x);
            if (Reach == WORDS && segment + 1 + SEGMENTS_AHEAD < own_segments &&
                strip.inside.has(segment + 1 + SEGMENTS_AHEAD))
                prefetch(from + (int64_t)SEGMENTS_AHEAD * size * strip.line.from_stride);
            uint32_t widths[TRIANGLE_LEAF];
            if (Reach == OWN && segment >= 2 && segment < own_segments)
                load_half_widths(strip, rows.further[TRIANGLE_HALF_WIDTHS], size, strip.at(segment - 1, triangle),
                                 first, apart, widths);
            const struct carry carry = carry_of<narrow, Shape>(leaf, layout, place, exchange.groups[segment % 2]);
            const bool is_last = place.leaf == layout.leaves - 1;
            const struct triangle_sums here = exchange.totals[(segment + 1) % 2][place.strip];
            struct triangle_sums total;
            if constexpr (Reach != WORDS)
                in.get_leaf_again(lane, leaf);
            if constexpr (Reach == OWN) {
                total = sums_of_leaf<Shape>(leaf, carry.into, sums + slot * pitch + (int)threadIdx.x * TRIANGLE_LEAF);
            } else {
                const struct triangle_line along =
                    triangle_line(&triangle, triangle.half_width, true, true, here, before);
                total = outputs_of_leaf<Dtype, Shape>(triangle.scale, leaf, carry, is_last,
                                                      {triangle_line_at(along, place.leaf), along.slope}, &kept, y);
            }
            if (is_last)
                exchange.totals[segment % 2][place.strip] = total;
            if constexpr (Reach == STAGED)
                out.put_leaf(lane, y);
            if (Reach == OWN && layout.warps > 1)
                __syncthreads();
            else
                __syncwarp();
            const bool writes = segment >= 2 && segment < own_segments;
            if constexpr (Reach == OWN) {
                if (writes) {
                    uint32_t *const own = (uint32_t *)out.samples + lane; /* indexed, which registers cannot be */
#pragma unroll
                    for (int k = 0; k < TRIANGLE_LEAF; k++)
                        own[k * WARP] = widths[k];
                    write_own_outputs<Dtype, Shape>(strip, triangle, strip.at(segment - 1, triangle), first, apart, own,
                                                    {sums + staged, pitch, after(after(slot)), here, before});
                }
            } else if (writes) {
                if constexpr (Reach == STAGED)
#pragma unroll
                    for (int k = 0; k < TRIANGLE_LEAF; k++)
                        y[k] = out.samples[staged + place.lane + k * apart];
                if (!strip.whole.has(segment))
                    store_some(strip, triangle, strip.at(segment - 1, triangle), first, apart, y);
                else if constexpr (Reach == WORDS)
                    store_words<Dtype>(to, first, size, y);
                else
                    store_apart(strip, triangle, strip.at(segment - 1, triangle), first, apart, y);
            }
            to += size * strip.line.to_stride;
            before = here;
        }
    }
}

/*
 * Sums of taps.
 */

#define WARPS 4
#define UNIT  (WARP * TRIANGLE_LEAF) /* outputs of a warp */
#define EDGE  8                      /* samples on either side */
#define PART  4                      /* outputs of a thread at a time */
static_assert(TRIANGLE_TAPS_MAX <= EDGE + 1, "samples for all taps");

/* A warp's samples and outputs. */
template <class T> struct taps_memory {
    alignas(16) T samples[UNIT + 2 * EDGE];
    struct stage<T> out;
};

/* Samples of the extended row from `at` on: those that a thread reads, WARP apart. */
template <enum scand_dtype Dtype>
static __device__ __forceinline__ void load_unit(const struct line<Dtype> &row, enum boundary boundary, int64_t at,
                                                 int lane, typename line<Dtype>::sample x[TRIANGLE_LEAF + 1])
{
    if (at >= 0 && at + UNIT + 2 * EDGE <= row.length) {
#pragma unroll
        for (int k = 0; k <= TRIANGLE_LEAF; k++)
            x[k] = k < TRIANGLE_LEAF || lane < 2 * EDGE ? row.inside(at + lane + k * WARP) : 0;
        return;
    }
#pragma unroll
    for (int k = 0; k <= TRIANGLE_LEAF; k++) {
        const int64_t i = at + lane + k * WARP;
        x[k] = i < row.length + EDGE && (k < TRIANGLE_LEAF || lane < 2 * EDGE) ? row.beyond(boundary, i) : 0;
    }
}

/* PART outputs, of the samples from EDGE before the first of them on. Samples are converted as they are needed. */
template <enum triangle_shape Shape, class T>
static __device__ __forceinline__ void taps_of_part(const struct triangle &triangle, const T *from, T y[PART])
{
    T samples[PART + 2 * EDGE];
    double x[PART + 2 * EDGE], sums[PART];
    read_aligned<PART + 2 * EDGE>(from, samples);
#pragma unroll
    for (int q = 0; q < PART; q++) {
        x[EDGE + q] = (double)samples[EDGE + q];
        sums[q] = Shape == TRIANGLE_BOX ? x[EDGE + q] : triangle.half_width * x[EDGE + q];
    }
#pragma unroll
    for (int m = 1; m < TRIANGLE_TAPS_MAX; m++) {
        if (m >= (int)triangle.half_width)
            break;
        const double weight = (double)((int)triangle.half_width - m);
        x[EDGE - m] = (double)samples[EDGE - m];
        x[EDGE + PART - 1 + m] = (double)samples[EDGE + PART - 1 + m];
#pragma unroll
        for (int q = 0; q < PART; q++) {
            const double pair = x[EDGE + q - m] + x[EDGE + q + m];
            sums[q] = Shape == TRIANGLE_BOX ? sums[q] + pair : fma(weight, pair, sums[q]);
        }
    }
#pragma unroll
    for (int q = 0; q < PART; q++)
        y[q] = (T)(sums[q] * triangle.scale);
}

/* Writes the outputs from `begin` on that a thread has in shared memory, WARP apart. */
template <enum scand_dtype Dtype>
static __device__ __forceinline__ void write_unit(const struct line<Dtype> &row, const struct triangle &triangle,
                                                  int64_t begin, int64_t end, const typename line<Dtype>::sample *y)
{
    uint64_t from, to;
    triangle_kept(&triangle, (uint64_t)row.length, &from, &to);
#pragma unroll
    for (int k = 0; k < TRIANGLE_LEAF; k++) {
        const int64_t i = begin + k * WARP;
        if (i < end)
            row.put(i, i >= (int64_t)from && i < (int64_t)to ? y[k * WARP] : 0);
    }
}

/* The warps of a thread block go along each row side by side. */
template <enum scand_dtype Dtype, enum triangle_shape Shape>
static __global__ void __launch_bounds__(WARPS *WARP, STEP_BLOCKS(WARPS *WARP, 6))
    triangle_taps_units(const __grid_constant__ struct step_rows rows, const __grid_constant__ struct triangle triangle,
                        const __grid_constant__ struct step_tiles tiles, uint64_t begin)
{
    using sample = typename line<Dtype>::sample;
    __shared__ struct taps_memory<sample> memories[WARPS];
    const struct step_tile tile = step_block_tile(tiles, begin);
    const int warp = (int)threadIdx.x / WARP, lane = (int)threadIdx.x % WARP;
    struct taps_memory<sample> &memory = memories[warp];
    for (uint64_t number = tile.first_row; number < tile.first_row + tile.row_count; number++) {
        const struct line<Dtype> row = line<Dtype>::of(rows, number);
        const int64_t end = (int64_t)step_end(&rows, &tile, number);
        int64_t at = (int64_t)tile.begin + warp * UNIT;
        sample x[TRIANGLE_LEAF + 1];
        if (at < end)
            load_unit(row, triangle.boundary, at - EDGE, lane, x);
        for (; at < end; at += WARPS * UNIT) {
#pragma unroll
            for (int k = 0; k <= TRIANGLE_LEAF; k++)
                if (k < TRIANGLE_LEAF || lane < 2 * EDGE)
                    memory.samples[lane + k * WARP] = x[k];
            __syncwarp();
            if (at + WARPS * UNIT < end)
                load_unit(row, triangle.boundary, at + WARPS * UNIT - EDGE, lane, x);
#pragma unroll 1
            for (int part = lane * TRIANGLE_LEAF; part < (lane + 1) * TRIANGLE_LEAF; part += PART) {
                sample y[PART];
                taps_of_part<Shape>(triangle, memory.samples + part, y);
                write_aligned<PART>(memory.out.samples + part, y);
            }
            __syncwarp();
            write_unit(row, triangle, at + lane, end, memory.out.samples + lane);
        }
    }
}

/*
 * Launches.
 */

/* Thread blocks that share a tile: so many that strips are long enough. Ragged rows count by their average. */
static unsigned parts_of_tile(const struct step_rows *rows, const struct step_tiles *tiles,
                              const struct triangle *triangle, const struct layout &layout)
{
    const uint64_t length = rows->offsets ? step_row_samples(rows) : tiles->length;
    const uint64_t samples = tiles->tiling.rows * (length < tiles->tiling.elements ? length : tiles->tiling.elements);
    const uint64_t parts = samples / ((uint64_t)triangle->half_width * SEGMENTS_LEAST * (unsigned)layout.strips);
    return parts < 1 ? 1 : parts < PARTS_MAX ? (unsigned)parts : PARTS_MAX;
}

/* A job on a stream. */
struct job {
    const struct step_rows *rows;
    const struct triangle *triangle;
    const struct step_tiles *tiles;
    uint64_t begin, end;
    cudaStream_t stream;
};

template <enum scand_dtype Dtype, enum triangle_shape Shape, enum reach Reach>
static cudaError_t launch_strips(const struct job &job)
{
    const struct layout layout = layout::of(*job.triangle);
    const size_t stages = Reach == WORDS ? 0 : 2 * sizeof(struct stage<typename line<Dtype>::sample>);
    const size_t sums = Reach == OWN ? SEGMENTS * TRIANGLE_GROUP * sizeof(double) : 0;
    const size_t bytes = (size_t)layout.warps * (stages + sums);
    const unsigned parts = parts_of_tile(job.rows, job.tiles, job.triangle, layout);
    const cudaError_t error = cudaFuncSetAttribute(triangle_strips<Dtype, Shape, Reach>,
                                                   cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
    if (error)
        return error;
    return step_launch_each(job.begin, job.end, [&](uint64_t first, unsigned grid) {
        triangle_strips<Dtype, Shape, Reach><<<dim3(grid, parts), (unsigned)layout.warps * WARP, bytes, job.stream>>>(
            *job.rows, *job.triangle, *job.tiles, first);
    });
}

template <enum scand_dtype Dtype, enum triangle_shape Shape> static cudaError_t launch_taps(const struct job &job)
{
    return step_launch_each(job.begin, job.end, [&](uint64_t first, unsigned grid) {
        triangle_taps_units<Dtype, Shape>
            <<<grid, WARPS * WARP, 0, job.stream>>>(*job.rows, *job.triangle, *job.tiles, first);
    });
}

static bool are_dense(const struct step_rows *rows, enum scand_dtype dtype, uint32_t bytes)
{
    return step_is_dense(rows, &rows->input, dtype, bytes) && step_is_dense(rows, &rows->output, dtype, bytes);
}

template <enum scand_dtype Dtype, enum triangle_shape Shape> static cudaError_t launch_shape(const struct job &job)
{
    constexpr bool is_dense = Dtype != SCAND_DTYPE_COUNT;
    if (job.rows->further[TRIANGLE_HALF_WIDTHS].origin)
        return launch_strips < Dtype == SCAND_DTYPE_F32 ? Dtype : SCAND_DTYPE_COUNT, Shape, OWN > (job);
    if (job.triangle->half_width <= TRIANGLE_TAPS_MAX)
        return launch_taps<Dtype, Shape>(job);
    if constexpr (is_dense)
        if (job.triangle->half_width % QUAD == 0 && !job.rows->offsets && are_dense(job.rows, Dtype, 16))
            return launch_strips<Dtype, Shape, WORDS>(job);
    return launch_strips<Dtype, Shape, STAGED>(job);
}

template <enum scand_dtype Dtype> static cudaError_t launch(const struct job &job)
{
    return job.triangle->shape == TRIANGLE_BOX ? launch_shape<Dtype, TRIANGLE_BOX>(job)
                                               : launch_shape<Dtype, TRIANGLE_TRIANGLE>(job);
}

extern "C" int triangle_launch(const struct step_rows *rows, const void *params, const struct step_tiles *tiles,
                               uint64_t begin, uint64_t end, void *stream)
{
    const struct job job = {rows, (const struct triangle *)params, tiles, begin, end, (cudaStream_t)stream};
    if (are_dense(rows, SCAND_DTYPE_F32, 4))
        return launch<SCAND_DTYPE_F32>(job);
    if (are_dense(rows, SCAND_DTYPE_F64, 8))
        return launch<SCAND_DTYPE_F64>(job);
    if (are_dense(rows, SCAND_DTYPE_F16, 2))
        return launch<SCAND_DTYPE_F16>(job);
    return launch<SCAND_DTYPE_COUNT>(job);
}
