/*
 * The affine kernels: for each accumulator one for a single coefficient, and one for each type that coefficients are
 * held in.
 */
#include "kernels/scan_cuda_affine.h"

#include "kernels/cuda/affine.cuh"
#include "kernels/cuda/carries.cuh"

#define ROWS_MAX 65535 /* thread blocks that make carries */

enum factors { FACTORS_ONE, FACTORS_NARROW, FACTORS_WIDE, FACTORS_COUNT };

/* What an accumulator has; NULL where its coefficients are never wide, or never narrow. */
struct affine_variant {
    const void *kernels[FACTORS_COUNT];
    const void *carries[2]; /* forward and backward */
    uint32_t number_bytes;
};

template <class T> static constexpr struct affine_variant variant(const void *narrow, const void *wide)
{
    return {{(const void *)affine_kernel<T, affine_one<T>>, narrow, wide},
            {(const void *)carries_kernel<affine_sum<T>, false>, (const void *)carries_kernel<affine_sum<T>, true>},
            sizeof(T)};
}

#define EACH(T, READ) (const void *)affine_kernel<T, affine_each<T, READ>>

static const struct affine_variant affine_f32 = variant<float>(EACH(float, float), NULL);
static const struct affine_variant affine_f64 = variant<double>(EACH(double, float), EACH(double, double));
static const struct affine_variant affine_f2 = variant<struct f2>(EACH(struct f2, float), EACH(struct f2, double));
static const struct affine_variant affine_exact = variant<uint64_t>(NULL, EACH(uint64_t, uint64_t));

static const struct affine_variant *variant_of(const struct scan_rule *rule)
{
    if (codec_is_integer(rule->input))
        return &affine_exact;
    return rule->accumulator == SCAND_ACCUMULATOR_F32   ? &affine_f32
           : rule->accumulator == SCAND_ACCUMULATOR_F64 ? &affine_f64
                                                        : &affine_f2;
}

uint64_t scan_affine_sum_bytes(const struct scan_rule *rule)
{
    return 2 * variant_of(rule)->number_bytes;
}

static cudaError_t kernel_load(const void *kernel)
{
    struct cudaFuncAttributes attributes;
    return kernel ? cudaFuncGetAttributes(&attributes, kernel) : cudaSuccess;
}

int scan_affine_load(void)
{
    const struct affine_variant *const variants[] = {&affine_f32, &affine_f64, &affine_f2, &affine_exact};
    cudaError_t error = cudaSuccess;
    for (int v = 0; v < 4; v++) {
        for (int i = 0; i < FACTORS_COUNT && !error; i++)
            error = kernel_load(variants[v]->kernels[i]);
        for (int i = 0; i < 2 && !error; i++)
            error = kernel_load(variants[v]->carries[i]);
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
    plan.blocks = (rows->length + ORDER_BLOCK - 1) / ORDER_BLOCK;
    plan.items = count * plan.blocks;
    plan.pass_count = (int)rule->pass_count;
    for (int pass = 0; pass < plan.pass_count; pass++)
        plan.backward[pass] = rule->passes[pass] == SCAND_PASS_BACKWARD;
    plan.exclusive = rule->kind == SCAND_KIND_EXCLUSIVE;
    plan.intermediate_f32 = rule->intermediate == SCAND_DTYPE_F32;
    plan.coefficient = rule->coefficient;
    plan.whole = codec_is_integer(rule->input) ? (uint64_t)(int64_t)rule->coefficient : 0;
    plan.sums_per_row = carries_sums(plan.blocks);
    plan.totals = totals;
    plan.totals_pass = -1;
    return plan;
}

static cudaError_t launch(const void *kernel, uint64_t grid, int threads, void **arguments, size_t shared_bytes,
                          cudaStream_t stream)
{
    cudaError_t error =
        cudaLaunchKernel(kernel, dim3((unsigned)grid), dim3((unsigned)threads), arguments, shared_bytes, stream);
    if (error)
        cudaGetLastError(); /* a failed call leaves its error for the next one to find */
    return error;
}

static cudaError_t scan_launch(const void *kernel, uint32_t number_bytes, int processors, struct affine_plan *plan,
                               cudaStream_t stream)
{
    int warps = plan->blocks > 1 ? ORDER_FAN : (int)((plan->length + ORDER_TILE - 1) / ORDER_TILE), resident = 0;
    size_t shared_bytes = (size_t)warps * AFFINE_STAGE * number_bytes;
    cudaError_t error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, warps * WARP, shared_bytes);
    if (error || resident == 0) {
        cudaGetLastError();
        return error ? error : cudaErrorNotSupported;
    }
    uint64_t grid = (uint64_t)processors * resident;
    void *arguments[] = {plan};
    return launch(kernel, grid < plan->items ? grid : plan->items, warps * WARP, arguments, shared_bytes, stream);
}

/* The carries into all blocks of all rows, pass after pass: a later one scans what an earlier one leaves. */
static cudaError_t carries_make(const struct affine_variant *variant, const void *kernel, int processors,
                                struct affine_plan *plan, void *workspace, cudaStream_t stream)
{
    uint64_t rows = plan->items / plan->blocks, bytes = rows * plan->sums_per_row * 2 * variant->number_bytes;
    cudaError_t error = cudaSuccess;
    for (int pass = 0; pass < plan->pass_count && !error; pass++) {
        plan->sums[pass] = (char *)workspace + pass * bytes;
        plan->totals_pass = pass;
        error = scan_launch(kernel, variant->number_bytes, processors, plan, stream);
        void *arguments[] = {&plan->sums[pass], &plan->sums_per_row, &rows, &plan->blocks};
        if (!error)
            error = launch(variant->carries[plan->backward[pass]], rows < ROWS_MAX ? rows : ROWS_MAX, CARRIES_THREADS,
                           arguments, 0, stream);
    }
    plan->totals_pass = -1;
    return error;
}

int scan_affine(const struct scan_rows *rows, uint64_t first, uint64_t count, int processors, const double *totals,
                void *workspace, struct CUstream_st *stream)
{
    const struct scan_rule *rule = &rows->rule;
    const struct affine_variant *variant = variant_of(rule);
    const bool narrow = codec_class(rule->coefficients) == SCAND_CLASS_F32;
    const void *kernel = variant->kernels[!rows->coefficients ? FACTORS_ONE : narrow ? FACTORS_NARROW : FACTORS_WIDE];
    struct affine_plan plan = plan_of(rows, first, count, totals);
    cudaError_t error = cudaSuccess;
    if (plan.blocks > 1)
        error = carries_make(variant, kernel, processors, &plan, workspace, stream);
    return error ? error : scan_launch(kernel, variant->number_bytes, processors, &plan, stream);
}
