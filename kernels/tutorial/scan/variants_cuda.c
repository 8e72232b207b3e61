/*
 * The code of the variants, by their place in the list.
 */
#include <cuda_runtime.h>

#include "kernels/tutorial/scan/variants.h"

static const struct code {
    int (*run)(const struct variant_scan *scan, void *workspace, struct CUstream_st *stream);
    uint64_t (*workspace_bytes)(const struct variant_scan *scan);
} codes[VARIANT_COUNT] = {
#define X(SYMBOL, NAME, WHERE, ACCUMULATORS, ORDER, WORKSPACE, TEACHES) {SYMBOL, WORKSPACE},
    VARIANTS(X)
#undef X
};

static bool nothing_to_do(const struct variant_scan *scan)
{
    return scan->rows == 0 || scan->length == 0;
}

uint64_t variant_workspace_bytes(enum variant_id id, const struct variant_scan *scan)
{
    return nothing_to_do(scan) ? 0 : codes[id].workspace_bytes(scan);
}

int variant_run(enum variant_id id, const struct variant_scan *scan, void *workspace, struct CUstream_st *stream)
{
    if (!(variant_list[id].accumulators >> scan->accumulator & 1))
        return cudaErrorNotSupported;
    if (scan->length > VARIANT_LENGTH_MAX)
        return cudaErrorInvalidValue;
    return nothing_to_do(scan) ? cudaSuccess : codes[id].run(scan, workspace, stream);
}
