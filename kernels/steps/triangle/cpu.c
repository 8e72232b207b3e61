#include "triangle.h"

#include "kernels/cpu/generic/simd.h"
#include "kernels/steps/lines.h"

step_run STEP_CPU(triangle);

#define LEAVES_MAX (TRIANGLE_SEGMENT_MAX / TRIANGLE_LEAF)
#define CHUNK      512 /* samples, where segments are not longer */
#define CHUNKS     3   /* chunks that are kept: an output needs the segments on either side */

#define GROUP_VECTORS (TRIANGLE_FAN / F64_LANES)

/* Totals of the leaves of a group, or their prefixes. */
struct totals {
    f64_vector single[GROUP_VECTORS], twice[GROUP_VECTORS];
};

/* The sums of some chunks, each of one segment or several. */
struct window {
    _Alignas(64) double sums[CHUNKS][TRIANGLE_SEGMENT_MAX + F64_LANES];        /* a vector may begin at the last one */
    _Alignas(64) double single[CHUNKS][LEAVES_MAX], twice[CHUNKS][LEAVES_MAX]; /* behind each leaf */
    _Alignas(64) double samples[TRIANGLE_SEGMENT_MAX];
    _Alignas(64) f64_vector turned[TRIANGLE_SEGMENT_MAX / F64_LANES]; /* sample q of leaves side by side */
    _Alignas(64) double outputs[TRIANGLE_SEGMENT_MAX];
    uint64_t half_widths[TRIANGLE_SEGMENT_MAX]; /* half-widths of the outputs, where they have their own */
};
_Static_assert(sizeof(struct window) <= STEP_SCRATCH_BYTES, "a tile's scratch memory holds a window");

/* A row, and the segments that a tile needs of it. */
struct line {
    const struct triangle *triangle;
    struct window *window;
    const char *from;
    char *to;
    int64_t from_stride, to_stride, length;
    enum scand_dtype from_dtype, to_dtype;
    int64_t segment, per_chunk;  /* samples of a segment, segments of a chunk */
    uint64_t kept_from, kept_to; /* outputs that are not skipped */
    const struct step_operand *half_widths;
    const char *own; /* the row's half-widths, or NULL */
};

/*
 * Samples, as f64.
 */

/* Samples at i and after it that lie side by side in the row, one way or the other, or are 0; not after `end`. */
static int64_t read_run(const struct line *line, int64_t i, int64_t end, double *to)
{
    const int64_t length = line->length, stride = line->from_stride;
    const int64_t source = triangle_source(line->triangle->boundary, i, length);
    int64_t until = i < 0 ? 0 : end;
    if (source >= 0) {
        const int64_t turned = i >= 0 ? i / length : -1 - (-1 - i) / length;
        until = (turned + 1) * length;
        until = until < end ? until : end;
        line_load_f64(line->from_dtype, line->from + source * stride, turned % 2 == 0 ? stride : -stride,
                      (uint64_t)(until - i), to);
    } else
        memset(to, 0, (size_t)((until < end ? until : end) - i) * sizeof *to);
    return until < end ? until : end;
}

/* Samples begin <= i < end of the extended row. In the mirror samples are the same after every two lengths: where there
 * are more, they are copied, since a run takes as long as some dozen samples and a row may have one. */
static void read_samples(const struct line *line, int64_t begin, int64_t end, double *to)
{
    const int64_t count = end - begin, period = 2 * line->length;
    const bool repeats = line->triangle->boundary == BOUNDARY_REFLECT && period < count;
    const int64_t read_end = repeats ? begin + period : end;
    for (int64_t i = begin; i < read_end;)
        i = read_run(line, i, read_end, to + (i - begin));
    for (int64_t have = read_end - begin, more; have < count; have += more) {
        more = have < count - have ? have : count - have;
        memcpy(to + have, to, (size_t)more * sizeof *to);
    }
}

/*
 * The sums of segments, a vector of leaves at a time. A box needs no double sums: nothing of `twice` is there.
 */

INLINE void square(f64_vector *rows)
{
    f32_vector words[F64_LANES];
    memcpy(words, rows, sizeof words);
    f64_square(words);
    memcpy(rows, words, sizeof words);
}

