/*
 * Stands in for the variants' code for CUDA where that was not built (SCAND_TUTORIAL): every run is refused.
 */
#include <driver_types.h>

#include "kernels/tutorial/reduce/reduce.h"
#include "kernels/tutorial/scan/variants.h"
#include "kernels/tutorial/steps/steps.h"

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

int step_variant_launch(enum step_variant_id id, const struct step_rows *rows, const void *params,
                        const struct step_tiles *tiles, uint64_t begin, uint64_t end, void *stream)
{
    (void)id;
    (void)rows;
    (void)params;
    (void)tiles;
    (void)begin;
    (void)end;
    (void)stream;
    return cudaErrorNotSupported;
}
