/*
 * The general kernels. Four operators each for f32, f64 and integers, in the order of the vocabulary, then sums and
 * products of f2, which the others do not need.
 */
#include "kernels/cuda/kernels/any_layout.h"

#include <assert.h>

#include "kernels/cuda/exchange/spine.cuh"
#include "kernels/cuda/exchange/spine.h"
#include "kernels/cuda/kernels/any_layout.cuh"
#include "kernels/cuda/select/plan.h"

struct general {
    const void *kernels[2]; /* general_kernel, general_ahead_kernel */
    struct scan_carries carries;
};

template <class Narrow, class Wide = Narrow> static constexpr struct general general_by()
{
    return {{(const void *)general_kernel<Narrow, Wide>, (const void *)general_ahead_kernel<Narrow, Wide>},
            scan_carries_by<Narrow>()};
}

#define OPERATORS(KEPT)                                                              \
    general_by<KEPT(SCAND_OPERATOR_SUM)>(), general_by<KEPT(SCAND_OPERATOR_PROD)>(), \
        general_by<KEPT(SCAND_OPERATOR_MAX)>(), general_by<KEPT(SCAND_OPERATOR_MIN)>()
#define F32(OP)   general_real<float, OP>
#define F64(OP)   general_real<double, OP>
#define WHOLE(OP) general_whole<OP>

enum { GENERAL_F32 = 0, GENERAL_F64 = 4, GENERAL_WHOLE = 8, GENERAL_F2 = 12 };

static const struct general generals[SCAN_GENERALS] = {
    OPERATORS(F32),
    OPERATORS(F64),
    OPERATORS(WHOLE),
    general_by<general_f2<SCAND_OPERATOR_SUM, false>, general_f2<SCAND_OPERATOR_SUM, true>>(),
    general_by<general_f2<SCAND_OPERATOR_PROD, false>, general_f2<SCAND_OPERATOR_PROD, true>>(),
};

/* max and min change no value: they work in the type of the samples, whatever the accumulator. */
int scan_general_number(const struct scan_rule *rule)
{
    bool compares = rule->op == SCAND_OPERATOR_MAX || rule->op == SCAND_OPERATOR_MIN;
    bool f64 = compares ? codec_class(rule->input) == SCAND_CLASS_F64 : rule->accumulator == SCAND_ACCUMULATOR_F64;
    if (codec_is_integer(rule->input))
        return GENERAL_WHOLE + rule->op;
    if (!compares && rule->accumulator == SCAND_ACCUMULATOR_F2)
        return GENERAL_F2 + rule->op;
    return (f64 ? GENERAL_F64 : GENERAL_F32) + rule->op;
}

static const struct general *general_of(const struct scan_rule *rule)
{
    return &generals[scan_general_number(rule)];
}

/* The one that adds up f64, for means. */
static const struct general *general_of_mean(void)
{
    return &generals[GENERAL_F64 + SCAND_OPERATOR_SUM];
}

uint64_t scan_general_sum_bytes(const struct scan_rule *rule)
{
    return general_of(rule)->carries.sum_bytes;
}

/* How many thread blocks are resident depends on the samples, too. */
cudaError_t scan_general_load(int shared_max)
{
    cudaError_t error = cudaSuccess;
    for (int i = 0; i < SCAN_GENERALS && !error; i++) {
        size_t shared_bytes = 0;
        for (int ahead = 0; ahead < 2 && !error; ahead++)
            error = scan_kernel_load_most(generals[i].kernels[ahead], shared_max, &shared_bytes);
        assert(error || shared_bytes + SELECT_DECLARED_BYTES >= (size_t)shared_max);
        if (!error)
            error = scan_carries_load(&generals[i].carries);
    }
    return error;
}

static_assert(SELECT_AHEAD_SLOTS(2, 4) == WORDS_SLOTS(2) + WORDS_STAGE(4) &&
                  SELECT_AHEAD_SLOTS(8, 8) == WORDS_SLOTS(8) + WORDS_STAGE(8),
              "what select.c takes for the shared memory of a warp");

/* Slots of shared memory that a warp has. */
static int room_of(const struct general_plan *plan)
{
    return plan->scan.ahead ? SELECT_AHEAD_SLOTS(plan->input_bytes, plan->output_bytes)
                            : GENERAL_ROOM(general_widest(*plan));
}

struct general_plan scan_general_plan_of(const struct scan_rule *rule, const struct scan_plan *scan,
                                         const uint64_t *offsets)
{
    struct general_plan plan = {};
    bool compares = rule->op == SCAND_OPERATOR_MAX || rule->op == SCAND_OPERATOR_MIN;
    plan.scan = *scan;
    plan.input = rule->input;
    plan.output = rule->output;
    plan.input_bytes = (int)codec_bytes(rule->input);
    plan.output_bytes = (int)codec_bytes(rule->output);
    plan.kind = rule->kind;
    plan.wide[0] = codec_class(rule->input) == SCAND_CLASS_F64;
    plan.wide[1] = rule->intermediate == SCAND_DTYPE_F64;
    plan.flip = compares && codec_class(rule->input) == SCAND_CLASS_SIGNED ? UINT64_C(1) << 63 : 0;
    plan.zero = codec_is_integer(rule->input) ? operator_identity_whole(rule->op, rule->input) ^ plan.flip : 0;
    plan.offsets = offsets;
    plan.demean = rule->demean;
    plan.scan.room = room_of(&plan);
    return plan;
}

