/*
 * Plans and launches of the affine kernels, and those for rows of any layout.
 */
#include "kernels/cuda/kernels/affine.h"

#include "kernels/cuda/exchange/spine.cuh"
#include "kernels/cuda/exchange/spine.h"
#include "kernels/cuda/kernels/affine.cuh"
#include "kernels/cuda/kernels/any_layout.h"
#include "kernels/cuda/select/plan.h"

#define ONE(T)        (const void *)affine_kernel<T, affine_one<T>>
#define EACH(T, READ) (const void *)affine_kernel<T, affine_each<T, READ>>
static const void *const kernels[SCAN_AFFINE_ACCUMULATORS][SCAN_AFFINE_FACTORS] = {
    {ONE(float), EACH(float, float), NULL},
    {ONE(double), EACH(double, float), EACH(double, double)},
    {ONE(struct f2), EACH(struct f2, float), EACH(struct f2, double)},
    {ONE(uint64_t), NULL, EACH(uint64_t, uint64_t)},
};

static const struct scan_carries all_carries[] = {
    scan_carries_by<affine_sum<float>>(), scan_carries_by<affine_sum<double>>(),
    scan_carries_by<affine_sum<struct f2>>(), scan_carries_by<affine_sum<uint64_t>>()};

static int accumulator_number(const struct scan_rule *rule)
{
    if (codec_is_integer(rule->input))
        return 3;
    return rule->accumulator == SCAND_ACCUMULATOR_F32 ? 0 : rule->accumulator == SCAND_ACCUMULATOR_F64 ? 1 : 2;
}

static bool is_wide(const struct scan_rule *rule)
{
    return codec_class(rule->coefficients) != SCAND_CLASS_F32;
}

int scan_affine_number(const struct scan_rows *rows)
{
    const int factors = rows->coefficients ? 1 + is_wide(&rows->rule) : 0;
    return accumulator_number(&rows->rule) * SCAN_AFFINE_FACTORS + factors;
}

static const struct scan_carries *carries_of(const struct scan_rule *rule)
{
    return &all_carries[accumulator_number(rule)];
}

uint64_t scan_affine_sum_bytes(const struct scan_rule *rule)
{
    return 2 * carries_of(rule)->sum_bytes;
}

/* By their number: for any layout; for contiguous rows; for those of several order blocks, or NULL. */

static const void *kernel_of(int number)
{
    return kernels[number / SCAN_AFFINE_FACTORS][number % SCAN_AFFINE_FACTORS];
}

static const void *ahead_of(int number)
{
    const int accumulator = number / SCAN_AFFINE_FACTORS, factors = number % SCAN_AFFINE_FACTORS;
    return factors > 0 ? scan_affine_eaches[accumulator][factors - 1].kernel : scan_affine_ones[accumulator];
}

static const void *long_of(int number)
{
    return scan_affine_longs[number / SCAN_AFFINE_FACTORS][number % SCAN_AFFINE_FACTORS];
}

cudaError_t scan_affine_load(int shared_max)
{
    cudaError_t error = cudaSuccess;
    for (int i = 0; i < SCAN_AFFINES && !error; i++) {
        size_t shared_bytes;
        if (kernel_of(i))
            error = scan_kernel_load(kernel_of(i));
        if (ahead_of(i) && !error)
            error = scan_kernel_load_most(ahead_of(i), shared_max, &shared_bytes);
        if (long_of(i) && !error)
            error = scan_kernel_load_most(long_of(i), shared_max, &shared_bytes);
    }
    for (int i = 0; i < SCAN_AFFINE_ACCUMULATORS && !error; i++)
        error = scan_carries_load(&all_carries[i]);
    return error;
}

/* The coefficients as the rows of an input. */
static struct scan_rows coefficient_rows(const struct scan_rows *rows)
{
    struct scan_rows coefficients = *rows;
    coefficients.rule.input = coefficients.rule.output = rows->rule.coefficients;
    coefficients.rule.demean = false;
    coefficients.input = rows->coefficients;
    coefficients.output = (void *)rows->coefficients;
    coefficients.input_stride = coefficients.output_stride = rows->coefficient_stride;
    for (uint32_t axis = 0; axis < rows->outer_rank; axis++) {
        coefficients.input_outer_strides[axis] = rows->coefficient_outer_strides[axis];
        coefficients.output_outer_strides[axis] = rows->coefficient_outer_strides[axis];
    }
    return coefficients;
}

