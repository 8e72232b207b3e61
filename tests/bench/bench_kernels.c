/*
 * The default path in device memory, against a copy of the same bytes: one read and one write of every sample are the
 * least that a scan can do. Then the variants on the main job, and reductions of rows.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/cuda/scan_cuda.h"
#include "tests/bench/cases.h"
#include "tests/bench/job.h"
#include "tests/bench/variants.h"

#define MAIN_LENGTH 10000 /* of the main job's rows */

static const char *accumulator_word(enum scand_accumulator accumulator)
{
#define X(NAME, WORD) WORD,
    static const char *const words[] = {SCAND_ACCUMULATORS(X)};
#undef X
    return words[accumulator];
}

static int case_measure(const struct bench_case *c, struct bench_table *table)
{
    struct job_memory memory;
    struct case_offsets offsets;
    struct bench_row row = {0};
    case_name(c, row.name);
    case_shape(c, row.shape);
    int error = job_memory_init(&memory, c->dtype, case_region_bytes(c), case_sample_bytes(c), table);
    if (error == -ENOSPC) {
        fprintf(stderr, "scand-bench: %s, %s is left out: the device has no memory for three times %.1f GB\n", row.name,
                row.shape, (double)case_region_bytes(c) / 1e9);
        return 0;
    }
    if (error)
        return job_fail(row.shape, error);
    error = case_offsets_make(c, &offsets);
    for (int i = 0; i < CASE_ACCUMULATORS && !error; i++) {
        struct job job = {.rows = case_rows(c, i, &offsets),
                          .variant = JOB_DEFAULT_PATH,
                          .offset = c->gap_bytes,
                          .has_coefficients = c->layout == CASE_COEFFICIENTS,
                          .copies = c->copies};
        row.target = c->targets[i];
        snprintf(row.accumulator, sizeof row.accumulator, "%s", accumulator_word(job.rows.rule.accumulator));
        if (c->targets[i] != CASE_LEFT_OUT)
            error = job_measure(&memory, &job, row, table);
    }
    free(offsets.starts);
    job_memory_finish(&memory);
    return job_fail(row.shape, error);
}

int bench_kernels(struct bench_table *table)
{
    int error = job_fail("scan_cuda_init", scan_cuda_init());
    for (size_t i = 0; i < bench_case_count && !error; i++)
        error = case_measure(&bench_cases[i], table);
    if (!error)
        error = variants_measure(MAIN_LENGTH, table);
    if (!error)
        error = variant_serial_measure(MAIN_LENGTH, table);
    return error ? error : bench_row_reductions(table);
}
