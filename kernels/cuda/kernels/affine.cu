/*
 * Plans and launches of the affine kernels, and those for rows of any layout.
 */
#include "kernels/cuda/kernels/affine.cuh"

#include "kernels/cuda/exchange/spine.cuh"
#include "kernels/cuda/kernels/launchers.h"

static_assert(SCAN_AFFINES == AFFINE_ACCUMULATORS * AFFINE_FACTORS, "the same number");

#define ONE(T)        (const void *)affine_kernel<T, affine_one<T>>
#define EACH(T, READ) (const void *)affine_kernel<T, affine_each<T, READ>>
static const void *const kernels[AFFINE_ACCUMULATORS][AFFINE_FACTORS] = {
    {ONE(float), EACH(float, float), NULL},
    {ONE(double), EACH(double, float), EACH(double, double)},
    {ONE(struct f2), EACH(struct f2, float), EACH(struct f2, double)},
    {ONE(uint64_t), NULL, EACH(uint64_t, uint64_t)},
    {ONE(struct f2), EACH(struct f2, float), EACH(struct f2, double)},
};

#define SPINE(T) scan_spine_by<affine_sum<T>>()
static const struct scan_spine all_spines[AFFINE_ACCUMULATORS] = {SPINE(float), SPINE(double), SPINE(struct f2),
                                                                  SPINE(uint64_t), SPINE(struct f2)};

/* True where all that passes read and leave is f32, so that samples of f2 are kept as such. */
static bool is_narrow(const struct scan_rule *rule)
{
    return codec_class(rule->input) == SCAND_CLASS_F32 && codec_class(rule->output) == SCAND_CLASS_F32 &&
           (rule->pass_count == 1 || rule->intermediate == SCAND_DTYPE_F32);
}

static int accumulator_number(const struct scan_rule *rule)
{
    if (codec_is_integer(rule->input))
        return 3;
    const int number = scan_float_number(rule->accumulator);
    return number == 2 && is_narrow(rule) ? 4 : number;
}

static bool is_wide(const struct scan_rule *rule)
{
    return codec_class(rule->coefficients) != SCAND_CLASS_F32;
}

int scan_affine_number(const struct scan_rows *rows)
{
    const int factors = rows->coefficients ? 1 + is_wide(&rows->rule) : 0;
    return accumulator_number(&rows->rule) * AFFINE_FACTORS + factors;
}

const struct scan_spine *scan_affine_spine(const struct scan_rule *rule)
{
    return &all_spines[accumulator_number(rule)];
}

/* Kernels by their number: for any layout; for contiguous rows; for those of several order blocks, or NULL. */

static const void *kernel_of(int number)
{
    return kernels[number / AFFINE_FACTORS][number % AFFINE_FACTORS];
}

static const void *ahead_of(int number)
{
    const int accumulator = number / AFFINE_FACTORS, factors = number % AFFINE_FACTORS;
    return factors > 0 ? affine_eaches[accumulator][factors - 1].kernel : affine_ones[accumulator];
}

static const void *long_of(int number)
{
    return affine_longs[number / AFFINE_FACTORS][number % AFFINE_FACTORS];
}

cudaError_t scan_affine_load(struct scan_device *device)
{
    cudaError_t error = cudaSuccess;
    for (int i = 0; i < SCAN_AFFINES && !error; i++) {
        size_t shared_bytes;
        if (kernel_of(i))
            error = scan_kernel_load(kernel_of(i));
        if (ahead_of(i) && !error)
            error = scan_kernel_load_most(ahead_of(i), device->shared_max, &shared_bytes);
        if (long_of(i) && !error)
            error = scan_kernel_load_most(long_of(i), device->shared_max, &shared_bytes);
    }
    for (int i = 0; i < AFFINE_ACCUMULATORS && !error; i++)
        error = scan_spine_load(&all_spines[i]);
    return error;
}

static struct any_plan any_plan_of(const struct scan_rows *rows, uint64_t first, uint64_t count,
                                   const struct scan_ragged_rows *ragged, bool ahead)
{
    struct scan_plan scan = scan_plan_of(rows, first, count);
    scan.ahead = ahead;
    return scan_any_layout_plan_of(&rows->rule, &scan, ragged);
}

static int most_of(int a, int b)
{
    return a > b ? a : b;
}

/* Plans. Where a kernel prefetches, samples' shared memory has vectors for coefficients and results, too. */

static void plan_make(const struct scan_rows *rows, uint64_t first, uint64_t count,
                      const struct scan_ragged_rows *ragged, bool ahead, struct affine_one_plan *plan)
{
    plan->samples = any_plan_of(rows, first, count, ragged, ahead);
    plan->coefficient = rows->rule.coefficient;
    plan->whole = codec_is_integer(rows->rule.input) ? (uint64_t)(int64_t)rows->rule.coefficient : 0;
    if (!ahead)
        plan->samples.scan.smem = ANY_SMEM(any_widest(plan->samples));
}

