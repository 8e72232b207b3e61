/*
 * The variants of the scan by name, forward then backward, for the main job's shape and for few long rows, against a
 * copy of the same bytes; then those of operations in tiles.
 */
#include <stdio.h>
#include <string.h>

#include "kernels/tutorial/scan/variants.h"
#include "tests/bench/job.h"
#include "tests/bench/step_cases.h"
#include "tests/bench/variants.h"

#define SAMPLES     100000000
#define BYTES       (SAMPLES * sizeof(float))
#define LENGTH      10000
#define LONG_LENGTH 1000000

static struct scan_rows rows_of(uint64_t length, enum scand_accumulator accumulator)
{
    int64_t pitch = (int64_t)(length * sizeof(float));
    return (struct scan_rows){
        .rule = {.passes = {SCAND_PASS_FORWARD, SCAND_PASS_BACKWARD}, .pass_count = 2, .accumulator = accumulator},
        .length = length,
        .row_count = SAMPLES / length,
        .outer_rank = 1,
        .outer_shape = {SAMPLES / length},
        .input_outer_strides = {pitch},
        .output_outer_strides = {pitch},
        .input_stride = sizeof(float),
        .output_stride = sizeof(float),
    };
}

/* True when a case is to be measured: long rows only for sums in f32, and not by a lane alone, which takes a second for
 * each. */
static bool is_wanted(enum variant_id id, uint64_t length, enum scand_accumulator accumulator)
{
    const struct variant *variant = &variant_list[id];
    if (length > LENGTH && (accumulator != SCAND_ACCUMULATOR_F32 || strncmp(variant->name, "smem", 4) == 0))
        return false;
    return !variant->on_cpu && variant->accumulators >> accumulator & 1;
}

static int variant_measure(struct job_memory *memory, enum variant_id id, uint64_t length, struct bench_table *table)
{
#define X(NAME, WORD) WORD,
    static const char *const words[] = {SCAND_ACCUMULATORS(X)};
#undef X
    int error = 0;
    for (enum scand_accumulator a = 0; a < SCAND_ACCUMULATOR_COUNT && !error; a++) {
        struct job job = {.rows = rows_of(length, a), .variant = (int)id, .path = SCAN_BY_TABLE, .copies = 1};
        struct bench_row row = {0};
        snprintf(row.name, sizeof row.name, "%s fb", variant_list[id].name);
        snprintf(row.shape, sizeof row.shape, "%llu x %llu", (unsigned long long)job.rows.row_count,
                 (unsigned long long)length);
        snprintf(row.accumulator, sizeof row.accumulator, "%s", words[a]);
        if (is_wanted(id, length, a))
            error = job_measure(memory, &job, row, table);
    }
    return error;
}

int variants_measure(uint64_t length, struct bench_table *table)
{
    struct job_memory memory;
    int error = job_memory_init(&memory, SCAND_DTYPE_F32, BYTES, BYTES, table);
    if (error)
        return job_fail("memory for the variants", error);
    for (enum variant_id id = 0; id < VARIANT_COUNT && !error; id++)
        error = job_fail(variant_list[id].name, variant_measure(&memory, id, length, table));
    job_memory_finish(&memory);
    return error;
}

int bench_variants(struct bench_table *table)
{
    int error = variants_measure(LENGTH, table);
    if (!error)
        error = variant_serial_measure(LENGTH, table);
    if (!error)
        error = variants_measure(LONG_LENGTH, table);
    return error ? error : bench_step_variants(table);
}
