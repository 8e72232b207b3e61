/*
 * The any_layout kernels: all operators for f32, f64 and integers, in the order of the vocabulary, then those for f2
 * that do not only compare.
 */
#include "kernels/cuda/kernels/any_layout.h"

#include <assert.h>

#include "kernels/cuda/exchange/spine.cuh"
#include "kernels/cuda/exchange/spine.h"
#include "kernels/cuda/kernels/any_layout.cuh"
#include "kernels/cuda/select/plan.h"

struct any_layout {
    const void *kernels[2]; /* any_layout_kernel, any_layout_prefetch_kernel */
    struct scan_spine spine;
};

template <class Narrow, class Wide = Narrow> static constexpr struct any_layout any_by()
{
    return {{(const void *)any_layout_kernel<Narrow, Wide>, (const void *)any_layout_prefetch_kernel<Narrow, Wide>},
            scan_spine_by<Narrow>()};
}

enum {
    ANY_F32,
    ANY_F64 = NUMBER_OPERATOR_COUNT,
    ANY_WHOLE = 2 * NUMBER_OPERATOR_COUNT,
    ANY_F2 = 3 * NUMBER_OPERATOR_COUNT
};

#define X(NAME, LOWER, RESULT, EMPTY_REAL, EMPTY_WHOLE, RULE) any_by<RULE(SCAND_OPERATOR_##NAME)>(),
static const struct any_layout any_layouts[ANY_LAYOUT_KERNELS] = {ANY_RULES(X)};
#undef X

int scan_any_layout_number(const struct scan_rule *rule)
{
    bool compares = OPERATOR_COMPARES(rule->op);
    bool f64 = compares ? codec_class(rule->input) == SCAND_CLASS_F64 : rule->accumulator == SCAND_ACCUMULATOR_F64;
    if (codec_is_integer(rule->input))
        return ANY_WHOLE + rule->op;
    if (!compares && rule->accumulator == SCAND_ACCUMULATOR_F2)
        return ANY_F2 + rule->op;
    return (f64 ? ANY_F64 : ANY_F32) + rule->op;
}

static const struct any_layout *any_of(const struct scan_rule *rule)
{
    return &any_layouts[scan_any_layout_number(rule)];
}

/* The kernel that adds up f64, for means. */
static const struct any_layout *any_of_mean(void)
{
    return &any_layouts[ANY_F64 + SCAND_OPERATOR_SUM];
}

uint64_t scan_any_layout_sum_bytes(const struct scan_rule *rule)
{
    return any_of(rule)->spine.sum_bytes;
}

/* The number of resident thread blocks also depends on the samples. */
cudaError_t scan_any_layout_load(int shared_max)
{
    cudaError_t error = cudaSuccess;
    for (int i = 0; i < ANY_LAYOUT_KERNELS && !error; i++) {
        size_t shared_bytes = 0;
        for (int ahead = 0; ahead < 2 && !error; ahead++)
            error = scan_kernel_load_most(any_layouts[i].kernels[ahead], shared_max, &shared_bytes);
        assert(error || shared_bytes + SELECT_DECLARED_BYTES >= (size_t)shared_max);
        if (!error)
            error = scan_spine_load(&any_layouts[i].spine);
    }
    return error;
}

static_assert(SELECT_PREFETCH_VECTORS(2, 4) == WORDS_VECTORS(2) + WORDS_STAGE(4) &&
                  SELECT_PREFETCH_VECTORS(8, 8) == WORDS_VECTORS(8) + WORDS_STAGE(8),
              "what select.c takes for the shared memory of a warp");

/* Vectors of shared memory that a warp has. */
static int smem_of(const struct any_plan *plan)
{
    return plan->scan.ahead ? SELECT_PREFETCH_VECTORS(plan->input_bytes, plan->output_bytes)
                            : ANY_SMEM(any_widest(*plan));
}

struct any_plan scan_any_layout_plan_of(const struct scan_rule *rule, const struct scan_plan *scan,
                                        const uint64_t *offsets)
{
    struct any_plan plan = {};
    plan.scan = *scan;
    plan.input = rule->input;
    plan.output = rule->output;
    plan.input_bytes = scan_word_bytes(rule->input);
    plan.output_bytes = scan_word_bytes(rule->output);
    plan.kind = rule->kind;
    plan.wide[0] = codec_class(rule->input) == SCAND_CLASS_F64;
    plan.wide[1] = rule->intermediate == SCAND_DTYPE_F64;
    plan.flip = operator_flip(rule->op, rule->input);
    plan.zero = codec_is_integer(rule->input) ? operator_empty_whole(rule->op, rule->input) ^ plan.flip : 0;
    plan.offsets = offsets;
    plan.demean = rule->demean;
    plan.scan.smem = smem_of(&plan);
    return plan;
}

