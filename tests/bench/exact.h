/*
 * A scan's sums by exact arithmetic, and how far from them the outputs are.
 *
 * Compared is each output with the exact sum of what its pass was given. With two passes the second is given what an
 * exact first one leaves: exact sums, each rounded once to the intermediate type, as the scan's contract has it. So an
 * accumulator that loses nothing has every output correctly rounded, and the rounding between the passes, which is the
 * user's choice, is not held against it; what an accumulator loses in the first pass is. Near zero, where sums of both
 * signs cancel, a small error is many units of the last place.
 *
 * Sums of whole numbers are exact in any order. A sample must be a whole number of 2^-62 and at most 1; then sums of n
 * samples are at most n, and sums of n of those at most n^2, which up to n = 2^32 is less than the 2^65 that 127 bits
 * of 2^-62 hold. Rounding a whole number of 2^-62 to f32 or f64 leaves one.
 */
#ifndef TESTS_BENCH_EXACT_H
#define TESTS_BENCH_EXACT_H

#include "kernels/scan.h"

/* Samples first <= i < first + count of a row, decoded, valid until the next call; NULL after a failure. */
struct exact_source {
    const double *(*read)(struct exact_source *source, uint64_t row, uint64_t first, uint64_t count);
};

struct exact_sides {
    struct exact_source *input, *output;
};

struct exact_result {
    uint64_t checked;  /* outputs */
    uint64_t rounded;  /* compared outputs that are correctly rounded */
    double worst_ulps; /* units of the last place that the exact sum has in the output's type */
};

/*
 * Compares the outputs of rows 0 <= r < row_count with exact inclusive sums of the inputs, and adds to the result; of
 * rows of millions of samples every 17th output. Each of the threads has sides of its own. Returns 0, or -EIO when a
 * source fails, -EDOM for a sample that is not such a whole number, -ENOMEM, -EAGAIN when a thread does not start.
 */
int exact_compare(const struct scan_rule *rule, uint64_t row_count, uint64_t length, const struct exact_sides *sides,
                  unsigned threads, struct exact_result *result);

/* Compares sums of whole rows in f64, on the calling thread: the output's row r has one value. */
int exact_compare_totals(uint64_t row_count, uint64_t length, const struct exact_sides *sides,
                         struct exact_result *result);

#endif
