#include "kernels/cuda/kernels/columns_direct.h"

#include "kernels/cuda/kernels/any_layout.h"
#include "kernels/cuda/kernels/columns_direct.cuh"

static_assert(SCAN_DIRECT_COLUMNS == direct_columns(8) && SCAN_DIRECT_LEVELS == DIRECT_LEVELS,
              "what select.c takes for granted");

template <class Narrow, class Wide = Narrow> static constexpr const void *direct_by()
{
    return (const void *)columns_direct_kernel<Narrow, Wide>;
}

/* In the order of the any_layout kernels; then those of affine, by accumulator. */
#define AFFINES                                               4
#define X(NAME, LOWER, RESULT, EMPTY_REAL, EMPTY_WHOLE, RULE) direct_by<RULE(SCAND_OPERATOR_##NAME)>(),
static const void *const kernels[ANY_LAYOUT_KERNELS + AFFINES] = {
    ANY_RULES(X) direct_by<affine_sum<float>>(),
    direct_by<affine_sum<double>>(),
    direct_by<affine_sum<struct f2>>(),
    direct_by<affine_sum<uint64_t>>(),
};
#undef X

static int kernel_of(const struct scan_rule *rule)
{
    if (rule->op != SCAND_OPERATOR_AFFINE)
        return scan_any_layout_number(rule);
    return ANY_LAYOUT_KERNELS + (codec_is_integer(rule->input) ? AFFINES - 1 : scan_float_number(rule->accumulator));
}

/* A map is two numbers. */
static uint64_t sum_bytes_of(const struct scan_rule *rule)
{
    if (rule->op != SCAND_OPERATOR_AFFINE)
        return scan_any_layout_sum_bytes(rule);
    return rule->accumulator == SCAND_ACCUMULATOR_F32 ? sizeof(affine_map<float>) : sizeof(affine_map<double>);
}

/* The rule of the totals that means are made of. */
static struct scan_rule rule_of_means(const struct scan_rule *rule)
{
    struct scan_rule means = *rule;
    means.op = SCAND_OPERATOR_SUM;
    means.accumulator = SCAND_ACCUMULATOR_F64;
    means.demean = false;
    return means;
}

cudaError_t scan_columns_direct_load(void)
{
    cudaError_t error = cudaSuccess;
    for (int i = 0; i < ANY_LAYOUT_KERNELS + AFFINES && !error; i++)
        error = scan_kernel_load(kernels[i]);
    return error;
}

/* Strips, and columns of all of them. */
static uint64_t strips_of(const struct scan_rule *rule, const struct scan_plan *plan)
{
    const uint64_t columns = (uint64_t)direct_columns(sum_bytes_of(rule));
    return (plan->items / plan->blocks + columns - 1) / columns;
}

static uint64_t columns_of(const struct scan_rule *rule, const struct scan_plan *plan)
{
    return strips_of(rule, plan) * (uint64_t)direct_columns(sum_bytes_of(rule));
}

/* Of one pass. */
static uint64_t state_bytes(const struct scan_rule *rule, const struct scan_plan *plan)
{
    const uint64_t words = sum_bytes_of(rule) / 4;
    uint64_t members = scan_tiles(plan->length), sums = 0;
    for (int level = 0; level < DIRECT_LEVELS; level++, members = scan_groups(members))
        sums += members;
    return columns_of(rule, plan) * sums * words * sizeof(tile_state);
}

/* Of at most three launches, each of which counts the items that are taken. */
#define COUNTERS_BYTES VEC16_BYTES

uint64_t scan_columns_direct_workspace_bytes(const struct scan_rule *rule, const struct scan_plan *plan)
{
    if (!scan_plan_is_columns(plan))
        return 0;
    const struct scan_rule means = rule_of_means(rule);
    return COUNTERS_BYTES + rule->pass_count * state_bytes(rule, plan) + (rule->demean ? state_bytes(&means, plan) : 0);
}

/* Lays out the tile states of one pass, and returns what lies behind them. */
static char *states_at(const struct scan_rule *rule, const struct scan_plan *scan, const struct direct_plan *plan,
                       char *place, struct direct_states *states)
{
    const uint64_t words = sum_bytes_of(rule) / 4;
    states->columns = columns_of(rule, scan);
    for (int level = 0; level < DIRECT_LEVELS; level++) {
        states->levels[level] = (tile_state *)place;
        place += states->columns * plan->members[level] * words * sizeof(tile_state);
    }
    return place;
}

/* Which items there are of a rule's launches. */
static void plan_items(struct direct_plan *plan, const struct scan_rule *rule, const struct scan_plan *scan)
{
    plan->strips = (unsigned)strips_of(rule, scan);
    plan->items = plan->strips * plan->tiles;
}

