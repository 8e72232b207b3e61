#include "kernels/cuda/kernels/reduce.cuh"

#include "kernels/cuda/kernels/launchers.h"

#define TEAM_TILES   4   /* tiles of a row for each warp of a team, at least */
#define FINISH_BLOCK 256 /* threads, a warp of which makes a result */

/* Thread blocks are many and leave after a little work, so that SMs share it out by themselves: 10,000 x 10,000
 * took 0.098 ms on an H200, and 0.101 with one round of thread blocks that stay. Only of short rows does each take
 * some, to fetch one while it adds up another. */
#define STEPS_ALONE  4 /* tiles of a row for each warp, from which on its thread block takes no other */
#define STEPS        8 /* tiles that a warp takes else */
#define SHORT_TURNS  4 /* turns that a warp takes */
#define BLOCKS_EACH  4 /* thread blocks for an SM, at least, if there is work for them */
#define GRID_LARGEST INT32_MAX

/* A kernel that reads words of so many bytes, its fellows for short rows and for several reductions, and what makes
 * totals of levels above order blocks, and results of them. */
struct reducer {
    const void *kernel, *warp_per_rows_kernel, *together_kernel, *up, *finisher;
    int bytes, warps;
    uint64_t total_bytes;
    size_t shared_bytes;
};

template <class Sum, int Bytes> static constexpr struct reducer reducer_by(void)
{
    return {(const void *)reduce_kernel<Sum, Bytes>,
            (const void *)reduce_short_kernel<Sum, Bytes>,
            (const void *)reduce_together_kernel<Sum, Bytes>,
            (const void *)spine_up_kernel<Sum, false>,
            (const void *)reduce_finish_kernel<Sum>,
            Bytes,
            REDUCE_WARPS(Bytes),
            sizeof(typename Sum::sum),
            REDUCE_SHARED(Bytes)};
}

/* Sums of floats are kept in f64; max and min work in the type of the samples, and are one kernel (instance_flip). So
 * are sums and sums of squares, but of f64. */
using whole_sum = any_whole<SCAND_OPERATOR_SUM>;
using whole_max = any_whole<SCAND_OPERATOR_MAX>;
template <class T> using real_max = any_real<T, SCAND_OPERATOR_MAX>;

enum {
    REDUCERS_F32 = 0,
    REDUCERS_HALF = 2,
    REDUCERS_WHOLE_4 = 4,
    REDUCERS_WHOLE_8 = 6,
    REDUCERS_F64 = 8,
    REDUCER_SQUARES = 10,
    REDUCER_I32,
    REDUCERS
};
static const struct reducer reducers[REDUCERS] = {
    reducer_by<sum_f64, 4>(),          reducer_by<real_max<float>, 4>(), reducer_by<sum_f64, 2>(),
    reducer_by<real_max<float>, 2>(),  reducer_by<whole_sum, 4>(),       reducer_by<whole_max, 4>(),
    reducer_by<whole_sum, 8>(),        reducer_by<whole_max, 8>(),       reducer_by<sum_f64, 8>(),
    reducer_by<real_max<double>, 8>(), reducer_by<sum_squares_f64, 8>(), reducer_by<real_max<double>, 4>()};

int scan_reduce_number(const struct scan_rule *rule)
{
    const int bytes = scan_word_bytes(rule->input), compares = OPERATOR_COMPARES(rule->op);
    if (codec_is_integer(rule->input))
        return (bytes == 8 ? REDUCERS_WHOLE_8 : REDUCERS_WHOLE_4) + compares;
    if (bytes == 8)
        return reduce_squares(rule->reduction) ? REDUCER_SQUARES : REDUCERS_F64 + compares;
    if (bytes == 4 && codec_class(rule->input) == SCAND_CLASS_F64 && compares)
        return REDUCER_I32;
    return (bytes == 2 ? REDUCERS_HALF : REDUCERS_F32) + compares;
}

static const struct reducer *reducer_of(const struct scan_rule *rule)
{
    return &reducers[scan_reduce_number(rule)];
}

cudaError_t scan_reduce_load(struct scan_device *)
{
    cudaError_t error = cudaSuccess;
    for (int i = 0; i < REDUCERS && !error; i++) {
        const struct reducer *reducer = &reducers[i];
        for (const void *kernel : {reducer->kernel, reducer->warp_per_rows_kernel, reducer->together_kernel})
            error = error ? error : scan_kernel_share(kernel, reducer->shared_bytes);
        for (const void *kernel : {reducer->up, reducer->finisher})
            error = error ? error : scan_kernel_load(kernel);
    }
    return error;
}

/* Rows of several order blocks are made of the totals of those. */
uint64_t scan_reduce_workspace_bytes(const struct scan_rows *rows, uint64_t count)
{
    return rows->length > ORDER_BLOCK ? scan_sums(rows->length, count) * reducer_of(&rows->rule)->total_bytes : 0;
}

static struct reduce_plan plan_of(const struct scan_rows *rows, uint64_t first, uint64_t count, void *totals)
{
    const struct scan_rule *rule = &rows->rule;
    struct reduce_plan plan = {};
    plan.scan = scan_plan_of(rows, first, count);
    plan.reduction = rule->reduction;
    plan.output = rule->output;
    plan.output_aligned = plan.scan.output.access != ACCESS_BYTES;
    plan.totals = plan.scan.blocks > 1 ? totals : NULL; /* a workspace is there also when none is needed */
    plan.offsets = rows->offsets ? rows->device_offsets + first : NULL;
    plan.team = 1;
    plan.flip = instance_flip(rule);
    plan.empty = codec_is_integer(rule->input) ? operator_empty_whole(rule->op, rule->input) : 0;
    return plan;
}

