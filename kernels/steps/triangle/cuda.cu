/*
 * Triangles and boxes on a GPU. Dense rows of a known dtype go by dense_rows.cuh; others, and those with half-widths of
 * their own, by triangle_strips; short half-widths by sums of taps.
 */
#include "dense_rows.cuh"

#define PARTS_MAX 1024
#define SEGMENTS  3 /* whose sums are kept where outputs have their own half-widths */

static __device__ __forceinline__ int after(int slot)
{
    return slot + 1 < SEGMENTS ? slot + 1 : 0;
}

/*
 * Samples and outputs, of a segment from sample `at` on. r is the place in it of a thread's first one, others are
 * `apart` from each other.
 */

/* Samples of which some may lie beyond the row. All are on their way at once. */
template <enum scand_dtype Dtype>
static __device__ __forceinline__ void load_beyond(const struct strip<Dtype> &strip, const struct triangle &triangle,
                                                   int64_t at, int r, int apart,
                                                   typename line<Dtype>::sample x[TRIANGLE_LEAF])
{
    const int64_t length = strip.line.length;
    const bool reflects = triangle.boundary == BOUNDARY_REFLECT;
#pragma unroll
    for (int k = 0; k < TRIANGLE_LEAF; k++, r += apart) {
        const int64_t i = at + r;
        const bool has = r < (int)triangle.half_width && (reflects || (i >= 0 && i < length));
        x[k] = has ? strip.line.inside(turned(i, length)) : 0;
    }
}