static struct direct_plan plan_of(const struct scan_rule *rule, const struct scan_plan *scan, void *workspace)
{
    struct direct_plan plan = {};
    plan.any = scan_any_layout_plan_of(rule, scan, NULL);
    plan.columns = scan->items / scan->blocks;
    plan.coefficient = rule->coefficient;
    plan.whole = codec_is_integer(rule->input) ? (uint64_t)(int64_t)rule->coefficient : 0;
    plan.tiles = (unsigned)scan_tiles(scan->length);
    plan_items(&plan, rule, scan);
    uint64_t members = plan.tiles;
    for (int level = 0; level < DIRECT_LEVELS; level++, members = scan_groups(members)) {
        plan.members[level] = (unsigned)members;
        plan.levels += level == 0 || plan.members[level - 1] > ORDER_FAN;
    }
    plan.taken = (unsigned *)workspace;
    char *place = (char *)workspace + COUNTERS_BYTES;
    for (int pass = scan->pass_count - 1; pass >= 0; pass--)
        place = states_at(rule, scan, &plan, place, &plan.states[pass]);
    const struct scan_rule means = rule_of_means(rule);
    if (rule->demean)
        states_at(&means, scan, &plan, place, &plan.means);
    return plan;
}

/* Tile states are polled for where they are of the last pass, or of a level that has a level above it. */
static uint64_t cleared_bytes(const struct scan_rule *rule, const struct scan_plan *scan)
{
    return scan_tiles(scan->length) > ORDER_FAN ? scan_columns_direct_workspace_bytes(rule, scan)
                                                : COUNTERS_BYTES + state_bytes(rule, scan);
}

/* What the launch of a plan makes: the totals of its totals_pass, or all passes. */
static void plan_passes(struct direct_plan *plan)
{
    const struct scan_plan *scan = &plan->any.scan;
    const int last = scan->totals_pass >= 0 ? scan->totals_pass : scan->pass_count - 1;
    plan->from_end = scan->backward[last];
    plan->published_pass = scan->totals_pass >= 0 || plan->tiles > 1 ? last : -1;
}

static cudaError_t launch(const struct scan_device *device, const struct scan_rule *rule, struct direct_plan *plan,
                          cudaStream_t stream)
{
    const void *const kernel = kernels[kernel_of(rule)];
    const int leaves = (int)scan_least((plan->any.scan.length + ORDER_LEAF - 1) / ORDER_LEAF, ORDER_FAN);
    const int columns = direct_columns(sum_bytes_of(rule)), each = direct_leaves(sum_bytes_of(rule));
    const int threads = ((leaves + each - 1) / each * columns + WARP - 1) / WARP * WARP;
    int resident = 0;
    cudaError_t error = scan_kernel_resident(kernel, threads, 0, &resident);
    if (error || resident == 0)
        return error ? error : SCAN_NO_ROOM;
    void *arguments[] = {plan};
    plan_passes(plan);
    error = scan_kernel_launch(kernel, scan_least((uint64_t)resident * device->processors, plan->items), threads,
                               arguments, 0, stream);
    plan->taken++;
    return error;
}

/* The totals that means are made of. */
static cudaError_t launch_means(const struct scan_device *device, const struct scan_rule *rule,
                                const struct scan_plan *scan, struct direct_plan *plan, cudaStream_t stream)
{
    const struct scan_rule means = rule_of_means(rule);
    struct direct_plan totals = *plan;
    totals.any = scan_any_layout_plan_of(&means, scan, NULL);
    totals.any.scan.backward[0] = false;
    totals.any.scan.pass_count = 1;
    totals.any.scan.totals_pass = 0;
    totals.states[0] = plan->means;
    plan_items(&totals, &means, scan);
    plan->taken++;
    return launch(device, &means, &totals, stream);
}

cudaError_t scan_columns_direct(const struct scan_device *device, const struct scan_rule *rule,
                                const struct scan_plan *scan, void *workspace, cudaStream_t stream)
{
    struct direct_plan plan = plan_of(rule, scan, workspace);
    cudaError_t error = scan_cleared(cudaMemsetAsync(workspace, 0, cleared_bytes(rule, scan), stream));
    if (!error && rule->demean)
        error = launch_means(device, rule, scan, &plan, stream);
    if (!error && plan.tiles > 1 && scan->pass_count > 1) {
        plan.any.scan.totals_pass = 0;
        error = launch(device, rule, &plan, stream);
        plan.any.scan.totals_pass = -1;
    }
    return error ? error : launch(device, rule, &plan, stream);
}
