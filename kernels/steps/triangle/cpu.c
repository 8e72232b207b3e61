#include "triangle.h"

#include "kernels/steps/lines.h"
#include "kernels/steps/triangle/leaves.h"

step_run STEP_CPU(triangle);

#define SEGMENTS (CHUNK / 2)                   /* of a chunk: no segment has fewer than two leaves */
#define SLOT     (TRIANGLE_HALF_WIDTH_MAX + 8) /* sums of a segment that is longer than a group */
#define MARGIN   TRIANGLE_TAPS_MAX /* samples beside outputs: what taps need, and one more for aligned vectors */
#define BLOCK    512               /* outputs that are sums of taps, at a time */

/*
 * A chunk is either some segments of up to a group or one that is longer. The window has the sums of it and of the two
 * segments before it, of which outputs are made.
 */
struct window {
    _Alignas(64) double sums[3 * SLOT];
    struct leaves leaves;
    _Alignas(64) double at[LEAVES]; /* lines of outputs, at each leaf */
    struct triangle_line lines[SEGMENTS];
    struct triangle_sums totals[2 + SEGMENTS];
    _Alignas(64) double samples[TRIANGLE_HALF_WIDTH_MAX + 2 * MARGIN + 2 * F64_LANES];
    _Alignas(64) double outputs[TRIANGLE_HALF_WIDTH_MAX + 2 * F64_LANES];
    uint64_t half_widths[TRIANGLE_HALF_WIDTH_MAX]; /* half-widths of the outputs, where they have their own */
};
_Static_assert(sizeof(struct window) <= STEP_SCRATCH_BYTES, "a tile's scratch memory holds a window");
_Static_assert((CHUNK + 2 * TRIANGLE_FAN + 8) * TRIANGLE_LEAF <= 3 * SLOT, "and sums of a chunk of short segments");