static cudaError_t launch(struct scan_device *device, const struct general *general, struct general_plan *plan,
                          cudaStream_t stream)
{
    struct scan_plan *scan = &plan->scan;
    const int warps = scan_warps(scan->length);
    const void *kernel = general->kernels[scan->ahead];
    const size_t shared_bytes = (size_t)warps * scan->room * SLOT_BYTES;
    int resident = 0;
    cudaError_t error = scan_kernel_resident(kernel, warps * WARP, shared_bytes, &resident);
    if (error || resident == 0)
        return error ? error : SCAN_NO_ROOM;
    uint64_t grid;
    error = scan_grid_of(device, scan, (uint64_t)device->processors * resident, warps, stream, &grid);
    if (error)
        return error;
    struct part_list<struct general_plan> parts;
    void *arguments[] = {scan->ahead ? (void *)plan : &parts};
    if (!scan->ahead) {
        parts.ends[0] = (uint32_t)grid;
        parts.plans[0] = *plan;
    }
    return scan_kernel_launch(kernel, grid, warps * WARP, arguments, shared_bytes, stream);
}

static cudaError_t launch_parts(const struct scan_part *first, unsigned count, cudaStream_t stream)
{
    struct part_list<struct general_plan> parts;
    uint32_t blocks = 0;
    int warps = 1, room = 0;
    for (unsigned i = 0; i < count; i++) {
        const struct scan_rows *rows = first[i].rows;
        const struct scan_plan scan = scan_plan_of(rows, first[i].first, first[i].count);
        struct general_plan *plan = &parts.plans[i];
        *plan = scan_general_plan_of(&rows->rule, &scan, NULL);
        parts.ends[i] = blocks += (uint32_t)first[i].count;
        warps = scan_warps(rows->length) > warps ? scan_warps(rows->length) : warps;
        room = plan->scan.room > room ? plan->scan.room : room;
    }
    void *arguments[] = {&parts};
    return scan_kernel_launch(general_of(&first->rows->rule)->kernels[0], blocks, warps * WARP, arguments,
                              (size_t)warps * room * SLOT_BYTES, stream);
}

cudaError_t scan_general_together(const struct scan_part *parts, unsigned count, cudaStream_t stream)
{
    return scan_parts_each(
        parts, count, part_list<struct general_plan>::most,
        [&](const struct scan_part *first, unsigned taken) { return launch_parts(first, taken, stream); });
}

/* Of the rows' blocks first, and then of the levels above; or one range of that. */
static cudaError_t totals_make(struct scan_device *device, struct general_plan plan, double *totals,
                               const struct scan_range *range, cudaStream_t stream)
{
    const struct general *mean = general_of_mean();
    struct general_plan blocks;
    cudaError_t error = cudaSuccess;
    plan.demean = false;
    plan.scan.backward[0] = false;
    plan.scan.pass_count = 1;
    plan.scan.totals_pass = 0;
    plan.scan.sums[0] = totals;
    blocks = plan;
    if (range)
        scan_plan_take(&blocks.scan, range);
    if (!range || range->work == RANGE_MEAN_TOTALS)
        error = launch(device, mean, &blocks, stream);
    if (error || plan.scan.blocks == 1 || (range && range->work == RANGE_MEAN_TOTALS))
        return error;
    return scan_carries_of_pass(&mean->carries, &plan.scan, 0, stream);
}

cudaError_t scan_general_totals(struct scan_device *device, const struct scan_rule *rule, const struct scan_plan *scan,
                                double *totals, const struct scan_range *range, cudaStream_t stream)
{
    return totals_make(device, scan_general_plan_of(rule, scan, NULL), totals, range, stream);
}

cudaError_t scan_general(struct scan_device *device, const struct scan_rule *rule, const struct scan_plan *scan,
                         const uint64_t *offsets, const struct scan_range *range, void *workspace, cudaStream_t stream)
{
    const struct general *general = general_of(rule);
    struct general_plan plan = scan_general_plan_of(rule, scan, offsets);
    cudaError_t error = cudaSuccess;
    if (rule->demean && scan->blocks > 1) {
        double *totals = (double *)workspace;
        if (!range || range_is_mean(range))
            error = totals_make(device, plan, totals, range, stream);
        plan.totals = totals;
        workspace = totals + scan->items / scan->blocks * scan->sums_per_row;
    }
    if (range && range_is_mean(range))
        return error;
    return error ? error : scan_with_carries(&general->carries, &plan.scan, workspace, range, stream, [&] {
        return launch(device, general, &plan, stream);
    });
}
