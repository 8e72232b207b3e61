/*
 * The default path in device memory, against a copy of the same bytes: one read and one write of every sample are the
 * least that a scan can do. Then the variants on the main job, and reductions of rows.
 */
#include "kernels/cuda/scan_cuda.h"
#include "tests/bench/cases.h"
#include "tests/bench/job.h"
#include "tests/bench/variants.h"

#define MAIN_LENGTH 10000 /* length of the main job's rows */

int bench_kernels(struct bench_table *table)
{
    int error = job_fail("scan_cuda_init", scan_cuda_init());
    for (size_t i = 0; i < bench_case_count && !error; i++)
        error = job_case_measure(&bench_cases[i], job_measure, table);
    if (!error)
        error = variants_measure(MAIN_LENGTH, table);
    if (!error)
        error = variant_serial_measure(MAIN_LENGTH, table);
    return error ? error : bench_row_reductions(table);
}
