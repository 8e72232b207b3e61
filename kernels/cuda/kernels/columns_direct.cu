#include "kernels/cuda/kernels/columns_direct.cuh"

#include "kernels/cuda/kernels/launchers.h"
#include "kernels/cuda/select/instance.h"

static_assert(SCAN_DIRECT_COLUMNS == direct_columns(1) && SCAN_DIRECT_LEVELS == DIRECT_LEVELS,
              "what select.c takes for granted");

struct direct_kernel {
    const void *kernel;
    int sum_bytes, leaves; /* bytes of a sum, leaves of a thread */
};

template <class Narrow, class Wide = Narrow> static constexpr struct direct_kernel direct_by()
{
    return {(const void *)columns_direct_kernel<Narrow, Wide>, (int)sizeof(typename Narrow::sum),
            direct_leaves_of<Narrow>};
}

#define X(NAME, LOWER, RESULT, EMPTY_REAL, EMPTY_WHOLE, RULE) direct_by<RULE(SCAND_OPERATOR_##NAME)>(),
static const struct direct_kernel kernels[ANY_OPERATORS] = {ANY_OPERATOR_RULES(X, direct_by)};
#undef X

static const struct direct_kernel *kernel_of(const struct scan_rule *rule)
{
    return &kernels[scan_any_operator_number(rule)];
}

/* The rule of the totals that means are made of. */
static struct scan_rule rule_of_means(const struct scan_rule *rule)
{
    struct scan_rule means = *rule;
    means.kind = SCAND_KIND_INCLUSIVE;
    means.op = SCAND_OPERATOR_SUM;
    means.accumulator = SCAND_ACCUMULATOR_F64;
    means.demean = false;
    return means;
}

cudaError_t scan_columns_direct_load(struct scan_device *)
{
    cudaError_t error = cudaSuccess;
    for (int i = 0; i < ANY_OPERATORS && !error; i++)
        error = scan_kernel_load(kernels[i].kernel);
    return error;
}

/* Strips, and columns of all of them. */
static uint64_t strips_of(const struct scan_rule *rule, const struct scan_plan *plan)
{
    return scan_parts(plan->items / plan->blocks, (uint64_t)direct_columns(kernel_of(rule)->leaves));
}

static uint64_t columns_of(const struct scan_rule *rule, const struct scan_plan *plan)
{
    return strips_of(rule, plan) * (uint64_t)direct_columns(kernel_of(rule)->leaves);
}

/* Lays out the tile states of one pass, and returns what lies behind them. */
static uintptr_t states_at(const struct scan_rule *rule, const struct scan_plan *plan, uintptr_t place,
                           struct direct_states *states)
{
    const uint64_t words = (uint64_t)kernel_of(rule)->sum_bytes / 4;
    uint64_t members = scan_tiles(plan->length);
    states->columns = columns_of(rule, plan);
    for (int level = 0; level < DIRECT_LEVELS; level++, members = scan_groups(members)) {
        states->levels[level] = (tile_state *)place;
        place += states->columns * members * words * sizeof(tile_state);
    }
    return place;
}

/* Bytes of them. */
static uint64_t state_bytes(const struct scan_rule *rule, const struct scan_plan *plan)
{
    struct direct_states states;
    return states_at(rule, plan, 0, &states);
}

/* Counters of at most three launches, each of which counts the items that are taken. */
#define COUNTERS_BYTES VEC16_BYTES

uint64_t scan_columns_direct_workspace_bytes(const struct scan_rule *rule, const struct scan_plan *plan)
{
    if (!scan_plan_is_columns(plan))
        return 0;
    const struct scan_rule means = rule_of_means(rule);
    return COUNTERS_BYTES + rule->pass_count * state_bytes(rule, plan) + (rule->demean ? state_bytes(&means, plan) : 0);
}

/* Counts the strips and items of a rule's launches. */
static void plan_items(struct direct_plan *plan, const struct scan_rule *rule, const struct scan_plan *scan)
{
    plan->strips = (unsigned)strips_of(rule, scan);
    plan->items = plan->strips * plan->tiles;
}

/* True when columns lie in pairs that a thread can read or write at once: of f32, of 32-bit integers, or of a form of 2
 * bytes. */
static bool side_has_pairs(const struct scan_plan *scan, const struct scan_side *side, enum scand_dtype form)
{
    const int bytes = (int)codec_bytes(form);
    int64_t places = (int64_t)(intptr_t)side->base | side->stride;
    for (int axis = 0; axis + 1 < scan->outer_rank; axis++)
        places |= side->outer_strides[axis];
    return (form == SCAND_DTYPE_F32 || instance_is_32_bits(form) || bytes == 2) && places % (2 * bytes) == 0;
}

