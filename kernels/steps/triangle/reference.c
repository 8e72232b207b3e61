#include "triangle.h"

/* The sums of one segment: for a box the single ones. */
struct segment {
    double sums[TRIANGLE_HALF_WIDTH_MAX];
    struct triangle_sums total;
};

/* A row, as the segments of its extension. */
struct line {
    const struct triangle *triangle;
    const char *from;
    int64_t stride, length, segment; /* samples of a segment */
    enum scand_dtype dtype;
    const struct step_operand *half_widths;
    const char *own; /* the row's half-widths, or NULL */
};

static double sample(const struct line *line, int64_t i)
{
    const int64_t source = triangle_source(line->triangle->boundary, i, line->length);
    return source < 0 ? 0 : step_get_f64(line->dtype, line->from + source * line->stride);
}

/* Inclusive prefixes of the leaves' totals in each group. */
static void network(struct triangle_sums *leaves, int64_t count)
{
    for (int64_t distance = 1; distance < TRIANGLE_FAN && distance < count; distance *= 2)
        for (int64_t l = count; l-- > 0;)
            if (l % TRIANGLE_FAN >= distance)
                leaves[l] = triangle_join(leaves[l - distance], leaves[l], (double)(TRIANGLE_LEAF * distance));
}

/* Carries from those prefixes, which they replace. */
static void carries(struct triangle_sums *leaves, int64_t count)
{
    struct triangle_sums group = {0, 0};
    for (int64_t begin = 0; begin < count; begin += TRIANGLE_FAN) {
        const int64_t end = begin + TRIANGLE_FAN < count ? begin + TRIANGLE_FAN : count;
        const struct triangle_sums total = leaves[end - 1];
        for (int64_t l = end - 1; l > begin; l--)
            leaves[l] =
                begin == 0 ? leaves[l - 1] : triangle_join(group, leaves[l - 1], (double)(TRIANGLE_LEAF * (l - begin)));
        leaves[begin] = group;
        group = begin == 0 ? total : triangle_join(group, total, TRIANGLE_GROUP);
    }
}

/* Sample r of a segment, or a zero that fills up its last leaf. */
static double filled(const struct line *line, int64_t number, int64_t r)
{
    return r < line->segment ? sample(line, number * line->segment + r) : 0;
}

static void segment_sums(const struct line *line, int64_t number, struct segment *segment)
{
    struct triangle_sums leaves[TRIANGLE_LEAVES_MAX] = {{0, 0}};
    const int64_t count = triangle_leaves((uint32_t)line->segment);
    for (int64_t r = 0; r < count * TRIANGLE_LEAF; r++)
        leaves[r / TRIANGLE_LEAF] = triangle_add(leaves[r / TRIANGLE_LEAF], filled(line, number, r));
    network(leaves, count);
    carries(leaves, count);
    for (int64_t r = 0; r < count * TRIANGLE_LEAF; r++) {
        struct triangle_sums *sums = &leaves[r / TRIANGLE_LEAF];
        if (r < line->segment)
            segment->sums[r] = line->triangle->shape == TRIANGLE_BOX ? sums->single : sums->twice;
        *sums = triangle_add(*sums, filled(line, number, r));
    }
    segment->total = leaves[count - 1];
}

/* An output of the middle one of three segments. */
static double output(const struct line *line, const struct triangle *triangle, const struct segment segments[3],
                     int64_t r)
{
    const struct segment *before = &segments[0], *here = &segments[1], *after = &segments[2];
    const int64_t width = triangle->half_width, size = line->segment, ahead = r + width;
    const int64_t behind = triangle->shape == TRIANGLE_BOX ? r - width + 1 : r - width;
    const struct triangle_line along =
        triangle_line(triangle, (uint32_t)size, ahead >= size, r < width, here->total, before->total);
    return triangle_output(triangle, ahead < size ? here->sums[ahead] : after->sums[ahead - size],
                           r >= width    ? here->sums[behind]
                           : behind == 0 ? before->total.single
                                         : before->sums[behind + size],
                           here->sums[r], triangle_line_at(along, (int32_t)(r / TRIANGLE_LEAF)), along.slope,
                           (int32_t)(r % TRIANGLE_LEAF));
}