/* Totals of a vector of leaves, whose samples are kept side by side. */
INLINE void leaf_totals(enum triangle_shape shape, const char *samples, bool narrow, f64_vector *turned, double *single,
                        double *twice)
{
    f64_vector sum = {0}, sums = {0};
    for (int part = 0; part < TRIANGLE_LEAF; part += F64_LANES) {
        f64_vector rows[F64_LANES];
        for (int l = 0; l < F64_LANES; l++)
            rows[l] = narrow ? f64_load_f32(samples + (l * TRIANGLE_LEAF + part) * 4)
                             : f64_load(samples + (l * TRIANGLE_LEAF + part) * 8);
        square(rows);
        for (int q = 0; q < F64_LANES; q++) {
            turned[part + q] = rows[q];
            sum += rows[q];
            sums += sum;
        }
    }
    f64_store(single, sum);
    if (shape == TRIANGLE_TRIANGLE)
        f64_store(twice, sums);
}

/* The sums of those leaves, from the carries into them, which become what the leaves leave. */
INLINE void leaf_sums(enum triangle_shape shape, const f64_vector *turned, double *single, double *twice, double *to)
{
    f64_vector sum = f64_load(single), sums = shape == TRIANGLE_BOX ? sum : f64_load(twice);
    for (int part = 0; part < TRIANGLE_LEAF; part += F64_LANES) {
        f64_vector rows[F64_LANES];
        for (int q = 0; q < F64_LANES; q++) {
            rows[q] = shape == TRIANGLE_BOX ? sum : sums;
            sum += turned[part + q];
            sums += sum;
        }
        square(rows);
        for (int l = 0; l < F64_LANES; l++)
            f64_store(to + l * TRIANGLE_LEAF + part, rows[l]);
    }
    f64_store(single, sum);
    if (shape == TRIANGLE_TRIANGLE)
        f64_store(twice, sums);
}

/* True in the lanes whose leaves of vector v are at least `least` leaves behind the begin of their run of `fan` leaves.
 */
INLINE i64_vector leaves_behind(int v, int fan, int least)
{
    const i64_vector lanes = {F64_LIST(0, 1)};
    return ((lanes + v * F64_LANES) & (fan - 1)) >= least;
}

/* Samples of the group before each leaf of vector v. */
INLINE f64_vector samples_before(int v)
{
    const f64_vector lanes = {F64_LIST(0, 1)};
    return (lanes + (double)(v * F64_LANES)) * TRIANGLE_LEAF;
}

/* The values `distance` leaves before those of vector v; before the first leaf there are zeros. */
INLINE f64_vector before(const f64_vector *vectors, int v, int distance)
{
    const f64_vector zero = {0};
    if (distance >= F64_LANES)
        return v >= distance / F64_LANES ? vectors[v - distance / F64_LANES] : zero;
    return f64_shift(v > 0 ? vectors[v - 1] : zero, vectors[v], distance);
}

/* A step of the network, in runs of `fan` leaves each. */
INLINE void network_step(enum triangle_shape shape, struct totals *totals, int distance, int fan)
{
    const double count = TRIANGLE_LEAF * distance;
#pragma GCC unroll 16
    for (int v = GROUP_VECTORS; v-- > 0;) {
        const f64_vector single = before(totals->single, v, distance);
        if (shape == TRIANGLE_TRIANGLE) {
            const f64_vector joined = (before(totals->twice, v, distance) + single * count) + totals->twice[v];
            totals->twice[v] = F64_SELECT(leaves_behind(v, fan, distance), joined, totals->twice[v]);
        }
        totals->single[v] = F64_SELECT(leaves_behind(v, fan, distance), single + totals->single[v], totals->single[v]);
    }
}

/* Carries into the leaves of a group, in place of their totals. `group` is the carry into it, where there is one, and
 * then that into the next. */
