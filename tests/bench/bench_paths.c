/*
 * Measurements behind the table of kernels (kernels/cuda/select/select.c): for each of its rows a shape that takes that
 * row, by the path that is chosen and then by every other path that can take the shape. A path faster than the chosen
 * one says that the table is wrong on this device.
 */
#include <string.h>

#include "kernels/cuda/scan_cuda_by.h"
#include "tests/bench/job.h"

#define SUM     SCAND_OPERATOR_SUM
#define MAX     SCAND_OPERATOR_MAX
#define AFFINE  SCAND_OPERATOR_AFFINE
#define F32     SCAND_DTYPE_F32
#define F64     SCAND_DTYPE_F64
#define F16     SCAND_DTYPE_F16
#define I32     SCAND_DTYPE_I32
#define HEADER  240
#define ROWS    CASE_ROWS
#define COLUMNS CASE_COLUMNS
#define RAGGED  CASE_RAGGED
#define EACH    CASE_COEFFICIENTS

// clang-format off
static const struct bench_case cases[] = {
    /* op  dtype  passes      rows    samples  gap     layout   copies */
    {SUM,    F32, "fb",  33333333,         3, 0,      ROWS,    1,       {0}}, /* thread per row */
    {SUM,    F32, "fb",  20000000,         5, 0,      ROWS,    1,       {0}},
    {SUM,    F32, "fb",  12500000,         8, 0,      ROWS,    1,       {0}}, /* warp per rows; in f2 thread per row */
    {SUM,    F32, "fb",   5882352,        17, 0,      ROWS,    1,       {0}},
    {SUM,    F32, "fb",   4166666,        24, 0,      ROWS,    1,       {0}},
    {SUM,    F32, "fb",   3125000,        32, 0,      ROWS,    1,       {0}},
    {SUM,    F32, "fb",   3030303,        33, 0,      ROWS,    1,       {0}},
    {SUM,    F32, "fb",   2000000,        50, 0,      ROWS,    1,       {0}},
    {SUM,    F32, "fb",   1000000,       100, 0,      ROWS,    1,       {0}}, /* in f2 warp per rows, serial */
    {SUM,    F32, "fb",    781250,       128, 0,      ROWS,    1,       {0}},
    {SUM,    F32, "fb",    500000,       200, 0,      ROWS,    1,       {0}},
    {SUM,    F32, "fb",    390625,       256, 0,      ROWS,    1,       {0}},
    {SUM,    F32, "fb",    333333,       300, 0,      ROWS,    1,       {0}},
    {SUM,    F32, "fb",    200000,       500, 0,      ROWS,    1,       {0}},
    {SUM,    F32, "fb",    200000,       500, HEADER, ROWS,    1,       {0}}, /* warp per row */
    {SUM,    F32, "fb",    142857,       700, 0,      ROWS,    1,       {0}},
    {SUM,    F32, "fb",    100000,      1000, HEADER, ROWS,    1,       {0}},
    {SUM,    F32, "fb",     66666,      1500, 0,      ROWS,    1,       {0}},
    {SUM,    F32, "f",      10000,     10000, 0,      COLUMNS, 1,       {0}}, /* columns by TMA */
    {SUM,    F32, "fb",     10000,     10000, 0,      COLUMNS, 1,       {0}},
    {SUM,    F32, "f",      10000,     10007, 4,      COLUMNS, 1,       {0}}, /* direct */
    {SUM,    F32, "fb",     10000,     10007, 4,      COLUMNS, 1,       {0}},
    {SUM,    F32, "f",     100000,      1000, 0,      COLUMNS, 1,       {0}}, /* long columns; short ones; few */
    {SUM,    F32, "fb",       300,    333333, 0,      COLUMNS, 1,       {0}},
    {MAX,    F32, "f",      10000,     10000, 0,      COLUMNS, 1,       {0, CASE_LEFT_OUT, CASE_LEFT_OUT}},
    {MAX,    F32, "fb",     10000,     10000, 0,      COLUMNS, 1,       {0, CASE_LEFT_OUT, CASE_LEFT_OUT}},
    {SUM,    F64, "f",      10000,     10000, 0,      COLUMNS, 1,       {CASE_LEFT_OUT, 0, 0}},
    {SUM,    F64, "fb",     10000,     10000, 0,      COLUMNS, 1,       {CASE_LEFT_OUT, 0, 0}},
    {SUM,    I32, "f",      10000,     10000, 0,      COLUMNS, 1,       {0, CASE_LEFT_OUT, CASE_LEFT_OUT}},
    {SUM,    I32, "fb",     10000,     10000, 0,      COLUMNS, 1,       {0, CASE_LEFT_OUT, CASE_LEFT_OUT}},
    {SUM,    F16, "f",      10000,     10000, 0,      COLUMNS, 1,       {0, 0, CASE_LEFT_OUT}},
    {SUM,    F16, "fb",     10000,     10000, 0,      COLUMNS, 1,       {0, 0, CASE_LEFT_OUT}},
    {MAX,    F32, "fb",     10000,     10007, 4,      COLUMNS, 1,       {0, CASE_LEFT_OUT, CASE_LEFT_OUT}},
    {SUM,    F32, "fb",   1000000,       100, 0,      COLUMNS, 1,       {0}},
    {MAX,    F32, "fb",       100,   1000000, 0,      COLUMNS, 1,       {0, CASE_LEFT_OUT, CASE_LEFT_OUT}},
    {MAX,    F32, "fb",        10,  10000000, 0,      COLUMNS, 1,       {0, CASE_LEFT_OUT, CASE_LEFT_OUT}},
    {AFFINE, F32, "fb",     10000,     10000, 0,      COLUMNS, 1,       {0}},
    {SUM,    F32, "fb",     10000,     10000, 0,      ROWS,    1,       {0}}, /* block per row */
    {SUM,    F32, "fb",     10000,     10007, HEADER, ROWS,    1,       {0}},
    {SUM,    F32, "fb",      3000,     33333, 0,      ROWS,    1,       {0}}, /* cluster per row */
    {SUM,    F32, "fb",      1754,     57001, 0,      ROWS,    1,       {0}},
    {SUM,    F32, "fb",      1525,     65536, 0,      ROWS,    1,       {0}},
    {SUM,    F32, "fb",      1000,    100000, 0,      ROWS,    1,       {0}},
    {SUM,    F32, "fb",       400,    250000, 0,      ROWS,    1,       {0}},
    {SUM,    F32, "fb",       111,    900000, 0,      ROWS,    1,       {0}}, /* grid per row */
    {SUM,    F32, "f",          1, 100000000, 0,      ROWS,    1,       {0}},
    {SUM,    F32, "fb",         1, 100000000, 0,      ROWS,    1.5,     {0}},
    {SUM,    F32, "fb",    100000,      1000, 0,      RAGGED,  1,       {0}}, /* ragged rows */
    {AFFINE, F32, "fb",     10000,     10000, 0,      ROWS,    1,       {0}}, /* affine */
    {AFFINE, F32, "fb",      1754,     57001, 0,      ROWS,    1,       {0}},
    {AFFINE, F32, "fb",     10000,     10000, 0,      EACH,    1.5,     {0}},
    {AFFINE, F32, "fb",      1754,     57001, 0,      EACH,    1.5,     {0}},
    {SUM,    F16, "fb",      1754,     57001, 0,      ROWS,    1,       {0, 0, CASE_LEFT_OUT}}, /* any cluster */
    {SUM,    F64, "fb",      1754,     57001, 0,      ROWS,    1,       {CASE_LEFT_OUT, 0, CASE_LEFT_OUT}},
    {MAX,    F32, "fb",      1754,     57001, 0,      ROWS,    1,       {0, CASE_LEFT_OUT, CASE_LEFT_OUT}},
    {SUM,    F64, "fb",       111,    900000, 0,      ROWS,    1,       {CASE_LEFT_OUT, 0, CASE_LEFT_OUT}}, /* any grid */
    {MAX,    F32, "fb",       111,    900000, 0,      ROWS,    1,       {0, CASE_LEFT_OUT, CASE_LEFT_OUT}},
    {AFFINE, F32, "fb",   1000000,       100, 0,      ROWS,    1,       {0}},                   /* any packed */
    {SUM,    F16, "fb",     10000,     10000, 0,      ROWS,    1,       {0, 0, CASE_LEFT_OUT}}, /* any layout */
    {SUM,    F64, "fb",     10000,     10000, 0,      ROWS,    1,       {CASE_LEFT_OUT, 0, CASE_LEFT_OUT}},
    {MAX,    F32, "fb",     10000,     10000, 0,      ROWS,    1,       {0, CASE_LEFT_OUT, CASE_LEFT_OUT}},
};
// clang-format on

/* Measures the chosen path, then the others. A path that the device has no room for is left out. */
static int paths_measure(struct job_memory *memory, const struct job *chosen, struct bench_row row,
                         struct bench_table *table)
{
    int error = job_measure(memory, chosen, row, table);
    const char *const first = error ? "" : table->rows[table->count - 1].kernel;
    for (int path = 0; path < SELECT_PATH_COUNT && !error; path++) {
        struct job job = *chosen;
        job.path = (enum select_path)path;
        if (strcmp(first, select_word(job.path)) != 0 && job_can(memory, &job))
            error = job_measure(memory, &job, row, table);
        error = error == SELECT_NO_ROOM ? 0 : error;
    }
    return error;
}

int bench_paths(struct bench_table *table)
{
    int error = job_fail("scan_cuda_init", scan_cuda_init());
    for (size_t i = 0; i < sizeof cases / sizeof cases[0] && !error; i++)
        error = job_case_measure(&cases[i], paths_measure, table);
    return error;
}
