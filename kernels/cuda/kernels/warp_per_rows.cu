#include "kernels/cuda/kernels/warp_per_rows.h"

#include "kernels/cuda/select/plan.h"

struct short_variant {
    const void *kernel;
    int tiles; /* that a warp takes at once */
};

#define VARIANT(SUM, KIND)                                            \
    {                                                                 \
        (const void *)short_kernel<SUM, KIND>, short_tiles<SUM, KIND> \
    }
#define BY_KIND(SUM) VARIANT(SUM, SCAND_KIND_INCLUSIVE), VARIANT(SUM, SCAND_KIND_EXCLUSIVE)
static const struct short_variant variants[SCAN_SHORTS] = {BY_KIND(sum_f32), BY_KIND(sum_f64), BY_KIND(sum_f2)};

/* For rows of several leaves, and of one. */
#define LANES_VARIANT(SUM, KIND)                                                                  \
    {                                                                                             \
        (const void *)lanes_kernel<SUM, KIND, false>, (const void *)lanes_kernel<SUM, KIND, true> \
    }
#define LANES_BY_KIND(SUM) LANES_VARIANT(SUM, SCAND_KIND_INCLUSIVE), LANES_VARIANT(SUM, SCAND_KIND_EXCLUSIVE)
static const void *const lanes_kernels[SCAN_SHORTS][2] = {LANES_BY_KIND(sum_f32), LANES_BY_KIND(sum_f64),
                                                          LANES_BY_KIND(sum_f2)};

static const void *lanes_kernel_of(int number, int length)
{
    return lanes_kernels[number][length <= ORDER_LEAF];
}

int scan_short_of(const struct scan_rule *rule)
{
    int exclusive = rule->kind == SCAND_KIND_EXCLUSIVE;
    switch (rule->accumulator) {
    case SCAND_ACCUMULATOR_F32:
        return exclusive;
    case SCAND_ACCUMULATOR_F64:
        return 2 + exclusive;
    default:
        return rule->pass_count > 1 && rule->intermediate == SCAND_DTYPE_F64 ? -1 : 4 + exclusive;
    }
}

static size_t lanes_bytes(int length, bool ahead)
{
    return (size_t)SHORT_WARPS * (1 + ahead) * LANES_ROOM(length) * SLOT_BYTES;
}

static cudaError_t lanes_load(struct scan_short_device *shorts, int number, int shared_max)
{
    size_t shared_most = 0;
    cudaError_t error = cudaSuccess;
    for (int leaf = 0; leaf < 2 && !error; leaf++)
        error = scan_kernel_load_most(lanes_kernels[number][leaf], shared_max, &shared_most);
    for (int ahead = 0; ahead < 2; ahead++)
        for (int length = 1; length <= LANES_LENGTH_MAX && !error; length++) {
            int blocks = 0;
            if (lanes_bytes(length, ahead) <= shared_most)
                error = scan_kernel_resident(lanes_kernel_of(number, length), SHORT_WARPS * WARP,
                                             lanes_bytes(length, ahead), &blocks);
            shorts->lanes_resident[number][ahead][length] = (uint8_t)blocks;
        }
    return error;
}

cudaError_t scan_short_load(struct scan_short_device *shorts, int shared_max)
{
    cudaError_t error = cudaSuccess;
    for (int i = 0; i < SCAN_SHORTS && !error; i++) {
        error = scan_kernel_load_resident(variants[i].kernel, STRETCH_WARPS * WARP, SHORT_BYTES(variants[i].tiles),
                                          &shorts->resident[i]);
        if (!error)
            error = lanes_load(shorts, i, shared_max);
    }
    return error;
}

/* Thread blocks of `warps`, each of which takes `at_once` rows. */
static cudaError_t launch(const struct scan_device *device, const void *kernel, struct short_plan *plan, int warps,
                          int at_once, int resident, size_t shared_bytes, cudaStream_t stream)
{
    const uint64_t blocks = (plan->rows + warps * at_once - 1) / (warps * at_once);
    const uint64_t grid = (uint64_t)device->processors * resident;
    void *arguments[] = {plan};
    if (grid == 0)
        return SCAN_NO_ROOM;
    return scan_kernel_launch(kernel, scan_least(grid, blocks), warps * WARP, arguments, shared_bytes, stream);
}

static struct short_plan short_plan_of(const struct scan_plan *scan)
{
    struct short_plan plan = {};
    uint64_t offset = scan->first_row * scan->length * sizeof(float);
    plan.input = scan->input.base + offset;
    plan.output = scan->output.base + offset;
    plan.rows = scan->items;
    plan.length = (int)scan->length;
    plan.leaves = (plan.length + ORDER_LEAF - 1) / ORDER_LEAF;
    plan.leaf_share = SHORT_LEAF_SHARE(plan.leaves);
    plan.pass_count = scan->pass_count;
    memcpy(plan.backward, scan->backward, sizeof(plan.backward));
    plan.intermediate_f32 = scan->intermediate_f32;
    return plan;
}

cudaError_t scan_short(struct scan_device *device, const struct scan_short_device *shorts, const struct scan_rule *rule,
                       const struct scan_plan *scan, cudaStream_t stream)
{
    const int number = scan_short_of(rule);
    struct short_plan plan = short_plan_of(scan);
    const int tiles = variants[number].tiles;
    plan.rows_at_once = tiles * ORDER_FAN / plan.leaves;
    cudaError_t error = scan_shares_of(device, stream, &plan.shares);
    if (error)
        return error;
    return launch(device, variants[number].kernel, &plan, STRETCH_WARPS, plan.rows_at_once, shorts->resident[number],
                  SHORT_BYTES(tiles), stream);
}

cudaError_t scan_lanes(const struct scan_device *device, const struct scan_short_device *shorts,
                       const struct scan_rule *rule, const struct scan_plan *scan, bool ahead, cudaStream_t stream)
{
    const int number = scan_short_of(rule);
    struct short_plan plan = short_plan_of(scan);
    plan.ahead = ahead;
    plan.rows_at_once = LANES_ROWS(plan.length);
    return launch(device, lanes_kernel_of(number, plan.length), &plan, SHORT_WARPS, plan.rows_at_once,
                  shorts->lanes_resident[number][ahead][plan.length], lanes_bytes(plan.length, ahead), stream);
}