template <enum scand_dtype Dtype>
static __device__ __forceinline__ void load_apart(const struct strip<Dtype> &strip, const struct triangle &triangle,
                                                  int64_t at, int r, int apart,
                                                  typename line<Dtype>::sample x[TRIANGLE_LEAF])
{
    const char *from = strip.line.from + (at + r) * strip.line.from_stride();
#pragma unroll
    for (int k = 0; k < TRIANGLE_LEAF; k++, r += apart, from += apart * strip.line.from_stride())
        x[k] = r < (int)triangle.half_width ? strip.line.get(from) : 0;
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

    __device__ __forceinline__ double sum(int of, int r) const { return sums[of * pitch + r]; }
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

/* Half-widths of 4 bytes, as they mostly are, on their way all at once. */
template <enum scand_dtype Dtype>
static __device__ __forceinline__ void load_width_words(const struct strip<Dtype> &strip,
                                                        const struct step_operand &half_widths, int size, int64_t at,
                                                        int r, int apart, uint32_t widths[TRIANGLE_LEAF])
{
    uint32_t words[TRIANGLE_LEAF];
    const char *from = strip.half_widths + (at + r) * half_widths.stride;
#pragma unroll
    for (int k = 0; k < TRIANGLE_LEAF; k++) {
        const int64_t i = at + r + k * apart;
        words[k] = r + k * apart < size && i >= strip.begin && i < strip.end
                       ? *(const uint32_t *)(from + k * apart * half_widths.stride)
                       : 0;
    }
#pragma unroll
    for (int k = 0; k < TRIANGLE_LEAF; k++) /* a negative one is out of range as any other */
        widths[k] = words[k] <= (uint32_t)size ? words[k] : 0;
}

/* Those that are out of range are 0. */
template <enum scand_dtype Dtype>
static __device__ __forceinline__ void load_half_widths(const struct strip<Dtype> &strip,
                                                        const struct step_operand &half_widths, int size, int64_t at,
                                                        int r, int apart, uint32_t widths[TRIANGLE_LEAF])
{
    const unsigned bytes = codec_bytes(half_widths.dtype);
    const bool is_aligned = (((uintptr_t)strip.half_widths | (uintptr_t)half_widths.stride) & (bytes - 1)) == 0;
    if (is_aligned && bytes == 4)
        load_width_words(strip, half_widths, size, at, r, apart, widths);
    else {
#pragma unroll 1
        for (int k = 0; k < TRIANGLE_LEAF; k++, r += apart) {
            const int64_t i = at + r;
            uint32_t w = 0;
            if (r < size && i >= strip.begin && i < strip.end) {
                const uint64_t width =
                    step_decode_integer(half_widths.dtype, strip.half_widths + i * half_widths.stride);
                w = width <= (uint64_t)size ? (uint32_t)width : 0;
            }
#pragma unroll
            for (int n = 0; n < TRIANGLE_LEAF; n++)
                widths[n] = n == k ? w : widths[n];
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

/* What a thread keeps of the last two segments for the outputs at its places: see outputs_of_leaf. */
struct kept {
    double behind[TRIANGLE_LEAF], here[TRIANGLE_LEAF];

    __device__ __forceinline__ void swap()
    {
#pragma unroll
        for (int q = 0; q < TRIANGLE_LEAF; q++) {
            const double was = behind[q];
            behind[q] = here[q];
            here[q] = was;
        }
    }
};

/* Whose half-widths outputs have. */
enum widths { COMMON, OWN };

/* What a thread does along its strips of any rows, or of rows whose outputs have half-widths of their own. Samples and
 * outputs pass through shared memory, so that threads that read and write are side by side. */
template <enum scand_dtype Dtype, enum triangle_shape Shape, enum widths Widths> struct any_rows {
    using sample = typename line<Dtype>::sample;
    static constexpr bool narrow = line<Dtype>::narrow;

    const struct step_rows &rows;
    const struct triangle &triangle;
    const struct layout &layout;
    const struct place &place;
    const struct strip<Dtype> &strip;
    struct exchange &exchange;
    int warp, lane;

    struct stage<sample> *in, *out; /* of the warp */
    double *sums;                   /* of segments in shared memory, where outputs have their own half-widths */
    int segments;                   /* of the strip */
    int slot;                       /* of the next segment in `sums` */
    struct kept kept;
    struct triangle_sums before; /* totals of the segment two before that one */
    sample x[TRIANGLE_LEAF];     /* its samples, on their way */

    /* The first place in a segment that the thread reads and writes. */
    __device__ __forceinline__ int first() const { return warp * TRIANGLE_GROUP + place.lane; }
    /* Where the strip's samples begin in a stage. */
    __device__ __forceinline__ int staged() const { return place.strip * layout.lanes * TRIANGLE_LEAF; }

    __device__ __forceinline__ void load(int number)
    {
        if (number >= segments)
            return;
        const int64_t at = strip.at(number, triangle);
        if (strip.inside.has(number))
            load_apart(strip, triangle, at, first(), layout.lanes, x);
        else
            load_beyond(strip, triangle, at, first(), layout.lanes, x);
    }
    __device__ __forceinline__ void take(sample leaf[TRIANGLE_LEAF])
    {
        if (place.has_strip)
#pragma unroll
            for (int k = 0; k < TRIANGLE_LEAF; k++)
                in->samples[staged() + place.lane + k * layout.lanes] = x[k];
        __syncwarp();
        in->get_leaf(lane, leaf);
    }
    /* Writes outputs, of the segment before number `segment`. */
    __device__ __forceinline__ void store(int segment)
    {
        const int64_t at = strip.at(segment - 1, triangle);
        sample y[TRIANGLE_LEAF];
#pragma unroll
        for (int k = 0; k < TRIANGLE_LEAF; k++)
            y[k] = out->samples[staged() + place.lane + k * layout.lanes];
        if (strip.whole.has(segment))
            store_apart(strip, triangle, at, first(), layout.lanes, y);
        else
            store_some(strip, triangle, at, first(), layout.lanes, y);
    }
    __device__ __forceinline__ void store_own(int segment, struct triangle_sums here,
                                              const uint32_t widths[TRIANGLE_LEAF])
    {
        uint32_t *const own = (uint32_t *)out->samples + lane; /* indexed, which registers cannot be */
        const struct ring ring = {sums + staged(), layout.warps * TRIANGLE_GROUP, after(after(slot)), here, before};
#pragma unroll
        for (int k = 0; k < TRIANGLE_LEAF; k++)
            own[k * WARP] = widths[k];
        write_own_outputs<Dtype, Shape>(strip, triangle, strip.at(segment - 1, triangle), first(), layout.lanes, own,
                                        ring);
    }

    /* Sums a segment, and makes the outputs of the one before. */
    __device__ __forceinline__ void pass(int segment)
    {
        const bool writes = segment >= 2 && segment < segments, is_last = place.leaf == layout.leaves - 1;
        sample leaf[TRIANGLE_LEAF], y[TRIANGLE_LEAF];
        uint32_t widths[TRIANGLE_LEAF];
        struct triangle_sums total;
        take(leaf);
        load(segment + 1);
        if (Widths == OWN && writes)
            load_half_widths(strip, rows.further[TRIANGLE_HALF_WIDTHS], (int)triangle.half_width,
                             strip.at(segment - 1, triangle), first(), layout.lanes, widths);
        const struct carry carry = carry_of<narrow, Shape>(leaf, layout, place, warp, exchange.groups[segment % 2]);
        const struct triangle_sums last = exchange.totals[(segment + 1) % 2][place.strip];
        in->get_leaf_again(lane, leaf);
        if constexpr (Widths == OWN) {
            double *const to = sums + slot * layout.warps * TRIANGLE_GROUP + (int)threadIdx.x * TRIANGLE_LEAF;
            total = sums_of_leaf<Shape>(leaf, carry.into, to);
        } else {
            total = outputs_of_leaf<narrow, Shape>(triangle, leaf, carry, place.leaf, is_last, last, before,
                                                   kept.behind, kept.here, y);
            kept.swap();
            out->put_leaf(lane, y);
        }
        if (is_last)
            exchange.totals[segment % 2][place.strip] = total;
        if (Widths == OWN && layout.warps > 1)
            __syncthreads();
        else
            __syncwarp();
        if (writes) {
            if constexpr (Widths == OWN)
                store_own(segment, last, widths);
            else
                store(segment);
        }
        before = last;
        slot = after(slot);
    }
};

template <enum scand_dtype Dtype, enum triangle_shape Shape, enum widths Widths>
static __global__ void __launch_bounds__(THREADS_MAX, STEP_BLOCKS(THREADS_MAX, BLOCKS))
    triangle_strips(const __grid_constant__ struct step_rows rows, const __grid_constant__ struct triangle any,
                    const __grid_constant__ struct step_tiles tiles, uint64_t begin)
{
    extern __shared__ __align__(16) unsigned char step_shared[];
    __shared__ struct exchange exchange;
    __shared__ struct strip<Dtype> strips[WARP];
    struct triangle triangle = any;
    triangle.shape = Shape; /* which the compiler knows then */
    const struct layout layout = layout::of(triangle);
    const struct place place = place::of(layout);
    const struct step_tile tile = step_block_tile(tiles, begin);
    const unsigned side_by_side = gridDim.y * (unsigned)layout.strips;
    const uint64_t count = strips_of(rows, tile, triangle, side_by_side);
    const int warp = warp_number(), lane = (int)threadIdx.x % WARP;
    const struct strip<Dtype> &strip = strips[place.has_strip ? place.strip : 0];
    auto *const stages = (struct stage<typename line<Dtype>::sample> *)step_shared;
    struct any_rows<Dtype, Shape, Widths> thread = {
        rows, triangle, layout, place, strip, exchange, warp, lane
    };
    thread.in = stages + warp;
    thread.out = stages + layout.warps + warp;
    thread.sums = (double *)(stages + 2 * layout.warps);
    for (uint64_t turn = blockIdx.y * (unsigned)layout.strips; turn < count; turn += side_by_side) {
        begin_strips(rows, triangle, tile, place, turn, count, strips);
        thread.segments = place.has_strip ? strip.segments : 0;
        thread.before = {0, 0};
        thread.slot = 0;
        thread.load(0);
        const int segments = most_of_warp(thread.segments);
        for (int segment = 0; segment < segments; segment++)
            thread.pass(segment);
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

/* Launches a kernel of strips, whose warps have so many bytes of shared memory each. */
template <class Kernel> static cudaError_t launch_strips_by(const struct job &job, Kernel *kernel, size_t bytes_of_warp)
{
    const struct layout layout = layout::of(*job.triangle);
    const size_t bytes = (size_t)layout.warps * bytes_of_warp;
    const unsigned parts = parts_of_tile(job.rows, job.tiles, job.triangle, layout);
    const cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
    if (error)
        return error;
    return step_launch_each(job.begin, job.end, [&](uint64_t first, unsigned grid) {
        kernel<<<dim3(grid, parts), (unsigned)layout.warps * WARP, bytes, job.stream>>>(*job.rows, *job.triangle,
                                                                                        *job.tiles, first);
    });
}

template <enum scand_dtype Dtype, enum triangle_shape Shape, enum widths Widths>
static cudaError_t launch_strips(const struct job &job)
{
    const size_t stages = 2 * sizeof(struct stage<typename line<Dtype>::sample>);
    const size_t sums = Widths == OWN ? SEGMENTS * TRIANGLE_GROUP * sizeof(double) : 0;
    return launch_strips_by(job, triangle_strips<Dtype, Shape, Widths>, stages + sums);
}

template <enum scand_dtype Dtype, enum triangle_shape Shape, enum reach Reach>
static cudaError_t launch_dense(const struct job &job)
{
    return launch_strips_by(job, triangle_dense<Dtype, Shape, Reach>, sizeof(struct leaves<word<Dtype>, Reach>));
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
    if (job.rows->further[TRIANGLE_HALF_WIDTHS].origin)
        return launch_strips < Dtype == SCAND_DTYPE_F32 ? Dtype : SCAND_DTYPE_COUNT, Shape, OWN > (job);
    if (job.triangle->half_width <= TRIANGLE_TAPS_MAX)
        return launch_taps<Dtype, Shape>(job);
    if constexpr (Dtype != SCAND_DTYPE_COUNT)
        if (job.triangle->half_width % word<Dtype>::SAMPLES == 0 && !job.rows->offsets &&
            are_dense(job.rows, Dtype, sizeof(word<Dtype>)))
            return launch_dense<Dtype, Shape, WORDS>(job);
    if constexpr (Dtype == SCAND_DTYPE_F32 || Dtype == SCAND_DTYPE_F64)
        return launch_dense<Dtype, Shape, SINGLE>(job);
    else
        return launch_strips<Dtype, Shape, COMMON>(job);
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
