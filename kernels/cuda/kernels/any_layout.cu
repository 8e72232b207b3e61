/*
 * The any_layout kernels: all operators for f32, f64 and integers, in the order of the vocabulary, then those for f2
 * that do not only compare.
 */
#include "kernels/cuda/kernels/any_layout.cuh"

#include <assert.h>

#include "kernels/cuda/exchange/spine.cuh"
#include "kernels/cuda/kernels/launchers.h"

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

const struct scan_spine *scan_any_layout_spine(const struct scan_rule *rule)
{
    return &any_of(rule)->spine;
}

/* A kernel that may have all the shared memory there is. The number of resident thread blocks also depends on the
 * samples. */
static cudaError_t kernel_load(const struct scan_device *device, const void *kernel)
{
    struct cudaFuncAttributes attributes = {};
    const cudaError_t error = scan_cleared(cudaFuncGetAttributes(&attributes, kernel));
    assert(attributes.sharedSizeBytes <= SELECT_DECLARED_BYTES);
    return error ? error : scan_kernel_load_most(device, kernel);
}

cudaError_t scan_any_layout_load(struct scan_device *device)
{
    cudaError_t error = cudaSuccess;
    for (const struct any_layout &any_layout : any_layouts) {
        for (const void *kernel : any_layout.kernels)
            error = error ? error : kernel_load(device, kernel);
        error = error ? error : scan_spine_load(&any_layout.spine);
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
                            : ANY_SMEM(plan->leaves, any_widest(*plan));
}

struct any_plan scan_any_layout_plan_of(const struct scan_rule *rule, const struct scan_plan *scan,
                                        const struct scan_ragged_rows *ragged)
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
    plan.flip = instance_flip(rule);
    plan.zero = codec_is_integer(rule->input) ? operator_empty_whole(rule->op, rule->input) : 0;
    plan.offsets = ragged ? ragged->offsets : NULL;
    plan.items = ragged ? ragged->items : NULL;
    plan.demean = rule->demean;
    plan.leaves = ANY_LEAVES;
    plan.scan.smem = smem_of(&plan);
    return plan;
}

static cudaError_t resident_find(const void *kernel, const struct any_plan *plan, int *resident)
{
    const int warps = scan_warps(plan->scan.length);
    return scan_kernel_resident(kernel, warps * WARP, (size_t)warps * plan->scan.smem * VEC16_BYTES, resident);
}

/* Has a kernel that does not prefetch read all leaves of a tile at a time, if that costs no thread blocks. */
static cudaError_t leaves_find(const void *kernel, struct any_plan *plan, int resident)
{
    struct any_plan whole = *plan;
    int found = 0;
    whole.leaves = WARP;
    whole.scan.smem = smem_of(&whole);
    const cudaError_t error = resident_find(kernel, &whole, &found);
    if (!error && found >= resident)
        *plan = whole;
    return error;
}

static cudaError_t launch(const struct scan_call *call, const void *kernel, struct any_plan *plan)
{
    struct scan_plan *scan = &plan->scan;
    int resident = 0;
    cudaError_t error = resident_find(kernel, plan, &resident);
    if (!error && !scan->ahead)
        error = leaves_find(kernel, plan, resident);
    if (error || resident == 0)
        return error ? error : SCAN_NO_ROOM;
    return batch_launch_alone(call->device, kernel, resident, plan, scan, call->stream);
}

cudaError_t scan_any_layout_together(const struct scan_part *parts, unsigned count, cudaStream_t stream)
{
    const auto plan_make = [](const struct scan_part &part, struct any_plan *plan) -> struct batch_part {
        const struct scan_plan scan = scan_plan_of(part.rows, part.first, part.count);
        *plan = scan_any_layout_plan_of(&part.rows->rule, &scan, NULL);
        return {part.count, scan_warps(scan.length), plan->scan.smem};
    };
    return batches_launch<struct any_plan>(any_of(&parts->rows->rule)->kernels[0], parts, count, stream, plan_make);
}

/* Queues the totals of the rows' blocks first, and then those of the levels above; or one range of them. */
static cudaError_t totals_make(const struct scan_call *call, const struct scan_plan *scan, double *totals)
{
    const struct any_layout *mean = &any_layouts[ANY_F64 + SCAND_OPERATOR_SUM];
    const struct scan_range *range = call->range;
    struct any_plan plan = scan_any_layout_plan_of(&call->rows->rule, scan, NULL);
    cudaError_t error = cudaSuccess;
    plan.demean = false;
    plan.kind = SCAND_KIND_INCLUSIVE; /* a mean has the whole of the first sample */
    plan.scan.backward[0] = false;
    plan.scan.pass_count = 1;
    plan.scan.totals_pass = 0;
    plan.scan.sums[0] = totals;
    struct any_plan blocks = plan;
    if (range)
        scan_plan_narrow(&blocks.scan, range);
    if (!range || range->work == RANGE_MEAN_TOTALS)
        error = launch(call, mean->kernels[scan->ahead], &blocks);
    if (error || (range && range->work == RANGE_MEAN_TOTALS))
        return error;
    return scan_spine_of_pass(&mean->spine, &plan.scan, 0, call->stream);
}

cudaError_t scan_any_layout_means(const struct scan_call *call, struct any_plan *plan, void **workspace)
{
    const struct scan_plan *scan = &plan->scan;
    if (!call->rows->rule.demean || scan->blocks <= 1)
        return cudaSuccess;
    double *totals = (double *)*workspace;
    plan->totals = totals;
    *workspace = totals + scan->items / scan->blocks * scan->sums_per_row;
    return call->range && !range_is_mean(call->range) ? cudaSuccess : totals_make(call, scan, totals);
}

cudaError_t scan_any_layout(const struct scan_call *call)
{
    const struct scan_rows *rows = call->rows;
    struct scan_plan scan = call->plan;
    scan.ahead = call->path == SELECT_ANY_LAYOUT_PREFETCH;
    struct any_plan plan = scan_any_layout_plan_of(&rows->rule, &scan, call->ragged);
    void *workspace = call->workspace;
    cudaError_t error = scan_any_layout_means(call, &plan, &workspace);
    if (error || (call->range && range_is_mean(call->range)))
        return error;
    return scan_with_spine(scan_any_layout_spine(&rows->rule), &plan.scan, call->ragged, workspace, call->range,
                           call->stream, [&] { return launch(call, any_of(&rows->rule)->kernels[scan.ahead], &plan); });
}
