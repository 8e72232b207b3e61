/*
 * The affine kernels: for each accumulator one for a single coefficient, another one for that where rows are
 * contiguous, and one for each type that coefficients are held in.
 */
#include "kernels/scan_cuda_affine.h"

#include "kernels/cuda/affine.cuh"
#include "kernels/cuda/affine_ahead.cuh"
#include "kernels/cuda/carries.cuh"
#include "kernels/plan.h"
#include "kernels/scan_cuda_carries.h"
#include "kernels/scan_cuda_general.h"

enum factors { FACTORS_ONE, FACTORS_NARROW, FACTORS_WIDE, FACTORS_COUNT };

/* What an accumulator has; NULL where its coefficients are never wide, or never narrow. */
struct affine_variant {
    const void *kernels[FACTORS_COUNT];
    const void *ahead; /* affine_ahead_kernel */
    struct scan_carries carries;
    uint32_t number_bytes;
};

template <class T> static constexpr struct affine_variant variant(const void *narrow, const void *wide)
{
    return {{(const void *)affine_kernel<T, affine_one<T>>, narrow, wide},
            (const void *)affine_ahead_kernel<T>,
            {{(const void *)carries_kernel<affine_sum<T>, false>, (const void *)carries_kernel<affine_sum<T>, true>},
             2 * sizeof(T)},
            sizeof(T)};
}

#define EACH(T, READ) (const void *)affine_kernel<T, affine_each<T, READ>>

static const struct affine_variant affine_f32 = variant<float>(EACH(float, float), NULL);
static const struct affine_variant affine_f64 = variant<double>(EACH(double, float), EACH(double, double));
static const struct affine_variant affine_f2 = variant<struct f2>(EACH(struct f2, float), EACH(struct f2, double));
static const struct affine_variant affine_exact = variant<uint64_t>(NULL, EACH(uint64_t, uint64_t));

static const struct affine_variant *const variants[] = {&affine_f32, &affine_f64, &affine_f2, &affine_exact};

static int variant_number(const struct scan_rule *rule)
{
    if (codec_is_integer(rule->input))
        return 3;
    return rule->accumulator == SCAND_ACCUMULATOR_F32 ? 0 : rule->accumulator == SCAND_ACCUMULATOR_F64 ? 1 : 2;
}

static const struct affine_variant *variant_of(const struct scan_rule *rule)
{
    return variants[variant_number(rule)];
}

static enum factors factors_of(const struct scan_rows *rows)
{
    const bool narrow = codec_class(rows->rule.coefficients) == SCAND_CLASS_F32;
    return !rows->coefficients ? FACTORS_ONE : narrow ? FACTORS_NARROW : FACTORS_WIDE;
}

int scan_affine_number(const struct scan_rows *rows)
{
    return variant_number(&rows->rule) * FACTORS_COUNT + factors_of(rows);
}

uint64_t scan_affine_sum_bytes(const struct scan_rule *rule)
{
    return variant_of(rule)->carries.sum_bytes;
}

cudaError_t scan_affine_load(int shared_max)
{
    cudaError_t error = cudaSuccess;
    for (int v = 0; v < 4 && !error; v++) {
        for (int i = 0; i < FACTORS_COUNT && !error; i++)
            if (variants[v]->kernels[i])
                error = scan_kernel_load(variants[v]->kernels[i]);
        size_t shared_bytes;
        if (!error)
            error = scan_kernel_load_most(variants[v]->ahead, shared_max, &shared_bytes);
        if (!error)
            error = scan_carries_load(&variants[v]->carries);
    }
    return error;
}

static struct affine_side side_of(const void *base, enum scand_dtype dtype, uint32_t rank, const int64_t *outer_strides,
                                  int64_t stride)
{
    struct affine_side side = {};
    uintptr_t places = (uintptr_t)base | (uintptr_t)stride;
    side.base = (char *)base;
    side.stride = stride;
    side.dtype = dtype;
    for (uint32_t axis = 0; axis < rank; axis++) {
        side.outer_strides[axis] = outer_strides[axis];
        places |= (uintptr_t)outer_strides[axis];
    }
    side.aligned = places % codec_bytes(dtype) == 0;
    return side;
}

static struct affine_plan plan_of(const struct scan_rows *rows, uint64_t first, uint64_t count, const double *totals)
{
    const struct scan_rule *rule = &rows->rule;
    const uint32_t rank = rows->outer_rank;
    struct affine_plan plan = {};
    plan.input = side_of(rows->input, rule->input, rank, rows->input_outer_strides, rows->input_stride);
    plan.output = side_of(rows->output, rule->output, rank, rows->output_outer_strides, rows->output_stride);
    if (rows->coefficients)
        plan.coefficients = side_of(rows->coefficients, rule->coefficients, rank, rows->coefficient_outer_strides,
                                    rows->coefficient_stride);
    plan.outer_rank = (int)rank;
    memcpy(plan.outer_shape, rows->outer_shape, rank * sizeof(plan.outer_shape[0]));
    plan.length = rows->length;
    plan.first_row = rows->offsets ? 0 : first;
    plan.offsets = rows->offsets ? rows->device_offsets + first : NULL;
    plan.blocks = scan_blocks(rows->length);
    plan.items = count * plan.blocks;
    plan.pass_count = (int)rule->pass_count;
    for (int pass = 0; pass < plan.pass_count; pass++)
        plan.backward[pass] = rule->passes[pass] == SCAND_PASS_BACKWARD;
    plan.exclusive = rule->kind == SCAND_KIND_EXCLUSIVE;
    plan.intermediate_f32 = rule->intermediate == SCAND_DTYPE_F32;
    plan.coefficient = rule->coefficient;
    plan.whole = codec_is_integer(rule->input) ? (uint64_t)(int64_t)rule->coefficient : 0;
    plan.sums_per_row = scan_tree_sums(plan.blocks);
    plan.totals = totals;
    plan.totals_pass = -1;
    return plan;
}

