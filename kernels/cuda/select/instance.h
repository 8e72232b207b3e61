/*
 * How a path's kernel is launched for a plan: which instance, how large, in which order. As the choice of the path
 * (select.h), these choices are plain C, so that launchers make none of their own.
 */
#ifndef KERNELS_CUDA_SELECT_INSTANCE_H
#define KERNELS_CUDA_SELECT_INSTANCE_H

#include "kernels/cuda/select/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Whether a thread block prefetches, of which an SM holds `with` then and `without` else. */
bool instance_prefetches(int with, int without);

/* Whether results of block_per_row are copied in bulk; of a plan that knows whether it prefetches. */
bool instance_copies_in_bulk(const struct scan_plan *plan);

/* Whether grid_per_row has every row begin with 16 bytes, and nothing to decode or encode; of inclusive scans in f32.
 */
bool instance_is_aligned(const struct scan_rule *rule, const struct scan_plan *plan);

/* How a row of so many tiles is shared out, of which a warp takes `warp_tiles` and a thread block has at most so many
 * warps, a cluster so many thread blocks: those of a cluster, and warps of a thread block. */
struct instance_cluster {
    int size, warps;
};
struct instance_cluster instance_cluster_of(int tiles, int warp_tiles, int warps_max, int size_max);

/* How many strips of columns take turns, tile by tile, on so many thread blocks. */
unsigned instance_strips_together(int pass_count, unsigned strips, unsigned strips_per_plane, unsigned tiles,
                                  unsigned grid);

#ifdef __cplusplus
}
#endif

#endif