static bool has_pairs(const struct direct_plan *plan)
{
    const struct scan_plan *scan = &plan->any.scan;
    const bool even =
        scan->first_row % 2 == 0 && (scan->outer_rank == 1 || scan->outer_shape[scan->outer_rank - 1] % 2 == 0);
    return even && (plan->plain || (plan->any.input_bytes == 2 && !plan->any.demean)) &&
           side_has_pairs(scan, &scan->input, plan->any.input) && side_has_pairs(scan, &scan->output, plan->any.output);
}

static struct direct_plan plan_of(const struct scan_rule *rule, const struct scan_plan *scan, void *workspace)
{
    struct direct_plan plan = {scan_any_operator_plan_of(rule, scan, NULL)};
    plan.columns = scan->items / scan->blocks;
    plan.tiles = (unsigned)scan_tiles(scan->length);
    plan_items(&plan, rule, scan);
    plan.plain = !rule->demean && (plan.any.input == SCAND_DTYPE_F32 || instance_is_short(rule));
    plan.plain_output = plan.any.output == SCAND_DTYPE_F32 || instance_is_short(rule);
    plan.pairs = has_pairs(&plan);
    uint64_t members = plan.tiles;
    for (int level = 0; level < DIRECT_LEVELS; level++, members = scan_groups(members)) {
        plan.members[level] = (unsigned)members;
        plan.levels += level == 0 || plan.members[level - 1] > ORDER_FAN;
    }
    plan.taken = (unsigned *)workspace;
    uintptr_t place = (uintptr_t)workspace + COUNTERS_BYTES;
    for (int pass = scan->pass_count - 1; pass >= 0; pass--)
        place = states_at(rule, scan, place, &plan.states[pass]);
    const struct scan_rule means = rule_of_means(rule);
    if (rule->demean)
        states_at(&means, scan, place, &plan.means);
    return plan;
}

/* Tile states are polled for where they are of the last pass, or of a level that has a level above it. */
static uint64_t cleared_bytes(const struct scan_rule *rule, const struct scan_plan *scan)
{
    return scan_tiles(scan->length) > ORDER_FAN ? scan_columns_direct_workspace_bytes(rule, scan)
                                                : COUNTERS_BYTES + state_bytes(rule, scan);
}

/* Sets the passes of a plan's launch: the totals of its totals_pass, or all passes. */
static void plan_passes(struct direct_plan *plan)
{
    const struct scan_plan *scan = &plan->any.scan;
    const int last = scan->totals_pass >= 0 ? scan->totals_pass : scan->pass_count - 1;
    plan->from_end = scan->backward[last];
    plan->published_pass = scan->totals_pass >= 0 || plan->tiles > 1 ? last : -1;
}

static cudaError_t launch(const struct scan_call *call, const struct scan_rule *rule, struct direct_plan *plan)
{
    const struct direct_kernel *const kernel = kernel_of(rule);
    const int leaves = (int)scan_least(scan_parts(plan->any.scan.length, ORDER_LEAF), ORDER_FAN);
    const int each = kernel->leaves, columns = direct_columns(each);
    const int threads = ((leaves + each - 1) / each * columns + WARP - 1) / WARP * WARP;
    int resident = 0;
    cudaError_t error = scan_kernel_resident(kernel->kernel, threads, 0, &resident);
    if (error || resident == 0)
        return error ? error : SCAN_NO_ROOM;
    void *arguments[] = {plan};
    plan_passes(plan);
    error = scan_kernel_launch(kernel->kernel, scan_least((uint64_t)resident * call->device->processors, plan->items),
                               threads, arguments, 0, call->stream);
    plan->taken++;
    return error;
}

/* The totals that means are made of. */
static cudaError_t launch_means(const struct scan_call *call, struct direct_plan *plan)
{
    const struct scan_rule means = rule_of_means(&call->rows->rule);
    struct direct_plan totals = *plan;
    totals.any = scan_any_layout_plan_of(&means, &call->plan, NULL);
    totals.any.scan.backward[0] = false;
    totals.any.scan.pass_count = 1;
    totals.any.scan.totals_pass = 0;
    totals.states[0] = plan->means;
    plan_items(&totals, &means, &call->plan);
    plan->taken++;
    return launch(call, &means, &totals);
}

cudaError_t scan_columns_direct(const struct scan_call *call)
{
    const struct scan_rule *rule = &call->rows->rule;
    struct direct_plan plan = plan_of(rule, &call->plan, call->workspace);
    cudaError_t error =
        scan_cleared(cudaMemsetAsync(call->workspace, 0, cleared_bytes(rule, &call->plan), call->stream));
    if (!error && rule->demean)
        error = launch_means(call, &plan);
    if (!error && plan.tiles > 1 && call->plan.pass_count > 1) {
        plan.any.scan.totals_pass = 0;
        error = launch(call, rule, &plan);
        plan.any.scan.totals_pass = -1;
    }
    return error ? error : launch(call, rule, &plan);
}
