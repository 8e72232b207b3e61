#include "kernels/scan_cuda_long.h"

#include "kernels/cuda/long.cuh"
#include "kernels/scan_cuda_carries.h"

/* By output, accumulator, kind and alignment. `Last` is the sum that the results are made from. */
#define LONG_KERNELS 24
#define LONG_ALIGNMENTS(SUM, LAST, OUT, KIND) \
    (const void *)long_kernel<SUM, LAST, OUT, KIND, false>, (const void *)long_kernel<SUM, LAST, OUT, KIND, true>
#define LONG_KINDS(SUM, LAST, OUT) \
    LONG_ALIGNMENTS(SUM, LAST, OUT, SCAND_KIND_INCLUSIVE), LONG_ALIGNMENTS(SUM, LAST, OUT, SCAND_KIND_EXCLUSIVE)
static const void *const long_kernels[LONG_KERNELS] = {
    LONG_KINDS(sum_f32, sum_f32, float),         LONG_KINDS(sum_f64_narrow, sum_f64_narrow, float),
    LONG_KINDS(sum_f2, sum_f2, float),           LONG_KINDS(sum_f32, sum_f32, double),
    LONG_KINDS(sum_f64_narrow, sum_f64, double), LONG_KINDS(sum_f2, sum_f2_pair, double),
};

static const void *kernel_of(const struct scan_rule *rule, bool aligned)
{
    int number = rule->output == SCAND_DTYPE_F64;
    number = 3 * number + (int)(rule->accumulator - SCAND_ACCUMULATOR_F32);
    number = 2 * number + (rule->kind == SCAND_KIND_EXCLUSIVE);
    return long_kernels[2 * number + aligned];
}

cudaError_t scan_long_load(const struct scan_device *device, struct scan_long_device *longer)
{
    const bool able = device->capability >= 90 && device->shared_max >= LONG_SHARED_ALL;
    int resident = able;
    cudaError_t error = cudaSuccess;
    for (int i = 0; i < LONG_KERNELS && resident > 0 && !error; i++)
        error = scan_kernel_load_resident(long_kernels[i], LONG_THREADS, LONG_SHARED, &resident);
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

static cudaError_t long_launch(const struct scan_long_device *longer, const struct scan_rule *rule,
                               struct long_plan *plan, cudaStream_t stream)
{
    const uint64_t grid = plan->scan.items < (uint64_t)longer->grid ? plan->scan.items : (uint64_t)longer->grid;
    const bool aligned = scan_plan_is_aligned(&plan->scan) && is_native(rule);
    void *arguments[] = {plan};
    if (grid == 0)
        return cudaErrorInitializationError;
    return scan_cleared(cudaLaunchCooperativeKernel(kernel_of(rule, aligned), dim3((unsigned)grid), dim3(LONG_THREADS),
                                                    arguments, LONG_SHARED, stream));
}

cudaError_t scan_long(const struct scan_long_device *longer, const struct scan_rule *rule, const struct scan_plan *scan,
                      bool sums_first, void *workspace, cudaStream_t stream)
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
    plan.step = LONG_VALUES;
    return error ? error : long_launch(longer, rule, &plan, stream);
}
