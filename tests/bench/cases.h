/*
 * The cases in which `scand-bench kernels` measures the default path, one row each: to measure another, add a row to
 * the list in cases.c.
 */
#ifndef TESTS_BENCH_CASES_H
#define TESTS_BENCH_CASES_H

#include "kernels/scan.h"

#define CASE_ACCUMULATORS 3 /* f32, f64, f2; for integers the first is exact */
#define CASE_LEFT_OUT     (-1.0)

/*
 * CASE_COLUMNS: an array of rows x length that is scanned along its first axis. CASE_RAGGED: rows one after the other,
 * with lengths by Pareto's law, `length` on average. CASE_COEFFICIENTS: rows of samples that each have a coefficient.
 */
enum case_layout { CASE_ROWS, CASE_COLUMNS, CASE_RAGGED, CASE_COEFFICIENTS };

struct bench_case {
    enum scand_operator op;
    enum scand_dtype dtype; /* in and out */
    const char *passes;     /* "f", "fb" */
    uint64_t rows, length;
    uint64_t gap_bytes; /* between rows, such as a trace header */
    enum case_layout layout;
    double copies;                     /* the least work takes as long as so many copies of all samples */
    double targets[CASE_ACCUMULATORS]; /* shares of the speed of copies; 0: none; CASE_LEFT_OUT: not measured */
};

/* The begins of ragged rows and, one more, the end of the last one. */
struct case_offsets {
    uint64_t *starts;
    uint64_t rows, longest;
};

extern const struct bench_case bench_cases[];
extern const size_t bench_case_count;

/* Rows of the case without addresses; accumulator number 0 to CASE_ACCUMULATORS - 1; `offsets` of case_offsets. */
struct scan_rows case_rows(const struct bench_case *c, int accumulator, const struct case_offsets *offsets);
/* Makes the offsets of a ragged case; other cases have none. Returns 0 or -ENOMEM; the caller frees `starts`. */
int case_offsets_make(const struct bench_case *c, struct case_offsets *offsets);
uint64_t case_sample_bytes(const struct bench_case *c); /* bytes of all samples */
uint64_t case_region_bytes(const struct bench_case *c); /* bytes of all samples with the gaps */
void case_name(const struct bench_case *c, char name[40]);
void case_shape(const struct bench_case *c, char shape[40]);

#endif
