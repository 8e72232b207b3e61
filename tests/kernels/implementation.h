/*
 * Implementations that are compared with the reference: each way to compute a scan, under a name.
 */
#ifndef TESTS_KERNELS_IMPLEMENTATION_H
#define TESTS_KERNELS_IMPLEMENTATION_H

#include <stdbool.h>

#include "kernels/scan.h"

/* All memory that a scan may touch, with the guards around it. In place, output is input. Coefficients may be NULL. */
struct scan_memory {
    void *input, *output;
    const void *coefficients;
    size_t input_bytes, output_bytes, coefficient_bytes;
};

/*
 * An implementation of scans. run scans rows first <= r < first + count, whose addresses lie in `memory`, and returns 0
 * for success. An implementation that works in other memory copies the regions there whole, keeping the distances of
 * the addresses from the regions, scans, and copies the output region back whole, so that a stray write is seen.
 */
struct implementation {
    const char *name; /* "cpu_build_avx512", "cuda", ... */
    bool (*available)(void);
    int (*run)(const struct scan_rows *rows, uint64_t first, uint64_t count, const struct scan_memory *memory);
};

/* Names begin with "cpu", those of one build without a pool with "cpu_build". */
extern const struct implementation cpu_implementations[];
extern const size_t cpu_implementation_count;

/* The implementations for CUDA, only when built with SCAND_HAVE_CUDA. Names begin with "cuda", except "together": small
 * parts in one launch, "ranges": long rows a few order blocks at a time, and "streams": scans on two streams at once.
 */
extern const struct implementation cuda_implementations[];
extern const size_t cuda_implementation_count;

/* Choices of paths, only when built with SCAND_HAVE_CUDA. "paths": every path that can take the rows, one after the
 * other; "capability_80" and others: the paths that a device of that compute capability chooses. */
extern const struct implementation cuda_choices[];
extern const size_t cuda_choice_count;

#endif
