/*
 * The affine recurrence on a CUDA device, for scan_cuda.cu.
 */
#ifndef KERNELS_CUDA_KERNELS_AFFINE_H
#define KERNELS_CUDA_KERNELS_AFFINE_H

#include "kernels/cuda/launch.h"
#include "kernels/cuda/scan_cuda.h"
#include "kernels/cuda/select/ranges.h"
#include "kernels/cuda/select/select.h"
#include "kernels/scan.h"

/* Loads the kernels on the current device. */
cudaError_t scan_affine_load(int shared_max);

/* Kernels are by accumulator, f32, f64, f2, exact, and f2 of f32 samples of which every pass leaves f32, and by how
 * coefficients are held: one for all samples; narrow; wide. An accumulator's are never narrow, or never wide, where
 * there is none. Those for contiguous rows are in files of their own (affine_uniform.cu, affine_varying.cu); the latter
 * with the vectors of shared memory that a warp's coefficients take when they have been read. So are those for rows of
 * several order blocks in one launch (affine_grid.cu). */
#define SCAN_AFFINE_ACCUMULATORS 5
#define SCAN_AFFINE_FACTORS      3
#define SCAN_AFFINES             (SCAN_AFFINE_ACCUMULATORS * SCAN_AFFINE_FACTORS)
struct scan_affine_each {
    const void *kernel;
    int vectors;
};
extern const void *const scan_affine_ones[SCAN_AFFINE_ACCUMULATORS];
extern const struct scan_affine_each scan_affine_eaches[SCAN_AFFINE_ACCUMULATORS][SCAN_AFFINE_FACTORS - 1];
extern const void *const scan_affine_longs[SCAN_AFFINE_ACCUMULATORS][SCAN_AFFINE_FACTORS];

/* The number of the kernel that these rows take. */
int scan_affine_number(const struct scan_rows *rows);

/* Queues scans that select_together_of calls affine and that take the same such kernel, which needs no workspace. */
cudaError_t scan_affine_together(const struct scan_part *parts, unsigned count, cudaStream_t stream);

/* Bytes of what is kept of an order block for each pass: a tile state (cuda/exchange/tile_state.cuh), or a sum of half
 * its size. */
uint64_t scan_affine_sum_bytes(const struct scan_rule *rule);

/*
 * Queues the scan of rows first <= r < first + count by one of the paths for that; of ragged ones, which have
 * device_offsets, those of at most an order block, and `length` is one at most; with `range` that range of one row. The
 * workspace has pass_count x count x sums_per_row x sum_bytes where rows have several order blocks, and before that, to
 * take means away, as many doubles.
 */
cudaError_t scan_affine(struct scan_device *device, enum select_path path, const struct scan_rows *rows, uint64_t first,
                        uint64_t count, const struct scan_range *range, void *workspace, cudaStream_t stream);

#endif