static size_t shared_bytes_of(const struct affine_variant *variant, int warps)
{
    return (size_t)warps * AFFINE_STAGE * variant->number_bytes;
}

static cudaError_t launch(const void *kernel, const struct affine_variant *variant, int processors,
                          const struct affine_plan *plan, cudaStream_t stream)
{
    const int warps = scan_warps(plan->length);
    const size_t shared_bytes = shared_bytes_of(variant, warps);
    int resident = 0;
    cudaError_t error = scan_kernel_resident(kernel, warps * WARP, shared_bytes, &resident);
    if (error || resident == 0)
        return error ? error : cudaErrorNotSupported;
    struct part_list<struct affine_plan> parts;
    parts.ends[0] = (uint32_t)scan_least((uint64_t)processors * resident, plan->items);
    parts.plans[0] = *plan;
    void *arguments[] = {&parts};
    return scan_kernel_launch(kernel, parts.ends[0], warps * WARP, arguments, shared_bytes, stream);
}

static cudaError_t launch_parts(const struct scan_part *first, unsigned count, cudaStream_t stream)
{
    const struct affine_variant *variant = variant_of(&first->rows->rule);
    struct part_list<struct affine_plan> parts;
    uint32_t blocks = 0;
    int warps = 1;
    for (unsigned i = 0; i < count; i++) {
        parts.plans[i] = plan_of(first[i].rows, first[i].first, first[i].count, NULL);
        parts.ends[i] = blocks += (uint32_t)first[i].count;
        warps = scan_warps(first[i].rows->length) > warps ? scan_warps(first[i].rows->length) : warps;
    }
    void *arguments[] = {&parts};
    return scan_kernel_launch(variant->kernels[factors_of(first->rows)], blocks, warps * WARP, arguments,
                              shared_bytes_of(variant, warps), stream);
}

cudaError_t scan_affine_together(const struct scan_part *parts, unsigned count, cudaStream_t stream)
{
    return scan_parts_each(
        parts, count, part_list<struct affine_plan>::most,
        [&](const struct scan_part *first, unsigned taken) { return launch_parts(first, taken, stream); });
}

static cudaError_t scan_any(const struct scan_rows *rows, uint64_t first, uint64_t count, int processors,
                            const double *totals, void *workspace, cudaStream_t stream)
{
    const struct scan_rule *rule = &rows->rule;
    const struct affine_variant *variant = variant_of(rule);
    const void *kernel = variant->kernels[factors_of(rows)];
    struct affine_plan plan = plan_of(rows, first, count, totals);
    return scan_with_carries(&variant->carries, &plan, workspace, stream,
                             [&] { return launch(kernel, variant, processors, &plan, stream); });
}

/* Contiguous rows with one coefficient, of which `resident` thread blocks fit a processor. A mean of one order block is
 * made in the kernel. */
static cudaError_t scan_ahead(struct scan_device *device, const struct affine_variant *variant,
                              struct affine_ahead_plan *plan, int resident, size_t shared_bytes, void *workspace,
                              cudaStream_t stream)
{
    struct scan_plan *scan = &plan->general.scan;
    const int warps = scan_warps(scan->length);
    void *arguments[] = {plan};
    return scan_with_carries(&variant->carries, scan, workspace, stream, [&] {
        cudaError_t error = scan_progress_of(device, warps, stream, &scan->progress);
        return error ? error
                     : scan_kernel_launch(variant->ahead,
                                          scan_least((uint64_t)device->processors * resident, scan->items),
                                          warps * WARP, arguments, shared_bytes, stream);
    });
}

cudaError_t scan_affine(struct scan_device *device, const struct scan_rows *rows, uint64_t first, uint64_t count,
                        const double *totals, void *workspace, cudaStream_t stream)
{
    const struct affine_variant *variant = variant_of(&rows->rule);
    const struct scan_plan scan = scan_plan_of(rows, first, count);
    const uint64_t *offsets = rows->offsets ? rows->device_offsets + first : NULL;
    struct affine_ahead_plan plan = {};
    plan.general = scan_general_plan_of(device, &rows->rule, &scan, offsets);
    plan.general.totals = scan.blocks > 1 ? totals : NULL;
    plan.coefficient = rows->rule.coefficient;
    plan.whole = codec_is_integer(rows->rule.input) ? (uint64_t)(int64_t)rows->rule.coefficient : 0;
    const int warps = scan_warps(scan.length);
    const size_t shared_bytes = (size_t)warps * plan.general.scan.room * SLOT_BYTES;
    int resident = 0;
    cudaError_t error = cudaSuccess;
    if (!rows->coefficients && plan.general.scan.ahead)
        error = scan_kernel_resident(variant->ahead, warps * WARP, shared_bytes, &resident);
    if (error)
        return error;
    if (resident == 0)
        return scan_any(rows, first, count, device->processors, totals, workspace, stream);
    return scan_ahead(device, variant, &plan, resident, shared_bytes, workspace, stream);
}
