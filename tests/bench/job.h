/*
 * A scan in device memory, measured: its time beside that of a copy of its samples, whether two runs give the same bits
 * in all of the output, and some rows of it compared with exact sums. Functions return 0, a cudaError_t or a negative
 * errno.
 */
#ifndef TESTS_BENCH_JOB_H
#define TESTS_BENCH_JOB_H

#include "kernels/cuda/scan_cuda_by.h"
#include "kernels/scan.h"
#include "tests/bench/bench.h"
#include "tests/bench/cases.h"
#include "tests/bench/stopwatch.h"

/* Memory of the jobs of one shape: an input of noise, two outputs, and how long a copy takes there. */
struct job_memory {
    struct stopwatch stopwatch;
    char *input, *output, *again;
    uint64_t region_bytes;
    double copy_ms;
    char copy_name[40];
};

/* Appends the copy to the table if it is the first of its size. -ENOSPC: the device has not as much memory. */
int job_memory_init(struct job_memory *memory, enum scand_dtype dtype, uint64_t region_bytes, uint64_t sample_bytes,
                    struct bench_table *table);
void job_memory_finish(struct job_memory *memory);

#define JOB_DEFAULT_PATH (-1)

struct job {
    struct scan_rows rows; /* without addresses */
    int variant;           /* an enum variant_id, or JOB_DEFAULT_PATH, and then: */
    enum select_path path; /* SCAN_BY_TABLE, or a forced one, whose sums are not compared with exact ones */
    uint64_t offset;       /* offset of sample 0 of row 0 in all regions */
    bool has_coefficients; /* coefficients are noise, placed like samples, in a region of their own */
    double copies;         /* the least work takes as long as so many copies */
};

/* Fills what a row of the table has of measurements, and appends it; its names, shape and target are given. */
int job_measure(struct job_memory *memory, const struct job *job, struct bench_row row, struct bench_table *table);

/* True when a forced path can scan the job's rows. */
bool job_can(const struct job_memory *memory, const struct job *job);

/* A case with each accumulator, by job_measure or what calls that. */
typedef int job_measurer(struct job_memory *memory, const struct job *job, struct bench_row row,
                         struct bench_table *table);
int job_case_measure(const struct bench_case *c, job_measurer *measure, struct bench_table *table);

/* Says on stderr what did not go well; returns whether there was anything. */
int job_fail(const char *what, int error);

#endif
