#include "kernels/cuda/exchange/spine.h"
#include "kernels/cuda/kernels/grid_per_row_sums.cuh"
#include "kernels/cuda/kernels/launchers.h"
#include "kernels/cuda/select/instance.h"

/* By accumulator, and inclusive, exclusive, and inclusive where rows are aligned: kernels for one pass, for two, and
 * for the sums of two. */
#define ALIKE 3
#define X(SUM, KIND, ALIGNED)                                          \
    {                                                                  \
        (const void *)grid_per_row_kernel<SUM, KIND, ALIGNED, 1>,      \
            (const void *)grid_per_row_kernel<SUM, KIND, ALIGNED, 2>,  \
            (const void *)grid_per_row_sums_kernel<SUM, KIND, ALIGNED> \
    }
#define X_ALL(SUM) \
    X(SUM, SCAND_KIND_INCLUSIVE, false), X(SUM, SCAND_KIND_EXCLUSIVE, false), X(SUM, SCAND_KIND_INCLUSIVE, true)
static const void *const kernels[3 * ALIKE][SCAND_PASSES_MAX + 1] = {X_ALL(sum_f32), X_ALL(sum_f64_narrow),
                                                                     X_ALL(sum_f2)};
#undef X
#undef X_ALL

static const int threads_of[SCAND_PASSES_MAX + 1] = {GRID_THREADS(1), GRID_THREADS(2), GRID_SUMS_THREADS};

/* Thread blocks that are resident together, of each device; 0: it cannot run these kernels. */
static int grids[SCAN_DEVICES_MAX];

cudaError_t scan_grid_per_row_load(struct scan_device *device)
{
    const bool able = device->code >= 90 && device->shared_max >= GRID_SHARED_ALL;
    int resident = able;
    cudaError_t error = cudaSuccess;
    for (int i = 0; i < 3 * ALIKE; i++)
        for (int n = 0; n <= SCAND_PASSES_MAX && resident > 0 && !error; n++)
            error = scan_kernel_load_resident(kernels[i][n], threads_of[n], GRID_SHARED, &resident);
    grids[device->id] = resident > 0 ? device->processors : 0;
    return error;
}

/* A tile state takes twice the bytes of its sum. Where results take a launch of their own there are, beside the tile
 * states of the first pass, the sums of both. */
uint64_t scan_grid_per_row_workspace_bytes(const struct scan_rule *rule, uint64_t sums, uint64_t sum_bytes)
{
    return 2 * rule->pass_count * sums * sum_bytes;
}

static cudaError_t launch(const struct scan_call *call, struct grid_plan *plan)
{
    const struct scan_rule *rule = &call->rows->rule;
    const uint64_t grid = scan_least(plan->scan.items, (uint64_t)grids[call->device->id]);
    const int alike = instance_is_aligned(rule, &plan->scan) ? 2 : rule->kind == SCAND_KIND_EXCLUSIVE;
    const int n = plan->step == GRID_SUMS ? SCAND_PASSES_MAX : plan->scan.pass_count - 1;
    const void *const kernel = kernels[ALIKE * scan_float_number(rule->accumulator) + alike][n];
    void *arguments[] = {plan};
    if (grid == 0)
        return SCAN_NO_ROOM;
    return scan_launched(cudaLaunchCooperativeKernel(kernel, dim3((unsigned)grid), dim3((unsigned)threads_of[n]),
                                                     arguments, GRID_SHARED, call->stream));
}

/* Two passes over rows of more blocks than thread blocks are resident take three launches: for the sums of the passes,
 * for the carries of the second, and for the values. */
cudaError_t scan_grid_per_row(const struct scan_call *call)
{
    const bool sums_first = call->path == SELECT_GRID_PER_ROW_THREE_LAUNCHES;
    const struct scan_rule *rule = &call->rows->rule;
    const struct scan_plan *scan = &call->plan;
    const struct scan_spine *spine = scan_any_layout_spine(rule);
    const uint64_t bytes = scan->items / scan->blocks * scan->sums_per_row * spine->sum_bytes;
    struct grid_plan plan = {};
    plan.scan = *scan;
    plan.step = sums_first ? GRID_SUMS : GRID_ALL;
    for (int pass = 0; pass < scan->pass_count; pass++) {
        plan.states[pass] = (tile_state *)((char *)call->workspace + pass * 2 * bytes);
        plan.scan.sums[pass] = (char *)call->workspace + (2 + pass) * bytes;
    }
    const uint64_t state_bytes = sums_first ? 2 * bytes : 2 * bytes * scan->pass_count;
    cudaError_t error = scan_cleared(cudaMemsetAsync(call->workspace, 0, state_bytes, call->stream));
    if (!error)
        error = launch(call, &plan);
    if (error || !sums_first)
        return error;
    error = scan_spine_of_pass(spine, &plan.scan, 1, call->stream);
    if (!error)
        error = scan_progress_of(call->device, GRID_WARPS, call->stream, &plan.scan.progress);
    plan.step = GRID_VALUES;
    return error ? error : launch(call, &plan);
}