INLINE void group_carries(enum triangle_shape shape, double *single, double *twice, int fan, bool carried,
                          struct triangle_sums *group)
{
    struct totals totals;
    memcpy(totals.single, single, sizeof totals.single);
    memcpy(totals.twice, shape == TRIANGLE_BOX ? single : twice, sizeof totals.twice);
#pragma GCC unroll 5
    for (int distance = 1; distance < fan; distance *= 2)
        network_step(shape, &totals, distance, fan);
    const f64_vector zero = {0}, group_single = zero + group->single, group_twice = zero + group->twice;
#pragma GCC unroll 16
    for (int v = 0; v < GROUP_VECTORS; v++) {
        f64_vector singles = before(totals.single, v, 1), twices = before(totals.twice, v, 1);
        if (carried) {
            twices = (group_twice + group_single * samples_before(v)) + twices;
            singles = group_single + singles;
        }
        f64_store(single + v * F64_LANES, F64_SELECT(leaves_behind(v, fan, 1), singles, group_single));
        if (shape == TRIANGLE_TRIANGLE)
            f64_store(twice + v * F64_LANES, F64_SELECT(leaves_behind(v, fan, 1), twices, group_twice));
    }
    const struct triangle_sums total = {totals.single[GROUP_VECTORS - 1][F64_LANES - 1],
                                        totals.twice[GROUP_VECTORS - 1][F64_LANES - 1]};
    *group = carried ? triangle_join(*group, total, TRIANGLE_GROUP) : total;
}

/* The carries into the groups from leaf `first` of a chunk on. */
INLINE void chunk_carries(enum triangle_shape shape, double *single, double *twice, int64_t first, int64_t end,
                          int64_t leaves)
{
    struct triangle_sums group = {0, 0};
    for (int64_t l = first - first % TRIANGLE_FAN; l < end; l += TRIANGLE_FAN) {
        if (l % leaves > 0) {
            group_carries(shape, single + l, twice + l, TRIANGLE_FAN, true, &group);
            continue;
        }
        group = (struct triangle_sums){0, 0};
        if (leaves >= TRIANGLE_FAN)
            group_carries(shape, single + l, twice + l, TRIANGLE_FAN, false, &group);
        else if (leaves == 16)
            group_carries(shape, single + l, twice + l, 16, false, &group);
        else
            group_carries(shape, single + l, twice + l, 8, false, &group);
    }
}
_Static_assert(TRIANGLE_SEGMENT_MIN == 8 * TRIANGLE_LEAF && TRIANGLE_FAN == 32, "what leaves a segment may have");

/* Functions of their own: each shape's carries are compiled once. */
static void carry_triangle(double *single, double *twice, int64_t first, int64_t end, int64_t leaves)
{
    chunk_carries(TRIANGLE_TRIANGLE, single, twice, first, end, leaves);
}

static void carry_box(double *single, double *twice, int64_t first, int64_t end, int64_t leaves)
{
    chunk_carries(TRIANGLE_BOX, single, twice, first, end, leaves);
}

/* The sums of leaves of a chunk, which begin and end whole segments, from samples of f64, or `narrow` ones of f32. */
INLINE void shape_sums(const struct line *line, enum triangle_shape shape, unsigned slot, int64_t first, int64_t end,
                       const char *samples, bool narrow)
{
    struct window *window = line->window;
    double *single = window->single[slot], *twice = window->twice[slot];
    for (int64_t l = first; l < end; l += F64_LANES)
        leaf_totals(shape, samples + (l - first) * TRIANGLE_LEAF * (narrow ? 4 : 8), narrow,
                    window->turned + l * TRIANGLE_LEAF / F64_LANES, single + l, twice + l);
    (shape == TRIANGLE_BOX ? carry_box : carry_triangle)(single, twice, first, end, line->segment / TRIANGLE_LEAF);
    for (int64_t l = first; l < end; l += F64_LANES)
        leaf_sums(shape, window->turned + l * TRIANGLE_LEAF / F64_LANES, single + l, twice + l,
                  window->sums[slot] + l * TRIANGLE_LEAF);
}

INLINE void chunk_sums(const struct line *line, unsigned slot, int64_t first, int64_t end, const char *samples,
                       bool narrow)
{
    if (line->triangle->shape == TRIANGLE_BOX)
        shape_sums(line, TRIANGLE_BOX, slot, first, end, samples, narrow);
    else
        shape_sums(line, TRIANGLE_TRIANGLE, slot, first, end, samples, narrow);
}

/* Returns the chunk of a segment. */
static int64_t chunk_of(const struct line *line, int64_t segment)
{
    return (segment + line->per_chunk) / line->per_chunk - 1; /* segments begin at -1 */
}

