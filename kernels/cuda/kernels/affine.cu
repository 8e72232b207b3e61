/*
 * Plans and launches of the affine kernels, and those for rows of any layout.
 */
#include "kernels/cuda/kernels/affine.cuh"

#include <algorithm>

#include "kernels/cuda/exchange/spine.cuh"
#include "kernels/cuda/kernels/launchers.h"
#include "kernels/cuda/select/instance.h"

static_assert(SCAN_AFFINES == AFFINE_ACCUMULATORS, "the same number");

/* For rows of any layout. */
#define EACH(T) (const void *)affine_kernel<T, affine_each<T>>
static const void *const kernels[AFFINE_ACCUMULATORS] = {EACH(float), EACH(double), EACH(struct f2), EACH(uint64_t),
                                                         EACH(struct f2)};

#define SPINE(T) scan_spine_by<affine_sum<T>>()
static const struct scan_spine all_spines[AFFINE_ACCUMULATORS] = {SPINE(float), SPINE(double), SPINE(struct f2),
                                                                  SPINE(uint64_t), SPINE(struct f2)};

int scan_affine_number(const struct scan_rule *rule)
{
    if (codec_is_integer(rule->input))
        return 3;
    const int number = scan_float_number(rule->accumulator);
    return number == 2 && instance_is_narrow(rule) ? 4 : number;
}

template <class T> static struct affine_powers powers_of(T coefficient)
{
    struct affine_powers powers = {};
    T numbers[AFFINE_POWERS] = {coefficient, coefficient};
    for (int i = 1; i < ORDER_LEAF; i++)
        numbers[1] = affine_mul(coefficient, numbers[1]);
    for (int i = 2; i < AFFINE_POWERS; i++)
        numbers[i] = affine_mul(numbers[i - 1], numbers[i - 1]);
    memcpy(powers.words, numbers, sizeof(numbers));
    return powers;
}

struct affine_powers scan_affine_powers(const struct scan_rule *rule)
{
    switch (scan_affine_number(rule)) {
    case 0:
        return powers_of((float)rule->coefficient);
    case 1:
        return powers_of(rule->coefficient);
    case 3:
        return powers_of((uint64_t)(int64_t)rule->coefficient);
    default:
        return powers_of(f2_from_f64(rule->coefficient));
    }
}

static bool is_wide(const struct scan_rule *rule)
{
    return codec_class(rule->coefficients) != SCAND_CLASS_F32;
}

const struct scan_spine *scan_affine_spine(const struct scan_rule *rule)
{
    return &all_spines[scan_affine_number(rule)];
}

/* The kernel for contiguous rows. */
static const void *ahead_of(const struct scan_rows *rows)
{
    const int number = scan_affine_number(&rows->rule);
    return rows->coefficients ? affine_eaches[number][is_wide(&rows->rule)].kernel : affine_ones[number].kernel;
}

cudaError_t scan_affine_load(struct scan_device *device)
{
    cudaError_t error = cudaSuccess;
    for (int i = 0; i < SCAN_AFFINES && !error; i++) {
        error = scan_kernel_load(kernels[i]);
        if (!error)
            error = scan_spine_load(&all_spines[i]);
        for (const struct affine_ahead &ahead : {affine_ones[i], affine_eaches[i][0], affine_eaches[i][1]})
            if (ahead.kernel && !error)
                error = scan_kernel_load_most(device, ahead.kernel);
    }
    return error;
}

static struct any_plan any_plan_of(const struct scan_rows *rows, uint64_t first, uint64_t count,
                                   const struct scan_ragged_rows *ragged, bool ahead)
{
    struct scan_plan scan = scan_plan_of(rows, first, count);
    scan.ahead = ahead;
    return scan_any_layout_plan_of(&rows->rule, &scan, ragged);
}

/* Plans. Where a kernel prefetches, samples' shared memory has vectors for coefficients and results, too. */

static void plan_make(const struct scan_rows *rows, uint64_t first, uint64_t count,
                      const struct scan_ragged_rows *ragged, bool ahead, struct affine_one_plan *plan)
{
    plan->samples = any_plan_of(rows, first, count, ragged, ahead);
    plan->powers = scan_affine_powers(&rows->rule);
}

static void plan_make(const struct scan_rows *rows, uint64_t first, uint64_t count,
                      const struct scan_ragged_rows *ragged, bool ahead, struct affine_each_plan *plan)
{
    const struct scan_rows coefficients = select_coefficient_rows(rows);
    plan->samples = any_plan_of(rows, first, count, ragged, ahead);
    plan->same = !rows->coefficients;
    plan->coefficient = rows->rule.coefficient;
    plan->coefficients = plan->same ? plan->samples : any_plan_of(&coefficients, first, count, ragged, ahead);
    const int read = affine_eaches[scan_affine_number(&rows->rule)][is_wide(&rows->rule)].vectors;
    const int stage = WORDS_STAGE(plan->samples.output_bytes);
    plan->samples.scan.smem = WORDS_VECTORS(plan->samples.input_bytes) +
                              std::max({WORDS_VECTORS(plan->coefficients.input_bytes), read, stage});
    if (!ahead)
        plan->samples.scan.smem =
            ANY_SMEM(ANY_LEAVES, std::max(any_widest(plan->samples), plan->coefficients.input_bytes));
}

cudaError_t scan_affine_together(const struct scan_part *parts, unsigned count, cudaStream_t stream)
{
    const auto make = [](const struct scan_part &part, struct affine_each_plan *plan) -> struct batch_part {
        plan_make(part.rows, part.first, part.count, NULL, false, plan);
        return {part.count, scan_warps(part.rows->length), plan->samples.scan.smem};
    };
    return batches_launch<struct affine_each_plan>(kernels[scan_affine_number(&parts->rows->rule)], parts, count,
                                                   stream, make);
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

template <class Plan> static cudaError_t scan_by(const struct scan_call *call)
{
    const bool ahead = call->path != SELECT_AFFINE;
    const void *const kernel = ahead ? ahead_of(call->rows) : kernels[scan_affine_number(&call->rows->rule)];
    Plan plan = {};
    struct scan_plan *scan = &plan.samples.scan;
    plan_make(call->rows, call->first, call->count, call->ragged, ahead, &plan);
    const int warps = scan_warps(scan->length);
    int resident;
    cudaError_t error = scan_kernel_resident(kernel, warps * WARP, (size_t)warps * scan->smem * VEC16_BYTES, &resident);
    if (error || resident == 0)
        return error ? error : SCAN_NO_ROOM;
    void *workspace = call->workspace;
    error = scan_any_layout_means(call, &plan.samples, &workspace);
    if (error || (call->range && range_is_mean(call->range)))
        return error;
    return scan_with_spine(scan_affine_spine(&call->rows->rule), scan, call->ragged, workspace, call->range,
                           call->stream, [&] {
                               plan_follow(&plan);
                               return batch_launch_alone(call->device, kernel, resident, &plan, scan, call->stream);
                           });
}

cudaError_t scan_affine(const struct scan_call *call)
{
    const bool each = call->rows->coefficients || call->path == SELECT_AFFINE;
    return each ? scan_by<struct affine_each_plan>(call) : scan_by<struct affine_one_plan>(call);
}
