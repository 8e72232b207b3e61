/*
 * Samples in device memory, of every dtype and layout: filled with noise, fetched for a look at them, compared.
 * Functions return a cudaError_t where nothing else is said.
 */
#ifndef TESTS_BENCH_SAMPLES_H
#define TESTS_BENCH_SAMPLES_H

#include <cuda_runtime.h>

#include "kernels/scan.h"
#include "tests/bench/exact.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Fills the whole of a region with noise: uniform between -1 and 1, for f16 between -1/64 and 1/64 so that double sums
 * of 10,000 samples stay in its range, for integers between -2^31 and 2^31. All are whole numbers of 2^-62, as exact.h
 * needs. Zeros would be faster to move than data.
 */
int samples_noise(void *region, enum scand_dtype dtype, uint64_t count);

/* Finds whether two regions, 4-byte aligned, hold the same bits. */
int samples_compare(const void *a, const void *b, uint64_t bytes, bool *same);

/* The places of samples: sample i of row r has the address base + r * row_stride + i * stride. */
struct samples_side {
    const void *base;
    enum scand_dtype dtype;
    int64_t row_stride, stride;
};

/*
 * Some rows of a side, evenly spread, as the rows 0, 1, ... of an exact_source: row r is the side's row r * row_step.
 * It fetches as many rows at a time as its memory holds. `source` comes first.
 */
struct samples_reader {
    struct exact_source source;
    struct samples_side side;
    uint64_t rows, length, row_step;
    double *device, *host;
    uint64_t row, first, fetched_rows, fetched; /* the contents of `host`: so many rows, so many samples of each */
};

/* Samples longer than this are read in pieces. */
#define SAMPLES_AT_ONCE (UINT64_C(1) << 20)

/* Initializes a reader; after a failure there is nothing to finish. */
int samples_reader_init(struct samples_reader *reader, const struct samples_side *side, uint64_t rows, uint64_t length,
                        uint64_t row_step);
void samples_reader_finish(struct samples_reader *reader);

#ifdef __cplusplus
}
#endif

#endif
