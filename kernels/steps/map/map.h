/*
 * map: y[i] = op(x[i]), or op(x[i], b), where b is a constant or the element at the same place of another operand. That
 * operand may have strides of 0, so that one vector serves all rows, or one number each row.
 *
 *     add sub mul div min max  with b; min and max return a NaN where there is one, and x where both are equal
 *     abs neg sqrt exp log     of x alone; exponential.h defines exp and log
 *     clip                     min(max(x, low), high)
 *     cast                     x as it is
 *
 * Samples of class f32 are computed in f32, samples of class f64 in f64, and each operation rounds once. Constants are
 * rounded to f32 for samples of class f32. Integers are computed in 64 bits, of which the output keeps the low ones;
 * they have no div, sqrt, exp and log. Results are converted to the output's dtype. Only cast converts between integers
 * and floats: a float loses its fraction and becomes the nearest number that the integer type has, a NaN becomes 0; an
 * integer is rounded to f32 if the output is of class f32, else to f64.
 */
#ifndef KERNELS_STEPS_MAP_H
#define KERNELS_STEPS_MAP_H

#include "kernels/steps/elements.h"
#include "kernels/steps/map/exponential.h"
#include "protocol/operations.h"

enum { MAP_OTHER }; /* index of b among the further operands; without an origin b is a constant */

struct map {
    enum map_op op;
    double by;   /* the constant; for clip the least result */
    double high; /* for clip: the largest result */
};

extern const struct step_kernel map_kernel;

/* The floats of either class, each operation in their own precision. */
#define MAP_FLOAT(NAME, FLOAT, ABS, SQRT, EXP, LOG)                       \
    CODEC_INLINE FLOAT NAME(enum map_op op, FLOAT x, FLOAT b, FLOAT high) \
    {                                                                     \
        switch (op) {                                                     \
        case MAP_ADD:                                                     \
            return x + b;                                                 \
        case MAP_SUB:                                                     \
            return x - b;                                                 \
        case MAP_MUL:                                                     \
            return x * b;                                                 \
        case MAP_DIV:                                                     \
            return x / b;                                                 \
        case MAP_MIN:                                                     \
            return (b < x || b != b) && x == x ? b : x;                   \
        case MAP_MAX:                                                     \
            return (b > x || b != b) && x == x ? b : x;                   \
        case MAP_ABS:                                                     \
            return ABS(x);                                                \
        case MAP_NEG:                                                     \
            return -x;                                                    \
        case MAP_SQRT:                                                    \
            return SQRT(x);                                               \
        case MAP_EXP:                                                     \
            return EXP(x);                                                \
        case MAP_LOG:                                                     \
            return LOG(x);                                                \
        case MAP_CLIP:                                                    \
            x = x < b ? b : x;                                            \
            return x > high ? high : x;                                   \
        case MAP_CAST:                                                    \
            break;                                                        \
        }                                                                 \
        return x;                                                         \
    }

MAP_FLOAT(map_f32, float, fabsf, sqrtf, exp_f32, log_f32)
MAP_FLOAT(map_f64, double, fabs, sqrt, exp_f64, log_f64)
#undef MAP_FLOAT

/* a < b, as integers of 64 bits. */
CODEC_INLINE bool map_is_less(bool is_signed, uint64_t a, uint64_t b)
{
    return is_signed ? (int64_t)a < (int64_t)b : a < b;
}

CODEC_INLINE uint64_t map_integer(enum map_op op, bool is_signed, uint64_t x, uint64_t b, uint64_t high)
{
    switch (op) {
    case MAP_ADD:
        return x + b;
    case MAP_SUB:
        return x - b;
    case MAP_MUL:
        return x * b;
    case MAP_MIN:
        return map_is_less(is_signed, b, x) ? b : x;
    case MAP_MAX:
        return map_is_less(is_signed, x, b) ? b : x;
    case MAP_ABS:
        return map_is_less(is_signed, x, 0) ? 0 - x : x;
    case MAP_NEG:
        return 0 - x;
    case MAP_CLIP:
        x = map_is_less(is_signed, x, b) ? b : x;
        return map_is_less(is_signed, high, x) ? high : x;
    case MAP_CAST:
    case MAP_DIV:
    case MAP_SQRT:
    case MAP_EXP:
    case MAP_LOG:
        break;
    }
    return x;
}

/* A constant among integers: a whole number that a double holds. */
CODEC_INLINE uint64_t map_constant_integer(double constant)
{
    return (uint64_t)(int64_t)constant;
}

/*
 * Between floats and integers.
 */

