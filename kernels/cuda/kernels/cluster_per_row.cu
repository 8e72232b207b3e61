#include "kernels/cuda/kernels/cluster_per_row.cuh"

#include "kernels/cuda/kernels/launchers.h"
#include "kernels/cuda/select/instance.h"

struct cluster_variant {
    const void *kernel;
    struct cluster_warps warps;
    size_t warp_bytes, sum_bytes;
};

static_assert(CLUSTER_WARPS * (CLUSTER_BUFFER + 128 * VEC16_BYTES) + sizeof(struct cluster_shared) +
                      CLUSTER_TILES_BYTES(CLUSTER_SIZE_MAX * CLUSTER_WARPS * CLUSTER_TILES / ORDER_FAN,
                                          sizeof(float)) <=
                  SELECT_CLUSTER_BYTES,
              "what select.c takes for granted");

#define VARIANT(SUM, KIND)                                                              \
    {                                                                                   \
        (const void *)cluster_kernel<SUM, KIND>, cluster_warps_of<SUM>,                 \
            CLUSTER_BUFFER + SUM::stage_vectors *VEC16_BYTES, sizeof(typename SUM::sum) \
    }
#define BY_KIND(SUM) VARIANT(SUM, SCAND_KIND_INCLUSIVE), VARIANT(SUM, SCAND_KIND_EXCLUSIVE)

/* Variants in the order of scan_sum_number, of which exclusive passes in f64 have none (select.c); then affine,
 * inclusive, in the order of scan_float_number. */
#define VARIANTS (SCAN_SUMS + 3)
static const struct cluster_variant variants[VARIANTS] = {BY_KIND(sum_f32),
                                                          VARIANT(sum_f64, SCAND_KIND_INCLUSIVE),
                                                          {},
                                                          BY_KIND(sum_f2),
                                                          VARIANT(affine_of<sum_f32>, SCAND_KIND_INCLUSIVE),
                                                          VARIANT(affine_of<sum_f64>, SCAND_KIND_INCLUSIVE),
                                                          VARIANT(affine_of<any_f2_of_f32>, SCAND_KIND_INCLUSIVE)};

/* Shared memory for the longest rows that clusters of such thread blocks can take. */
static size_t shared_bytes(const struct cluster_variant *variant, struct instance_cluster shape)
{
    const int blocks = (int)scan_groups((uint64_t)(shape.size * shape.warps * CLUSTER_TILES));
    return shape.warps * variant->warp_bytes + CLUSTER_TILES_BYTES(blocks, variant->sum_bytes);
}

#define CHOICES (int)(sizeof(struct cluster_warps) / sizeof(int))
static struct scan_cluster_room rooms[SCAN_DEVICES_MAX][VARIANTS][CHOICES];

/* True where the device holds more clusters, or as many of fewer warps. */
static bool is_better(const struct scan_cluster_room *room, const struct scan_cluster_room *other)
{
    const int fewer = other->shape.size * other->shape.warps - room->shape.size * room->shape.warps;
    return room->clusters > other->clusters || (room->clusters == other->clusters && fewer > 0);
}

/* Finds the best clusters for rows of so many tiles. */
static cudaError_t room_find(const struct scan_device *device, int number, int tiles,
                             const struct scan_cluster_room **best)
{
    const struct cluster_variant *variant = &variants[number];
    cudaError_t error = cudaSuccess;
    *best = NULL;
    for (int i = 0; i < CHOICES && !error; i++) {
        struct scan_cluster_room *room = &rooms[device->id][number][i];
        const struct instance_cluster shape =
            instance_cluster_of(tiles, CLUSTER_TILES, variant->warps.choices[i], CLUSTER_SIZE_MAX);
        if (shape.size > CLUSTER_SIZE_MAX)
            continue;
        error = scan_clusters_resident(variant->kernel, shape, shared_bytes(variant, shape), room);
        if (!error && (!*best || is_better(room, *best)))
            *best = room;
    }
    return error || *best ? error : SCAN_NO_ROOM;
}

/* Says in `device` where that cannot run the kernels. */
cudaError_t scan_cluster_per_row_load(struct scan_device *device)
{
    const struct scan_cluster_room *room = NULL;
    cudaError_t error = cudaSuccess;
    if (!device->clusters)
        return error;
    for (int number = 0; number < VARIANTS && !error; number++)
        if (variants[number].kernel)
            error = scan_kernel_load_most(device, variants[number].kernel);
    if (!error && device->shared_max >= SELECT_CLUSTER_BYTES)
        error = room_find(device, 0, CLUSTER_SIZE_MAX * CLUSTER_WARPS * CLUSTER_TILES, &room);
    device->clusters = room && room->clusters > 0;
    return error;
}

/* The map of the input: lines of a leaf each, from the one that the first row begins in to the one that the last ends
 * in, or the other way round. */
static cudaError_t map_input(void *encode, const struct scan_plan *scan, struct cluster_plan *plan)
{
    const int64_t stride = scan->input.outer_strides[0], apart = (int64_t)(plan->scan.items - 1) * stride;
    char *first = scan->input.base + (int64_t)scan->first_row * stride + (apart < 0 ? apart : 0);
    plan->origin = first - (uintptr_t)first % CLUSTER_LINE;
    const uint64_t bytes = (uint64_t)(first - plan->origin) + (uint64_t)(apart < 0 ? -apart : apart) + 4 * scan->length;
    const cuuint64_t shape[] = {ORDER_LEAF, scan_parts(bytes, CLUSTER_LINE)}, strides[] = {CLUSTER_LINE};
    const cuuint32_t box[] = {ORDER_LEAF, CLUSTER_LINES}, steps[] = {1, 1};
    return (cudaError_t)((decltype(&cuTensorMapEncodeTiled))encode)(
        &plan->map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, plan->origin, shape, strides, box, steps,
        CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_64B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
        CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

cudaError_t scan_cluster_per_row(const struct scan_call *call)
{
    const struct scan_plan *scan = &call->plan;
    const struct scan_rule *rule = &call->rows->rule;
    const bool affine = rule->op == SCAND_OPERATOR_AFFINE;
    const int number = affine ? SCAN_SUMS + scan_float_number(rule->accumulator) : scan_sum_number(rule);
    const struct cluster_variant *variant = &variants[number];
    struct cluster_plan plan = {};
    plan.scan = *scan;
    if (affine)
        plan.powers = scan_affine_powers(rule);
    plan.scan.items = scan->items / scan->blocks; /* rows */
    const int tiles = (int)scan_tiles(scan->length);
    const struct scan_cluster_room *room;
    cudaError_t error = room_find(call->device, number, tiles, &room);
    if (!error)
        error = room->clusters > 0 ? map_input(call->device->encode, scan, &plan) : SCAN_NO_ROOM;
    if (error)
        return error;
    plan.row = {tiles, (int)scan->blocks, room->shape.warps * CLUSTER_TILES,
                (tiles + tiles % CLUSTER_TILES) * (int)variant->sum_bytes};
    return scan_clusters_launch(variant->kernel, room->shape, room->shared_bytes,
                                scan_least((uint64_t)room->clusters, plan.scan.items), false, &plan, call->stream);
}
