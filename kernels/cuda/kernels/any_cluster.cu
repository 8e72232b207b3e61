/*
 * The any_cluster kernels: all operators for f32, f64 and integers, and those for integers that stay 32 bits, in the
 * order of scan_any_layout_number; then affine for f32, f64, and f2 of which every pass leaves f32.
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

template <class Sum> static constexpr struct any_cluster any_cluster_by()
{
    return {(const void *)any_cluster_kernel<Sum>, any_cluster_tiles<Sum>, sizeof(typename Sum::sum)};
}

enum {
    ANY_CLUSTER_SHORT = 3 * NUMBER_OPERATOR_COUNT,
    ANY_CLUSTER_AFFINE = 4 * NUMBER_OPERATOR_COUNT,
    ANY_CLUSTERS = ANY_CLUSTER_AFFINE + 3
};

#define X(NAME, LOWER, RESULT, EMPTY_REAL, EMPTY_WHOLE, RULE) any_cluster_by<RULE(SCAND_OPERATOR_##NAME)>(),
static const struct any_cluster any_clusters[ANY_CLUSTERS] = {
    NUMBER_OPERATORS(X, , , ANY_RULE_F32) NUMBER_OPERATORS(X, , , ANY_RULE_F64) NUMBER_OPERATORS(X, , , ANY_RULE_WHOLE)
        NUMBER_OPERATORS(X, , , ANY_RULE_SHORT) any_cluster_by<affine_of<sum_f32>>(),
    any_cluster_by<affine_of<sum_f64>>(), any_cluster_by<affine_of<any_f2_of_f32>>()};
#undef X

/* Others of f2 have none. */
static int number_of(const struct scan_rule *rule)
{
    if (rule->op == SCAND_OPERATOR_AFFINE)
        return ANY_CLUSTER_AFFINE + scan_float_number(rule->accumulator);
    return instance_is_short(rule) ? ANY_CLUSTER_SHORT + (int)rule->op : scan_any_layout_number(rule);
}

/* The clusters that were resident together when a kernel was last asked for. */
static struct any_cluster_room {
    struct instance_cluster shape;
    size_t shared_bytes;
    int clusters;
} rooms[SCAN_DEVICES_MAX][ANY_CLUSTERS];

cudaError_t scan_any_cluster_load(struct scan_device *device)
{
    cudaError_t error = cudaSuccess;
    for (int i = 0; i < ANY_CLUSTERS && device->clusters && !error; i++) {
        size_t shared_bytes;
        error = scan_kernel_load_most(any_clusters[i].kernel, device->shared_max, &shared_bytes);
        if (!error)
            error = scan_cleared(
                cudaFuncSetAttribute(any_clusters[i].kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
    }
    return error;
}

static cudaLaunchConfig_t config_of(struct instance_cluster shape, size_t shared_bytes, uint64_t clusters,
                                    cudaStream_t stream, cudaLaunchAttribute *attribute)
{
    cudaLaunchConfig_t config = {};
    attribute->id = cudaLaunchAttributeClusterDimension;
    attribute->val.clusterDim = {(unsigned)shape.size, 1, 1};
    config.gridDim = dim3((unsigned)(shape.size * clusters));
    config.blockDim = dim3((unsigned)(shape.warps * WARP));
    config.dynamicSmemBytes = shared_bytes;
    config.stream = stream;
    config.attrs = attribute;
    config.numAttrs = 1;
    return config;
}

static cudaError_t room_find(struct any_cluster_room *room, const void *kernel, struct instance_cluster shape,
                             size_t shared_bytes)
{
    cudaLaunchAttribute attribute;
    const cudaLaunchConfig_t config = config_of(shape, shared_bytes, SCAN_GRID_MAX / shape.size, NULL, &attribute);
    const bool known =
        room->shape.size == shape.size && room->shape.warps == shape.warps && room->shared_bytes == shared_bytes;
    int clusters = 0;
    cudaError_t error = known ? cudaSuccess : scan_cleared(cudaOccupancyMaxActiveClusters(&clusters, kernel, &config));
    if (!known && !error)
        *room = {shape, shared_bytes, clusters};
    return error;
}

cudaError_t scan_any_cluster(const struct scan_call *call)
{
    const int number = number_of(&call->rows->rule);
    const struct any_cluster *any = &any_clusters[number];
    struct any_cluster_room *room = &rooms[call->device->id][number];
    struct scan_plan scan = call->plan;
    const int tiles = (int)scan_tiles(scan.length);
    const struct instance_cluster shape = instance_any_cluster_of(&call->rows->rule, tiles);
    struct any_cluster_plan plan = {};
    scan.ahead = true;
    plan.any = scan_any_layout_plan_of(&call->rows->rule, &scan, NULL);
    plan.coefficient = call->rows->rule.coefficient;
    plan.row = {tiles, (int)scan.blocks, shape.warps * any->tiles};
    plan.any.scan.items = scan.items / scan.blocks * shape.size;
    plan.any.scan.blocks = plan.any.scan.sums_per_row = shape.size;
    plan.any.scan.smem += (any->tiles - 1) * WORDS_VECTORS(plan.any.input_bytes);
    const size_t shared_bytes =
        (size_t)shape.warps * plan.any.scan.smem * VEC16_BYTES + CLUSTER_TILES_BYTES(scan.blocks, any->sum_bytes);
    const cudaError_t error = room_find(room, any->kernel, shape, shared_bytes);
    if (error || room->clusters == 0)
        return error ? error : SCAN_NO_ROOM;
    cudaLaunchAttribute attribute;
    const uint64_t clusters = scan_least((uint64_t)room->clusters, scan.items / scan.blocks);
    const cudaLaunchConfig_t config = config_of(shape, shared_bytes, clusters, call->stream, &attribute);
    void *arguments[] = {&plan};
    return scan_launched(cudaLaunchKernelExC(&config, any->kernel, arguments));
}
