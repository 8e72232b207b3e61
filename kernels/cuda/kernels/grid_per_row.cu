#include "kernels/cuda/kernels/grid_per_row.h"

#include "kernels/cuda/exchange/spine.h"
#include "kernels/cuda/kernels/grid_per_row_sums.cuh"

/* By accumulator, kind and alignment; of results also by output, `Last` being the sum that they are made from, and by
 * passes, one or two. */
#define LONG_ACCUMULATORS 3
#define LONG_KINDS        2
#define LONG_SUMS_KERNELS (LONG_ACCUMULATORS * LONG_KINDS * 2)
#define LONG_KERNELS      (2 * LONG_SUMS_KERNELS * SCAND_PASSES_MAX)

#define X(SUM, LAST, OUT, KIND, ALIGNED)                         \
    (const void *)long_kernel<SUM, LAST, OUT, KIND, ALIGNED, 1>, \
        (const void *)long_kernel<SUM, LAST, OUT, KIND, ALIGNED, 2>
#define X_KINDS(SUM, LAST, OUT)                                                                    \
    X(SUM, LAST, OUT, SCAND_KIND_INCLUSIVE, false), X(SUM, LAST, OUT, SCAND_KIND_INCLUSIVE, true), \
        X(SUM, LAST, OUT, SCAND_KIND_EXCLUSIVE, false), X(SUM, LAST, OUT, SCAND_KIND_EXCLUSIVE, true)
static const void *const long_kernels[LONG_KERNELS] = {
    X_KINDS(sum_f32, sum_f32, float),         X_KINDS(sum_f64_narrow, sum_f64_narrow, float),
    X_KINDS(sum_f2, sum_f2, float),           X_KINDS(sum_f32, sum_f32, double),
    X_KINDS(sum_f64_narrow, sum_f64, double), X_KINDS(sum_f2, sum_f2_pair, double),
};
#undef X
#undef X_KINDS

#define X(SUM, KIND) (const void *)long_sums_kernel<SUM, KIND, false>, (const void *)long_sums_kernel<SUM, KIND, true>
#define X_KINDS(SUM) X(SUM, SCAND_KIND_INCLUSIVE), X(SUM, SCAND_KIND_EXCLUSIVE)
static const void *const long_sums_kernels[LONG_SUMS_KERNELS] = {X_KINDS(sum_f32), X_KINDS(sum_f64_narrow),
                                                                 X_KINDS(sum_f2)};
#undef X
#undef X_KINDS

/* Which of long_sums_kernels; of long_kernels where the output is f32. */
static int kernel_of(const struct scan_rule *rule, bool aligned)
{
    const int accumulator = (int)(rule->accumulator - SCAND_ACCUMULATOR_F32);
    return (accumulator * LONG_KINDS + (rule->kind == SCAND_KIND_EXCLUSIVE)) * 2 + aligned;
}

cudaError_t scan_long_load(const struct scan_device *device, struct scan_long_device *longer)
{
    const bool able = device->code >= 90 && device->shared_max >= LONG_SHARED_ALL;
    int resident = able;
    cudaError_t error = cudaSuccess;
    for (int i = 0; i < LONG_KERNELS && resident > 0 && !error; i++)
        error =
            scan_kernel_load_resident(long_kernels[i], LONG_THREADS(1 + i % SCAND_PASSES_MAX), LONG_SHARED, &resident);
    for (int i = 0; i < LONG_SUMS_KERNELS && resident > 0 && !error; i++)
        error = scan_kernel_load_resident(long_sums_kernels[i], LONG_SUMS_THREADS, LONG_SHARED, &resident);
    longer->grid = resident > 0 ? device->processors : 0;
    return error;
}

/* A record takes twice the bytes of its sum. Where results take a launch of their own there are, beside the records of
 * the first pass, the sums of both. */
uint64_t scan_long_workspace_bytes(const struct scan_rule *rule, uint64_t sums, uint64_t sum_bytes)
{
    return 2 * rule->pass_count * sums * sum_bytes;
}

/* Whether there is nothing to decode or encode. */
static bool is_native(const struct scan_rule *rule)
{
    return rule->input == SCAND_DTYPE_F32 && (rule->output == SCAND_DTYPE_F32 || rule->output == SCAND_DTYPE_F64);
}

/* The kernel for the plan's step, and its threads. */
static const void *kernel_for(const struct scan_rule *rule, const struct long_plan *plan, int *threads)
{
    const bool aligned = scan_plan_is_aligned(&plan->scan) && is_native(rule);
    const int passes = plan->scan.pass_count;
    int number = kernel_of(rule, aligned);
    *threads = plan->step == LONG_SUMS ? LONG_SUMS_THREADS : LONG_THREADS(passes);
    if (plan->step == LONG_SUMS)
        return long_sums_kernels[number];
    number += (rule->output == SCAND_DTYPE_F64) * LONG_SUMS_KERNELS;
    return long_kernels[number * SCAND_PASSES_MAX + passes - 1];
}

static cudaError_t long_launch(const struct scan_long_device *longer, const struct scan_rule *rule,
                               struct long_plan *plan, cudaStream_t stream)
{
    const uint64_t grid = plan->scan.items < (uint64_t)longer->grid ? plan->scan.items : (uint64_t)longer->grid;
    int threads;
    const void *kernel = kernel_for(rule, plan, &threads);
    void *arguments[] = {plan};
    if (grid == 0)
        return SCAN_NO_ROOM;
    return scan_launched(cudaLaunchCooperativeKernel(kernel, dim3((unsigned)grid), dim3((unsigned)threads), arguments,
                                                     LONG_SHARED, stream));
}

cudaError_t scan_long(struct scan_device *device, const struct scan_long_device *longer, const struct scan_rule *rule,
                      const struct scan_plan *scan, bool sums_first, void *workspace, cudaStream_t stream)
{
    const struct scan_carries *carries = scan_carries_of(rule->accumulator);
    const uint64_t bytes = scan->items / scan->blocks * scan->sums_per_row * carries->sum_bytes;
    struct long_plan plan = {};
    plan.scan = *scan;
    plan.step = sums_first ? LONG_SUMS : LONG_ALL;
    for (int pass = 0; pass < scan->pass_count; pass++) {
        plan.records[pass] = (record *)((char *)workspace + pass * 2 * bytes);
        plan.scan.sums[pass] = (char *)workspace + (2 + pass) * bytes;
    }
    const uint64_t record_bytes = sums_first ? 2 * bytes : 2 * bytes * scan->pass_count;
    cudaError_t error = scan_cleared(cudaMemsetAsync(workspace, 0, record_bytes, stream));
    if (!error)
        error = long_launch(longer, rule, &plan, stream);
    if (error || !sums_first)
        return error;
    error = scan_carries_of_pass(carries, &plan.scan, 1, stream);
    if (!error)
        error = scan_progress_of(device, LONG_WARPS, stream, &plan.scan.progress);
    plan.step = LONG_VALUES;
    return error ? error : long_launch(longer, rule, &plan, stream);
}
