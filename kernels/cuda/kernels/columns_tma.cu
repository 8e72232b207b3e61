#include "kernels/cuda/kernels/columns_tma.cuh"

#include "kernels/cuda/kernels/launchers.h"

static_assert(TMA_COLUMNS == SCAN_BOX, "what plan.c counts");
/* Kernels of an accumulator. */
struct kernels {
    const void *totals, *values;
    int threads;                       /* threads of a thread block */
    size_t totals_bytes, values_bytes; /* bytes of shared memory */
};

template <class Accumulator, class Word> static constexpr struct kernels kernels_by()
{
    using Sum = tma_rule<Accumulator, Word>;
    static_assert(sizeof(tma_smem<Sum>) <= SELECT_COLUMNS_TMA_BYTES &&
                      sizeof(tma_totals_smem<Sum>) <= SELECT_COLUMNS_TMA_BYTES,
                  "what select.c takes for granted");
    return {(const void *)tma_totals_kernel<Sum>, (const void *)tma_kernel<Sum>, Sum::warps * WARP,
            sizeof(tma_totals_smem<Sum>), sizeof(tma_smem<Sum>)};
}

/* Kernels of sums of words of 4 bytes, then of 2; then of products and maxima, in f32. */
static const struct kernels list[] = {kernels_by<sum_f32, float>(),
                                      kernels_by<sum_f64_of<float>, float>(),
                                      kernels_by<sum_f2, float>(),
                                      kernels_by<sum_f32, uint16_t>(),
                                      kernels_by<sum_f64_of<float>, uint16_t>(),
                                      kernels_by<sum_f2, uint16_t>(),
                                      kernels_by<any_real<float, SCAND_OPERATOR_PROD>, float>(),
                                      kernels_by<any_real<float, SCAND_OPERATOR_MAX>, float>()};

static const struct kernels *kernels_of(const struct scan_rule *rule)
{
    if (rule->op != SCAND_OPERATOR_SUM)
        return &list[rule->op == SCAND_OPERATOR_PROD ? 6 : 7];
    return &list[scan_float_number(rule->accumulator) + (codec_bytes(rule->input) == 2 ? 3 : 0)];
}

cudaError_t scan_columns_tma_load(struct scan_device *device)
{
    cudaError_t error = cudaSuccess;
    if (device->code < 90 || device->shared_max < SELECT_COLUMNS_TMA_BYTES)
        return cudaSuccess;
    for (const struct kernels &kernels : list) {
        if (!error)
            error = scan_kernel_share(kernels.totals, kernels.totals_bytes);
        if (!error)
            error = scan_kernel_share(kernels.values, kernels.values_bytes);
    }
    return error;
}

/* Bytes of tile states of one pass. */
static uint64_t state_bytes(const struct scan_rule *rule, const struct scan_plan *plan)
{
    const uint64_t words = rule->accumulator == SCAND_ACCUMULATOR_F32 ? 1 : 2;
    return scan_plan_boxes(plan) * TMA_COLUMNS * scan_tiles(plan->length) * words * sizeof(tile_state);
}

uint64_t scan_columns_tma_workspace_bytes(const struct scan_rule *rule, const struct scan_plan *plan)
{
    return scan_plan_is_columns(plan) && plan->length <= ORDER_BLOCK
               ? rule->pass_count * state_bytes(rule, plan) + sizeof(unsigned)
               : 0;
}

