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
    {ONE(struct f2), EACH(struct f2, float), EACH(struct f2, double)},
};

#define SPINE(T) scan_spine_by<affine_sum<T>>()
static const struct scan_spine all_spines[SCAN_AFFINE_ACCUMULATORS] = {SPINE(float), SPINE(double), SPINE(struct f2),
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
    return accumulator_number(&rows->rule) * SCAN_AFFINE_FACTORS + factors;
}

static const struct scan_spine *carries_of(const struct scan_rule *rule)
{
    return &all_spines[accumulator_number(rule)];
}

uint64_t scan_affine_sum_bytes(const struct scan_rule *rule)
{
    return 2 * carries_of(rule)->sum_bytes;
}

/* Kernels by their number: for any layout; for contiguous rows; for those of several order blocks, or NULL. */

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
        error = scan_spine_load(&all_spines[i]);
    return error;
}

static struct any_plan any_plan_of(const struct scan_rows *rows, uint64_t first, uint64_t count, bool ahead)
{
    struct scan_plan scan = scan_plan_of(rows, first, count);
    scan.ahead = ahead;
    return scan_any_layout_plan_of(&rows->rule, &scan, rows->offsets ? rows->device_offsets + first : NULL);
}

static int most_of(int a, int b)
{
    return a > b ? a : b;
}

/* Plans. Where a kernel prefetches, samples' shared memory has vectors for coefficients and results, too. */

static void plan_make(const struct scan_rows *rows, uint64_t first, uint64_t count, bool ahead,
                      struct affine_one_plan *plan)
{
    plan->samples = any_plan_of(rows, first, count, ahead);
    plan->coefficient = rows->rule.coefficient;
    plan->whole = codec_is_integer(rows->rule.input) ? (uint64_t)(int64_t)rows->rule.coefficient : 0;
    if (!ahead)
        plan->samples.scan.smem = ANY_SMEM(any_widest(plan->samples));
}

static void plan_make(const struct scan_rows *rows, uint64_t first, uint64_t count, bool ahead,
                      struct affine_each_plan *plan)
{
    const struct scan_rows coefficients = select_coefficient_rows(rows);
    plan->samples = any_plan_of(rows, first, count, ahead);
    plan->coefficients = any_plan_of(&coefficients, first, count, ahead);
    const int read = scan_affine_eaches[accumulator_number(&rows->rule)][is_wide(&rows->rule)].vectors;
    const int stage = WORDS_STAGE(plan->samples.output_bytes);
    plan->samples.scan.smem = WORDS_VECTORS(plan->samples.input_bytes) +
                              most_of(most_of(WORDS_VECTORS(plan->coefficients.input_bytes), read), stage);
    if (!ahead)
        plan->samples.scan.smem = ANY_SMEM(most_of(any_widest(plan->samples), plan->coefficients.input_bytes));
}

template <class Plan>
static cudaError_t launch_batch(const struct scan_part *first, unsigned count, cudaStream_t stream)
{
    struct batch<Plan> batch;
    uint32_t blocks = 0;
    int warps = 1, smem = 0;
    for (unsigned i = 0; i < count; i++) {
        Plan *plan = &batch.plans[i];
        *plan = {};
        plan_make(first[i].rows, first[i].first, first[i].count, false, plan);
        batch.ends[i] = blocks += (uint32_t)first[i].count;
        warps = most_of(scan_warps(first[i].rows->length), warps);
        smem = most_of(plan->samples.scan.smem, smem);
    }
    void *arguments[] = {&batch};
    return scan_kernel_launch(kernel_of(scan_affine_number(first->rows)), blocks, warps * WARP, arguments,
                              (size_t)warps * smem * VEC16_BYTES, stream);
}

