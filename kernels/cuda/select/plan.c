#include "kernels/cuda/select/plan.h"

#include "kernels/order1/dtypes.h"
#include "kernels/order1/order.h"

#define COLUMNS_MIN     4                   /* side by side: with fewer, most lanes would be idle */
#define MAP_STRIDES_MAX (UINT64_C(1) << 40) /* bytes; those of tensor maps are less */

uint64_t scan_tiles(uint64_t length)
{
    return scan_parts(length, ORDER_TILE);
}

uint64_t scan_blocks(uint64_t length)
{
    return scan_parts(length, ORDER_BLOCK);
}

int scan_warps(uint64_t length)
{
    return length > ORDER_BLOCK ? ORDER_FAN : (int)scan_tiles(length);
}

int scan_serial_rows(int leaves)
{
    int best = 1, best_tiles = (int)scan_groups((uint64_t)leaves);
    for (int rows = 2; rows * leaves <= SCAN_SERIAL_TILES * ORDER_FAN; rows++) {
        const int tiles = (int)scan_groups((uint64_t)(rows * leaves));
        if (rows * best_tiles >= best * tiles) {
            best = rows;
            best_tiles = tiles;
        }
    }
    return best;
}

uint64_t scan_groups(uint64_t members)
{
    return scan_parts(members, ORDER_FAN);
}

uint64_t scan_sums(uint64_t length, uint64_t count)
{
    uint64_t members = scan_blocks(length), sums = members;
    while (members > 1) {
        members = scan_groups(members);
        sums += members;
    }
    return count * sums;
}

/* Copies the outer axes, without those of one row and with neighbours made one where a single stride serves both. */
static void plan_axes(struct scan_plan *plan, const struct scan_rows *rows)
{
    int rank = 0;
    for (uint32_t axis = 0; axis < rows->outer_rank; axis++) {
        uint64_t shape = rows->outer_shape[axis];
        int64_t input = rows->input_outer_strides[axis], output = rows->output_outer_strides[axis];
        if (shape == 1)
            continue;
        int last = rank - 1;
        if (rank > 0 && plan->input.outer_strides[last] == (int64_t)shape * input &&
            plan->output.outer_strides[last] == (int64_t)shape * output)
            shape *= plan->outer_shape[last];
        else
            last = rank++;
        plan->outer_shape[last] = shape;
        plan->input.outer_strides[last] = input;
        plan->output.outer_strides[last] = output;
    }
    plan->outer_rank = rank > 0 ? rank : 1;
}

/* Kernels for samples of one byte by vectors would be a third more code, for jobs that take as long as PCIe does. */
int scan_word_bytes(enum scand_dtype dtype)
{
    const int bytes = (int)codec_bytes(dtype);
    return bytes > 1 ? bytes : 2;
}

static enum scan_access access_of(const struct scan_plan *plan, const struct scan_side *side, int64_t size)
{
    if (size == 1)
        return ACCESS_SINGLE;
    int64_t rows = (int64_t)(intptr_t)side->base;
    for (int axis = 0; axis < plan->outer_rank; axis++)
        rows |= side->outer_strides[axis];
    if ((rows | side->stride) % size != 0)
        return ACCESS_BYTES;
    if (side->stride != size)
        return ACCESS_STRIDED;
    return ACCESS_VEC16;
}

static bool side_is_aligned(const struct scan_plan *plan, const struct scan_side *side)
{
    uintptr_t places = (uintptr_t)side->base;
    for (int axis = 0; axis < plan->outer_rank; axis++)
        places |= (uintptr_t)side->outer_strides[axis];
    return side->access == ACCESS_VEC16 && places % VEC16_BYTES == 0;
}

bool scan_plan_is_aligned(const struct scan_plan *plan)
{
    return side_is_aligned(plan, &plan->input) && side_is_aligned(plan, &plan->output);
}

bool scan_side_is_packed(const struct scan_plan *plan, const struct scan_side *side, int64_t size)
{
    return plan->outer_rank == 1 && side->access == ACCESS_VEC16 &&
           side->outer_strides[0] == (int64_t)plan->length * size;
}