static struct general_plan general_plan_of(const struct scan_device *device, const struct scan_rows *rows,
                                           uint64_t first, uint64_t count)
{
    const struct scan_plan scan = scan_plan_of(rows, first, count);
    return scan_general_plan_of(device, &rows->rule, &scan, rows->offsets ? rows->device_offsets + first : NULL);
}

static int most_of(int a, int b)
{
    return a > b ? a : b;
}

/* Plans, and whether rows are contiguous. Then samples' room has slots for coefficients and results, too. */

static bool plan_make(const struct scan_device *device, const struct scan_rows *rows, uint64_t first, uint64_t count,
                      struct affine_one_plan *plan)
{
    plan->samples = general_plan_of(device, rows, first, count);
    plan->coefficient = rows->rule.coefficient;
    plan->whole = codec_is_integer(rows->rule.input) ? (uint64_t)(int64_t)rows->rule.coefficient : 0;
    return plan->samples.scan.ahead;
}

static bool plan_make(const struct scan_device *device, const struct scan_rows *rows, uint64_t first, uint64_t count,
                      struct affine_each_plan *plan)
{
    const struct scan_rows coefficients = coefficient_rows(rows);
    plan->samples = general_plan_of(device, rows, first, count);
    plan->coefficients = general_plan_of(device, &coefficients, first, count);
    const struct scan_side *side = &plan->coefficients.scan.input;
    const int read = scan_affine_eaches[accumulator_number(&rows->rule)][is_wide(&rows->rule)].slots;
    const int stage = WORDS_STAGE(plan->samples.output_bytes);
    plan->samples.scan.room = WORDS_SLOTS(plan->samples.input_bytes) +
                              most_of(most_of(WORDS_SLOTS(plan->coefficients.input_bytes), read), stage);
    return plan->samples.scan.ahead &&
           (side->access == ACCESS_SLOTS || (side->access == ACCESS_STRIDED && side->stride == 0));
}

/* For the kernel for any layout. */

static void plan_for_any(struct affine_one_plan *plan)
{
    plan->samples.scan.ahead = false;
    plan->samples.scan.room = GENERAL_ROOM(general_widest(plan->samples));
}

static void plan_for_any(struct affine_each_plan *plan)
{
    plan->samples.scan.ahead = false;
    plan->samples.scan.room = GENERAL_ROOM(most_of(general_widest(plan->samples), plan->coefficients.input_bytes));
}

template <class Plan>
static cudaError_t launch_parts(const struct scan_device *device, const struct scan_part *first, unsigned count,
                                cudaStream_t stream)
{
    struct part_list<Plan> parts;
    uint32_t blocks = 0;
    int warps = 1, room = 0;
    for (unsigned i = 0; i < count; i++) {
        Plan *plan = &parts.plans[i];
        *plan = {};
        plan_make(device, first[i].rows, first[i].first, first[i].count, plan);
        plan_for_any(plan);
        parts.ends[i] = blocks += (uint32_t)first[i].count;
        warps = most_of(scan_warps(first[i].rows->length), warps);
        room = most_of(plan->samples.scan.room, room);
    }
    void *arguments[] = {&parts};
    return scan_kernel_launch(kernel_of(scan_affine_number(first->rows)), blocks, warps * WARP, arguments,
                              (size_t)warps * room * SLOT_BYTES, stream);
}

template <class Plan>
static cudaError_t together(const struct scan_device *device, const struct scan_part *parts, unsigned count,
                            cudaStream_t stream)
{
    return scan_parts_each(parts, count, part_list<Plan>::most, [&](const struct scan_part *first, unsigned taken) {
        return launch_parts<Plan>(device, first, taken, stream);
    });
}