/* Thread blocks for items of which each takes `workers` at a time and, if there are many, so many times. */
static uint64_t grid_of(const struct scan_device *device, uint64_t items, uint64_t workers, uint64_t rounds)
{
    uint64_t most = items / (workers * (uint64_t)device->processors * BLOCKS_EACH);
    rounds = scan_least(rounds, most > 0 ? most : 1);
    return scan_least(scan_parts(scan_parts(items, rounds), workers), GRID_LARGEST);
}

static cudaError_t short_run(const struct scan_device *device, const struct reducer *reducer, struct reduce_plan *plan,
                             cudaStream_t stream)
{
    struct packed_rows *rows = &plan->rows_at_once;
    *rows = packed_rows_of(&plan->scan);
    rows->rows_at_once = ORDER_FAN / rows->leaves;
    uint64_t iterations = scan_parts(rows->rows, (uint64_t)rows->rows_at_once);
    void *arguments[] = {plan};
    return scan_kernel_launch(reducer->warp_per_rows_kernel,
                              grid_of(device, iterations, (uint64_t)reducer->warps, SHORT_TURNS), reducer->warps * WARP,
                              arguments, reducer->shared_bytes, stream);
}

/* A row, or an order block of one, is for a warp; for more of them, where it is long enough for each. */
static int team_of(const struct reducer *reducer, int tiles)
{
    int team = 1;
    while (2 * team <= reducer->warps && 2 * team * TEAM_TILES <= tiles)
        team *= 2;
    return team;
}

static int tiles_of(uint64_t length)
{
    return (int)scan_parts(scan_least(length, ORDER_BLOCK), ORDER_TILE);
}

static cudaError_t teams_run(const struct scan_device *device, const struct reducer *reducer, struct reduce_plan *plan,
                             uint64_t length, cudaStream_t stream)
{
    const int tiles = tiles_of(length);
    plan->team = team_of(reducer, tiles);
    const uint64_t teams = (uint64_t)(reducer->warps / plan->team);
    const int steps = tiles > plan->team ? tiles / plan->team : 1;
    const uint64_t rounds = steps < STEPS_ALONE ? STEPS / (uint64_t)steps : 1;
    void *arguments[] = {plan};
    return scan_kernel_launch(reducer->kernel, grid_of(device, plan->scan.items, teams, rounds), reducer->warps * WARP,
                              arguments, reducer->shared_bytes, stream);
}

/* Results from the totals of blocks, or of rows without samples. */
static cudaError_t finish_run(const struct reducer *reducer, struct reduce_plan *plan, uint64_t count,
                              cudaStream_t stream)
{
    struct scan_spine_rows level = {count, plan->scan.sums_per_row, plan->scan.blocks, NULL};
    cudaError_t error = cudaSuccess;
    for (; level.members > ORDER_FAN && !error; level.members = scan_groups(level.members)) {
        error = scan_spine_up(reducer->up, plan->totals, level, stream);
        plan->totals = (char *)plan->totals + level.members * reducer->total_bytes;
    }
    const uint64_t grid = scan_least(scan_parts(count, FINISH_BLOCK / WARP), SCAN_GRID_MAX);
    void *arguments[] = {plan, &level};
    return error ? error : scan_kernel_launch(reducer->finisher, grid, FINISH_BLOCK, arguments, 0, stream);
}

/* Rows of any one length. */
static cudaError_t even_run(const struct scan_call *call)
{
    const struct scan_device *device = call->device;
    const struct scan_range *range = call->range;
    const struct reducer *reducer = reducer_of(&call->rows->rule);
    struct reduce_plan plan = plan_of(call->rows, call->first, call->count, call->workspace);
    cudaError_t error = cudaSuccess;
    if (range && range->work == RANGE_RESULT)
        return finish_run(reducer, &plan, call->count, call->stream);
    if (range)
        scan_plan_narrow(&plan.scan, range);
    if (call->path == SELECT_REDUCE_WARP_PER_ROWS)
        return short_run(device, reducer, &plan, call->stream);
    if (call->rows->length > 0)
        error = teams_run(device, reducer, &plan, call->rows->length, call->stream);
    if (!error && plan.scan.blocks != 1 && !range)
        error = finish_run(reducer, &plan, call->count, call->stream);
    return error;
}

/* Ragged rows of at most an order block are an item each. */
static cudaError_t ragged_run(const struct scan_call *call)
{
    const uint64_t *const offsets = call->rows->offsets + call->first;
    struct scan_rows shorter = *call->rows;
    shorter.length = ORDER_BLOCK;
    struct reduce_plan plan = plan_of(&shorter, call->first, call->count, NULL);
    return teams_run(call->device, reducer_of(&call->rows->rule), &plan,
                     (offsets[call->count] - offsets[0]) / call->count, call->stream);
}

cudaError_t scan_reduce_together(const struct scan_part *parts, unsigned count, cudaStream_t stream)
{
    const struct reducer *reducer = reducer_of(&parts->rows->rule);
    const auto plan_make = [&](const struct scan_part &part, struct reduce_plan *plan) -> struct batch_part {
        *plan = plan_of(part.rows, part.first, part.count, NULL);
        plan->team = team_of(reducer, tiles_of(part.rows->length));
        return {scan_parts(part.count, (uint64_t)(reducer->warps / plan->team)), reducer->warps,
                REDUCE_STAGES *WORDS_VECTORS(reducer->bytes)};
    };
    return batches_launch<struct reduce_plan>(reducer->together_kernel, parts, count, stream, plan_make);
}

cudaError_t scan_reduce(const struct scan_call *call)
{
    return call->rows->offsets ? ragged_run(call) : even_run(call);
}