template <class Plan> static cudaError_t together(const struct scan_part *parts, unsigned count, cudaStream_t stream)
{
    return scan_batches_each(parts, count, batch<Plan>::most, [&](const struct scan_part *first, unsigned taken) {
        return launch_batch<Plan>(first, taken, stream);
    });
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

/* Launches kernels of which `resident` thread blocks fit an SM. */
template <class Plan>
static cudaError_t launch(struct scan_device *device, int number, Plan *plan, int resident, cudaStream_t stream)
{
    struct scan_plan *scan = &plan->samples.scan;
    const int warps = scan_warps(scan->length);
    const size_t shared_bytes = (size_t)warps * scan->smem * VEC16_BYTES;
    uint64_t grid;
    cudaError_t error = scan_grid_of(device, scan, (uint64_t)device->processors * resident, warps, stream, &grid);
    if (error)
        return error;
    plan_follow(plan);
    if (scan->ahead) {
        void *arguments[] = {plan};
        return scan_kernel_launch(ahead_of(number), grid, warps * WARP, arguments, shared_bytes, stream);
    }
    struct batch<Plan> batch;
    batch.ends[0] = (uint32_t)grid;
    batch.plans[0] = *plan;
    void *arguments[] = {&batch};
    return scan_kernel_launch(kernel_of(number), grid, warps * WARP, arguments, shared_bytes, stream);
}

static cudaError_t resident_of(const void *kernel, int warps, const struct scan_plan *scan, int *resident)
{
    *resident = 0;
    return kernel ? scan_kernel_resident(kernel, warps * WARP, (size_t)warps * scan->smem * VEC16_BYTES, resident)
                  : cudaSuccess;
}

/* The thread blocks that rows can be given; 0 where the device has no room for those that a path needs. All of a row's
 * are resident together where they wait for one another. */
static cudaError_t room_find(const struct scan_device *device, enum select_path path, int number,
                             const struct scan_plan *scan, int *resident)
{
    if (path != SELECT_AFFINE_GRID)
        return resident_of(scan->ahead ? ahead_of(number) : kernel_of(number), scan_warps(scan->length), scan,
                           resident);
    cudaError_t error = resident_of(long_of(number), ORDER_FAN, scan, resident);
    if (scan->blocks > (uint64_t)device->processors * *resident)
        *resident = 0;
    return error;
}

/* Rows of several order blocks at once. */
template <class Plan>
static cudaError_t launch_long(const struct scan_device *device, int number, const struct scan_spine *spine, Plan *plan,
                               int resident, void *workspace, cudaStream_t stream)
{
    const struct scan_plan *scan = &plan->samples.scan;
    const uint64_t state_bytes = scan->items / scan->blocks * scan->sums_per_row * 2 * spine->sum_bytes;
    const uint64_t grid = scan_least((uint64_t)device->processors * resident, scan->items);
    for (int pass = 0; pass < scan->pass_count; pass++)
        plan->states.passes[pass] = (tile_state *)((char *)workspace + pass * state_bytes);
    cudaError_t error = scan_cleared(cudaMemsetAsync(workspace, 0, scan->pass_count * state_bytes, stream));
    void *arguments[] = {plan};
    return error ? error
                 : scan_launched(cudaLaunchCooperativeKernel(long_of(number), dim3((unsigned)grid),
                                                             dim3(ORDER_FAN * WARP), arguments,
                                                             (size_t)ORDER_FAN * scan->smem * VEC16_BYTES, stream));
}

static bool path_prefetches(enum select_path path)
{
    return path != SELECT_AFFINE && path != SELECT_RAGGED_AFFINE;
}

template <class Plan>
static cudaError_t scan_by(struct scan_device *device, enum select_path path, const struct scan_rows *rows,
                           uint64_t first, uint64_t count, const struct scan_range *range, void *workspace,
                           cudaStream_t stream)
{
    const int number = scan_affine_number(rows);
    Plan plan = {};
    struct scan_plan *scan = &plan.samples.scan;
    plan_make(rows, first, count, path_prefetches(path), &plan);
    int resident;
    cudaError_t error = room_find(device, path, number, scan, &resident);
    if (error || resident == 0)
        return error ? error : SCAN_NO_ROOM;
    if (rows->rule.demean && scan->blocks > 1) {
        double *totals = (double *)workspace;
        if (!range || range_is_mean(range))
            error = scan_any_layout_totals(device, &rows->rule, scan, totals, range, stream);
        plan.samples.totals = totals;
        workspace = totals + scan->items / scan->blocks * scan->sums_per_row;
    }
    if (error || (range && range_is_mean(range)))
        return error;
    const struct scan_spine *spine = carries_of(&rows->rule);
    if (path == SELECT_AFFINE_GRID)
        return launch_long(device, number, spine, &plan, resident, workspace, stream);
    return scan_with_spine(spine, scan, workspace, range, stream,
                           [&] { return launch(device, number, &plan, resident, stream); });
}

cudaError_t scan_affine(struct scan_device *device, enum select_path path, const struct scan_rows *rows, uint64_t first,
                        uint64_t count, const struct scan_range *range, void *workspace, cudaStream_t stream)
{
    return rows->coefficients
               ? scan_by<struct affine_each_plan>(device, path, rows, first, count, range, workspace, stream)
               : scan_by<struct affine_one_plan>(device, path, rows, first, count, range, workspace, stream);
}
