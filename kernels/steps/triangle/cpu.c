#include "triangle.h"

#include "kernels/steps/lines.h"

#ifdef __AVX512F__
#define CPU_VECTOR_BYTES 64
#elif defined(__AVX2__)
#define CPU_VECTOR_BYTES 32
#else
#define CPU_VECTOR_BYTES 16
#endif
#include "kernels/cpu/generic/simd.h"

step_run STEP_CPU(triangle);

#define LEAVES_MAX (TRIANGLE_SEGMENT_MAX / TRIANGLE_LEAF)
#define CHUNKS     3 /* that are kept: an output needs the segments on either side */

#define GROUP_VECTORS (TRIANGLE_FAN / F64_LANES)

/* Totals of the leaves of a group, or their prefixes. */
struct totals {
    f64_vector single[GROUP_VECTORS], twice[GROUP_VECTORS];
};

/* Chunks are a segment, or as many as are a group. */
struct window {
    _Alignas(64) double sums[CHUNKS][TRIANGLE_SEGMENT_MAX];
    _Alignas(64) double single[CHUNKS][LEAVES_MAX], twice[CHUNKS][LEAVES_MAX]; /* behind each leaf */
    _Alignas(64) double samples[TRIANGLE_SEGMENT_MAX];
    _Alignas(64) f64_vector turned[TRIANGLE_SEGMENT_MAX / F64_LANES]; /* sample q of leaves side by side */
    _Alignas(64) double outputs[TRIANGLE_SEGMENT_MAX];
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
    int64_t segment, chunk;      /* samples of each */
    uint64_t kept_from, kept_to; /* outputs that are not skipped */
};

/*
 * Samples, as f64.
 */

INLINE void decode(enum scand_dtype dtype, double *to, const char *from, int64_t stride, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = step_get_f64(dtype, from + i * stride);
}

static void decode_any(enum scand_dtype dtype, double *to, const char *from, int64_t stride, int64_t count)
{
    switch (dtype) {
#define X(NAME, WORD, BYTES, CLASS)                                    \
    case SCAND_DTYPE_##NAME:                                           \
        if (stride == BYTES)                                           \
            return decode(SCAND_DTYPE_##NAME, to, from, BYTES, count); \
        return decode(SCAND_DTYPE_##NAME, to, from, stride, count);
        SCAND_DTYPES(X)
#undef X
    case SCAND_DTYPE_COUNT:
        break;
    }
}

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
        decode_any(line->from_dtype, to, line->from + source * stride, turned % 2 == 0 ? stride : -stride, until - i);
    } else
        memset(to, 0, (size_t)((until < end ? until : end) - i) * sizeof *to);
    return until < end ? until : end;
}

/* Samples begin <= i < end of the extended row. */
static void read_samples(const struct line *line, int64_t begin, int64_t end, double *to)
{
    for (int64_t i = begin; i < end;)
        i = read_run(line, i, end, to + (i - begin));
}

/*
 * The sums of segments, a vector of leaves at a time.
 */

INLINE void square(f64_vector *rows)
{
    f32_vector words[F64_LANES];
    memcpy(words, rows, sizeof words);
    f64_square(words);
    memcpy(rows, words, sizeof words);
}

/* Totals of a vector of leaves, whose samples are kept side by side. */
INLINE void leaf_totals(const double *samples, f64_vector *turned, double *single, double *twice)
{
    f64_vector sum = {0}, sums = {0};
    for (int part = 0; part < TRIANGLE_LEAF; part += F64_LANES) {
        f64_vector rows[F64_LANES];
        for (int l = 0; l < F64_LANES; l++)
            rows[l] = f64_load(samples + l * TRIANGLE_LEAF + part);
        square(rows);
        for (int q = 0; q < F64_LANES; q++) {
            turned[part + q] = rows[q];
            sum += rows[q];
            sums += sum;
        }
    }
    f64_store(single, sum);
    f64_store(twice, sums);
}

/* The sums of those leaves, from the carries into them, which become what the leaves leave. */
INLINE void leaf_sums(enum triangle_shape shape, const f64_vector *turned, double *single, double *twice, double *to)
{
    f64_vector sum = f64_load(single), sums = f64_load(twice);
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
    f64_store(twice, sums);
}

