#include "kernels/cuda/kernels/block_per_row.cuh"

#include "kernels/cuda/exchange/spine.h"
#include "kernels/cuda/kernels/launchers.h"
#include "kernels/cuda/select/instance.h"
#include "kernels/cuda/select/plan.h"

/* One kernel for what a sum is kept in and what is written.
 * Its name; the sums of the first pass and of a second; the output. */
#define NARROW_VARIANTS(X)              \
    X(F32_F32, sum_f32, sum_f32, float) \
    X(F64_F32, sum_f64, sum_f64, float) \
    X(F2_F32, sum_f2, sum_f2, float)
#define SCAN_VARIANTS(X)                            \
    NARROW_VARIANTS(X)                              \
    X(F32_F64, sum_f32, sum_f32, double)            \
    X(F64_F64, sum_f64, sum_f64, double)            \
    X(F2_PAIR_F32, sum_f2_pair, sum_f2_wide, float) \
    X(F2_PAIR_F64, sum_f2_pair, sum_f2_wide, double)

#define X(NAME, FIRST, LATER, OUT) VARIANT_##NAME,
enum variant { SCAN_VARIANTS(X) VARIANT_COUNT, VARIANTS_NARROW = VARIANT_F2_F32 + 1 };
#undef X

/* Inclusive kernels, then exclusive ones; and the first of both again for rows that all begin with a vector. */
#define KERNELS                    (2 * (VARIANT_COUNT + VARIANTS_NARROW))
#define X(NAME, FIRST, LATER, OUT) (const void *)block_per_row_kernel<FIRST, LATER, OUT, SCAND_KIND_INCLUSIVE, false>,
#define X_EXCLUSIVE(NAME, FIRST, LATER, OUT) \
    (const void *)block_per_row_kernel<FIRST, LATER, OUT, SCAND_KIND_EXCLUSIVE, false>,
#define X_ALIGNED(NAME, FIRST, LATER, OUT) \
    (const void *)block_per_row_kernel<FIRST, LATER, OUT, SCAND_KIND_INCLUSIVE, true>,
#define X_ALIGNED_EXCLUSIVE(NAME, FIRST, LATER, OUT) \
    (const void *)block_per_row_kernel<FIRST, LATER, OUT, SCAND_KIND_EXCLUSIVE, true>,
static const void *const scan_kernels[KERNELS] = {SCAN_VARIANTS(X) SCAN_VARIANTS(X_EXCLUSIVE) NARROW_VARIANTS(X_ALIGNED)
                                                      NARROW_VARIANTS(X_ALIGNED_EXCLUSIVE)};
#undef X

#define X(NAME, FIRST, LATER, OUT) FIRST::stage_vectors,
static const int stage_vectors[KERNELS] = {SCAN_VARIANTS(X) SCAN_VARIANTS(X) NARROW_VARIANTS(X) NARROW_VARIANTS(X)};
#undef X

/* Vectors of shared memory that a warp has. */
static int smem_of(int number, bool ahead)
{
    return TILE_SMEM + (ahead ? stage_vectors[number] : 0);
}

static size_t shared_bytes(int number, int warps, bool ahead)
{
    return (size_t)warps * smem_of(number, ahead) * VEC16_BYTES;
}

/* Thread blocks that an SM holds, of each device: by kernel, by whether they prefetch, by warps. */
static uint8_t residents[SCAN_DEVICES_MAX][KERNELS][2][ORDER_FAN + 1];

static cudaError_t kernel_load(const struct scan_device *device, int number)
{
    const void *kernel = scan_kernels[number];
    size_t shared_most = 0;
    cudaError_t error = scan_kernel_load_most(kernel, device->shared_max, &shared_most);
    for (int ahead = 0; ahead < 2; ahead++)
        for (int warps = 1; warps <= ORDER_FAN && !error; warps++) {
            int blocks = 0;
            if (shared_bytes(number, warps, ahead) <= shared_most)
                error = scan_kernel_resident(kernel, warps * WARP, shared_bytes(number, warps, ahead), &blocks);
            residents[device->id][number][ahead][warps] = (uint8_t)blocks;
        }
    return error;
}

cudaError_t scan_block_per_row_load(struct scan_device *device)
{
    cudaError_t error = cudaSuccess;
    for (int number = 0; number < KERNELS && !error; number++)
        error = kernel_load(device, number);
    return error;
}

static enum variant variant_of(const struct scan_rule *rule)
{
    bool f64 = rule->output == SCAND_DTYPE_F64;
    bool wide = rule->pass_count > 1 && rule->intermediate == SCAND_DTYPE_F64;
    switch (rule->accumulator) {
    case SCAND_ACCUMULATOR_F32:
        return f64 ? VARIANT_F32_F64 : VARIANT_F32_F32;
    case SCAND_ACCUMULATOR_F64:
        return f64 ? VARIANT_F64_F64 : VARIANT_F64_F32;
    case SCAND_ACCUMULATOR_F2:
        return f64 ? VARIANT_F2_PAIR_F64 : wide ? VARIANT_F2_PAIR_F32 : VARIANT_F2_F32;
    case SCAND_ACCUMULATOR_AUTO: /* no rule of rows has it */
    case SCAND_ACCUMULATOR_EXACT:
    case SCAND_ACCUMULATOR_COUNT:
        break;
    }
    return VARIANT_COUNT;
}

/* Returns an index into scan_kernels. */
static int kernel_of(const struct scan_rule *rule, bool aligned)
{
    const int variant = (int)variant_of(rule), kind = rule->kind == SCAND_KIND_EXCLUSIVE;
    return aligned && variant < VARIANTS_NARROW ? 2 * VARIANT_COUNT + kind * VARIANTS_NARROW + variant
                                                : kind * VARIANT_COUNT + variant;
}

static cudaError_t launch(struct scan_device *device, const struct scan_rule *rule, struct scan_plan *plan,
                          cudaStream_t stream)
{
    const int number = kernel_of(rule, scan_plan_is_aligned(plan)), warps = scan_warps(plan->length);
    const int with = residents[device->id][number][1][warps], without = residents[device->id][number][0][warps];
    plan->ahead = instance_prefetches(with, without);
    plan->smem = smem_of(number, plan->ahead);
    plan->bulk = instance_copies_in_bulk(plan);
    const uint64_t resident = (uint64_t)device->processors * (plan->ahead ? with : without);
    uint64_t grid;
    if (resident == 0)
        return SCAN_NO_ROOM;
    cudaError_t error = scan_grid_of(device, plan, resident, warps, stream, &grid);
    if (error)
        return error;
    void *arguments[] = {plan};
    return scan_kernel_launch(scan_kernels[number], grid, warps * WARP, arguments,
                              shared_bytes(number, warps, plan->ahead), stream);
}

cudaError_t scan_block_per_row(const struct scan_call *call)
{
    const struct scan_rule *rule = &call->rows->rule;
    struct scan_plan plan = call->plan;
    return scan_with_spine(scan_any_layout_spine(rule), &plan, call->ragged, call->workspace, call->range, call->stream,
                           [&] { return launch(call->device, rule, &plan, call->stream); });
}