/* A number beyond the integers' range first becomes the nearest one in range that a double holds. */
CODEC_INLINE uint64_t map_integer_of(enum scand_dtype dtype, double x)
{
    const bool is_signed = codec_class(dtype) == SCAND_CLASS_SIGNED, is_long = codec_bytes(dtype) == 8;
    const double least = !is_signed ? 0 : is_long ? -0x1p63 : -0x1p31;
    const double beyond = is_long ? is_signed ? 0x1p63 : 0x1p64 : INFINITY;
    const double most = is_long     ? is_signed ? 0x1.fffffffffffffp62 : 0x1.fffffffffffffp63
                        : is_signed ? 0x1.fffffffcp30
                                    : 0x1.fffffffep31;
    const double number = x == x ? x : 0, inside = number <= least ? least : number >= most ? most : number;
    const uint64_t last = is_signed ? INT64_MAX : UINT64_MAX;
    if (is_signed && !is_long)
        return (uint64_t)(int64_t)(int32_t)inside;
    return x >= beyond ? last : is_signed ? (uint64_t)(int64_t)inside : (uint64_t)inside;
}

CODEC_INLINE float map_f32_of(bool is_signed, uint64_t x)
{
    return is_signed ? (float)(int64_t)x : (float)x;
}

CODEC_INLINE double map_f64_of(bool is_signed, uint64_t x)
{
    return is_signed ? (double)(int64_t)x : (double)x;
}

/*
 * An element, of each class.
 */

struct map_place {
    const char *x, *b; /* b is NULL: the constant */
    char *y;
    enum scand_dtype from, other, to;
};

CODEC_INLINE void map_element_integer(const struct map *map, const struct map_place *at)
{
    const bool is_signed = codec_class(at->from) == SCAND_CLASS_SIGNED;
    const uint64_t b = at->b ? step_decode_integer(at->other, at->b) : map_constant_integer(map->by);
    const uint64_t value =
        map_integer(map->op, is_signed, step_decode_integer(at->from, at->x), b, map_constant_integer(map->high));
    if (codec_is_integer(at->to))
        step_encode_integer(at->to, value, at->y);
    else if (codec_class(at->to) == SCAND_CLASS_F64)
        step_put_f64(at->to, map_f64_of(is_signed, value), at->y);
    else
        step_put_f32(at->to, map_f32_of(is_signed, value), at->y);
}

CODEC_INLINE void map_element_f64(const struct map *map, const struct map_place *at)
{
    const double b = at->b ? step_decode_f64(at->other, at->b) : map->by;
    const double value = map_f64(map->op, step_decode_f64(at->from, at->x), b, map->high);
    if (codec_is_integer(at->to))
        step_encode_integer(at->to, map_integer_of(at->to, value), at->y);
    else
        step_put_f64(at->to, value, at->y);
}

CODEC_INLINE void map_element_f32(const struct map *map, const struct map_place *at)
{
    const float b = at->b ? step_decode_f32(at->other, at->b) : (float)map->by;
    const float value = map_f32(map->op, step_decode_f32(at->from, at->x), b, (float)map->high);
    if (codec_is_integer(at->to))
        step_encode_integer(at->to, map_integer_of(at->to, (double)value), at->y);
    else
        step_put_f32(at->to, value, at->y);
}

/* A row: element 0 of each operand, and bytes from element to element. */
struct map_line {
    const char *x, *b; /* b is NULL: the constant */
    char *y;
    int64_t x_stride, b_stride, y_stride;
    enum scand_dtype from, other, to;
    bool aligned; /* all elements are known to lie at multiples of their size */
};

/* The line whose elements 0 are there; b of a constant may be anything. */
CODEC_INLINE struct map_line map_line_at(const struct step_rows *rows, const char *x, const char *b, char *y)
{
    const struct step_operand *input = &rows->input, *output = &rows->output, *other = &rows->further[MAP_OTHER];
    struct map_line line;
    line.x = x;
    line.b = other->origin ? b : NULL;
    line.y = y;
    line.x_stride = input->stride;
    line.b_stride = other->stride;
    line.y_stride = output->stride;
    line.from = input->dtype;
    line.other = other->dtype;
    line.to = output->dtype;
    line.aligned = false;
    return line;
}

CODEC_INLINE struct map_line map_line_of(const struct step_rows *rows, uint64_t row)
{
    const struct step_operand *other = &rows->further[MAP_OTHER];
    return map_line_at(rows, step_row(rows, &rows->input, row), other->origin ? step_row(rows, other, row) : NULL,
                       step_row(rows, &rows->output, row));
}

CODEC_INLINE void map_element(const struct map *map, const struct map_line *line, uint64_t i)
{
    const char *x = line->x + (int64_t)i * line->x_stride;
    const char *b = line->b ? line->b + (int64_t)i * line->b_stride : NULL;
    char *y = line->y + (int64_t)i * line->y_stride;
    const struct map_place at = {step_aligned(line->aligned, line->from, x),
                                 step_aligned(line->aligned, line->other, b),
                                 (char *)step_aligned(line->aligned, line->to, y),
                                 line->from,
                                 line->other,
                                 line->to};
    if (codec_is_integer(at.from))
        map_element_integer(map, &at);
    else if (codec_class(at.from) == SCAND_CLASS_F64)
        map_element_f64(map, &at);
    else
        map_element_f32(map, &at);
}

#endif