static double taps(const struct line *line, const struct triangle *triangle, int64_t i)
{
    double sum = triangle_middle(triangle, sample(line, i));
    for (int32_t m = 1; m < (int32_t)triangle->half_width; m++)
        sum = triangle_taps(triangle, sum, m, sample(line, i - m) + sample(line, i + m));
    return sum * triangle->scale;
}

static struct triangle triangle_of(const struct line *line, uint64_t i)
{
    if (!line->own)
        return *line->triangle;
    const char *at = line->own + (int64_t)i * line->half_widths->stride;
    return triangle_with(line->triangle, codec_decode_integer(line->half_widths->dtype, at));
}

static void row_reference(const struct line *line, uint64_t begin, uint64_t end, const struct step_operand *to,
                          char *row)
{
    struct segment segments[3];
    for (uint64_t i = begin; i < end; i++) {
        const int64_t number = (int64_t)i / line->segment, r = (int64_t)i % line->segment;
        if (line->triangle->half_width > TRIANGLE_TAPS_MAX && (i == begin || r == 0))
            for (int64_t k = 0; k < 3; k++)
                segment_sums(line, number - 1 + k, &segments[k]);
        const struct triangle triangle = triangle_of(line, i);
        double y = 0;
        if (triangle_keeps(&triangle, (int64_t)i, line->length))
            y = triangle_has_taps(line->triangle, &triangle) ? taps(line, &triangle, (int64_t)i)
                                                             : output(line, &triangle, segments, r);
        step_put_f64(to->dtype, y, row + (int64_t)i * to->stride);
    }
}

static void triangle_reference(const struct step_rows *rows, const void *params, const struct step_tile *tile,
                               void *scratch)
{
    const struct triangle *triangle = params;
    const struct step_operand *half_widths = &rows->further[TRIANGLE_HALF_WIDTHS];
    (void)scratch;
    for (uint64_t row = tile->first_row; row < tile->first_row + tile->row_count; row++) {
        const struct line line = {.triangle = triangle,
                                  .from = step_row(rows, &rows->input, row),
                                  .stride = rows->input.stride,
                                  .length = (int64_t)step_length(rows, &rows->input, row),
                                  .segment = triangle->half_width,
                                  .dtype = rows->input.dtype,
                                  .half_widths = half_widths,
                                  .own = half_widths->origin ? step_row(rows, half_widths, row) : NULL};
        row_reference(&line, tile->begin, step_end(rows, tile, row), &rows->output, step_row(rows, &rows->output, row));
    }
}

/* Of each row the segments on either side are summed, too. */
static struct step_tiling triangle_tiling(const struct step_rows *rows, const void *params)
{
    const struct triangle *triangle = params;
    const uint64_t samples = UINT64_C(1) << 14, of_row = rows->output.length + UINT64_C(2) * triangle->half_width;
    struct step_tiling tiling = tiling_along(rows, samples);
    if (tiling.rows > 1)
        tiling.rows = of_row < samples ? samples / of_row : 1;
    return tiling;
}

static uint64_t triangle_index_below(const void *params, uint32_t further)
{
    const struct triangle *triangle = params;
    return further == TRIANGLE_HALF_WIDTHS ? UINT64_C(1) + triangle->half_width : 0;
}

STEP_DECLARE(triangle);
const struct step_kernel triangle_kernel = {.name = "triangle",
                                            .in_place = false,
                                            .tiling = triangle_tiling,
                                            .least_elements = 4096,
                                            .index_below = triangle_index_below,
                                            .index_from = 1,
                                            .reference = triangle_reference,
                                            .cpu = STEP_BUILDS(triangle)};