/* Which of the lanes from l on are at least `least` leaves behind the begin of their run of `fan` leaves. */
INLINE i64_vector lanes_behind(int64_t l, int64_t fan, int64_t least)
{
    static const int64_t first[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    i64_vector lanes;
    memcpy(&lanes, first, sizeof lanes);
    return ((lanes + l) & (fan - 1)) >= least;
}

/* Samples of the group before each leaf of vector v. */
INLINE f64_vector samples_before(int v)
{
    static const double first[8] = {0, 8, 16, 24, 32, 40, 48, 56};
    return f64_load(first) + (double)(v * F64_LANES * TRIANGLE_LEAF);
}
_Static_assert(TRIANGLE_LEAF == 8, "the samples before leaves");

INLINE f64_vector choose(i64_vector where, f64_vector yes, f64_vector no)
{
    return (f64_vector)((where & (i64_vector)yes) | (~where & (i64_vector)no));
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
INLINE void network_step(struct totals *totals, int distance, int64_t fan)
{
    const double count = TRIANGLE_LEAF * distance;
#pragma GCC unroll 16
    for (int v = GROUP_VECTORS; v-- > 0;) {
        const i64_vector joins = lanes_behind(v * F64_LANES, fan, distance);
        const f64_vector single = before(totals->single, v, distance), twice = before(totals->twice, v, distance);
        totals->twice[v] = choose(joins, (twice + single * count) + totals->twice[v], totals->twice[v]);
        totals->single[v] = choose(joins, single + totals->single[v], totals->single[v]);
    }
}

INLINE void network(struct totals *totals, int64_t fan)
{
    network_step(totals, 1, fan);
    network_step(totals, 2, fan);
    network_step(totals, 4, fan);
    if (fan > 8)
        network_step(totals, 8, fan);
    if (fan > 16)
        network_step(totals, 16, fan);
}
_Static_assert(TRIANGLE_SEGMENT_MIN == 8 * TRIANGLE_LEAF && TRIANGLE_FAN == 32, "the steps of the network");

/* Carries into the leaves of a group, in place of their totals. `group` is the carry into it, where there is one, and
 * then that into the next. */
static void group_carries(double *single, double *twice, int64_t fan, bool carried, struct triangle_sums *group)
{
    struct totals totals;
    memcpy(totals.single, single, sizeof totals.single);
    memcpy(totals.twice, twice, sizeof totals.twice);
    network(&totals, fan);
    for (int v = 0; v < GROUP_VECTORS; v++) {
        const f64_vector zero = {0}, group_single = zero + group->single, group_twice = zero + group->twice;
        const i64_vector behind = lanes_behind(v * F64_LANES, fan, 1);
        f64_vector singles = before(totals.single, v, 1), twices = before(totals.twice, v, 1);
        if (carried) {
            twices = (group_twice + group_single * samples_before(v)) + twices;
            singles = group_single + singles;
        }
        f64_store(single + v * F64_LANES, choose(behind, singles, group_single));
        f64_store(twice + v * F64_LANES, choose(behind, twices, group_twice));
    }
    const struct triangle_sums total = {totals.single[GROUP_VECTORS - 1][F64_LANES - 1],
                                        totals.twice[GROUP_VECTORS - 1][F64_LANES - 1]};
    *group = carried ? triangle_join(*group, total, TRIANGLE_GROUP) : total;
}

/* Of leaves of a chunk, which begin and end whole segments. */
INLINE void chunk_sums(const struct line *line, unsigned slot, int64_t first, int64_t end)
{
    struct window *window = line->window;
    double *single = window->single[slot], *twice = window->twice[slot];
    const int64_t leaves = line->segment / TRIANGLE_LEAF, fan = leaves < TRIANGLE_FAN ? leaves : TRIANGLE_FAN;
    for (int64_t l = first; l < end; l += F64_LANES)
        leaf_totals(window->samples + l * TRIANGLE_LEAF, window->turned + l * TRIANGLE_LEAF / F64_LANES, single + l,
                    twice + l);
    struct triangle_sums group = {0, 0};
    for (int64_t l = first - first % TRIANGLE_FAN; l < end; l += TRIANGLE_FAN)
        if (fan < TRIANGLE_FAN) {
            struct triangle_sums none = {0, 0};
            group_carries(single + l, twice + l, fan, false, &none);
        } else
            group_carries(single + l, twice + l, fan, l % leaves > 0, &group);
    for (int64_t l = first; l < end; l += F64_LANES)
        leaf_sums(line->triangle->shape, window->turned + l * TRIANGLE_LEAF / F64_LANES, single + l, twice + l,
                  window->sums[slot] + l * TRIANGLE_LEAF);
}

static int64_t floor_divide(int64_t a, int64_t b)
{
    return a >= 0 ? a / b : -((b - 1 - a) / b);
}

static unsigned slot_of(int64_t chunk)
{
    return (unsigned)((chunk + CHUNKS) % CHUNKS);
}

/* Segments first <= b < end, all of one chunk. */
static void compute_segments(const struct line *line, int64_t first, int64_t end)
{
    const int64_t chunk = floor_divide(first * line->segment, line->chunk), origin = chunk * line->chunk;
    const int64_t from = first * line->segment - origin, to = end * line->segment - origin;
    read_samples(line, origin + from, origin + to, line->window->samples + from);
    chunk_sums(line, slot_of(chunk), from / TRIANGLE_LEAF, to / TRIANGLE_LEAF);
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
    const int64_t chunk = floor_divide(number * line->segment, line->chunk);
    const int64_t at = number * line->segment - chunk * line->chunk, last = (at + line->segment) / TRIANGLE_LEAF - 1;
    const unsigned slot = slot_of(chunk);
    return (struct segment){.sums = window->sums[slot] + at,
                            .total = {window->single[slot][last], window->twice[slot][last]}};
}

/* Of a segment, whose neighbours are there. */
INLINE void difference(const struct line *line, enum triangle_shape shape, int64_t number)
{
    const struct segment before = segment_at(line, number - 1), here = segment_at(line, number),
                         after = segment_at(line, number + 1);
    const int32_t size = (int32_t)line->segment, ahead = (int32_t)line->triangle->half_width;
    const int32_t behind = shape == TRIANGLE_BOX ? ahead - 1 : ahead;
    const double scale = line->triangle->scale;
    double *y = line->window->outputs;
    memcpy(y, here.sums + ahead, (size_t)(size - ahead) * sizeof *y);
    for (int32_t r = size - ahead; r < size; r++)
        y[r] = triangle_ahead(shape, here.total, r + ahead - size, after.sums[r + ahead - size]);
    for (int32_t r = 0; r < behind; r++)
        y[r] = triangle_difference(shape, y[r],
                                   triangle_behind(shape, before.total, r - behind, before.sums[r - behind + size]),
                                   here.sums[r], scale);
    for (int32_t r = behind; r < size; r++)
        y[r] = triangle_difference(shape, y[r], here.sums[r - behind], here.sums[r], scale);
}

/* Outputs begin <= i < end, `from` being the first one of their segment. */
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

static void write_segment(const struct line *line, int64_t number, uint64_t begin, uint64_t end)
{
    const uint64_t from = (uint64_t)(number * line->segment), to = from + (uint64_t)line->segment;
    if (line->triangle->shape == TRIANGLE_BOX)
        difference(line, TRIANGLE_BOX, number);
    else
        difference(line, TRIANGLE_TRIANGLE, number);
    write_outputs(line, from, begin > from ? begin : from, end < to ? end : to);
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
    const int64_t per_chunk = line->chunk / line->segment;
    int64_t written = first;
    for (int64_t b = first - 1, next; b <= last + 1; b = next) {
        next = (floor_divide(b, per_chunk) + 1) * per_chunk;
        next = next < last + 2 ? next : last + 2;
        compute_segments(line, b, next);
        for (; written <= last && written + 1 < next; written++)
            write_segment(line, written, begin, end);
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
    line.chunk = line.segment > TRIANGLE_GROUP ? line.segment : TRIANGLE_GROUP;
    for (uint64_t row = tile->first_row; row < tile->first_row + tile->row_count; row++) {
        const uint64_t end = step_end(rows, tile, row);
        line.from = step_row(rows, &rows->input, row);
        line.to = step_row(rows, &rows->output, row);
        line.length = (int64_t)step_length(rows, &rows->input, row);
        triangle_kept(triangle, (uint64_t)line.length, &line.kept_from, &line.kept_to);
        if (tile->begin < end && triangle->half_width == 1)
            copy_row(&line, tile->begin, end);
        else if (tile->begin < end)
            filter_row(&line, tile->begin, end);
    }
}