static unsigned slot_of(int64_t chunk)
{
    return (unsigned)((chunk + CHUNKS) % CHUNKS);
}

/* Samples that are as they are wanted are not copied. Segments first <= b < end, all of one chunk. */
static void compute_segments(const struct line *line, int64_t first, int64_t end)
{
    const int64_t chunk = chunk_of(line, first), leaves = line->segment / TRIANGLE_LEAF;
    const int64_t first_leaf = (first - chunk * line->per_chunk) * leaves,
                  end_leaf = first_leaf + (end - first) * leaves;
    const int64_t begin = first * line->segment;
    const bool inside = begin >= 0 && end * line->segment <= line->length;
    const char *from = line->from + begin * line->from_stride;
    if (inside && line->from_dtype == SCAND_DTYPE_F32 && line->from_stride == 4)
        return chunk_sums(line, slot_of(chunk), first_leaf, end_leaf, from, true);
    if (!(inside && line->from_dtype == SCAND_DTYPE_F64 && line->from_stride == 8)) {
        read_samples(line, begin, end * line->segment, line->window->samples);
        from = (const char *)line->window->samples;
    }
    chunk_sums(line, slot_of(chunk), first_leaf, end_leaf, from, false);
}

/*
 * Outputs.
 */

struct segment {
    const double *sums;
    struct triangle_sums total;
};

static struct segment segment_at(const struct line *line, int64_t number)
{
    const struct window *window = line->window;
    const int64_t chunk = chunk_of(line, number), place = number - chunk * line->per_chunk;
    const int64_t last = (place + 1) * (line->segment / TRIANGLE_LEAF) - 1;
    const unsigned slot = slot_of(chunk);
    return (struct segment){.sums = window->sums[slot] + place * line->segment,
                            .total = {window->single[slot][last], window->twice[slot][last]}};
}

/* The outputs from..to - 1 of a segment, of which one and the same line is to be added. */
struct run {
    int from, to;
    const double *ahead, *behind, *here; /* sums, as of r = 0 */
    struct triangle_line line;
};

/* Outputs of a vector, as triangle_output has them: kept as f64, or written as they are in a `narrow` row of f32. Lanes
 * of `place` are its values of r. */
INLINE void vector_output(const struct run *run, enum triangle_shape shape, bool lined, double scale, int r,
                          f64_vector place, char *to, bool narrow)
{
    const f64_vector ahead = f64_load(run->ahead + r), behind = f64_load(run->behind + r);
    f64_vector y = shape == TRIANGLE_BOX ? ahead - behind : ahead + behind;
    if (lined && shape == TRIANGLE_BOX)
        y += run->line.start;
    else if (lined)
        y += run->line.start + run->line.slope * place;
    if (shape == TRIANGLE_TRIANGLE)
        y -= 2 * f64_load(run->here + r);
    y *= scale;
    if (narrow)
        f64_store_f32(to, f64_one_nan(y));
    else
        f64_store(to, y);
}

/* The last vector may have outputs that there are already; one that is longer than the run is not all kept. */
INLINE void run_outputs(const struct run *run, enum triangle_shape shape, bool lined, double scale, char *to,
                        bool narrow)
{
    const f64_vector lanes = {F64_LIST(0, 1)};
    const int size = narrow ? 4 : 8, last = run->to - F64_LANES;
    f64_vector place = lanes + (double)run->from;
    int r = run->from;
    for (; r <= last; r += F64_LANES, place += F64_LANES)
        vector_output(run, shape, lined, scale, r, place, to + (ptrdiff_t)r * size, narrow);
    if (r >= run->to)
        return;
    if (last >= run->from)
        return vector_output(run, shape, lined, scale, last, lanes + (double)last, to + (ptrdiff_t)last * size, narrow);
    char outputs[sizeof(f64_vector)];
    vector_output(run, shape, lined, scale, r, place, outputs, narrow);
#pragma GCC unroll 1
    for (; r < run->to; r++)
        memcpy(to + (ptrdiff_t)r * size, outputs + (ptrdiff_t)(r - run->from) * size, (size_t)size);
}

