#include "kernels/scan_cuda_reduce.h"

#include "kernels/cuda/reduce.cuh"
#include "kernels/scan_cuda_plan.h"

#define SHORT_MAX    (ORDER_TILE / 2) /* samples of a row of which a warp takes several */
#define TEAM_TILES   4                /* of a row for each warp of a team, at least */
#define TEAM_BLOCKS  3   /* thread blocks on a processor, at most: more read from too many places at once */
#define FINISH_BLOCK 256 /* threads, where each makes a result */

enum { READ_SUM, READ_SQUARES, READ_MAX, READ_MIN };

template <enum scand_operator Op> using real_f32 = general_real<float, Op>;

static const void *const reduce_kernels[SCAN_REDUCES] = {
    (const void *)reduce_kernel<sum_f64>,
    (const void *)reduce_kernel<sum_squares>,
    (const void *)reduce_kernel<real_f32<SCAND_OPERATOR_MAX>>,
    (const void *)reduce_kernel<real_f32<SCAND_OPERATOR_MIN>>,
};

static const void *const short_kernels[SCAN_REDUCES] = {
    (const void *)reduce_short_kernel<sum_f64>,
    (const void *)reduce_short_kernel<sum_squares>,
    (const void *)reduce_short_kernel<real_f32<SCAND_OPERATOR_MAX>>,
    (const void *)reduce_short_kernel<real_f32<SCAND_OPERATOR_MIN>>,
};

static int reader_of(enum scand_reduction reduction)
{
    return reduction == SCAND_REDUCTION_MAX   ? READ_MAX
           : reduction == SCAND_REDUCTION_MIN ? READ_MIN
           : reduce_squares(reduction)        ? READ_SQUARES
                                              : READ_SUM;
}

/* What makes results of totals. */
static const void *const finishers[SCAN_REDUCES] = {
    (const void *)reduce_finish_kernel<general_real<double, SCAND_OPERATOR_SUM>>,
    (const void *)reduce_finish_kernel<general_real<double, SCAND_OPERATOR_SUM>>,
    (const void *)reduce_finish_kernel<real_f32<SCAND_OPERATOR_MAX>>,
    (const void *)reduce_finish_kernel<real_f32<SCAND_OPERATOR_MIN>>,
};

cudaError_t scan_reduce_load(struct scan_reduce_device *device, int processors)
{
    cudaError_t error = cudaSuccess;
    device->processors = processors;
    for (int i = 0; i < SCAN_REDUCES && !error; i++) {
        error = scan_kernel_load_resident(reduce_kernels[i], REDUCE_WARPS * WARP, 0, &device->resident[i]);
        if (!error)
            error = scan_kernel_load_resident(short_kernels[i], REDUCE_WARPS * WARP, 0, &device->short_resident[i]);
        if (!error)
            error = scan_kernel_load(finishers[i]);
    }
    return error;
}

bool scan_reduce_takes(const struct scan_rule *rule)
{
    return codec_class(rule->input) == SCAND_CLASS_F32 && codec_bytes(rule->input) == sizeof(float);
}

bool scan_reduce_needs_totals(const struct scan_rows *rows)
{
    return rows->length > ORDER_BLOCK;
}

static struct reduce_plan reduce_plan_of(const struct scan_rows *rows, const struct scan_plan *scan, void *totals)
{
    const struct scan_rule *rule = &rows->rule;
    struct reduce_plan plan = {};
    plan.scan = *scan;
    plan.reduction = rule->reduction;
    plan.output = rule->output;
    plan.output_aligned = scan->output.access != ACCESS_BYTES;
    plan.totals = scan->blocks > 1 ? totals : NULL; /* a workspace is there also when none is needed */
    plan.team = 1;
    return plan;
}

static uint64_t parts_of(uint64_t whole, uint64_t part)
{
    return (whole + part - 1) / part;
}

/* As many thread blocks, each with `workers`, as share `items` out evenly: the last round is as full as the others. */
static uint64_t grid_of(uint64_t items, uint64_t workers, uint64_t blocks_max)
{
    uint64_t rounds = parts_of(items, workers * blocks_max);
    return parts_of(parts_of(items, rounds), workers);
}

/* A row is for a warp; for more of them, where it is long enough for each. */
static int team_of(uint64_t length)
{
    uint64_t tiles = parts_of(length < ORDER_BLOCK ? length : ORDER_BLOCK, ORDER_TILE);
    int team = 1;
    while (2 * team <= REDUCE_WARPS && 2 * team * TEAM_TILES <= (int)tiles)
        team *= 2;
    return team;
}

static cudaError_t short_run(const struct scan_reduce_device *device, struct reduce_plan *plan, int reader,
                             cudaStream_t stream)
{
    struct short_plan *rows = &plan->rows_at_once;
    rows->input = plan->scan.input.base + plan->scan.first_row * plan->scan.length * sizeof(float);
    rows->rows = plan->scan.items;
    rows->length = (int)plan->scan.length;
    rows->leaves = (rows->length + ORDER_LEAF - 1) / ORDER_LEAF;
    rows->rows_at_once = ORDER_FAN / rows->leaves;
    uint64_t turns = parts_of(rows->rows, (uint64_t)rows->rows_at_once);
    uint64_t blocks_max = (uint64_t)device->processors * device->short_resident[reader];
    void *arguments[] = {plan};
    if (blocks_max == 0)
        return cudaErrorInitializationError;
    return scan_kernel_launch(short_kernels[reader], grid_of(turns, REDUCE_WARPS, blocks_max), REDUCE_WARPS * WARP,
                              arguments, 0, stream);
}

cudaError_t scan_reduce(const struct scan_reduce_device *device, const struct scan_rows *rows,
                        const struct scan_plan *scan, void *totals, cudaStream_t stream)
{
    struct reduce_plan plan = reduce_plan_of(rows, scan, totals);
    const int reader = reader_of(rows->rule.reduction);
    if (scan->length <= SHORT_MAX && scan_side_is_packed(scan, &scan->input))
        return short_run(device, &plan, reader, stream);
    plan.team = team_of(scan->length);
    int resident = device->resident[reader];
    if (plan.team > 1 && resident > TEAM_BLOCKS)
        resident = TEAM_BLOCKS;
    uint64_t blocks_max = (uint64_t)device->processors * resident;
    void *arguments[] = {&plan};
    if (blocks_max == 0)
        return cudaErrorInitializationError;
    return scan_kernel_launch(reduce_kernels[reader], grid_of(scan->items, REDUCE_WARPS / plan.team, blocks_max),
                              REDUCE_WARPS * WARP, arguments, 0, stream);
}

cudaError_t scan_reduce_finish(const struct scan_rows *rows, const struct scan_plan *scan, uint64_t count, void *totals,
                               cudaStream_t stream)
{
    struct reduce_plan plan = reduce_plan_of(rows, scan, totals);
    uint64_t threads = FINISH_BLOCK, grid = parts_of(count, FINISH_BLOCK);
    if (scan->blocks > 1) {
        threads = scan_least(parts_of(scan->blocks, WARP) * WARP, CARRIES_THREADS);
        grid = count;
    }
    void *arguments[] = {&plan, &count};
    return scan_kernel_launch(finishers[reader_of(rows->rule.reduction)], scan_least(grid, SCAN_GRID_MAX), (int)threads,
                              arguments, 0, stream);
}
