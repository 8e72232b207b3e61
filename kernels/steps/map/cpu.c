#include "kernels/steps/lines.h"
#include "map.h"

step_run STEP_CPU(map);

/* Elements that lie `stride` apart, in each operand. */
struct line {
    const char *x, *b;
    char *y;
    int64_t x_stride, b_stride, y_stride;
    uint64_t count;
};

/*
 * A group of one class: y[i] = op(x[i], b[i]), of integers in place of x[i]. Each op has a loop of its own.
 */

#define LOOP_OF(OP, TO, COMPUTE)         \
    case MAP_##OP:                       \
        for (uint64_t i = 0; i < n; i++) \
            TO[i] = COMPUTE(MAP_##OP);   \
        return;

static void compute_f32(enum map_op op, const float *x, const float *b, float high, uint64_t n, float *restrict y)
{
    switch (op) {
#define COMPUTE(OP) map_f32(OP, x[i], b[i], high)
#define X(OP, WORD) LOOP_OF(OP, y, COMPUTE)
        MAP_OPS(X)
#undef X
#undef COMPUTE
    }
}

static void compute_f64(enum map_op op, const double *x, const double *b, double high, uint64_t n, double *restrict y)
{
    switch (op) {
#define COMPUTE(OP) map_f64(OP, x[i], b[i], high)
#define X(OP, WORD) LOOP_OF(OP, y, COMPUTE)
        MAP_OPS(X)
#undef X
#undef COMPUTE
    }
}

static void compute_integers(enum map_op op, bool is_signed, uint64_t *restrict x, const uint64_t *restrict b,
                             uint64_t high, uint64_t n)
{
    switch (op) {
#define COMPUTE(OP) map_integer(OP, is_signed, x[i], b[i], high)
#define X(OP, WORD) LOOP_OF(OP, x, COMPUTE)
        MAP_OPS(X)
#undef X
#undef COMPUTE
    }
}

/*
 * Casts to another class.
 */

/* Each dtype has a loop of its own. */
#define INTEGERS_OF(NAME, WORD, BYTES, CLASS, ORDER)                                 \
    case SCAND_DTYPE_##NAME:                                                         \
        for (uint64_t i = 0; LINE_IS_INTEGER(SCAND_CLASS_##CLASS) && i < count; i++) \
            integers[i] = map_integer_of(SCAND_DTYPE_##NAME, x[i]);                  \
        break;

static void store_f32(enum scand_dtype to, const float *x, uint64_t count, char *y, int64_t stride)
{
    uint64_t integers[LINE_GROUP];
    if (!codec_is_integer(to)) {
        line_store_f32(to, x, count, y, stride);
        return;
    }
    LINE_SWITCH(to, INTEGERS_OF)
    line_store_integers(to, integers, count, y, stride);
}

static void store_f64(enum scand_dtype to, const double *x, uint64_t count, char *y, int64_t stride)
{
    uint64_t integers[LINE_GROUP];
    if (!codec_is_integer(to)) {
        line_store_f64(to, x, count, y, stride);
        return;
    }
    LINE_SWITCH(to, INTEGERS_OF)
    line_store_integers(to, integers, count, y, stride);
}

static void store_integers(bool is_signed, enum scand_dtype to, const uint64_t *x, uint64_t n, char *y, int64_t stride)
{
    float singles[LINE_GROUP];
    double doubles[LINE_GROUP];
    if (codec_is_integer(to)) {
        line_store_integers(to, x, n, y, stride);
    } else if (codec_class(to) == SCAND_CLASS_F64) {
        for (uint64_t i = 0; i < n; i++)
            doubles[i] = map_f64_of(is_signed, x[i]);
        line_store_f64(to, doubles, n, y, stride);
    } else {
        for (uint64_t i = 0; i < n; i++)
            singles[i] = map_f32_of(is_signed, x[i]);
        line_store_f32(to, singles, n, y, stride);
    }
}

/*
 * Lines. Beside samples stand those of the other operand, or a constant again and again. A cast stores what was loaded,
 * but in place, where the samples are the memory that is stored to, an array comes between.
 */

static void line_f32(const struct step_rows *rows, const struct map *map, const struct line *line)
{
    float loaded[LINE_GROUP], beside[LINE_GROUP], y[LINE_GROUP];
    for (uint64_t i = 0; !line->b && i < LINE_GROUP && i < line->count; i++)
        beside[i] = (float)map->by;
    for (uint64_t at = 0, n; at < line->count; at += n) {
        n = line->count - at < LINE_GROUP ? line->count - at : LINE_GROUP;
        const float *x =
            line_see_f32(rows->input.dtype, line->x + (int64_t)at * line->x_stride, line->x_stride, n, loaded);
        const float *b = line->b ? line_see_f32(rows->further[MAP_OTHER].dtype, line->b + (int64_t)at * line->b_stride,
                                                line->b_stride, n, beside)
                                 : beside;
        char *to = line->y + (int64_t)at * line->y_stride;
        const float *results = map->op == MAP_CAST && (const char *)x != to ? x : y;
        if (results == y)
            compute_f32(map->op, x, b, (float)map->high, n, y);
        store_f32(rows->output.dtype, results, n, to, line->y_stride);
    }
}

static void line_f64(const struct step_rows *rows, const struct map *map, const struct line *line)
{
    double loaded[LINE_GROUP], beside[LINE_GROUP], y[LINE_GROUP];
    for (uint64_t i = 0; !line->b && i < LINE_GROUP && i < line->count; i++)
        beside[i] = map->by;
    for (uint64_t at = 0, n; at < line->count; at += n) {
        n = line->count - at < LINE_GROUP ? line->count - at : LINE_GROUP;
        const double *x =
            line_see_f64(rows->input.dtype, line->x + (int64_t)at * line->x_stride, line->x_stride, n, loaded);
        const double *b = line->b ? line_see_f64(rows->further[MAP_OTHER].dtype, line->b + (int64_t)at * line->b_stride,
                                                 line->b_stride, n, beside)
                                  : beside;
        char *to = line->y + (int64_t)at * line->y_stride;
        const double *results = map->op == MAP_CAST && (const char *)x != to ? x : y;
        if (results == y)
            compute_f64(map->op, x, b, map->high, n, y);
        store_f64(rows->output.dtype, results, n, to, line->y_stride);
    }
}

static void line_integers(const struct step_rows *rows, const struct map *map, const struct line *line)
{
    const bool is_signed = codec_class(rows->input.dtype) == SCAND_CLASS_SIGNED;
    uint64_t x[LINE_GROUP], b[LINE_GROUP];
    for (uint64_t i = 0; !line->b && i < LINE_GROUP && i < line->count; i++)
        b[i] = map_constant_integer(map->by);
    for (uint64_t at = 0, n; at < line->count; at += n) {
        n = line->count - at < LINE_GROUP ? line->count - at : LINE_GROUP;
        line_load_integers(rows->input.dtype, line->x + (int64_t)at * line->x_stride, line->x_stride, n, x);
        if (line->b)
            line_load_integers(rows->further[MAP_OTHER].dtype, line->b + (int64_t)at * line->b_stride, line->b_stride,
                               n, b);
        compute_integers(map->op, is_signed, x, b, map_constant_integer(map->high), n);
        store_integers(is_signed, rows->output.dtype, x, n, line->y + (int64_t)at * line->y_stride, line->y_stride);
    }
}

static void line_compute(const struct step_rows *rows, const struct map *map, const struct line *line)
{
    if (codec_is_integer(rows->input.dtype))
        line_integers(rows, map, line);
    else if (codec_class(rows->input.dtype) == SCAND_CLASS_F64)
        line_f64(rows, map, line);
    else
        line_f32(rows, map, line);
}

/* The line from element i of a row to before `end`. */
static struct line line_along(const struct step_rows *rows, uint64_t row, uint64_t i, uint64_t end)
{
    const struct step_operand *input = &rows->input, *output = &rows->output, *other = &rows->further[MAP_OTHER];
    return (struct line){
        .x = step_row(rows, input, row) + (int64_t)i * input->stride,
        .b = other->origin ? step_row(rows, other, row) + (int64_t)i * other->stride : NULL,
        .y = step_row(rows, output, row) + (int64_t)i * output->stride,
        .x_stride = input->stride,
        .b_stride = other->stride,
        .y_stride = output->stride,
        .count = end - i,
    };
}

/* Returns the line of one element of all rows of the tile. */
static struct line line_across(const struct step_rows *rows, const struct step_tile *tile, uint64_t i)
{
    struct line line = line_along(rows, tile->first_row, i, i);
    line.x_stride = rows->input.outer_strides[0];
    line.b_stride = rows->further[MAP_OTHER].outer_strides[0];
    line.y_stride = rows->output.outer_strides[0];
    line.count = tile->row_count;
    return line;
}

void STEP_CPU(map)(const struct step_rows *rows, const void *params, const struct step_tile *tile, void *scratch)
{
    (void)scratch;
    if (elements_cross_rows(rows)) {
        for (uint64_t i = tile->begin; i < step_end(rows, tile, tile->first_row); i++) {
            const struct line line = line_across(rows, tile, i);
            line_compute(rows, params, &line);
        }
        return;
    }
    for (uint64_t row = tile->first_row; row < tile->first_row + tile->row_count; row++) {
        const uint64_t end = step_end(rows, tile, row);
        if (tile->begin < end) {
            const struct line line = line_along(rows, row, tile->begin, end);
            line_compute(rows, params, &line);
        }
    }
}
