/*
 * The code of the reductions, by their place in the list.
 */
#include <cuda_runtime.h>

#include "kernels/tutorial/reduce/reduce.h"

static int (*const codes[REDUCTION_COUNT])(const struct reduce_rows *rows, void *workspace,
                                           struct CUstream_st *stream) = {
#define X(SYMBOL, NAME, OPS, SPAN, ORDER, TEACHES) SYMBOL,
    REDUCTIONS(X)
#undef X
};

int reduction_run(enum reduction_id id, const struct reduce_rows *rows, void *workspace, struct CUstream_st *stream)
{
    if (!(reduction_list[id].ops >> rows->op & 1))
        return cudaErrorNotSupported;
    return rows->rows == 0 ? cudaSuccess : codes[id](rows, workspace, stream);
}