/* Outputs of a segment whose neighbours are `before` and `after`, in three runs: the sum behind it is not its own; both
 * are or, where K is more than half of it, neither is; the sum ahead is not. */
INLINE void difference(const struct triangle *triangle, enum triangle_shape shape, int size,
                       const struct segment *before, const struct segment *here, const struct segment *after, char *to,
                       bool narrow)
{
    const int width = (int)triangle->half_width, reach = shape == TRIANGLE_BOX ? width - 1 : width;
    const bool neither = size - width < reach;
    const int low = neither ? size - width : reach, high = neither ? reach : size - width;
    const double *own_ahead = here->sums + width, *own_behind = here->sums - reach;
    const double *ahead = after->sums - size + width, *behind = before->sums + size - reach;
    const struct triangle_sums total = here->total, total_before = before->total;
    const struct run runs[3] = {
        {0, low, own_ahead, behind, here->sums, triangle_line(triangle, size, false, true, total, total_before)},
        {low, high, neither ? ahead : own_ahead, neither ? behind : own_behind, here->sums,
         triangle_line(triangle, size, neither, neither, total, total_before)},
        {high, size, ahead, own_behind, here->sums, triangle_line(triangle, size, true, false, total, total_before)}};
    run_outputs(&runs[0], shape, true, triangle->scale, to, narrow);
    if (neither)
        run_outputs(&runs[1], shape, true, triangle->scale, to, narrow);
    else
        run_outputs(&runs[1], shape, false, triangle->scale, to, narrow);
    run_outputs(&runs[2], shape, true, triangle->scale, to, narrow);
}

static void segment_outputs(const struct line *line, const struct segment segments[3], char *to, bool narrow)
{
    const struct segment *before = &segments[0], *here = &segments[1], *after = &segments[2];
    const int size = (int)line->segment;
    if (line->triangle->shape == TRIANGLE_BOX && narrow)
        difference(line->triangle, TRIANGLE_BOX, size, before, here, after, to, true);
    else if (line->triangle->shape == TRIANGLE_BOX)
        difference(line->triangle, TRIANGLE_BOX, size, before, here, after, to, false);
    else if (narrow)
        difference(line->triangle, TRIANGLE_TRIANGLE, size, before, here, after, to, true);
    else
        difference(line->triangle, TRIANGLE_TRIANGLE, size, before, here, after, to, false);
}

/* Outputs begin <= i < end, `from` being the first one in the window. */
static void write_outputs(const struct line *line, uint64_t from, uint64_t begin, uint64_t end)
{
    double *y = line->window->outputs;
    for (uint64_t i = begin; i < end && i < line->kept_from; i++)
        y[i - from] = 0;
    for (uint64_t i = begin > line->kept_to ? begin : line->kept_to; i < end; i++)
        y[i - from] = 0;
    line_store_f64(line->to_dtype, y + (begin - from), end - begin, line->to + (int64_t)begin * line->to_stride,
                   line->to_stride);
}

/* Output i, the r-th of a segment, with its own triangle. */
static inline double own_output(const struct line *line, const struct segment segments[3], int64_t i, int r,
                                const struct triangle *own)
{
    const struct segment *before = &segments[0], *here = &segments[1], *after = &segments[2];
    const int size = (int)line->segment, width = (int)own->half_width;
    const int ahead = r + width, behind = own->shape == TRIANGLE_BOX ? r - width + 1 : r - width;
    if (!triangle_keeps(own, i, line->length))
        return 0;
    if (width == 1)
        return step_get_f64(line->from_dtype, line->from + i * line->from_stride);
    return triangle_output(own->shape, ahead < size ? here->sums[ahead] : after->sums[ahead - size],
                           behind >= 0 ? here->sums[behind] : before->sums[behind + size], here->sums[r],
                           triangle_line(own, size, ahead >= size, behind < 0, here->total, before->total), r,
                           own->scale);
}

