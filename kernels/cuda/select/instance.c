#include "kernels/cuda/select/instance.h"

#include "kernels/order1/dtypes.h"
#include "kernels/order1/operators.h"
#include "kernels/order1/order.h"

/* Tiles of rows from which on copies in bulk are faster: on an H200 10,000 samples in f32 reach 0.97 of a copy so,
 * instead of 0.96, but 4,096 0.96 instead of 0.97, and IBM floats, whose warps have no time to meet the same banks,
 * 0.85 instead of 0.90. */
#define BULK_WARPS 17

#define CLUSTER_HALF_SM 16 /* warps, beyond which a thread block has an SM to itself */
#define CLUSTER_SMALL   5  /* thread blocks that have an SM each: a cluster of more may as well be the largest */

#define ANY_CLUSTER_SIZE 16 /* thread blocks of a cluster of any_cluster, at most: devices of 9.0 have them */
#define ANY_CLUSTER_F64  20 /* warps of a thread block, of which an SM holds two, with sums in f64; */
#define ANY_CLUSTER_REST 16 /* with others, which have more registers */
#define ANY_GRID_WARPS   8  /* of order blocks of longer rows: an SM holds four such thread blocks */

static bool is_ieee(enum scand_dtype form)
{
    return form == SCAND_DTYPE_F32 || form == SCAND_DTYPE_F32BE;
}

bool instance_copies_in_bulk(const struct scan_plan *plan)
{
    return plan->ahead && scan_warps(plan->length) >= BULK_WARPS && is_ieee(plan->output_form);
}

bool instance_is_aligned(const struct scan_rule *rule, const struct scan_plan *plan)
{
    return rule->input == SCAND_DTYPE_F32 && rule->output == SCAND_DTYPE_F32 && rule->kind == SCAND_KIND_INCLUSIVE &&
           scan_plan_is_aligned(plan);
}

/* Clusters as small as can be, since groups of SMs that are no multiple of their size leave some idle: of thread blocks
 * that have an SM each an H200 holds 66 of 2 at a time, 39 of 3, 30 of 4, 22 of 5, 17 of 6, and 15 of 7 or 8. */
struct instance_cluster instance_cluster_of(int tiles, int warp_tiles, int warps_max, int size_max)
{
    const int most = warps_max * warp_tiles, least = tiles > most ? (tiles + most - 1) / most : 2;
    const int size = least > CLUSTER_SMALL && warps_max > CLUSTER_HALF_SM ? size_max : least;
    const int each = size * warp_tiles;
    return (struct instance_cluster){size, (tiles + each - 1) / each};
}

bool instance_is_32_bits(enum scand_dtype form)
{
    return form == SCAND_DTYPE_I32 || form == SCAND_DTYPE_U32;
}

bool instance_is_short(const struct scan_rule *rule)
{
    return instance_is_32_bits(rule->input) && instance_is_32_bits(rule->output);
}

uint64_t instance_flip(const struct scan_rule *rule)
{
    const uint64_t all = codec_is_integer(rule->input) ? ~UINT64_C(0) : UINT64_C(1) << 63;
    return operator_flip(rule->op, rule->input) ^ (rule->op == SCAND_OPERATOR_MIN ? all : 0);
}

bool instance_is_narrow(const struct scan_rule *rule)
{
    return codec_class(rule->input) == SCAND_CLASS_F32 && codec_class(rule->output) == SCAND_CLASS_F32 &&
           (rule->pass_count == 1 || rule->intermediate == SCAND_DTYPE_F32);
}

/* The warps of a thread block of any_cluster and the tiles of a warp, at most; none where there is no instance. */
struct shape {
    uint64_t warps, tiles;
};

static struct shape any_cluster_shape(const struct scan_rule *rule)
{
    const bool compares = OPERATOR_COMPARES(rule->op), affine = rule->op == SCAND_OPERATOR_AFFINE;
    if (codec_is_integer(rule->input) && !affine)
        return (struct shape){ANY_CLUSTER_REST, instance_is_short(rule) ? 2 : 1};
    if (codec_is_integer(rule->input) ||
        (!compares && rule->accumulator == SCAND_ACCUMULATOR_F2 && !(affine && instance_is_narrow(rule))))
        return (struct shape){0, 0};
    if (compares ? codec_class(rule->input) == SCAND_CLASS_F64 : rule->accumulator == SCAND_ACCUMULATOR_F64)
        return (struct shape){ANY_CLUSTER_F64, 1};
    return (struct shape){ANY_CLUSTER_REST, 2};
}

struct instance_cluster instance_any_cluster_of(const struct scan_rule *rule, uint64_t tiles)
{
    const struct shape shape = any_cluster_shape(rule);
    const uint64_t most = shape.warps * shape.tiles;
    if (most == 0 || tiles > ANY_CLUSTER_SIZE * most)
        return (struct instance_cluster){0, 0};
    const uint64_t size = tiles > most ? (tiles + most - 1) / most : 2;
    return (struct instance_cluster){(int)size, (int)((tiles + size * shape.tiles - 1) / (size * shape.tiles))};
}

struct instance_cluster instance_any_grid_of(const struct scan_rule *rule)
{
    const struct shape shape = any_cluster_shape(rule);
    const bool wide = codec_is_integer(rule->input) && !instance_is_short(rule);
    if (shape.warps == 0 || wide || rule->op == SCAND_OPERATOR_AFFINE)
        return (struct instance_cluster){0, 0};
    return (struct instance_cluster){ORDER_FAN / (ANY_GRID_WARPS * (int)shape.tiles), ANY_GRID_WARPS + 1};
}
