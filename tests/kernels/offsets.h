/*
 * Offsets of ragged rows, as tests want them.
 */
#ifndef TESTS_KERNELS_OFFSETS_H
#define TESTS_KERNELS_OFFSETS_H

#include <stdint.h>

#define RAGGED_ROWS_MAX 600

/* Lengths of ragged rows: some kind of them each. */
#define RAGGED_KINDS(X)                                                                              \
    X(PARETO)  /* lengths from 33 on, of mean 100, with a long tail */                               \
    X(TINY)    /* lengths from 0 to 20 */                                                            \
    X(BORDERS) /* lengths around the sizes of the tree's groups, up to a block, and empty rows */    \
    X(MIXED)   /* rows of all sorts side by side: one in sixteen has several blocks */               \
    X(LEVELS)  /* short rows beside some of about as many order blocks as a level of the tree has */ \
    X(EACH)    /* one or two rows of each size that kernels take apart */                            \
    X(EMPTY)   /* no samples at all */                                                               \
    X(ONE)     /* a single row, of several levels above a block */

enum ragged_kind {
#define X(NAME) RAGGED_##NAME,
    RAGGED_KINDS(X) RAGGED_KIND_COUNT
#undef X
};

/* Fills in the offsets of a kind; the first one is a few samples in. `random`: the state of random_next. Returns the
 * number of rows. */
uint64_t ragged_offsets(enum ragged_kind kind, uint64_t *random, uint64_t offsets[RAGGED_ROWS_MAX + 1]);

#endif
