#include "kernels/cuda/kernels/block_per_row.cuh"

#include "kernels/cuda/exchange/spine.h"
#include "kernels/cuda/kernels/launchers.h"
#include "kernels/cuda/select/instance.h"

struct variant {
    const void *kernel;
    int tile_vectors, stage_vectors;
};

template <class Sum, int Kind, class Io> static constexpr struct variant variant_of()
{
    return {(const void *)block_per_row_kernel<Sum, Kind, Io>, Io::tile_vectors, Io::stage_vectors};
}

/* For rows that begin anywhere, and for those that all begin with a vector. */
#define X(SUM, KIND, ALIGNED) variant_of<SUM, KIND, item_io<SUM, ALIGNED>>(),
static const struct variant variants[2][SCAN_SUMS] = {{SUM_RULES(X, false)}, {SUM_RULES(X, true)}};
#undef X

/* For samples of 2 bytes, in f32 and in f64. */
static const struct variant shorts[2] = {variant_of<sum_f32, SCAND_KIND_INCLUSIVE, short_io<sum_f32>>(),
                                         variant_of<sum_f64, SCAND_KIND_INCLUSIVE, short_io<sum_f64>>()};

/* Vectors of shared memory that a warp has. */
static int smem_of(const struct variant *variant, bool ahead)
{
    return variant->tile_vectors + (ahead ? variant->stage_vectors : 0);
}

static size_t shared_bytes(const struct variant *variant, int warps, bool ahead)
{
    return (size_t)warps * smem_of(variant, ahead) * VEC16_BYTES;
}

cudaError_t scan_block_per_row_load(struct scan_device *device)
{
    cudaError_t error = scan_even_rows_load(device);
    for (int i = 0; i < 2 * SCAN_SUMS && !error; i++)
        error = scan_kernel_load_most(device, variants[i / SCAN_SUMS][i % SCAN_SUMS].kernel);
    for (const struct variant &variant : shorts)
        error = error ? error : scan_kernel_load_most(device, variant.kernel);
    return error;
}

static cudaError_t launch(const struct scan_call *call, const struct variant *variant, struct scan_plan *plan)
{
    const int warps = scan_warps(plan->length);
    int resident[2] = {}; /* thread blocks that an SM holds, by whether they prefetch */
    uint64_t grid;
    cudaError_t error = cudaSuccess;
    for (int ahead = 0; ahead < 2 && !error; ahead++)
        error =
            scan_kernel_resident(variant->kernel, warps * WARP, shared_bytes(variant, warps, ahead), &resident[ahead]);
    /* Unless its shared memory costs thread blocks, which can compute while others fetch. */
    plan->ahead = resident[1] >= resident[0];
    plan->smem = smem_of(variant, plan->ahead);
    plan->bulk = instance_copies_in_bulk(plan);
    const uint64_t all = (uint64_t)call->device->processors * resident[plan->ahead];
    if (error || all == 0)
        return error ? error : SCAN_NO_ROOM;
    error = scan_grid_of(call->device, plan, all, warps, call->stream, &grid);
    void *arguments[] = {plan};
    return error ? error
                 : scan_kernel_launch(variant->kernel, grid, warps * WARP, arguments,
                                      shared_bytes(variant, warps, plan->ahead), call->stream);
}

cudaError_t scan_block_per_row(const struct scan_call *call)
{
    const struct scan_rule *rule = &call->rows->rule;
    struct scan_plan plan = call->plan;
    if (scan_even_rows_can(call))
        return scan_even_rows(call);
    const struct variant *variant = call->path == SELECT_BLOCK_PER_ROW_SHORT
                                        ? &shorts[rule->accumulator == SCAND_ACCUMULATOR_F64]
                                        : &variants[scan_plan_is_aligned(&plan)][scan_sum_number(rule)];
    return scan_with_spine(scan_any_layout_spine(rule), &plan, call->ragged, call->workspace, call->range, call->stream,
                           [&] { return launch(call, variant, &plan); });
}
