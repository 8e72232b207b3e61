/*
 * In place of the variants' code for CUDA, where it was not built (SCAND_TUTORIAL): every run is refused.
 */
#include <driver_types.h>

#include "kernels/tutorial/reduce/reduce.h"
#include "kernels/tutorial/scan/variants.h"

uint64_t variant_workspace_bytes(enum variant_id id, const struct variant_scan *scan)
{
    (void)id;
    (void)scan;
    return 0;
}

int variant_run(enum variant_id id, const struct variant_scan *scan, void *workspace, struct CUstream_st *stream)
{
    (void)id;
    (void)scan;
    (void)workspace;
    (void)stream;
    return cudaErrorNotSupported;
}

int reduction_run(enum reduction_id id, const struct reduce_rows *rows, void *workspace, struct CUstream_st *stream)
{
    (void)id;
    (void)rows;
    (void)workspace;
    (void)stream;
    return cudaErrorNotSupported;
}
