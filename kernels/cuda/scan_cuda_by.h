/*
 * scan_cuda otherwise than it would choose: for tests and benchmarks, as a test of assembly asks for instruction sets.
 * The ordinary call (scan_cuda.h) does not ask.
 */
#ifndef KERNELS_CUDA_SCAN_CUDA_BY_H
#define KERNELS_CUDA_SCAN_CUDA_BY_H

#include "kernels/cuda/scan_cuda.h"
#include "kernels/cuda/select/select.h"

#ifdef __cplusplus
extern "C" {
#endif

/* SCAN_BY_TABLE: the path that the table says. `capability`: that of the device to choose as, 80 for 8.0; 0: its own.
 */
#define SCAN_BY_TABLE SELECT_PATH_COUNT
struct scan_choice {
    enum select_path path;
    int capability;
};

/*
 * Scans rows as scan_cuda does, with the same workspace, but by a path, if its kernel can scan such rows, or by what
 * another compute capability would choose. SELECT_UNFIT: the path's kernel cannot scan such rows; SELECT_NO_ROOM: this
 * device has no room for its thread blocks. Ragged rows that are too long for the path are scanned as scan_cuda would.
 */
int scan_cuda_by(const struct scan_choice *choice, const struct scan_rows *rows, uint64_t first, uint64_t count,
                 void *workspace, struct CUstream_st *stream);

/* True when the path can scan such rows, on this device and as far as the table knows: it may have no room. */
bool scan_cuda_can(enum select_path path, const struct scan_rows *rows, uint64_t first, uint64_t count);

#ifdef __cplusplus
}
#endif

#endif