static cudaError_t launch(struct scan_device *device, const struct any_layout *any_layout, struct any_plan *plan,
                          cudaStream_t stream)
{
    struct scan_plan *scan = &plan->scan;
    const int warps = scan_warps(scan->length);
    const void *kernel = any_layout->kernels[scan->ahead];
    const size_t shared_bytes = (size_t)warps * scan->smem * VEC16_BYTES;
    int resident = 0;
    cudaError_t error = scan_kernel_resident(kernel, warps * WARP, shared_bytes, &resident);
    if (error || resident == 0)
        return error ? error : SCAN_NO_ROOM;
    uint64_t grid;
    error = scan_grid_of(device, scan, (uint64_t)device->processors * resident, warps, stream, &grid);
    if (error)
        return error;
    struct batch<struct any_plan> batch;
    void *arguments[] = {scan->ahead ? (void *)plan : &batch};
    if (!scan->ahead) {
        batch.ends[0] = (uint32_t)grid;
        batch.plans[0] = *plan;
    }
    return scan_kernel_launch(kernel, grid, warps * WARP, arguments, shared_bytes, stream);
}

static cudaError_t launch_batch(const struct scan_part *first, unsigned count, cudaStream_t stream)
{
    struct batch<struct any_plan> batch;
    uint32_t blocks = 0;
    int warps = 1, smem = 0;
    for (unsigned i = 0; i < count; i++) {
        const struct scan_rows *rows = first[i].rows;
        const struct scan_plan scan = scan_plan_of(rows, first[i].first, first[i].count);
        struct any_plan *plan = &batch.plans[i];
        *plan = scan_any_layout_plan_of(&rows->rule, &scan, NULL);
        batch.ends[i] = blocks += (uint32_t)first[i].count;
        warps = scan_warps(rows->length) > warps ? scan_warps(rows->length) : warps;
        smem = plan->scan.smem > smem ? plan->scan.smem : smem;
    }
    void *arguments[] = {&batch};
    return scan_kernel_launch(any_of(&first->rows->rule)->kernels[0], blocks, warps * WARP, arguments,
                              (size_t)warps * smem * VEC16_BYTES, stream);
}

cudaError_t scan_any_layout_together(const struct scan_part *parts, unsigned count, cudaStream_t stream)
{
    return scan_batches_each(
        parts, count, batch<struct any_plan>::most,
        [&](const struct scan_part *first, unsigned taken) { return launch_batch(first, taken, stream); });
}

/* Queues the totals of the rows' blocks first, and then those of the levels above; or one range of them. */
static cudaError_t totals_make(struct scan_device *device, struct any_plan plan, double *totals,
                               const struct scan_range *range, cudaStream_t stream)
{
    const struct any_layout *mean = any_of_mean();
    struct any_plan blocks;
    cudaError_t error = cudaSuccess;
    plan.demean = false;
    plan.kind = SCAND_KIND_INCLUSIVE; /* a mean has the whole of the first sample */
    plan.scan.backward[0] = false;
    plan.scan.pass_count = 1;
    plan.scan.totals_pass = 0;
    plan.scan.sums[0] = totals;
    blocks = plan;
    if (range)
        scan_plan_narrow(&blocks.scan, range);
    if (!range || range->work == RANGE_MEAN_TOTALS)
        error = launch(device, mean, &blocks, stream);
    if (error || plan.scan.blocks == 1 || (range && range->work == RANGE_MEAN_TOTALS))
        return error;
    return scan_spine_of_pass(&mean->spine, &plan.scan, 0, stream);
}

cudaError_t scan_any_layout_totals(struct scan_device *device, const struct scan_rule *rule,
                                   const struct scan_plan *scan, double *totals, const struct scan_range *range,
                                   cudaStream_t stream)
{
    return totals_make(device, scan_any_layout_plan_of(rule, scan, NULL), totals, range, stream);
}

cudaError_t scan_any_layout(struct scan_device *device, const struct scan_rule *rule, const struct scan_plan *scan,
                            const uint64_t *offsets, const struct scan_range *range, void *workspace,
                            cudaStream_t stream)
{
    const struct any_layout *any_layout = any_of(rule);
    struct any_plan plan = scan_any_layout_plan_of(rule, scan, offsets);
    cudaError_t error = cudaSuccess;
    if (rule->demean && scan->blocks > 1) {
        double *totals = (double *)workspace;
        if (!range || range_is_mean(range))
            error = totals_make(device, plan, totals, range, stream);
        plan.totals = totals;
        workspace = totals + scan->items / scan->blocks * scan->sums_per_row;
    }
    if (range && range_is_mean(range))
        return error;
    return error ? error : scan_with_spine(&any_layout->spine, &plan.scan, workspace, range, stream, [&] {
        return launch(device, any_layout, &plan, stream);
    });
}