/* The map of one side by {columns, samples, next axis, outermost one}, the latter of one where there are fewer. */
static cudaError_t map_side(void *encode, const struct scan_plan *scan, const struct scan_side *side, CUtensorMap *map)
{
    const int planes = scan->outer_rank - 1; /* axes */
    const cuuint64_t stride = (cuuint64_t)side->stride, bytes = codec_bytes(scan->input_form);
    cuuint64_t shape[] = {scan_plan_columns(scan), scan->length, 1, 1}, strides[] = {stride, stride, stride};
    const cuuint32_t box[] = {TMA_COLUMNS, ORDER_LEAF, 1, 1}, steps[] = {1, 1, 1, 1};
    for (int i = 0; i < planes; i++) {
        shape[2 + i] = scan->outer_shape[planes - 1 - i];
        strides[1 + i] = strides[2] = (cuuint64_t)side->outer_strides[planes - 1 - i];
    }
    const CUresult result = ((decltype(&cuTensorMapEncodeTiled))encode)(
        map, bytes == 4 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT32 : CU_TENSOR_MAP_DATA_TYPE_UINT16, 4,
        side->base + (planes == 0 ? scan->first_row * bytes : 0), shape, strides, box, steps,
        CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
        CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    return (cudaError_t)result; /* driver and runtime number their errors alike */
}

static struct tma_plan plan_of(const struct scan_rule *rule, const struct scan_plan *scan, void *workspace)
{
    struct tma_plan plan = {};
    const uint64_t columns = scan_plan_columns(scan);
    const bool planes = scan->outer_rank > 1;
    plan.input_form = scan->input_form;
    plan.output_form = scan->output_form;
    plan.strips = (unsigned)scan_plan_boxes(scan);
    plan.tiles = (unsigned)scan_tiles(scan->length);
    plan.items = plan.strips * plan.tiles;
    plan.strips_inverse = ((UINT64_C(1) << 63) - 1) / plan.strips + 1;
    plan.strips_per_plane = (unsigned)scan_parts(columns, TMA_COLUMNS);
    plan.first_plane = planes ? (unsigned)(scan->first_row / columns) : 0;
    plan.planes = planes ? (unsigned)scan->outer_shape[scan->outer_rank - 2] : 0;
    plan.last = (int)(scan->length - (plan.tiles - 1) * (uint64_t)ORDER_TILE);
    plan.pass_count = scan->pass_count;
    plan.exclusive = rule->kind == SCAND_KIND_EXCLUSIVE;
    plan.flip = instance_flip(rule);
    for (int pass = 0; pass < plan.pass_count; pass++) {
        plan.backward[pass] = scan->backward[pass];
        plan.states[pass] = (tile_state *)((char *)workspace + pass * state_bytes(rule, scan));
    }
    plan.taken = (unsigned *)((char *)workspace + plan.pass_count * state_bytes(rule, scan));
    return plan;
}

/* Two launches are one after the other, but the second may begin when all thread blocks of the first one have. */
static cudaError_t launch(const struct kernels *kernels, dim3 grid, bool two, void **arguments, cudaStream_t stream)
{
    const dim3 block((unsigned)kernels->threads);
    cudaLaunchAttribute early = {cudaLaunchAttributeProgrammaticStreamSerialization};
    early.val.programmaticStreamSerializationAllowed = 1;
    const cudaLaunchConfig_t values = {grid, block, kernels->values_bytes, stream, &early, two};
    cudaError_t error = cudaSuccess;
    if (two)
        error = cudaLaunchKernel(kernels->totals, grid, block, arguments, kernels->totals_bytes, stream);
    return error ? error : cudaLaunchKernelExC(&values, kernels->values, arguments);
}

cudaError_t scan_columns_tma(const struct scan_call *call)
{
    const struct scan_rule *rule = &call->rows->rule;
    const struct scan_plan *scan = &call->plan;
    void *const encode = call->device->encode;
    const cudaStream_t stream = call->stream;
    struct tma_plan plan = plan_of(rule, scan, call->workspace);
    CUtensorMap input, output;
    void *arguments[] = {&plan, &input, &output};
    if (!encode)
        return SCAN_NO_ROOM;
    const dim3 grid((unsigned)scan_least((uint64_t)call->device->processors, plan.items));
    cudaError_t error = map_side(encode, scan, &scan->input, &input);
    if (!error)
        error = map_side(encode, scan, &scan->output, &output);
    if (!error && plan.pass_count == 1)
        error =
            cudaMemsetAsync(plan.states[plan.pass_count - 1], 0, state_bytes(rule, scan) + sizeof(unsigned), stream);
    if (!error)
        error = launch(kernels_of(rule), grid, plan.pass_count > 1, arguments, stream);
    return scan_launched(error);
}