/* A row, and how it is cut. */
struct line {
    const struct triangle *triangle;
    struct window *window;
    const char *from;
    char *to;
    int64_t from_stride, to_stride, length;
    enum scand_dtype from_dtype, to_dtype;
    int64_t segment, leaves, per_chunk; /* samples of a segment, leaves of a segment, segments of a chunk */
    int64_t first, written;             /* the first segment of a chunk, and of those that are then written */
    bool is_finite;                     /* no sum of the window is infinite or a NaN */
    int64_t direct_from, direct_to;     /* segments whose outputs are written as they are computed */
    uint64_t kept_from, kept_to;        /* outputs that are not skipped */
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

/* Where a segment's sums are: longer ones take three places by turns. */
INLINE double *sums_of(const struct line *line, int64_t segment)
{
    if (line->leaves > TRIANGLE_FAN)
        return line->window->sums + (segment + 3) % 3 * SLOT;
    return line->window->sums + (segment - line->first + 2) * line->leaves * TRIANGLE_LEAF;
}

INLINE void shape_sums(const struct line *line, enum triangle_shape shape, const char *samples, bool narrow)
{
    double *to = sums_of(line, line->first);
    leaf_totals(&line->window->leaves, shape, samples, narrow, to);
    leaf_carries(&line->window->leaves, shape, narrow);
    leaf_sums(&line->window->leaves, shape, to);
}

/* The totals of the chunk's segments, behind those of the two before it. */
static void chunk_totals(struct line *line, int64_t count)
{
    struct window *window = line->window;
    const struct leaves *leaves = &window->leaves;
    const double *twice = line->triangle->shape == TRIANGLE_BOX ? leaves->single : leaves->twice;
    double sum = 0 * window->totals[0].twice + 0 * window->totals[1].twice;
    for (int64_t j = 0, last = line->leaves - 1; j < count; j++, last += line->leaves) {
        window->totals[2 + j] = (struct triangle_sums){leaves->single[last], twice[last]};
        sum += 0 * twice[last];
    }
    line->is_finite = sum == 0;
}

/* The sums of `count` segments, which become the chunk. Samples that are as they are wanted are not copied. */
static void compute_segments(struct line *line, int64_t first, int64_t count)
{
    const int64_t begin = first * line->segment, last = count * line->leaves - 1;
    struct window *window = line->window;
    struct leaves *leaves = &window->leaves;
    const bool inside = begin >= 0 && begin + leaves->offset[last] + TRIANGLE_LEAF <= line->length;
    const bool is_box = line->triangle->shape == TRIANGLE_BOX;
    const bool narrow = inside && line->from_dtype == SCAND_DTYPE_F32 && line->from_stride == 4;
    const char *from = line->from + begin * line->from_stride;
    if (!narrow && !(inside && line->from_dtype == SCAND_DTYPE_F64 && line->from_stride == 8)) {
        read_samples(line, begin, begin + count * line->segment, window->samples);
        from = (const char *)window->samples;
    }
    for (int64_t l = 0, tail = last - last % F64_LANES; l < F64_LANES; l++)
        leaves->tail[l] = leaves->offset[tail + l < last ? tail + l : last];
    leaves->leaves = last + 1;
    line->first = first;
    if (is_box && narrow)
        shape_sums(line, TRIANGLE_BOX, from, true);
    else if (is_box)
        shape_sums(line, TRIANGLE_BOX, from, false);
    else if (narrow)
        shape_sums(line, TRIANGLE_TRIANGLE, from, true);
    else
        shape_sums(line, TRIANGLE_TRIANGLE, from, false);
    chunk_totals(line, count);
}

/* Keeps the last two segments of a chunk. */
static void keep_segments(const struct line *line, int64_t count)
{
    struct window *window = line->window;
    const int64_t filled = line->leaves * TRIANGLE_LEAF;
    memmove(window->totals, window->totals + count, 2 * sizeof *window->totals);
    if (line->leaves <= TRIANGLE_FAN)
        memmove(window->sums, window->sums + count * filled, (size_t)(2 * filled) * sizeof *window->sums);
}

/*
 * Outputs.
 */

/* a - 2 b. Exact: of sums of f32, whose doubles do not overflow. */
INLINE f64_vector minus_twice(f64_vector a, f64_vector b, bool exact)
{
    return exact && F64_LANES > 2 ? f64_fma(f64_all(-2), b, a) : a - 2 * b;
}

/* The lines that are to be added to the outputs of segments first <= b < last. */
static void plan_lines(const struct line *line, int64_t first, int64_t last)
{
    const f64_vector lanes = {F64_LIST(0, 1)};
    const struct triangle triangle = *line->triangle;
    const int64_t leaves = line->leaves;
    const struct triangle_sums *total = line->window->totals + (first - line->first + 2);
    struct triangle_line *along = line->window->lines;
    double *at = line->window->at;
    for (int64_t b = first; b < last; b++, total++, along++, at += leaves) {
        *along = triangle_line(&triangle, triangle.half_width, true, true, total[0], total[-1]);
        for (int64_t l = 0; l < leaves && triangle.shape == TRIANGLE_TRIANGLE; l += F64_LANES)
            f64_store(at + l,
                      f64_fma(f64_all(along->slope), (lanes + (double)l) * TRIANGLE_LEAF, f64_all(along->start)));
    }
}

/* A box needs the sum behind the last sample of the segment before. It may take the place of this one's first sum,
 * which is 0 and has been used already. */
INLINE void set_box_total(const struct line *line, int64_t b)
{
    if (line->triangle->shape == TRIANGLE_BOX && line->triangle->half_width > TRIANGLE_TAPS_MAX)
        sums_of(line, b - 1)[line->segment] = line->window->totals[b - line->first + 1].single;
}

/* Outputs of some segments: kept as f64, or written as they are in a `narrow` row of f32. A segment's last leaf is
 * written as if it were whole, and what is behind it later. */
INLINE void shape_outputs(const struct line *line, enum triangle_shape shape, int64_t first, int64_t last, char *to,
                          bool narrow)
{
    const f64_vector lanes = {F64_LIST(0, 1)}, scale = f64_all(line->triangle->scale);
    const struct window *window = line->window;
    const int64_t leaves = line->leaves, bytes = line->segment * (narrow ? 4 : 8);
    const double *at = window->at + (first - line->written) * leaves;
    for (int64_t b = first; b < last; b++, at += leaves, to += bytes) {
        const double *behind = sums_of(line, b - 1), *here = sums_of(line, b), *ahead = sums_of(line, b + 1);
        const struct triangle_line along = window->lines[b - line->written];
        const f64_vector start = f64_all(along.start), slope = f64_all(along.slope);
        set_box_total(line, b);
#pragma GCC unroll 2
        for (int64_t leaf = 0; leaf < leaves; leaf++)
            for (int part = 0; part < TRIANGLE_LEAF; part += F64_LANES) {
                const int64_t r = leaf * TRIANGLE_LEAF + part;
                f64_vector y;
                if (shape == TRIANGLE_BOX)
                    y = (f64_load(ahead + r) - f64_load(behind + r + 1)) + start;
                else
                    y = (minus_twice(f64_load(behind + r), f64_load(here + r), narrow) + f64_load(ahead + r)) +
                        f64_fma(slope, lanes + part, f64_all(at[leaf]));
                y *= scale;
                if (narrow)
                    f64_store_f32(to + r * 4, y);
                else
                    f64_store(to + r * 8, y);
            }
    }
}

static void segment_outputs(const struct line *line, int64_t first, int64_t last, char *to, bool narrow)
{
    const bool is_box = line->triangle->shape == TRIANGLE_BOX;
    if (is_box && narrow)
        shape_outputs(line, TRIANGLE_BOX, first, last, to, true);
    else if (is_box)
        shape_outputs(line, TRIANGLE_BOX, first, last, to, false);
    else if (narrow)
        shape_outputs(line, TRIANGLE_TRIANGLE, first, last, to, true);
    else
        shape_outputs(line, TRIANGLE_TRIANGLE, first, last, to, false);
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

/*
 * Sums of taps.
 */

static void tap_outputs(const struct triangle *triangle, const double *x, uint64_t count, double *y)
{
    const bool is_box = triangle->shape == TRIANGLE_BOX;
    const int width = (int)triangle->half_width;
    const f64_vector scale = f64_all(triangle->scale), middle = f64_all(is_box ? 1 : width);
    for (uint64_t i = 0; i < count; i += 2 * F64_LANES) {
        f64_vector sum[2] = {middle * f64_load(x + i), middle * f64_load(x + i + F64_LANES)};
        for (int m = 1; m < width; m++) {
            const f64_vector weight = f64_all(is_box ? 1 : width - m);
            for (int v = 0; v < 2; v++) {
                const double *at = x + i + v * F64_LANES;
                sum[v] = f64_fma(weight, f64_load(at - m) + f64_load(at + m), sum[v]);
            }
        }
        for (int v = 0; v < 2; v++)
            f64_store(y + i + v * F64_LANES, sum[v] * scale);
    }
}

static double own_taps(const struct triangle *own, const double *x)
{
    double sum = triangle_middle(own, x[0]);
    for (int32_t m = 1; m < (int32_t)own->half_width; m++)
        sum = triangle_taps(own, sum, m, x[-m] + x[m]);
    return sum * own->scale;
}

static void filter_by_taps(const struct line *line, uint64_t begin, uint64_t end)
{
    struct window *window = line->window;
    for (uint64_t i = begin, next; i < end; i = next) {
        next = end - i < BLOCK ? end : i + BLOCK;
        read_samples(line, (int64_t)i - MARGIN, (int64_t)next + MARGIN, window->samples);
        tap_outputs(line->triangle, window->samples + MARGIN, next - i, window->outputs);
        write_outputs(line, i, i, next);
    }
}

/*
 * Outputs with half-widths of their own.
 */

/* Outputs first <= r < last of segment b, all of the same half-width, in runs whose sums lie side by side. */
static void own_sums(const struct line *line, int64_t b, int32_t first, int32_t last, const struct triangle *own,
                     double *restrict y)
{
    const struct triangle_sums *total = line->window->totals + (b - line->first + 2);
    const double *before = sums_of(line, b - 1), *here = sums_of(line, b), *after = sums_of(line, b + 1);
    const int32_t size = (int32_t)line->segment, width = (int32_t)own->half_width;
    const int32_t reach = own->shape == TRIANGLE_BOX ? width - 1 : width;
    for (int32_t begin = first, end; begin < last; begin = end) {
        const bool is_ahead = begin >= size - width, is_behind = begin < width;
        const double *ahead = is_ahead ? after + (begin + width - size) : here + (begin + width);
        const double *behind = is_behind ? before + (begin + size - reach) : here + (begin - reach);
        const struct triangle_line along = triangle_line(own, (uint32_t)size, is_ahead, is_behind, total[0], total[-1]);
        end = is_ahead || size - width > last ? last : size - width;
        end = is_behind && width < end ? width : end;
        for (int32_t r = begin; r < end; r++)
            *y++ = triangle_output(own, *ahead++, *behind++, here[r], triangle_line_at(along, r / TRIANGLE_LEAF),
                                   along.slope, r % TRIANGLE_LEAF);
    }
}

/* Outputs i <= k < end with one half-width; x are the samples there. */
static void own_run(const struct line *line, int64_t b, int64_t i, int64_t end, const struct triangle *own,
                    const double *x, double *y)
{
    const int64_t from = b * line->segment;
    if (own->half_width > 0 && !triangle_has_taps(line->triangle, own))
        own_sums(line, b, (int32_t)(i - from), (int32_t)(end - from), own, y);
    else
        for (int64_t k = i; k < end; k++)
            y[k - i] = own_taps(own, x + (k - i));
    for (int64_t k = i; k < end && (own->half_width == 0 || own->boundary == BOUNDARY_SKIP); k++)
        if (!triangle_keeps(own, k, line->length))
            y[k - i] = 0;
}

/* Outputs begin <= i < end: of segment b, or sums of taps. Neighbours mostly have the same half-width. */
static void write_own_outputs(const struct line *line, int64_t b, uint64_t begin, uint64_t end)
{
    const struct step_operand *half_widths = line->half_widths;
    struct window *window = line->window;
    const uint64_t *widths = window->half_widths, count = end - begin;
    line_load_integers(half_widths->dtype, line->own + (int64_t)begin * half_widths->stride, half_widths->stride, count,
                       window->half_widths);
    read_samples(line, (int64_t)begin - MARGIN, (int64_t)end + MARGIN, window->samples);
    set_box_total(line, b);
    for (uint64_t k = 0, next; k < count; k = next) {
        const struct triangle own = triangle_with(line->triangle, widths[k]);
        for (next = k + 1; next < count && widths[next] == widths[k];)
            next++;
        own_run(line, b, (int64_t)(begin + k), (int64_t)(begin + next), &own, window->samples + MARGIN + k,
                window->outputs + k);
    }
    line_store_f64(line->to_dtype, window->outputs, count, line->to + (int64_t)begin * line->to_stride,
                   line->to_stride);
}

/*
 * Rows.
 */

/* Writes the outputs in begin <= i < end of segments first <= b < last. Those that are wanted whole are written as they
 * are computed, from sums of f32 to f32: if no sum is infinite or a NaN, no output is a NaN. */
static void write_segments(const struct line *line, int64_t first, int64_t last, uint64_t begin, uint64_t end)
{
    for (int64_t b = first, next; b < last; b = next) {
        const uint64_t from = (uint64_t)(b * line->segment), to = from + (uint64_t)line->segment;
        next = b + 1;
        if (line->own)
            write_own_outputs(line, b, begin > from ? begin : from, end < to ? end : to);
        else if (line->is_finite && b >= line->direct_from && b < line->direct_to) {
            next = last < line->direct_to ? last : line->direct_to;
            segment_outputs(line, b, next, line->to + from * sizeof(float), true);
        } else {
            segment_outputs(line, b, next, (char *)line->window->outputs, false);
            write_outputs(line, from, begin > from ? begin : from, end < to ? end : to);
        }
    }
}

/* The segments that are wanted whole, if they may be written as they are computed. */
static void plan_outputs(struct line *line, uint64_t begin, uint64_t end)
{
    const int64_t size = line->segment, first = (int64_t)(begin > line->kept_from ? begin : line->kept_from);
    const int64_t last = (int64_t)(end < line->kept_to ? end : line->kept_to) - line->leaves * TRIANGLE_LEAF;
    const bool narrow =
        line->from_dtype == SCAND_DTYPE_F32 && line->to_dtype == SCAND_DTYPE_F32 && line->to_stride == sizeof(float);
    line->direct_from = (first + size - 1) / size;
    line->direct_to = narrow && last >= 0 ? last / size + 1 : 0;
}

/* Chunk by chunk: a segment is written as soon as the one behind it is there. Segments that can be read as they lie in
 * the row, and others, have chunks of their own. */
static void filter_by_sums(struct line *line, uint64_t begin, uint64_t end)
{
    const int64_t first = (int64_t)begin / line->segment, last = ((int64_t)end - 1) / line->segment;
    const int64_t inside = (line->length - line->leaves * TRIANGLE_LEAF) / line->segment + 1;
    plan_outputs(line, begin, end);
    memset(line->window->totals, 0, 2 * sizeof *line->window->totals);
    for (int64_t b = first - 1, next; b <= last + 1; b = next) {
        next = b + line->per_chunk < last + 2 ? b + line->per_chunk : last + 2;
        next = b < 0 ? 0 : b < inside && inside < next ? inside : next;
        const int64_t written = b - 1 > first ? b - 1 : first;
        compute_segments(line, b, next - b);
        line->written = written;
        if (!line->own)
            plan_lines(line, written, next - 1);
        write_segments(line, written, next - 1, begin, end);
        keep_segments(line, next - b);
    }
}

static void filter_row(struct line *line, uint64_t begin, uint64_t end)
{
    if (line->triangle->half_width > TRIANGLE_TAPS_MAX)
        return filter_by_sums(line, begin, end);
    if (!line->own)
        return filter_by_taps(line, begin, end);
    for (uint64_t i = begin, next; i < end; i = next) {
        next = end - i < BLOCK ? end : i + BLOCK;
        write_own_outputs(line, 0, i, next);
    }
}

static void plan_leaves(struct line *line)
{
    struct leaves *plan = &line->window->leaves;
    const int64_t leaves = triangle_leaves(line->triangle->half_width), segment = line->triangle->half_width;
    line->segment = segment;
    line->leaves = plan->in_segment = leaves;
    line->per_chunk = leaves > TRIANGLE_FAN ? 1 : CHUNK / leaves;
    line->per_chunk -= line->per_chunk > F64_LANES ? line->per_chunk % F64_LANES : 0; /* whole vectors */
    plan->rest = segment - (leaves - 1) * TRIANGLE_LEAF;
    for (int64_t l = 0, begin = 0; l < line->per_chunk * leaves + F64_LANES; l += leaves, begin += segment) {
        for (int64_t k = 0; k < leaves; k++) {
            plan->offset[l + k] = begin + k * TRIANGLE_LEAF;
            plan->have[l + k] = TRIANGLE_LEAF;
            plan->place[l + k] = k;
        }
        plan->have[l + leaves - 1] = plan->rest;
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
                        .half_widths = &rows->further[TRIANGLE_HALF_WIDTHS]};
    if (triangle->half_width > TRIANGLE_TAPS_MAX)
        plan_leaves(&line);
    for (uint64_t row = tile->first_row; row < tile->first_row + tile->row_count; row++) {
        const uint64_t end = step_end(rows, tile, row);
        line.from = step_row(rows, &rows->input, row);
        line.to = step_row(rows, &rows->output, row);
        line.length = (int64_t)step_length(rows, &rows->input, row);
        line.own = line.half_widths->origin ? step_row(rows, line.half_widths, row) : NULL;
        triangle_kept(triangle, (uint64_t)line.length, &line.kept_from, &line.kept_to);
        if (tile->begin < end)
            filter_row(&line, tile->begin, end);
    }
}
