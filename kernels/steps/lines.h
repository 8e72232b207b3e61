/*
 * Lines, for the CPU code of operations whose elements are computed alike: a tile as lines of elements that lie close
 * together, which are computed in groups. A group's samples are decoded into an array, computed there and encoded, so
 * that every loop is over arrays, which compilers make vectors of, whatever the dtypes and wherever the operands lie.
 */
#ifndef KERNELS_STEPS_LINES_H
#define KERNELS_STEPS_LINES_H

#include "kernels/steps/elements.h"

#define LINE_GROUP 256 /* elements: three arrays of f64 stay in the first cache */

/* CASES(NAME, WORD, BYTES, CLASS, ORDER) is the case of a dtype. */
#define LINE_SWITCH(DTYPE, CASES) \
    switch (DTYPE) {              \
        SCAND_DTYPES(CASES)       \
    case SCAND_DTYPE_COUNT:       \
        break;                    \
    }
#define LINE_IS_FLOAT(CLASS)   ((CLASS) == SCAND_CLASS_F32 || (CLASS) == SCAND_CLASS_F64)
#define LINE_IS_INTEGER(CLASS) (!LINE_IS_FLOAT(CLASS))

/*
 * Elements from memory to an array and back: of floats as f32 and as f64, rounded where they must be, and of integers.
 * Operations of one instruction set share them (lines.c).
 */
#define line_load_f32       STEP_CPU(line_load_f32)
#define line_load_f64       STEP_CPU(line_load_f64)
#define line_load_integers  STEP_CPU(line_load_integers)
#define line_store_f32      STEP_CPU(line_store_f32)
#define line_store_f64      STEP_CPU(line_store_f64)
#define line_store_integers STEP_CPU(line_store_integers)

void line_load_f32(enum scand_dtype dtype, const char *from, int64_t stride, uint64_t count, float *restrict to);
void line_load_f64(enum scand_dtype dtype, const char *from, int64_t stride, uint64_t count, double *restrict to);
void line_load_integers(enum scand_dtype dtype, const char *from, int64_t stride, uint64_t count,
                        uint64_t *restrict to);
void line_store_f32(enum scand_dtype dtype, const float *restrict from, uint64_t count, char *to, int64_t stride);
void line_store_f64(enum scand_dtype dtype, const double *restrict from, uint64_t count, char *to, int64_t stride);
void line_store_integers(enum scand_dtype dtype, const uint64_t *restrict from, uint64_t count, char *to,
                         int64_t stride);

/* Floats as an array: the memory itself where it is one, else `array`, into which they are loaded. */
#define LINE_SEE(NAME, TYPE, DTYPE)                                                                     \
    static inline const TYPE *line_see_##NAME(enum scand_dtype dtype, const char *from, int64_t stride, \
                                              uint64_t count, TYPE *restrict array)                     \
    {                                                                                                   \
        if (dtype == (DTYPE) && stride == (int64_t)sizeof(TYPE) && (uintptr_t)from % sizeof(TYPE) == 0) \
            return (const TYPE *)from;                                                                  \
        line_load_##NAME(dtype, from, stride, count, array);                                            \
        return array;                                                                                   \
    }
LINE_SEE(f32, float, SCAND_DTYPE_F32)
LINE_SEE(f64, double, SCAND_DTYPE_F64)

#endif
