/*
 * The any_cluster kernels: all operators for f32, f64 and integers, and those for integers that stay 32 bits, in the
 * order of scan_any_layout_number; then affine for f32, f64, and f2 of which every pass leaves f32; then those that
 * take order blocks of longer rows, for f32, f64, and integers that stay 32 bits.
 */
#include "kernels/cuda/kernels/any_cluster.cuh"

#include <assert.h>

#include "kernels/cuda/kernels/launchers.h"
#include "kernels/cuda/select/instance.h"

struct any_cluster {
    const void *kernel;
    int tiles; /* of a warp */
    size_t sum_bytes;
};

template <class Sum, bool Blocks = false> static constexpr struct any_cluster any_cluster_by()
{
    return {(const void *)any_cluster_kernel<Sum, Blocks>, any_cluster_tiles<Sum>, sizeof(typename Sum::sum)};
}

enum {
    ANY_CLUSTER_SHORT = 3 * NUMBER_OPERATOR_COUNT,
    ANY_CLUSTER_AFFINE = 4 * NUMBER_OPERATOR_COUNT,
    ANY_GRID = ANY_CLUSTER_AFFINE + 3,
    ANY_GRID_SHORT = ANY_GRID + 2 * NUMBER_OPERATOR_COUNT,
    ANY_CLUSTERS = ANY_GRID_SHORT + NUMBER_OPERATOR_COUNT
};

#define X(NAME, LOWER, RESULT, EMPTY_REAL, EMPTY_WHOLE, RULE) any_cluster_by<RULE(SCAND_OPERATOR_##NAME)>(),
#define X_BLOCKS(NAME, LOWER, RESULT, EMPTY_REAL, EMPTY_WHOLE, RULE) \
    any_cluster_by<RULE(SCAND_OPERATOR_##NAME), true>(),
static const struct any_cluster any_clusters[ANY_CLUSTERS] = {
    NUMBER_OPERATORS(X, , , ANY_RULE_F32_UNFLIPPED) NUMBER_OPERATORS(X, , , ANY_RULE_F64)
        NUMBER_OPERATORS(X, , , ANY_RULE_WHOLE) NUMBER_OPERATORS(X, , , ANY_RULE_SHORT)
            any_cluster_by<affine_of<sum_f32>>(),
    any_cluster_by<affine_of<sum_f64>>(), any_cluster_by<affine_of<any_f2_of_f32>>(),
    NUMBER_OPERATORS(X_BLOCKS, , , ANY_RULE_F32_UNFLIPPED) NUMBER_OPERATORS(X_BLOCKS, , , ANY_RULE_F64)
        NUMBER_OPERATORS(X_BLOCKS, , , ANY_RULE_SHORT)};
#undef X
#undef X_BLOCKS

/* Others of f2 have none. */
static int number_of(const struct scan_rule *rule, bool is_long)
{
    if (is_long)
        return instance_is_short(rule) ? ANY_GRID_SHORT + (int)rule->op : ANY_GRID + scan_any_layout_number(rule);
    if (rule->op == SCAND_OPERATOR_AFFINE)
        return ANY_CLUSTER_AFFINE + scan_float_number(rule->accumulator);
    return instance_is_short(rule) ? ANY_CLUSTER_SHORT + (int)rule->op : scan_any_layout_number(rule);
}

static struct scan_cluster_room rooms[SCAN_DEVICES_MAX][ANY_CLUSTERS];

cudaError_t scan_any_cluster_load(struct scan_device *device)
{
    cudaError_t error = cudaSuccess;
    for (int i = 0; i < ANY_CLUSTERS && device->clusters && !error; i++) {
        error = scan_kernel_load_most(device, any_clusters[i].kernel);
        if (!error)
            error = scan_cleared(
                cudaFuncSetAttribute(any_clusters[i].kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
    }
    return error;
}

/* Tile states of order blocks, of which each pass has a tree for every row. */
static cudaError_t states_clear(const struct scan_call *call, size_t sum_bytes, struct any_cluster_plan *plan)
{
    const struct scan_plan *scan = &call->plan;
    const uint64_t bytes = 2 * scan->items / scan->blocks * scan->sums_per_row * sum_bytes;
    for (int pass = 0; pass < scan->pass_count; pass++)
        plan->states[pass] = (tile_state *)((char *)call->workspace + pass * bytes);
    return scan_cleared(cudaMemsetAsync(call->workspace, 0, scan->pass_count * bytes, call->stream));
}

/* Items are rows, or the order blocks of rows that no cluster holds. */
static struct any_cluster_plan plan_of(const struct scan_call *call, const struct any_cluster *any, int warps)
{
    const bool is_long = call->path == SELECT_ANY_GRID;
    struct scan_plan scan = call->plan;
    struct any_cluster_plan plan = {};
    scan.ahead = true;
    plan.any = scan_any_layout_plan_of(&call->rows->rule, &scan, NULL);
    if (any->sum_bytes == sizeof(float) && !codec_is_integer(plan.any.input))
        plan.any.flip = 0; /* ANY_RULE_F32_UNFLIPPED */
    plan.any.scan.smem += (any->tiles - 1) * WORDS_VECTORS(plan.any.input_bytes);
    plan.tiles = (unsigned)scan_tiles(scan.length);
    const int tiles = is_long ? ORDER_FAN : (int)plan.tiles;
    plan.row = {tiles, is_long ? 1 : (int)scan.blocks, warps * any->tiles, tiles * (int)any->sum_bytes};
    if (call->rows->rule.op == SCAND_OPERATOR_AFFINE)
        plan.powers = scan_affine_powers(&call->rows->rule);
    plan.last_first = is_long && scan.pass_count == 1 && scan.backward[0];
    if (!is_long) {
        plan.any.scan.items /= scan.blocks;
        plan.any.scan.blocks = plan.any.scan.sums_per_row = 1;
    }
    return plan;
}

/* Clusters that take order blocks wait for others: in a single pass for those of earlier items alone, in two passes for
 * all of the row, which then have to be resident together. */
cudaError_t scan_any_cluster(const struct scan_call *call)
{
    const bool is_long = call->path == SELECT_ANY_GRID;
    const struct scan_rule *rule = &call->rows->rule;
    const int number = number_of(rule, is_long);
    const struct any_cluster *any = &any_clusters[number];
    struct scan_cluster_room *room = &rooms[call->device->id][number];
    const struct instance_cluster shape =
        is_long ? instance_any_grid_of(rule) : instance_any_cluster_of(rule, scan_tiles(call->plan.length));
    const int warps = is_long ? shape.warps - 1 : shape.warps; /* one looks back */
    struct any_cluster_plan plan = plan_of(call, any, warps);
    const size_t shared_bytes =
        (size_t)warps * plan.any.scan.smem * VEC16_BYTES + CLUSTER_TILES_BYTES(plan.row.blocks, any->sum_bytes);
    cudaError_t error = scan_clusters_resident(any->kernel, shape, shared_bytes, room);
    const uint64_t least = is_long && call->plan.pass_count > 1 ? call->plan.blocks : 1;
    if (!error && (uint64_t)room->clusters < least)
        error = SCAN_NO_ROOM;
    if (!error && is_long)
        error = states_clear(call, any->sum_bytes, &plan);
    if (error)
        return error;
    return scan_clusters_launch(any->kernel, shape, shared_bytes,
                                scan_least((uint64_t)room->clusters, plan.any.scan.items), is_long, &plan,
                                call->stream);
}
