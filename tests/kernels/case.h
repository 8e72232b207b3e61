/*
 * A case: a rule, the shape and layout of a tensor, and what it is filled with. case_check runs implementations and the
 * reference on equal memory and compares all of it, guards and gaps included.
 */
#ifndef TESTS_KERNELS_CASE_H
#define TESTS_KERNELS_CASE_H

#include "tests/kernels/implementation.h"

#define COUNT(ARRAY) (sizeof(ARRAY) / sizeof((ARRAY)[0]))

/* The layout of an array in memory. The strides of the axes grow from the last one to the first, or, columns first,
 * from the first to the last. */
struct layout {
    const char *name;
    unsigned offset;      /* bytes from an aligned address to the array */
    unsigned element_gap; /* bytes between elements of the innermost axis */
    unsigned axis_gap;    /* bytes between elements that are one index apart in any other axis, such as trace headers */
    bool columns_first;
    unsigned negative; /* bit i: the stride of axis i is negative */
};

#define FILLS(X)                                                                            \
    X(NOISE)       /* uniform in -1 to 1, with an offset */                                 \
    X(EXPONENTS)   /* exponents from all over the range */                                  \
    X(SPECIALS)    /* noise with a few NaNs of any bits, infinities, zeros and denormals */ \
    X(INFINITIES)  /* noise with a few infinities */                                        \
    X(ENDS)        /* specials, one in eight */                                             \
    X(HUGE_VALUES) /* sums overflow */                                                      \
    X(DENORMALS)                                                                            \
    X(ZEROS)    /* zeros of both signs, mostly negative */                                  \
    X(NEAR_ONE) /* numbers of both signs: products stay in range */                         \
    X(SPREAD)   /* noise, a bit wider: sums of f2 come close to rounding, or round */       \
    X(STEPS)    /* few values, so that many are equal */

/* Fills for f64 samples alone; other samples get noise. */
#define FILLS_F64(X)                                                                 \
    X(F64_RANGE)    /* exponents from all over the range, those of denormals, too */ \
    X(F64_OUTLIERS) /* tiny values, a few usual ones, very few huge ones */          \
    X(F64_DENORMALS)

#define X(NAME) FILL_##NAME,
enum fill { FILLS(X) FILL_COUNT, FILL_BEFORE_F64 = FILL_COUNT - 1, FILLS_F64(X) FILL_END };
#undef X

struct scan_case {
    struct scan_rule rule;
    uint32_t rank, axis;
    uint64_t shape[SCAND_RANK_MAX];
    struct layout input, output; /* the output's is unused in place */
    bool in_place;
    enum fill fill;
    uint64_t first, count;   /* rows that are scanned; count 0: all */
    const uint64_t *offsets; /* offsets of ragged rows along the only axis, row_count + 1 of them; or NULL */
    uint64_t row_count;
    /* For affine: coefficients for each sample, of the input's type unless the rule says another, in this layout and
     * with this fill. Bit i of broadcast: all coefficients along axis i are the same. */
    bool has_coefficients;
    struct layout coefficients;
    unsigned broadcast;
    enum fill coefficient_fill;
};

/* A rule in words: passes as "f", "fb", ..., the rest by name. */
struct scan_rule rule_of(const char *passes, enum scand_kind kind, enum scand_accumulator accumulator,
                         enum scand_dtype intermediate, enum scand_dtype output);

struct scan_rule rule_with_op(struct scan_rule rule, enum scand_operator op);

/* Fills an array with samples. */
void fill_samples(enum fill fill, uint64_t *random, float *samples, uint64_t count);

/* True when each of the implementations returns the reference's bits and touches nothing else. Prints what differs, and
 * the case. */
bool case_check(const struct scan_case *test_case, const struct implementation *const list[], unsigned count,
                uint64_t *random);

#endif
