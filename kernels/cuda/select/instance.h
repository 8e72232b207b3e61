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

/* True when results of block_per_row are copied in bulk; `plan` knows whether thread blocks prefetch. */
bool instance_copies_in_bulk(const struct scan_plan *plan);

/* True when every row of grid_per_row begins with 16 bytes, and nothing is decoded or encoded; of inclusive scans in
 * f32. */
bool instance_is_aligned(const struct scan_rule *rule, const struct scan_plan *plan);

/* True for integers of 32 bits in this machine's order. */
bool instance_is_32_bits(enum scand_dtype form);

/* True when integers have 32 bits in this machine's order on both sides: 32-bit sums suffice, as nobody would see upper
 * halves. */
bool instance_is_short(const struct scan_rule *rule);

/* The bits that kernels flip of samples that they compare, and again of results; of samples of 4 bytes the upper half.
 * Signed integers are compared as unsigned ones. A minimum is the complement of the maximum of complements, or what is
 * below 0 as far as the maximum is above, so that there are kernels for maxima alone. */
uint64_t instance_flip(const struct scan_rule *rule);

/* True where all that passes read and leave is f32, so that samples of f2 are kept as such. */
bool instance_is_narrow(const struct scan_rule *rule);

/* The division of a row of so many tiles among the thread blocks of a cluster, and their warps. A warp takes
 * `warp_tiles`; a thread block has at most `warps_max` warps, a cluster at most `size_max` thread blocks. */
struct instance_cluster {
    int size, warps;
};
struct instance_cluster instance_cluster_of(int tiles, int warp_tiles, int warps_max, int size_max);

/* The cluster for a row of any_cluster. A warp takes as many tiles as the kernel for the rule has registers for: two of
 * 4-byte sums, one of 8 bytes. Of size 0 where no cluster holds the row, or the rule has no instance. */
struct instance_cluster instance_any_cluster_of(const struct scan_rule *rule, uint64_t tiles);

/* The cluster for an order block of a row that no cluster holds; one of its warps takes no tiles, but looks back. Of
 * size 0 where there is no instance: integers of 64 bits, on an H100 0.47, are faster in three launches, 0.49. */
struct instance_cluster instance_any_grid_of(const struct scan_rule *rule);

#ifdef __cplusplus
}
#endif

#endif
