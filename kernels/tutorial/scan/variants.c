/*
 * The list of variants, for builds with and without CUDA.
 */
#include "kernels/tutorial/scan/variants.h"

#include <assert.h>
#include <string.h>

#include "kernels/scan.h"

enum { CPU = true, CUDA = false };
enum { VARIES = false, FIXED = true };

#define X(SYMBOL, NAME, WHERE, ACCUMULATORS, ORDER, WORKSPACE, TEACHES) {NAME, TEACHES, ACCUMULATORS, WHERE, ORDER},
const struct variant variant_list[VARIANT_COUNT] = {VARIANTS(X)};
#undef X

int variant_find(const char *name)
{
    for (int i = 0; i < VARIANT_COUNT; i++)
        if (strcmp(variant_list[i].name, name) == 0)
            return i;
    return -1;
}

/* The functions of the variants for the processor. A build without CUDA links only the names of the others. */
#define RUN_CPU(SYMBOL)                                                 SYMBOL
#define RUN_CUDA(SYMBOL)                                                NULL
#define X(SYMBOL, NAME, WHERE, ACCUMULATORS, ORDER, WORKSPACE, TEACHES) RUN_##WHERE(SYMBOL),
static int (*const cpu_runs[VARIANT_COUNT])(const struct variant_scan *scan, void *workspace,
                                            struct CUstream_st *stream) = {VARIANTS(X)};
#undef X

void variant_run_cpu(enum variant_id id, const struct variant_scan *scan)
{
    assert(variant_list[id].on_cpu && variant_list[id].accumulators >> scan->accumulator & 1);
    cpu_runs[id](scan, NULL, NULL);
}

struct variant_scan variant_scan_from(const struct scan_rows *rows, uint64_t first, uint64_t count)
{
    int64_t row_bytes = (int64_t)(rows->length * sizeof(float));
    assert(rows->outer_rank <= 1);
    struct variant_scan scan = {
        .input = (const float *)((const char *)rows->input + scan_row_offset(rows, rows->input_outer_strides, first)),
        .output = (float *)((char *)rows->output + scan_row_offset(rows, rows->output_outer_strides, first)),
        .rows = count,
        .length = rows->length,
        .input_pitch = rows->outer_rank ? rows->input_outer_strides[0] : row_bytes,
        .output_pitch = rows->outer_rank ? rows->output_outer_strides[0] : row_bytes,
        .pass_count = rows->rule.pass_count,
        .accumulator = rows->rule.accumulator,
    };
    memcpy(scan.passes, rows->rule.passes, sizeof scan.passes);
    return scan;
}

uint64_t variant_no_workspace(const struct variant_scan *scan)
{
    (void)scan;
    return 0;
}