static void plan_make(const struct scan_rows *rows, uint64_t first, uint64_t count,
                      const struct scan_ragged_rows *ragged, bool ahead, struct affine_each_plan *plan)
{
    const struct scan_rows coefficients = select_coefficient_rows(rows);
    plan->samples = any_plan_of(rows, first, count, ragged, ahead);
    plan->coefficients = any_plan_of(&coefficients, first, count, ragged, ahead);
    const int read = affine_eaches[accumulator_number(&rows->rule)][is_wide(&rows->rule)].vectors;
    const int stage = WORDS_STAGE(plan->samples.output_bytes);
    plan->samples.scan.smem = WORDS_VECTORS(plan->samples.input_bytes) +
                              most_of(most_of(WORDS_VECTORS(plan->coefficients.input_bytes), read), stage);
    if (!ahead)
        plan->samples.scan.smem = ANY_SMEM(most_of(any_widest(plan->samples), plan->coefficients.input_bytes));
}

template <class Plan> static cudaError_t together(const struct scan_part *parts, unsigned count, cudaStream_t stream)
{
    const auto make = [](const struct scan_part &part, Plan *plan) -> struct batch_part {
        plan_make(part.rows, part.first, part.count, NULL, false, plan);
        return {part.count, scan_warps(part.rows->length), plan->samples.scan.smem};
    };
    return batches_launch<Plan>(kernel_of(scan_affine_number(parts->rows)), parts, count, stream, make);
}

cudaError_t scan_affine_together(const struct scan_part *parts, unsigned count, cudaStream_t stream)
{
    return parts->rows->coefficients ? together<struct affine_each_plan>(parts, count, stream)
                                     : together<struct affine_one_plan>(parts, count, stream);
}

/* Coefficients are those of the samples' items. */

static void plan_follow(struct affine_one_plan *)
{
}

static void plan_follow(struct affine_each_plan *plan)
{
    plan->coefficients.scan.first_item = plan->samples.scan.first_item;
    plan->coefficients.scan.items = plan->samples.scan.items;
}

static const void *kernel_by(enum select_path path, int number)
{
    return path == SELECT_AFFINE_GRID                              ? long_of(number)
           : path == SELECT_AFFINE || path == SELECT_RAGGED_AFFINE ? kernel_of(number)
                                                                   : ahead_of(number);
}

/* The thread blocks that rows can be given; 0 where the device has no room for those that a path needs. All of a row's
 * are resident together where they wait for one another. */
static cudaError_t room_find(const struct scan_call *call, const void *kernel, const struct scan_plan *scan,
                             int *resident)
{
    const bool grid = call->path == SELECT_AFFINE_GRID;
    const int warps = grid ? ORDER_FAN : scan_warps(scan->length);
    *resident = 0;
    cudaError_t error =
        kernel ? scan_kernel_resident(kernel, warps * WARP, (size_t)warps * scan->smem * VEC16_BYTES, resident)
               : cudaSuccess;
    if (grid && scan->blocks > (uint64_t)call->device->processors * *resident)
        *resident = 0;
    return error;
}

/* Rows of several order blocks at once. */
template <class Plan>
static cudaError_t launch_long(const struct scan_call *call, const void *kernel, Plan *plan, int resident,
                               void *workspace)
{
    const struct scan_plan *scan = &plan->samples.scan;
    const uint64_t sums = scan->items / scan->blocks * scan->sums_per_row;
    const uint64_t state_bytes = 2 * sums * scan_affine_spine(&call->rows->rule)->sum_bytes;
    const uint64_t grid = scan_least((uint64_t)call->device->processors * resident, scan->items);
    for (int pass = 0; pass < scan->pass_count; pass++)
        plan->states.passes[pass] = (tile_state *)((char *)workspace + pass * state_bytes);
    cudaError_t error = scan_cleared(cudaMemsetAsync(workspace, 0, scan->pass_count * state_bytes, call->stream));
    void *arguments[] = {plan};
    return error ? error
                 : scan_launched(cudaLaunchCooperativeKernel(kernel, dim3((unsigned)grid), dim3(ORDER_FAN * WARP),
                                                             arguments, (size_t)ORDER_FAN * scan->smem * VEC16_BYTES,
                                                             call->stream));
}

template <class Plan> static cudaError_t scan_by(const struct scan_call *call)
{
    const struct scan_rule *rule = &call->rows->rule;
    const void *const kernel = kernel_by(call->path, scan_affine_number(call->rows));
    const bool ahead = call->path != SELECT_AFFINE && call->path != SELECT_RAGGED_AFFINE;
    Plan plan = {};
    struct scan_plan *scan = &plan.samples.scan;
    plan_make(call->rows, call->first, call->count, call->ragged, ahead, &plan);
    int resident;
    cudaError_t error = room_find(call, kernel, scan, &resident);
    if (error || resident == 0)
        return error ? error : SCAN_NO_ROOM;
    void *workspace = call->workspace;
    error = scan_any_layout_means(call, &plan.samples, &workspace);
    if (error || (call->range && range_is_mean(call->range)))
        return error;
    if (call->path == SELECT_AFFINE_GRID)
        return launch_long(call, kernel, &plan, resident, workspace);
    return scan_with_spine(scan_affine_spine(rule), scan, call->ragged, workspace, call->range, call->stream, [&] {
        plan_follow(&plan);
        return batch_launch_alone(call->device, kernel, resident, &plan, scan, call->stream);
    });
}

cudaError_t scan_affine(const struct scan_call *call)
{
    return call->rows->coefficients ? scan_by<struct affine_each_plan>(call) : scan_by<struct affine_one_plan>(call);
}