cudaError_t scan_affine_together(const struct scan_device *device, const struct scan_part *parts, unsigned count,
                                 cudaStream_t stream)
{
    return parts->rows->coefficients ? together<struct affine_each_plan>(device, parts, count, stream)
                                     : together<struct affine_one_plan>(device, parts, count, stream);
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

/* By kernels of which `resident` thread blocks fit a processor. */
template <class Plan>
static cudaError_t launch(struct scan_device *device, int number, Plan *plan, int resident, cudaStream_t stream)
{
    struct scan_plan *scan = &plan->samples.scan;
    const int warps = scan_warps(scan->length);
    const size_t shared_bytes = (size_t)warps * scan->room * SLOT_BYTES;
    uint64_t grid;
    cudaError_t error = scan_grid_of(device, scan, (uint64_t)device->processors * resident, warps, stream, &grid);
    if (error)
        return error;
    plan_follow(plan);
    if (scan->ahead) {
        void *arguments[] = {plan};
        return scan_kernel_launch(ahead_of(number), grid, warps * WARP, arguments, shared_bytes, stream);
    }
    struct part_list<Plan> parts;
    parts.ends[0] = (uint32_t)grid;
    parts.plans[0] = *plan;
    void *arguments[] = {&parts};
    return scan_kernel_launch(kernel_of(number), grid, warps * WARP, arguments, shared_bytes, stream);
}

/* How many thread blocks fit a processor, of those that fetch ahead, or else of the others. */
template <class Plan> static cudaError_t resident_of(int number, Plan *plan, int *resident)
{
    struct scan_plan *scan = &plan->samples.scan;
    const int warps = scan_warps(scan->length);
    cudaError_t error = cudaSuccess;
    *resident = 0;
    if (scan->ahead)
        error = scan_kernel_resident(ahead_of(number), warps * WARP, (size_t)warps * scan->room * SLOT_BYTES, resident);
    if (error || *resident > 0)
        return error;
    plan_for_any(plan);
    error = scan_kernel_resident(kernel_of(number), warps * WARP, (size_t)warps * scan->room * SLOT_BYTES, resident);
    return error || *resident > 0 ? error : cudaErrorNotSupported;
}

/* Rows of several order blocks at once, if all of a row's fit the device together: else blocks would wait for others
 * that never start. Sets `*launched`, or leaves it. */
template <class Plan>
static cudaError_t launch_long(const struct scan_device *device, int number, const struct scan_carries *carries,
                               Plan *plan, void *workspace, cudaStream_t stream, bool *launched)
{
    const struct scan_plan *scan = &plan->samples.scan;
    const void *kernel = long_of(number);
    const size_t shared_bytes = (size_t)ORDER_FAN * scan->room * SLOT_BYTES;
    const uint64_t record_bytes = scan->items / scan->blocks * scan->sums_per_row * 2 * carries->sum_bytes;
    int resident = 0;
    cudaError_t error = scan_kernel_resident(kernel, ORDER_FAN * WARP, shared_bytes, &resident);
    const uint64_t most = (uint64_t)device->processors * resident;
    if (error || scan->blocks > most)
        return error;
    for (int pass = 0; pass < scan->pass_count; pass++)
        plan->records.passes[pass] = (record *)((char *)workspace + pass * record_bytes);
    error = scan_cleared(cudaMemsetAsync(workspace, 0, scan->pass_count * record_bytes, stream));
    void *arguments[] = {plan};
    if (!error)
        error = scan_launched(cudaLaunchCooperativeKernel(kernel, dim3((unsigned)scan_least(most, scan->items)),
                                                          dim3(ORDER_FAN * WARP), arguments, shared_bytes, stream));
    *launched = error != SCAN_NO_ROOM;
    return *launched ? error : cudaSuccess;
}

template <class Plan>
static cudaError_t scan_by(struct scan_device *device, const struct scan_rows *rows, uint64_t first, uint64_t count,
                           const struct scan_range *range, void *workspace, cudaStream_t stream)
{
    const int number = scan_affine_number(rows);
    Plan plan = {};
    struct scan_plan *scan = &plan.samples.scan;
    scan->ahead = plan_make(device, rows, first, count, &plan);
    int resident;
    cudaError_t error = resident_of(number, &plan, &resident);
    if (rows->rule.demean && scan->blocks > 1 && !error) {
        double *totals = (double *)workspace;
        if (!range || range_is_mean(range))
            error = scan_general_totals(device, &rows->rule, scan, totals, range, stream);
        plan.samples.totals = totals;
        workspace = totals + scan->items / scan->blocks * scan->sums_per_row;
    }
    const struct scan_carries *carries = carries_of(&rows->rule);
    bool launched = range && range_is_mean(range);
    if (!range && scan->ahead && scan->blocks > 1 && long_of(number) && device->cooperative && !error)
        error = launch_long(device, number, carries, &plan, workspace, stream, &launched);
    if (error || launched)
        return error;
    return scan_with_carries(carries, scan, workspace, range, stream,
                             [&] { return launch(device, number, &plan, resident, stream); });
}

cudaError_t scan_affine(struct scan_device *device, const struct scan_rows *rows, uint64_t first, uint64_t count,
                        const struct scan_range *range, void *workspace, cudaStream_t stream)
{
    return rows->coefficients ? scan_by<struct affine_each_plan>(device, rows, first, count, range, workspace, stream)
                              : scan_by<struct affine_one_plan>(device, rows, first, count, range, workspace, stream);
}
