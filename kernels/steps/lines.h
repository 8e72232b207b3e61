/*
 * For the CPU code of operations whose elements are computed alike: a tile as lines of elements that lie close
 * together, which are computed in groups. A group's samples are decoded into an array, computed there and encoded, so
 * that every loop is over arrays, which compilers make vectors of, whatever the dtypes and wherever the operands lie.
 */
#ifndef KERNELS_STEPS_LINES_H
#define KERNELS_STEPS_LINES_H

#include "kernels/steps/elements.h"

#define LINE_GROUP 256 /* elements: three arrays of f64 stay in the first cache */

/*
 * Elements from memory to an array and back: of floats as f32 and as f64, rounded where they must be, and of integers.
 * Each dtype has a loop of its own, and two more for elements that lie one after another, from either end.
 */

/* Of each dtype of a class: LOOP(dtype, stride), with both constants if elements are that close together. */
#define LINE_CASES(NAME, BYTES, CLASS, WANTED, LOOP) \
    case SCAND_DTYPE_##NAME:                         \
        if (!(WANTED(SCAND_CLASS_##CLASS)))          \
            break;                                   \
        if (stride == BYTES)                         \
            LOOP(SCAND_DTYPE_##NAME, BYTES);         \
        else if (stride == -BYTES)                   \
            LOOP(SCAND_DTYPE_##NAME, -BYTES);        \
        else                                         \
            LOOP(SCAND_DTYPE_##NAME, stride);        \
        return;
#define LINE_SWITCH(DTYPE, CASES) \
    switch (DTYPE) {              \
        SCAND_DTYPES(CASES)       \
    case SCAND_DTYPE_COUNT:       \
        break;                    \
    }
#define LINE_IS_FLOAT(CLASS)   ((CLASS) == SCAND_CLASS_F32 || (CLASS) == SCAND_CLASS_F64)
#define LINE_IS_INTEGER(CLASS) (!LINE_IS_FLOAT(CLASS))

static inline void line_load_f32(enum scand_dtype dtype, const char *from, int64_t stride, uint64_t count,
                                 float *restrict to)
{
#define LOOP(DTYPE, STRIDE)              \
    for (uint64_t i = 0; i < count; i++) \
    to[i] = step_get_f32(DTYPE, from + (int64_t)i * (STRIDE))
#define X(NAME, WORD, BYTES, CLASS, ORDER) LINE_CASES(NAME, BYTES, CLASS, LINE_IS_FLOAT, LOOP)
    LINE_SWITCH(dtype, X)
#undef X
#undef LOOP
}

static inline void line_store_f32(enum scand_dtype dtype, const float *restrict from, uint64_t count, char *to,
                                  int64_t stride)
{
#define LOOP(DTYPE, STRIDE)              \
    for (uint64_t i = 0; i < count; i++) \
    step_put_f32(DTYPE, from[i], to + (int64_t)i * (STRIDE))
#define X(NAME, WORD, BYTES, CLASS, ORDER) LINE_CASES(NAME, BYTES, CLASS, LINE_IS_FLOAT, LOOP)
    LINE_SWITCH(dtype, X)
#undef X
#undef LOOP
}

static inline void line_load_f64(enum scand_dtype dtype, const char *from, int64_t stride, uint64_t count,
                                 double *restrict to)
{
#define LOOP(DTYPE, STRIDE)              \
    for (uint64_t i = 0; i < count; i++) \
    to[i] = step_get_f64(DTYPE, from + (int64_t)i * (STRIDE))
#define X(NAME, WORD, BYTES, CLASS, ORDER) LINE_CASES(NAME, BYTES, CLASS, LINE_IS_FLOAT, LOOP)
    LINE_SWITCH(dtype, X)
#undef X
#undef LOOP
}

static inline void line_store_f64(enum scand_dtype dtype, const double *restrict from, uint64_t count, char *to,
                                  int64_t stride)
{
#define LOOP(DTYPE, STRIDE)              \
    for (uint64_t i = 0; i < count; i++) \
    step_put_f64(DTYPE, from[i], to + (int64_t)i * (STRIDE))
#define X(NAME, WORD, BYTES, CLASS, ORDER) LINE_CASES(NAME, BYTES, CLASS, LINE_IS_FLOAT, LOOP)
    LINE_SWITCH(dtype, X)
#undef X
#undef LOOP
}

static inline void line_load_integers(enum scand_dtype dtype, const char *from, int64_t stride, uint64_t count,
                                      uint64_t *restrict to)
{
#define LOOP(DTYPE, STRIDE)              \
    for (uint64_t i = 0; i < count; i++) \
    to[i] = codec_decode_integer(DTYPE, from + (int64_t)i * (STRIDE))
#define X(NAME, WORD, BYTES, CLASS, ORDER) LINE_CASES(NAME, BYTES, CLASS, LINE_IS_INTEGER, LOOP)
    LINE_SWITCH(dtype, X)
#undef X
#undef LOOP
}

static inline void line_store_integers(enum scand_dtype dtype, const uint64_t *restrict from, uint64_t count, char *to,
                                       int64_t stride)
{
#define LOOP(DTYPE, STRIDE)              \
    for (uint64_t i = 0; i < count; i++) \
    codec_encode_integer(DTYPE, from[i], to + (int64_t)i * (STRIDE))
#define X(NAME, WORD, BYTES, CLASS, ORDER) LINE_CASES(NAME, BYTES, CLASS, LINE_IS_INTEGER, LOOP)
    LINE_SWITCH(dtype, X)
#undef X
#undef LOOP
}

#endif
