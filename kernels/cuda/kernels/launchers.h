/*
 * The launchers of all kernels: NAME.cu launches what NAME.cuh beside it computes. Called by scan_cuda.cu, and by one
 * another.
 */
#ifndef KERNELS_CUDA_KERNELS_LAUNCHERS_H
#define KERNELS_CUDA_KERNELS_LAUNCHERS_H

#include "kernels/cuda/launch.h"
#include "kernels/cuda/select/ranges.h"
#include "kernels/cuda/select/select.h"
#include "kernels/order1/operators.h"

/* The arguments of one scan_cuda or, with `range`, of one range of its only row. */
struct scan_call {
    struct scan_device *device;
    enum select_path path; /* one of the launcher's */
    const struct scan_rows *rows;
    uint64_t first, count;
    const struct scan_ragged_rows *ragged; /* items instead of these rows, where rows are ragged, or NULL */
    const struct scan_range *range;
    struct scan_plan plan;
    void *workspace;
    cudaStream_t stream;
};

/* Every launcher: X(name). */
#define SCAN_LAUNCHERS(X) \
    X(affine)             \
    X(any_cluster)        \
    X(any_layout)         \
    X(any_packed)         \
    X(block_per_row)      \
    X(cluster_per_row)    \
    X(columns_direct)     \
    X(columns_tma)        \
    X(grid_per_row)       \
    X(ragged)             \
    X(reduce)             \
    X(thread_per_row)     \
    X(warp_per_row)       \
    X(warp_per_rows_serial)

/* Each launcher loads its kernels on the current device, as far as that has room for them, and queues the scan of a
 * call. Of ragged rows it leaves out those that are too long for it. */
#define X(NAME)                                                 \
    cudaError_t scan_##NAME##_load(struct scan_device *device); \
    cudaError_t scan_##NAME(const struct scan_call *call);
SCAN_LAUNCHERS(X)
#undef X

/* block_per_row's for rows that lie at equal distances, where it can. */
cudaError_t scan_even_rows_load(struct scan_device *device);
bool scan_even_rows_can(const struct scan_call *call);
cudaError_t scan_even_rows(const struct scan_call *call);

/* Three launchers take several parts at once, one for each answer of select_together_of. The parts of a launch take one
 * instance; an instance has a number, below the constant here. No part needs workspace. */
#define ANY_LAYOUT_KERNELS (3 * NUMBER_OPERATOR_COUNT + ADDING_OPERATOR_COUNT)
int scan_any_layout_number(const struct scan_rule *rule);
cudaError_t scan_any_layout_together(const struct scan_part *parts, unsigned count, cudaStream_t stream);

#define SCAN_AFFINES 5
int scan_affine_number(const struct scan_rule *rule);
struct affine_powers scan_affine_powers(const struct scan_rule *rule);
cudaError_t scan_affine_together(const struct scan_part *parts, unsigned count, cudaStream_t stream);

int scan_reduce_number(const struct scan_rule *rule);
cudaError_t scan_reduce_together(const struct scan_part *parts, unsigned count, cudaStream_t stream);

/*
 * Device memory that rows need.
 */

/* The launches between order blocks for a rule, affine or not: a pass keeps a sum of each group of each level above
 * them. To take means away, there are as many doubles before these sums. */
struct scan_spine;
const struct scan_spine *scan_any_layout_spine(const struct scan_rule *rule);
const struct scan_spine *scan_affine_spine(const struct scan_rule *rule);

/* For rows of which a pass keeps `sums` sums of `sum_bytes`; at least as much as other paths need. */
uint64_t scan_grid_per_row_workspace_bytes(const struct scan_rule *rule, uint64_t sums, uint64_t sum_bytes);

/* For columns side by side; 0 for other rows. */
uint64_t scan_columns_direct_workspace_bytes(const struct scan_rule *rule, const struct scan_plan *plan);
uint64_t scan_columns_tma_workspace_bytes(const struct scan_rule *rule, const struct scan_plan *plan);

uint64_t scan_reduce_workspace_bytes(const struct scan_rows *rows, uint64_t count);
uint64_t scan_ragged_workspace_bytes(const struct scan_rows *rows);

/* The longest row that the kernel for ragged sums takes; others for ragged rows take an order block. */
uint64_t scan_ragged_length_max(const struct scan_device *device);

/*
 * Parts of any_layout that others use.
 */

/* The plan of kernels that read and write as any_layout does (cuda/warp/any_leaf.cuh), of `ragged` rows if that is not
 * NULL. */
struct any_plan;
struct any_plan scan_any_layout_plan_of(const struct scan_rule *rule, const struct scan_plan *scan,
                                        const struct scan_ragged_rows *ragged);

/* For rows of several order blocks whose means are taken away: queues the totals that means are computed from, forward
 * and in f64, to the beginning of *workspace, which then begins behind them. A call whose range is of the mean is done
 * with that. */
cudaError_t scan_any_layout_means(const struct scan_call *call, struct any_plan *plan, void **workspace);

/*
 * Kernels in which affine with one coefficient is an operator like others (cuda/exchange/any_arithmetic.cuh): which
 * instance a rule takes, and their plan.
 */
enum {
    ANY_OPERATOR_SHORT = ANY_LAYOUT_KERNELS,
    ANY_OPERATOR_F2_OF_F32 = ANY_OPERATOR_SHORT + NUMBER_OPERATOR_COUNT,
    ANY_OPERATOR_AFFINE,
    ANY_OPERATOR_AFFINE_WHOLE = ANY_OPERATOR_AFFINE + 3,
    ANY_OPERATORS
};
int scan_any_operator_number(const struct scan_rule *rule);

struct any_operator_plan;
struct any_operator_plan scan_any_operator_plan_of(const struct scan_rule *rule, const struct scan_plan *scan,
                                                   const struct scan_ragged_rows *ragged);

#endif
