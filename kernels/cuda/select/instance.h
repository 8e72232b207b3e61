/*
 * The choice of a launch of a path's kernel for a plan: which instance, how large, in which order. Like the choice of
 * the path (select.h) it is plain C, so that launchers choose nothing themselves.
 */
#ifndef KERNELS_CUDA_SELECT_INSTANCE_H
#define KERNELS_CUDA_SELECT_INSTANCE_H

#include "kernels/cuda/select/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* True when thread blocks prefetch, of which an SM holds `with` then and `without` else. */
bool instance_prefetches(int with, int without);

/* True when results of block_per_row are copied in bulk; `plan` knows whether thread blocks prefetch. */
bool instance_copies_in_bulk(const struct scan_plan *plan);

/* True when every row of grid_per_row begins with 16 bytes, and nothing is decoded or encoded; of inclusive scans in
 * f32. */
bool instance_is_aligned(const struct scan_rule *rule, const struct scan_plan *plan);

/* The division of a row of so many tiles among the thread blocks of a cluster, and their warps. A warp takes
 * `warp_tiles`; a thread block has at most `warps_max` warps, a cluster at most `size_max` thread blocks. */
struct instance_cluster {
    int size, warps;
};
struct instance_cluster instance_cluster_of(int tiles, int warp_tiles, int warps_max, int size_max);

#ifdef __cplusplus
}
#endif

#endif