static bool side_is_columns(const struct scan_plan *plan, const struct scan_side *side, int64_t size)
{
    return (side->access == ACCESS_VEC16 || side->access == ACCESS_STRIDED) &&
           side->outer_strides[plan->outer_rank - 1] == size;
}

bool scan_plan_is_columns(const struct scan_plan *plan)
{
    return plan->length > 1 && plan->outer_shape[plan->outer_rank - 1] >= COLUMNS_MIN &&
           side_is_columns(plan, &plan->input, codec_bytes(plan->input_form)) &&
           side_is_columns(plan, &plan->output, codec_bytes(plan->output_form));
}

uint64_t scan_plan_columns(const struct scan_plan *plan)
{
    return plan->outer_rank == 1 ? plan->items / plan->blocks : plan->outer_shape[plan->outer_rank - 1];
}

/* True when a tensor map can describe where the samples are: all strides but the one from column to column are
 * multiples of a vector and of the next smaller stride. */
static bool side_has_map(const struct scan_plan *plan, const struct scan_side *side)
{
    const uint64_t first = plan->outer_rank == 1 ? plan->first_row * codec_bytes(plan->input_form) : 0;
    int64_t stride = side->stride;
    if (((uintptr_t)side->base + first) % VEC16_BYTES != 0 || stride <= 0 || stride % VEC16_BYTES != 0)
        return false;
    for (int axis = plan->outer_rank - 2; axis >= 0; axis--) {
        if (side->outer_strides[axis] <= 0 || side->outer_strides[axis] % stride != 0)
            return false;
        stride = side->outer_strides[axis];
    }
    return (uint64_t)stride < MAP_STRIDES_MAX;
}

/* The copy engine stores whole vectors. */
bool scan_plan_has_maps(const struct scan_plan *plan)
{
    const uint64_t columns = scan_plan_columns(plan), count = plan->items / plan->blocks;
    const bool planes = plan->outer_rank == 1 || (plan->first_row % columns == 0 && count % columns == 0);
    const uint64_t bytes = codec_bytes(plan->input_form);
    return scan_plan_is_columns(plan) && planes && columns * bytes % VEC16_BYTES == 0 && columns <= INT32_MAX &&
           (bytes == 2 || bytes == 4) && codec_bytes(plan->output_form) == bytes && side_has_map(plan, &plan->input) &&
           side_has_map(plan, &plan->output);
}

uint64_t scan_plan_boxes(const struct scan_plan *plan)
{
    const uint64_t columns = scan_plan_columns(plan);
    return plan->items / plan->blocks / columns * scan_parts(columns, SCAN_BOX);
}

struct scan_plan scan_plan_of(const struct scan_rows *rows, uint64_t first, uint64_t count)
{
    const struct scan_rule *rule = &rows->rule;
    struct scan_plan plan = {0};
    plan.input.base = (char *)rows->input;
    plan.input.stride = rows->input_stride;
    plan.output.base = (char *)rows->output;
    plan.output.stride = rule->operation == SCAND_OPERATION_REDUCE ? 0 : rows->output_stride;
    plan_axes(&plan, rows);
    plan.input.access = access_of(&plan, &plan.input, codec_bytes(rule->input));
    plan.output.access = access_of(&plan, &plan.output, codec_bytes(rule->output));
    plan.length = rows->length;
    plan.first_row = first;
    plan.blocks = scan_blocks(rows->length);
    plan.items = count * plan.blocks;
    plan.sums_per_row = scan_sums(rows->length, 1);
    plan.pass_count = (int)rule->pass_count;
    for (int pass = 0; pass < plan.pass_count; pass++)
        plan.backward[pass] = rule->passes[pass] == SCAND_PASS_BACKWARD;
    plan.intermediate_f32 = rule->intermediate == SCAND_DTYPE_F32;
    plan.input_form = rule->input;
    plan.output_form = rule->output;
    plan.totals_pass = -1;
    return plan;
}
