/*
 * Cases of steps in tiles: operands of any dtype and layout, filled at random. step_case_check computes a case by the
 * reference and by every implementation that this machine has, and compares all memory bit by bit, gaps and guards
 * included. They are: each build of the CPU path, other tilings, a pool of threads that is left off again and again,
 * CUDA in device memory and in mapped memory. With sanitizers most of the large cases are left to builds without them.
 */
#ifndef TESTS_KERNELS_STEP_CASE_H
#define TESTS_KERNELS_STEP_CASE_H

#include <stdbool.h>

#include "kernels/steps/step.h"

/* The layouts of an operand's rows: one after the other; with gaps, misaligned; neighbours in memory are neighbouring
 * rows; from the last to the first; every third element; all rows, or those of a plane, the same elements (not of an
 * output). */
#define STEP_LAYOUTS(X) X(DENSE) X(PITCHED) X(COLUMNS) X(REVERSED) X(SPACED) X(SHARED)
#define X(NAME)         LAYOUT_##NAME,
enum step_layout { STEP_LAYOUTS(X) LAYOUT_COUNT };
#undef X

/* Floats in -1 to 1; some infinities, NaNs, zeros and denormals among them; large next to small ones; 2^-100
 * and -2^-100, whose products are 0 or -0 in f32; 1 and -1, so that sums are exact in any order; places in a row of
 * `below` samples and some beyond, and widths in it up to a tenth, of both some whole ones. Integer operands get
 * integers of any bits, or from 0 to below `below` where that is not 0: at random, in ascending or descending order,
 * even ones alone, or one alone. */
enum step_fill { STEP_NOISE, STEP_SPECIALS, STEP_SPREAD, STEP_TINY, STEP_ONES, STEP_PLACES, STEP_WIDTHS };
enum step_order { STEP_RANDOM, STEP_ASCENDING, STEP_DESCENDING, STEP_EVEN, STEP_SAME, STEP_ORDER_COUNT };

struct step_case_operand {
    bool given; /* whether a further operand is given */
    enum scand_dtype dtype;
    uint64_t length; /* for ragged rows: 0: on the line, else the elements of each row */
    enum step_layout layout;
    enum step_fill fill;
    enum step_order order;
    uint64_t below;
};

struct step_case {
    const struct step_kernel *kernel;
    step_launch *launch; /* replaces the kernel's own launch on CUDA devices; or NULL */
    const void *params;
    size_t params_bytes;
    uint64_t row_count;
    uint64_t planes;         /* rows have two dimensions, the first one of so many; 0: they have one */
    const uint64_t *offsets; /* offsets of ragged rows, or NULL */
    bool in_place;
    unsigned onto; /* 1 + the number of the further operand that the output adds to; 0: none */
    struct step_case_operand input, output, further[STEP_FURTHER_MAX];
};

/* Prints what differs, and the case. */
bool step_case_check(const struct step_case *test_case, uint64_t *random);

/* True when a CUDA device is among the implementations. */
bool step_case_has_cuda(void);

#endif
