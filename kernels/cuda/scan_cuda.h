/*
 * Scans on a CUDA device. Plain C, so that only the CUDA device and the kernels need the toolkit's headers. Functions
 * that return int return a cudaError_t (0 is success); the device turns it into an errno.
 */
#ifndef KERNELS_CUDA_SCAN_CUDA_H
#define KERNELS_CUDA_SCAN_CUDA_H

#include <stdbool.h>

#include "kernels/scan.h"

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st;

/* Loads every kernel on the current device, so that no job pays for it. Call once per device before anything else. */
int scan_cuda_init(void);

/* Device memory that scan_cuda needs to scan `count` of these rows in one call; 0 where rows fit a block and
 * keep their mean. */
uint64_t scan_cuda_workspace_bytes(const struct scan_rows *rows, uint64_t count);

/*
 * Queues the scan of rows first <= r < first + count on `stream` of the current device and returns. Input and output
 * are addresses that the device can reach: device memory or mapped pinned host memory. `workspace`, 16-byte aligned
 * device memory of at least scan_cuda_workspace_bytes, and the device_offsets of ragged rows belong to the call until
 * the stream has passed it. One thread at a time calls for a device.
 *
 * How often samples are read is the path's (select.c): once in rows of up to ORDER_BLOCK samples. Longer rows of sums
 * of f32, left as f32 between passes, are read once up to some 2 million samples and then twice, on compute capability
 * 9.0 and 10; rows of other rules, but for f2 and means, once up to some 130,000 samples, on 9.0. All others are read
 * once more for each pass, and once more for their mean. Some thread blocks wait for one another, so the device must
 * not be shared out to others for good.
 */
int scan_cuda(const struct scan_rows *rows, uint64_t first, uint64_t count, void *workspace,
              struct CUstream_st *stream);

/*
 * A very long row, of more than an order block, in several launches, to the same bits: it is done when ranges 0 <= n <
 * scan_cuda_range_count have been queued, one after the other on one stream, each of so many order blocks of one of its
 * passes. Between two of them it may wait for others, or be given up. The workspace is its own from the first to the
 * last. It takes longer than scan_cuda, as samples are read once more for each pass.
 *
 * scan_cuda_row_us estimates how long scan_cuda would take for the row, and scan_cuda_range_blocks how large ranges are
 * to be for LIMIT_LAUNCH_MS each; both are too high rather than too low. `mapped`: its samples are in host memory.
 */
uint64_t scan_cuda_row_us(const struct scan_rows *rows, uint64_t row, bool mapped);
uint64_t scan_cuda_range_blocks(const struct scan_rows *rows, uint64_t row, bool mapped);
uint64_t scan_cuda_range_count(const struct scan_rows *rows, uint64_t row, uint64_t blocks);
int scan_cuda_range(const struct scan_rows *rows, uint64_t row, uint64_t blocks, uint64_t number, void *workspace,
                    struct CUstream_st *stream);

/* Rows first <= r < first + count of some. */
struct scan_part {
    const struct scan_rows *rows;
    uint64_t first, count;
};

#define SCAN_TOGETHER 16 /* parts of one call */

/* Returns the number of a group whose members may be parts of one scan_cuda_together, from 1 on, which few short rows
 * have; 0: such rows share a launch with none. */
int scan_cuda_group(const struct scan_rows *rows, uint64_t count);

/* Scans each of up to SCAN_TOGETHER parts of one group, as scan_cuda does, but with one launch for all or, of larger
 * descriptions, two. These parts need no workspace. */
int scan_cuda_together(const struct scan_part *parts, unsigned count, struct CUstream_st *stream);

/* Returns the path by which scan_cuda would scan rows, if the device has room for it: a word of select.h's list, or ""
 * where scan_cuda would fail at once. */
const char *scan_cuda_path(const struct scan_rows *rows, uint64_t first, uint64_t count);

#ifdef __cplusplus
}
#endif

#endif
