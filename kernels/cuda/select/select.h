/*
 * The choice of the kernel that scans rows on a CUDA device: a function of the rule, the rows' layout and the device,
 * read off one table (select.c), which has every limit and where it was measured. Plain C without CUDA, so that it is
 * tested anywhere. Bits never depend on it, only speed.
 *
 * A further kernel is a path here, with what it needs, a row of the table and a line of its test. Its launcher answers
 * SELECT_NO_ROOM where the device has no room for its thread blocks.
 */
#ifndef KERNELS_CUDA_SELECT_SELECT_H
#define KERNELS_CUDA_SELECT_SELECT_H

#include "kernels/cuda/select/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The properties of a device by which kernels are chosen. */
struct select_device {
    int capability; /* compute capability, 90 for 9.0; 75 or more */
    int code;       /* capability of the code that it runs: at most its own, less where PTX is */
    int processors;
    int shared_max;   /* bytes of shared memory that a thread block may have */
    bool cooperative; /* launches of which all thread blocks are resident at once */
    bool clusters;    /* true when clusters can have as many thread blocks as rows may take */
};

/* A launcher's answer where the device has no room for its thread blocks. Nothing of the output is written then. */
#define SELECT_NO_ROOM 720 /* cudaErrorCooperativeLaunchTooLarge */

/* Vectors of shared memory that a warp of the any_layout kernel has where it prefetches, for samples and results of so
 * many bytes; and bytes that a thread block declares besides. */
#define SELECT_PREFETCH_VECTORS(INPUT, OUTPUT) (32 * (INPUT) + 8 + ((OUTPUT) == 8 ? 64 : 32 * (OUTPUT)))
#define SELECT_DECLARED_BYTES                  1024

/* Shared memory of a thread block of other kernels, at most. */
#define SELECT_COLUMNS_TMA_BYTES 231424
#define SELECT_RAGGED_BYTES      73728
#define SELECT_CLUSTER_BYTES     220160

/* A path is a kernel and how it is launched. Its name; its word; its launcher (cuda/kernels/launchers.h). */
#define SELECT_PATHS(X)                                                         \
    X(REDUCE_WARP_PER_ROWS, "reduce-warp-per-rows", reduce)                     \
    X(REDUCE, "reduce", reduce)                                                 \
    X(RAGGED, "ragged", ragged)                                                 \
    X(AFFINE_PREFETCH, "affine-prefetch", affine)                               \
    X(AFFINE, "affine", affine)                                                 \
    X(THREAD_PER_ROW, "thread-per-row", thread_per_row)                         \
    X(WARP_PER_ROWS, "warp-per-rows", warp_per_row)                             \
    X(WARP_PER_ROWS_SERIAL, "warp-per-rows-serial", warp_per_rows_serial)       \
    X(WARP_PER_ROW, "warp-per-row", warp_per_row)                               \
    X(BLOCK_PER_ROW, "block-per-row", block_per_row)                            \
    X(BLOCK_PER_ROW_SHORT, "block-per-row-short", block_per_row)                \
    X(COLUMNS_TMA, "columns-tma", columns_tma)                                  \
    X(COLUMNS_DIRECT, "columns-direct", columns_direct)                         \
    X(CLUSTER_PER_ROW, "cluster-per-row", cluster_per_row)                      \
    X(GRID_PER_ROW_ONE_LAUNCH, "grid-per-row-one-launch", grid_per_row)         \
    X(GRID_PER_ROW_THREE_LAUNCHES, "grid-per-row-three-launches", grid_per_row) \
    X(BLOCK_PER_ROW_SPINE, "block-per-row-spine", block_per_row)                \
    X(ANY_CLUSTER, "any-cluster", any_cluster)                                  \
    X(ANY_GRID, "any-grid", any_cluster)                                        \
    X(ANY_LAYOUT_PREFETCH, "any-layout-prefetch", any_layout)                   \
    X(ANY_LAYOUT, "any-layout", any_layout)                                     \
    X(ANY_PACKED, "any-packed", any_packed)

#define X(NAME, WORD, LAUNCHER) SELECT_##NAME,
enum select_path { SELECT_PATHS(X) SELECT_PATH_COUNT };
#undef X

/* `plan`: of these rows. They have samples, unless they are reduced. */
enum select_path select_path_of(const struct scan_rows *rows, const struct scan_plan *plan,
                                const struct select_device *device);
const char *select_word(enum select_path path);

/*
 * Has run(path, context) scan the rows by the path of the table's first row that fits, and, where that answers
 * SELECT_NO_ROOM, by that of the next one that fits, as long as there is one: the device has no room for the path's
 * thread blocks, whatever the table says, and the output is as it was. Returns what the last one answered. `ranges`:
 * one row, of several order blocks and not ragged, is scanned by ranges (ranges.h), which not every path can.
 */
int select_run(const struct scan_rows *rows, const struct scan_plan *plan, const struct select_device *device,
               bool ranges, int (*run)(enum select_path path, void *context), void *context);

/* Scans by one path, be it slow for these rows: for tests and benchmarks. SELECT_UNFIT: the path's kernel cannot scan
 * such rows, and run was not called. */
#define SELECT_UNFIT 9 /* cudaErrorInvalidConfiguration */
int select_run_path(enum select_path path, const struct scan_rows *rows, const struct scan_plan *plan,
                    const struct select_device *device, int (*run)(enum select_path path, void *context),
                    void *context);

/* The device as if it were of another compute capability, as far as it can be: it chooses as that one would. */
struct select_device select_device_as(const struct select_device *device, int capability);

/* True when the kernels for sums of f32 samples know a rule: from 4-byte forms to such forms, without an f64 between
 * passes in f2. */
bool select_is_sum(const struct scan_rule *rule);

/* True for rules that columns_tma knows: those of select_is_sum, sums from f16 or bf16 to f16 or bf16, and other
 * operators of numbers in f32. */
bool select_is_box_rule(const struct scan_rule *rule);

/* True when any_packed knows the rule: all but means, and coefficients of affine that are not one for all. */
bool select_is_packed_rule(const struct scan_rows *rows);

/*
 * The launch that `count` of these rows may share with other small jobs (cuda/exchange/batch.cuh): scans, affine scans
 * and reductions, each with those that have the same kernel. Small sums of f32 samples go with the other scans: a
 * kernel of their own reached 279,000 to 358,000 jobs a second on an H200, the any_layout kernel 317,000 to 347,000 for
 * sums of f64, f16 and i32.
 */
enum select_together { SELECT_ALONE, SELECT_SCANS, SELECT_AFFINES, SELECT_REDUCTIONS };
enum select_together select_together_of(const struct scan_rows *rows, uint64_t count);

#define SELECT_TOGETHER_ROWS 64 /* a thread block each */

/* The coefficients of affine rows as the rows of an input. */
struct scan_rows select_coefficient_rows(const struct scan_rows *rows);

#ifdef __cplusplus
}
#endif

#endif