/* Outputs begin <= i < end of a segment, whose first one is `from`. Neighbours mostly have the same half-width. */
static void write_own_outputs(const struct line *line, const struct segment segments[3], uint64_t from, uint64_t begin,
                              uint64_t end)
{
    const struct step_operand *half_widths = line->half_widths;
    uint64_t *widths = line->window->half_widths;
    double *y = line->window->outputs;
    line_load_integers(half_widths->dtype, line->own + (int64_t)begin * half_widths->stride, half_widths->stride,
                       end - begin, widths);
    struct triangle own = triangle_with(line->triangle, widths[0]);
    for (uint64_t i = begin; i < end; i++) {
        if (widths[i - begin] != own.half_width)
            own = triangle_with(line->triangle, widths[i - begin]);
        y[i - begin] = own_output(line, segments, (int64_t)i, (int)(i - from), &own);
    }
    line_store_f64(line->to_dtype, y, end - begin, line->to + (int64_t)begin * line->to_stride, line->to_stride);
}

/* Writes the outputs in begin <= i < end of segments first <= b < last. */
static void write_segments(const struct line *line, int64_t first, int64_t last, uint64_t begin, uint64_t end)
{
    const bool narrow = line->to_dtype == SCAND_DTYPE_F32 && line->to_stride == 4;
    struct segment segments[3] = {segment_at(line, first - 1), segment_at(line, first)};
    for (int64_t b = first; b < last; b++) {
        const uint64_t from = (uint64_t)(b * line->segment), to = from + (uint64_t)line->segment;
        segments[2] = segment_at(line, b + 1);
        if (line->own)
            write_own_outputs(line, segments, from, begin > from ? begin : from, end < to ? end : to);
        else if (narrow && from >= begin && to <= end && from >= line->kept_from && to <= line->kept_to)
            segment_outputs(line, segments, line->to + from * 4, true);
        else {
            segment_outputs(line, segments, (char *)line->window->outputs, false);
            write_outputs(line, from, begin > from ? begin : from, end < to ? end : to);
        }
        segments[0] = segments[1];
        segments[1] = segments[2];
    }
}

static void copy_row(const struct line *line, uint64_t begin, uint64_t end)
{
    for (uint64_t i = begin, next; i < end; i = next) {
        next = end - i < TRIANGLE_SEGMENT_MAX ? end : i + TRIANGLE_SEGMENT_MAX;
        read_samples(line, (int64_t)i, (int64_t)next, line->window->outputs);
        write_outputs(line, i, i, next);
    }
}

/* Chunk by chunk: a segment is written as soon as the one behind it is there. */
static void filter_row(const struct line *line, uint64_t begin, uint64_t end)
{
    const int64_t first = (int64_t)begin / line->segment, last = ((int64_t)end - 1) / line->segment;
    int64_t written = first;
    for (int64_t b = first - 1, next; b <= last + 1; b = next) {
        next = (chunk_of(line, b) + 1) * line->per_chunk;
        next = next < last + 2 ? next : last + 2;
        compute_segments(line, b, next);
        if (written < next - 1)
            write_segments(line, written, next - 1, begin, end);
        written = next - 1 > written ? next - 1 : written;
    }
}

void STEP_CPU(triangle)(const struct step_rows *rows, const void *params, const struct step_tile *tile, void *scratch)
{
    const struct triangle *triangle = params;
    struct line line = {.triangle = triangle,
                        .window = scratch,
                        .from_stride = rows->input.stride,
                        .to_stride = rows->output.stride,
                        .from_dtype = rows->input.dtype,
                        .to_dtype = rows->output.dtype,
                        .segment = triangle_segment(triangle->half_width)};
    line.half_widths = &rows->further[TRIANGLE_HALF_WIDTHS];
    line.per_chunk = line.segment < CHUNK ? CHUNK / line.segment : 1;
    for (uint64_t row = tile->first_row; row < tile->first_row + tile->row_count; row++) {
        const uint64_t end = step_end(rows, tile, row);
        line.from = step_row(rows, &rows->input, row);
        line.to = step_row(rows, &rows->output, row);
        line.length = (int64_t)step_length(rows, &rows->input, row);
        line.own = line.half_widths->origin ? step_row(rows, line.half_widths, row) : NULL;
        triangle_kept(triangle, (uint64_t)line.length, &line.kept_from, &line.kept_to);
        if (tile->begin < end && triangle->half_width == 1 && !line.own)
            copy_row(&line, tile->begin, end);
        else if (tile->begin < end)
            filter_row(&line, tile->begin, end);
    }
}
