/*
 * Scans on a CUDA device: the host's side. Chooses a kernel and how samples travel, and launches. Sums of f32 samples
 * have kernels of their own (scan.cuh, short.cuh), as have affine (affine.cuh) and reductions (reduce.cuh), all else
 * takes the general ones (general.cuh).
 */
#include "kernels/scan_cuda.h"

#include "kernels/cuda/carries.cuh"
#include "kernels/cuda/general.cuh"
#include "kernels/cuda/lanes.cuh"
#include "kernels/scan_cuda_affine.h"
#include "kernels/scan_cuda_general.h"
#include "kernels/scan_cuda_long.h"
#include "kernels/scan_cuda_ragged.h"
#include "kernels/scan_cuda_reduce.h"
#include "kernels/scan_cuda_short.h"

#define DEVICES_MAX      64
#define LAUNCHES_MAX     4096  /* on their way at once, on one device */
#define WARPS_SHARED_OUT 4     /* of thread blocks from which on progress is worth an atomic operation */
#define GRID_MAX         65535 /* thread blocks of a launch that has no reason for more */

/* One kernel for what a sum is kept in and what is written.
 * Its name; the sums of the first pass and of a second; the output. */
#define SCAN_VARIANTS(X)                            \
    X(F32_F32, sum_f32, sum_f32, float)             \
    X(F32_F64, sum_f32, sum_f32, double)            \
    X(F64_F32, sum_f64, sum_f64, float)             \
    X(F64_F64, sum_f64, sum_f64, double)            \
    X(F2_F32, sum_f2, sum_f2, float)                \
    X(F2_PAIR_F32, sum_f2_pair, sum_f2_wide, float) \
    X(F2_PAIR_F64, sum_f2_pair, sum_f2_wide, double)

#define X(NAME, FIRST, LATER, OUT) VARIANT_##NAME,
enum variant { SCAN_VARIANTS(X) VARIANT_COUNT };
#undef X

/* Inclusive ones, then exclusive ones, and both again for rows that all begin with a slot. */
#define SCAN_KERNELS                         (4 * VARIANT_COUNT)
#define X(NAME, FIRST, LATER, OUT)           (const void *)scan_kernel<FIRST, LATER, OUT, SCAND_KIND_INCLUSIVE, false>,
#define X_EXCLUSIVE(NAME, FIRST, LATER, OUT) (const void *)scan_kernel<FIRST, LATER, OUT, SCAND_KIND_EXCLUSIVE, false>,
#define X_ALIGNED(NAME, FIRST, LATER, OUT)   (const void *)scan_kernel<FIRST, LATER, OUT, SCAND_KIND_INCLUSIVE, true>,
#define X_ALIGNED_EXCLUSIVE(NAME, FIRST, LATER, OUT) \
    (const void *)scan_kernel<FIRST, LATER, OUT, SCAND_KIND_EXCLUSIVE, true>,
static const void *const scan_kernels[SCAN_KERNELS] = {SCAN_VARIANTS(X) SCAN_VARIANTS(X_EXCLUSIVE)
                                                           SCAN_VARIANTS(X_ALIGNED) SCAN_VARIANTS(X_ALIGNED_EXCLUSIVE)};
#undef X

#define X(NAME, FIRST, LATER, OUT) FIRST::stage_slots,
static const int stage_slots[VARIANT_COUNT] = {SCAN_VARIANTS(X)};
#undef X

/* What turns block totals into carries, forward and backward, and the bytes of a total. */
struct carries {
    const void *kernels[2];
    uint64_t sum_bytes;
};

template <class Sum> static struct carries carries_by(void)
{
    return {{(const void *)carries_kernel<Sum, false>, (const void *)carries_kernel<Sum, true>},
            sizeof(typename Sum::sum)};
}

/* f32, or what files have instead of it. */
static bool is_form(enum scand_dtype dtype)
{
    return codec_class(dtype) == SCAND_CLASS_F32 && codec_bytes(dtype) == sizeof(float);
}

static bool is_general(const struct scan_rule *rule)
{
    return rule->op != SCAND_OPERATOR_SUM || rule->kind == SCAND_KIND_HALF || rule->demean || !is_form(rule->input) ||
           (!is_form(rule->output) && rule->output != SCAND_DTYPE_F64);
}

static struct carries carries_of(const struct scan_rule *rule)
{
    if (is_general(rule)) {
        const struct scan_general *general = scan_general_of(rule);
        return {{general->carries[0], general->carries[1]}, general->sum_bytes};
    }
    return rule->accumulator == SCAND_ACCUMULATOR_F32   ? carries_by<sum_f32>()
           : rule->accumulator == SCAND_ACCUMULATOR_F64 ? carries_by<sum_f64>()
                                                        : carries_by<sum_f2>();
}

/* In the memory of each device. */
static __device__ struct scan_progress launch_progress[LAUNCHES_MAX];

/* What scan_cuda_init finds out about a device, and the launches so far. */
struct device {
    int processors, shared_max;
    struct scan_progress *progress;
    uint64_t launches;
    uint8_t resident[SCAN_KERNELS][2][ORDER_FAN + 1]; /* thread blocks per processor, by scan_plan.ahead and warps */
    int short_resident[SCAN_SHORTS];
    struct scan_ragged_device ragged;
    struct scan_reduce_device reduce;
    uint8_t lanes_resident[SCAN_SHORTS][LANES_LENGTH_MAX + 1]; /* by the rows' length */
    struct scan_long_device longer;
};
static struct device devices[DEVICES_MAX];

/* Slots of shared memory that a warp has. */
static int room_of(int number, bool ahead)
{
    return TILE_ROOM + (ahead ? stage_slots[number % VARIANT_COUNT] : 0);
}

static size_t shared_bytes(int number, int warps, bool ahead)
{
    return (size_t)warps * room_of(number, ahead) * SLOT_BYTES;
}

/* Setting an attribute also loads the kernel. */
static cudaError_t kernel_load(struct device *device, int number, int shared_max)
{
    const void *function = scan_kernels[number];
    struct cudaFuncAttributes attributes;
    cudaError_t error = cudaFuncGetAttributes(&attributes, function);
    int dynamic_max = error ? 0 : shared_max - (int)attributes.sharedSizeBytes;
    if (!error)
        error = cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, dynamic_max);
    if (!error)
        error = cudaFuncSetAttribute(function, cudaFuncAttributePreferredSharedMemoryCarveout,
                                     cudaSharedmemCarveoutMaxShared);
    for (int ahead = 0; ahead < 2; ahead++)
        for (int warps = 1; warps <= ORDER_FAN && !error; warps++) {
            int blocks = 0;
            if (shared_bytes(number, warps, ahead) <= (size_t)dynamic_max)
                error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, warps * WARP,
                                                                      shared_bytes(number, warps, ahead));
            device->resident[number][ahead][warps] = (uint8_t)blocks;
        }
    return error;
}

/* The same for a general one, but for how many thread blocks are resident: that depends on the samples, too. */
static cudaError_t general_load(const struct scan_general *general, int shared_max)
{
    struct cudaFuncAttributes attributes;
    cudaError_t error = cudaSuccess;
    for (int i = 0; i < 2 && !error; i++) {
        const void *kernel = general->kernels[i];
        error = cudaFuncGetAttributes(&attributes, kernel);
        if (!error)
            error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                         shared_max - (int)attributes.sharedSizeBytes);
        if (!error)
            error = cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                                         cudaSharedmemCarveoutMaxShared);
        if (!error)
            error = cudaFuncGetAttributes(&attributes, general->carries[i]);
    }
    return error;
}

static cudaError_t short_load(struct device *device, int number)
{
    cudaError_t error = cudaFuncSetAttribute(scan_shorts[number], cudaFuncAttributePreferredSharedMemoryCarveout,
                                             cudaSharedmemCarveoutMaxShared);
    return error ? error
                 : cudaOccupancyMaxActiveBlocksPerMultiprocessor(&device->short_resident[number], scan_shorts[number],
                                                                 SHORT_WARPS * WARP, 0);
}

static size_t lanes_bytes(int length)
{
    return (size_t)SHORT_WARPS * (1 + (length <= LANES_LENGTH_AHEAD)) * LANES_ROOM(length) * SLOT_BYTES;
}

static cudaError_t lanes_load(struct device *device, int number)
{
    const void *function = scan_lanes[number];
    const size_t ahead = lanes_bytes(LANES_LENGTH_AHEAD), alone = lanes_bytes(LANES_LENGTH_MAX);
    const size_t most = ahead > alone ? ahead : alone;
    cudaError_t error = cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)most);
    if (!error)
        error = cudaFuncSetAttribute(function, cudaFuncAttributePreferredSharedMemoryCarveout,
                                     cudaSharedmemCarveoutMaxShared);
    for (int length = 1; length <= LANES_LENGTH_MAX && !error; length++) {
        int blocks = 0;
        error =
            cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, SHORT_WARPS * WARP, lanes_bytes(length));
        device->lanes_resident[number][length] = (uint8_t)blocks;
    }
    return error;
}

static cudaError_t carries_load(struct carries carries)
{
    struct cudaFuncAttributes attributes;
    cudaError_t error = cudaFuncGetAttributes(&attributes, carries.kernels[0]);
    return error ? error : cudaFuncGetAttributes(&attributes, carries.kernels[1]);
}

int scan_cuda_init(void)
{
    int id = 0;
    cudaError_t error = cudaGetDevice(&id);
    if (!error && id >= DEVICES_MAX)
        error = cudaErrorInvalidDevice;
    struct device *device = &devices[error ? 0 : id];
    if (!error)
        error = cudaDeviceGetAttribute(&device->processors, cudaDevAttrMultiProcessorCount, id);
    if (!error)
        error = cudaGetSymbolAddress((void **)&device->progress, launch_progress);
    if (!error)
        error = cudaDeviceGetAttribute(&device->shared_max, cudaDevAttrMaxSharedMemoryPerBlockOptin, id);
    for (int number = 0; number < SCAN_KERNELS && !error; number++)
        error = kernel_load(device, number, device->shared_max);
    for (int i = 0; i < SCAN_SHORTS && !error; i++)
        error = short_load(device, i);
    if (!error)
        error = (cudaError_t)scan_ragged_load(&device->ragged, device->processors);
    if (!error)
        error = (cudaError_t)scan_long_load(&device->longer, device->processors);
    if (!error)
        error = (cudaError_t)scan_affine_load();
    if (!error)
        error = (cudaError_t)scan_reduce_load(&device->reduce, device->processors);
    for (int i = 0; i < SCAN_SHORTS && !error; i++)
        error = lanes_load(device, i);
    for (int i = 0; i < SCAN_GENERALS && !error; i++)
        error = general_load(&scan_generals[i], device->shared_max);
    const struct carries carries[] = {carries_by<sum_f32>(), carries_by<sum_f64>(), carries_by<sum_f2>()};
    for (int i = 0; i < 3 && !error; i++)
        error = carries_load(carries[i]);
    if (error)
        cudaGetLastError(); /* a failed call leaves its error for the next one to find */
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
    default:
        return f64 ? VARIANT_F2_PAIR_F64 : wide ? VARIANT_F2_PAIR_F32 : VARIANT_F2_F32;
    }
}

/* Which of scan_kernels. */
static int kernel_of(const struct scan_rule *rule, bool aligned)
{
    return (int)variant_of(rule) + ((rule->kind == SCAND_KIND_EXCLUSIVE) + 2 * aligned) * VARIANT_COUNT;
}

static uint64_t blocks_of(uint64_t length)
{
    return (length + ORDER_BLOCK - 1) / ORDER_BLOCK;
}

/* Copies the outer axes, without those of one row and with neighbours made one where a single stride serves both. */
static void plan_axes(struct scan_plan *plan, const struct scan_rows *rows)
{
    int rank = 0;
    for (uint32_t axis = 0; axis < rows->outer_rank; axis++) {
        uint64_t shape = rows->outer_shape[axis];
        int64_t input = rows->input_outer_strides[axis], output = rows->output_outer_strides[axis];
        if (shape == 1)
            continue;
        int last = rank - 1;
        if (rank > 0 && plan->input.outer_strides[last] == (int64_t)shape * input &&
            plan->output.outer_strides[last] == (int64_t)shape * output)
            shape *= plan->outer_shape[last];
        else
            last = rank++;
        plan->outer_shape[last] = shape;
        plan->input.outer_strides[last] = input;
        plan->output.outer_strides[last] = output;
    }
    plan->outer_rank = rank > 0 ? rank : 1;
}

static enum scan_access access_of(const struct scan_plan *plan, const struct scan_side *side, int64_t size)
{
    int64_t rows = (int64_t)(intptr_t)side->base;
    for (int axis = 0; axis < plan->outer_rank; axis++)
        rows |= side->outer_strides[axis];
    if ((rows | side->stride) % size != 0)
        return ACCESS_BYTES;
    if (side->stride != size)
        return ACCESS_STRIDED;
    return ACCESS_SLOTS;
}

static bool side_is_aligned(const struct scan_plan *plan, const struct scan_side *side)
{
    uintptr_t places = (uintptr_t)side->base;
    for (int axis = 0; axis < plan->outer_rank; axis++)
        places |= (uintptr_t)side->outer_strides[axis];
    return side->access == ACCESS_SLOTS && places % SLOT_BYTES == 0;
}

static struct scan_plan plan_of(const struct scan_rows *rows, uint64_t first, uint64_t count)
{
    const struct scan_rule *rule = &rows->rule;
    struct scan_plan plan = {};
    plan.input.base = (char *)rows->input;
    plan.input.stride = rows->input_stride;
    plan.output.base = (char *)rows->output;
    plan.output.stride = rows->output_stride;
    plan_axes(&plan, rows);
    plan.input.access = access_of(&plan, &plan.input, sizeof(float));
    plan.output.access = access_of(&plan, &plan.output, rule->output == SCAND_DTYPE_F64 ? 8 : 4);
    plan.length = rows->length;
    plan.first_row = first;
    plan.blocks = blocks_of(rows->length);
    plan.items = count * plan.blocks;
    plan.sums_per_row = carries_sums(plan.blocks);
    plan.pass_count = (int)rule->pass_count;
    for (int pass = 0; pass < plan.pass_count; pass++)
        plan.backward[pass] = rule->passes[pass] == SCAND_PASS_BACKWARD;
    plan.intermediate_f32 = rule->intermediate == SCAND_DTYPE_F32;
    plan.input_form = rule->input;
    plan.output_form = rule->output;
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

/* Gives a launch its progress, if it is to have any. */
static void progress_take(struct device *device, struct scan_plan *plan, int warps)
{
    uint64_t number = __atomic_fetch_add(&device->launches, 1, __ATOMIC_RELAXED);
    plan->progress = warps < WARPS_SHARED_OUT ? NULL : &device->progress[number % LAUNCHES_MAX];
}

static cudaError_t scan_launch(struct device *device, int number, struct scan_plan *plan, cudaStream_t stream)
{
    int warps = plan->blocks > 1 ? ORDER_FAN : (int)((plan->length + ORDER_TILE - 1) / ORDER_TILE);
    /* Fetching ahead, unless its shared memory costs thread blocks, which can compute while others fetch. */
    int with = device->resident[number][1][warps], without = device->resident[number][0][warps];
    plan->ahead = with >= without;
    plan->room = room_of(number, plan->ahead);
    uint64_t grid = (uint64_t)device->processors * (plan->ahead ? with : without);
    if (grid == 0)
        return device->processors ? cudaErrorNotSupported : cudaErrorInitializationError;
    progress_take(device, plan, warps);
    void *arguments[] = {plan};
    return launch(scan_kernels[number], grid < plan->items ? grid : plan->items, warps * WARP, arguments,
                  shared_bytes(number, warps, plan->ahead), stream);
}

/* The carries into all blocks, from their totals in one pass. */
static cudaError_t carries_launch(const struct scan_plan *plan, struct carries carries, int pass, cudaStream_t stream)
{
    uint64_t rows = plan->items / plan->blocks;
    void *sums = plan->sums[pass];
    void *arguments[] = {&sums, (void *)&plan->sums_per_row, &rows, (void *)&plan->blocks};
    return launch(carries.kernels[plan->backward[pass]], rows < GRID_MAX ? rows : GRID_MAX, CARRIES_THREADS, arguments,
                  0, stream);
}

/* Sums of all levels above the blocks of `count` rows. */
static uint64_t sums_of(uint64_t length, uint64_t count)
{
    return count * carries_sums(blocks_of(length));
}

static uint64_t sum_bytes_of(const struct scan_rule *rule)
{
    return rule->op == SCAND_OPERATOR_AFFINE ? scan_affine_sum_bytes(rule) : carries_of(rule).sum_bytes;
}

static uint64_t even_workspace_bytes(const struct scan_rows *rows, uint64_t count)
{
    const struct scan_rule *rule = &rows->rule;
    uint64_t sums = sums_of(rows->length, count), bytes = 0;
    if (rows->length == 0)
        return 0;
    if (rule->operation == SCAND_OPERATION_REDUCE)
        return scan_reduce_needs_totals(rows) ? sums * sizeof(double) : 0;
    if (blocks_of(rows->length) > 1)
        bytes += is_general(rule) ? rule->pass_count * sums * sum_bytes_of(rule)
                                  : scan_long_workspace_bytes(rule, sums, sum_bytes_of(rule));
    if (rule->demean)
        bytes += sums * sizeof(double);
    return bytes;
}

/* Of ragged rows: what all of them need, or the longest alone. */
uint64_t scan_cuda_workspace_bytes(const struct scan_rows *rows, uint64_t count)
{
    if (!rows->offsets || rows->length == 0)
        return even_workspace_bytes(rows, count);
    uint64_t together = scan_ragged_workspace_bytes(rows), alone = even_workspace_bytes(rows, 1);
    if (together < count * sizeof(double))
        together = count * sizeof(double); /* for means */
    return alone > together ? alone : together;
}

/* A kernel of either kind with its plan. */
struct launcher {
    cudaError_t (*launch)(struct launcher *launcher, cudaStream_t stream);
    struct device *device;
    struct scan_plan *plan; /* of either kind */
    int number;             /* which of scan_kernels */
    struct general_plan *general_plan;
    const struct scan_general *general;
};

static cudaError_t launch_fast(struct launcher *launcher, cudaStream_t stream)
{
    return scan_launch(launcher->device, launcher->number, launcher->plan, stream);
}

/* Slots of shared memory that a warp of a general kernel has. */
static int general_room(const struct general_plan *plan, bool ahead)
{
    int widest = plan->input_bytes > plan->output_bytes ? plan->input_bytes : plan->output_bytes;
    return ahead ? WORDS_SLOTS(plan->input_bytes) + WORDS_STAGE(plan->output_bytes) : GENERAL_LEAVES * widest + 8;
}

/* How many thread blocks of so many warps a processor holds: 0 where one has too little shared memory. */
static cudaError_t general_resident(const struct launcher *launcher, int warps, bool ahead, int *resident)
{
    const size_t shared_bytes = (size_t)warps * general_room(launcher->general_plan, ahead) * SLOT_BYTES;
    cudaError_t error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(resident, launcher->general->kernels[ahead],
                                                                      warps * WARP, shared_bytes);
    if (error)
        cudaGetLastError(); /* a failed call leaves its error for the next one to find */
    return error;
}

static cudaError_t launch_general(struct launcher *launcher, cudaStream_t stream)
{
    struct general_plan *plan = launcher->general_plan;
    struct scan_plan *scan = &plan->scan;
    int warps = scan->blocks > 1 ? ORDER_FAN : (int)((scan->length + ORDER_TILE - 1) / ORDER_TILE), resident = 0;
    cudaError_t error = cudaSuccess;
    scan->ahead = scan->input.access == ACCESS_SLOTS && scan->output.access == ACCESS_SLOTS;
    if (scan->ahead)
        error = general_resident(launcher, warps, true, &resident);
    if (resident == 0 && !error) {
        scan->ahead = false;
        error = general_resident(launcher, warps, false, &resident);
    }
    if (error || resident == 0)
        return error ? error : cudaErrorNotSupported;
    uint64_t grid = (uint64_t)launcher->device->processors * resident;
    scan->room = general_room(plan, scan->ahead);
    progress_take(launcher->device, scan, warps);
    void *arguments[] = {plan};
    return launch(launcher->general->kernels[scan->ahead], grid < scan->items ? grid : scan->items, warps * WARP,
                  arguments, (size_t)warps * scan->room * SLOT_BYTES, stream);
}

/* The carries into all blocks in every pass: pass after pass, because a later one scans what an earlier one leaves. */
static cudaError_t sums_make(struct launcher *launcher, const struct scan_rule *rule, void *workspace,
                             cudaStream_t stream)
{
    struct scan_plan *plan = launcher->plan;
    const struct carries carries = carries_of(rule);
    const uint64_t bytes = plan->items / plan->blocks * plan->sums_per_row * carries.sum_bytes;
    cudaError_t error = cudaSuccess;
    for (uint32_t pass = 0; pass < rule->pass_count && !error; pass++) {
        plan->sums[pass] = (char *)workspace + pass * bytes;
        plan->totals_pass = (int)pass;
        error = launcher->launch(launcher, stream);
        if (!error)
            error = carries_launch(plan, carries, (int)pass, stream);
    }
    plan->totals_pass = -1;
    return error;
}

static cudaError_t scan_run(struct launcher *launcher, const struct scan_rule *rule, void *workspace,
                            cudaStream_t stream)
{
    cudaError_t error = cudaSuccess;
    if (launcher->plan->blocks > 1)
        error = sums_make(launcher, rule, workspace, stream);
    return error ? error : launcher->launch(launcher, stream);
}

/* Rows of several blocks in one launch, or where they are too long for that, three. */
static cudaError_t long_run(struct launcher *launcher, const struct scan_rule *rule, bool aligned, void *workspace,
                            cudaStream_t stream)
{
    const struct scan_long_device *device = &launcher->device->longer;
    bool fits = scan_long_fits(device, launcher->plan);
    cudaError_t error = (cudaError_t)scan_long_run(device, rule, launcher->plan, aligned, workspace, stream);
    if (!error && !fits)
        error = carries_launch(launcher->plan, carries_of(rule), 1, stream);
    return error || fits ? error : launcher->launch(launcher, stream);
}

/* The totals of the rows: those of their blocks forward in f64, and the levels above. */
static cudaError_t totals_make(const struct launcher *scan, double *totals, cudaStream_t stream)
{
    const struct scan_general *mean = scan_general_of_mean();
    struct general_plan general = *scan->general_plan;
    struct launcher launcher = *scan;
    launcher.general_plan = &general;
    launcher.plan = &general.scan;
    launcher.general = mean;
    general.demean = false;
    general.scan.backward[0] = false;
    general.scan.pass_count = 1;
    general.scan.totals_pass = 0;
    general.scan.sums[0] = totals;
    cudaError_t error = launch_general(&launcher, stream);
    if (!error && general.scan.blocks > 1)
        error = carries_launch(&general.scan, {{mean->carries[0], mean->carries[1]}, mean->sum_bytes}, 0, stream);
    return error;
}

static struct general_plan general_plan_of(const struct scan_rule *rule, const struct scan_plan *scan)
{
    struct general_plan plan = {};
    bool compares = rule->op == SCAND_OPERATOR_MAX || rule->op == SCAND_OPERATOR_MIN;
    plan.scan = *scan;
    plan.input = rule->input;
    plan.output = rule->output;
    plan.input_bytes = (int)codec_bytes(rule->input);
    plan.output_bytes = (int)codec_bytes(rule->output);
    plan.scan.input.access = access_of(scan, &scan->input, plan.input_bytes);
    plan.scan.output.access = access_of(scan, &scan->output, plan.output_bytes);
    plan.kind = rule->kind;
    plan.wide[0] = codec_class(rule->input) == SCAND_CLASS_F64;
    plan.wide[1] = rule->intermediate == SCAND_DTYPE_F64;
    plan.flip = compares && codec_class(rule->input) == SCAND_CLASS_SIGNED ? UINT64_C(1) << 63 : 0;
    plan.zero = codec_is_integer(rule->input) ? operator_identity_whole(rule->op, rule->input) ^ plan.flip : 0;
    return plan;
}

/* `offsets`: of `count` ragged rows, or NULL. */
static cudaError_t general_run(struct launcher *launcher, const struct scan_rule *rule, const uint64_t *offsets,
                               uint64_t count, void *workspace, cudaStream_t stream)
{
    struct general_plan plan = general_plan_of(rule, launcher->plan);
    plan.offsets = offsets;
    cudaError_t error = cudaSuccess;
    launcher->launch = launch_general;
    launcher->general = scan_general_of(rule);
    launcher->general_plan = &plan;
    launcher->plan = &plan.scan;
    plan.demean = rule->demean;
    if (rule->demean && plan.scan.blocks > 1) {
        double *totals = (double *)workspace;
        error = totals_make(launcher, totals, stream);
        plan.totals = totals;
        workspace = totals + sums_of(plan.scan.length, count);
    }
    return error ? error : scan_run(launcher, rule, workspace, stream);
}

/* Whether rows lie one right after the other. */
static bool side_is_packed(const struct scan_plan *plan, const struct scan_side *side)
{
    return plan->outer_rank == 1 && side->access == ACCESS_SLOTS &&
           side->outer_strides[0] == (int64_t)(plan->length * sizeof(float));
}

static bool is_short(const struct scan_rule *rule, const struct scan_plan *plan)
{
    return plan->length <= ORDER_TILE && rule->input == SCAND_DTYPE_F32 && rule->output == SCAND_DTYPE_F32 &&
           scan_short_of(rule) >= 0 && side_is_packed(plan, &plan->input) && side_is_packed(plan, &plan->output);
}

/* Whether lanes take whole rows: those of few leaves, if what is between passes can lie where samples and results do.
 */
static bool is_for_lanes(const struct scan_rule *rule, const struct short_plan *plan)
{
    bool f32_between = plan->pass_count == 1 || plan->intermediate_f32 || rule->accumulator == SCAND_ACCUMULATOR_F32;
    return plan->length <= LANES_LENGTH_MAX && plan->length % ORDER_LEAF != 0 && f32_between &&
           ((uintptr_t)plan->input ^ (uintptr_t)plan->output) % SLOT_BYTES == 0;
}

static cudaError_t short_launch(const struct device *device, const void *kernel, struct short_plan *plan, int resident,
                                size_t shared_bytes, cudaStream_t stream)
{
    const uint64_t at_once = (uint64_t)plan->rows_at_once * SHORT_WARPS, blocks = (plan->rows + at_once - 1) / at_once;
    const uint64_t grid = (uint64_t)device->processors * resident;
    void *arguments[] = {plan};
    if (grid == 0)
        return cudaErrorInitializationError;
    return launch(kernel, grid < blocks ? grid : blocks, SHORT_WARPS * WARP, arguments, shared_bytes, stream);
}

static cudaError_t short_run(const struct device *device, const struct scan_rule *rule, const struct scan_plan *scan,
                             cudaStream_t stream)
{
    int number = scan_short_of(rule);
    struct short_plan plan = {};
    uint64_t offset = scan->first_row * scan->length * sizeof(float);
    plan.input = scan->input.base + offset;
    plan.output = scan->output.base + offset;
    plan.rows = scan->items;
    plan.length = (int)scan->length;
    plan.leaves = (plan.length + ORDER_LEAF - 1) / ORDER_LEAF;
    plan.pass_count = scan->pass_count;
    memcpy(plan.backward, scan->backward, sizeof(plan.backward));
    plan.intermediate_f32 = scan->intermediate_f32;
    const bool lanes = is_for_lanes(rule, &plan);
    plan.ahead = plan.length <= LANES_LENGTH_AHEAD;
    plan.rows_at_once = lanes ? LANES_ROWS(plan.length) : ORDER_FAN / plan.leaves;
    if (lanes)
        return short_launch(device, scan_lanes[number], &plan, device->lanes_resident[number][plan.length],
                            lanes_bytes(plan.length), stream);
    return short_launch(device, scan_shorts[number], &plan, device->short_resident[number], 0, stream);
}

static cudaError_t reduce_run(struct device *device, const struct scan_rows *rows, uint64_t first, uint64_t count,
                              void *totals, cudaStream_t stream)
{
    struct scan_rows results = *rows;
    results.output_stride = 0; /* no results lie along the axis */
    struct scan_plan plan = plan_of(&results, first, count);
    cudaError_t error = cudaSuccess;
    if (!scan_reduce_takes(&rows->rule))
        return cudaErrorNotSupported;
    if (rows->length > 0)
        error = (cudaError_t)scan_reduce(&device->reduce, rows, &plan, totals, stream);
    if (!error && (rows->length == 0 || scan_reduce_needs_totals(rows)))
        error = (cudaError_t)scan_reduce_finish(rows, &plan, count, totals, stream);
    return error;
}

/* The means are made of totals that the general kernel finds. `rows->length` of ragged ones is an order block at most.
 */
static cudaError_t affine_run(struct device *device, const struct scan_rows *rows, uint64_t first, uint64_t count,
                              void *workspace, cudaStream_t stream)
{
    double *totals = NULL;
    cudaError_t error = cudaSuccess;
    if (rows->rule.demean) {
        struct scan_plan scan = plan_of(rows, rows->offsets ? 0 : first, count);
        struct general_plan plan = general_plan_of(&rows->rule, &scan);
        struct launcher launcher = {launch_general, device, &plan.scan};
        plan.offsets = rows->offsets ? rows->device_offsets + first : NULL;
        launcher.general_plan = &plan;
        totals = (double *)workspace;
        workspace = totals + sums_of(rows->length, count);
        error = totals_make(&launcher, totals, stream);
    }
    if (!error)
        error = (cudaError_t)scan_affine(rows, first, count, device->processors, totals, workspace, stream);
    return error;
}

/* All ragged rows of at most an order block, an item each. */
static cudaError_t ragged_general_run(struct device *device, const struct scan_rows *rows, uint64_t first,
                                      uint64_t count, void *workspace, cudaStream_t stream)
{
    struct scan_rows shorter = *rows;
    shorter.length = rows->length < ORDER_BLOCK ? rows->length : ORDER_BLOCK;
    if (rows->rule.op == SCAND_OPERATOR_AFFINE)
        return affine_run(device, &shorter, first, count, workspace, stream);
    struct scan_plan plan = plan_of(&shorter, 0, count);
    struct launcher launcher = {launch_general, device, &plan};
    return general_run(&launcher, &rows->rule, rows->device_offsets + first, count, workspace, stream);
}

static cudaError_t ragged_run(struct device *device, const struct scan_rows *rows, uint64_t first, uint64_t count,
                              void *workspace, cudaStream_t stream)
{
    bool fast = scan_ragged_takes(&device->ragged, rows);
    uint64_t length_max = fast ? scan_ragged_length_max(&device->ragged) : ORDER_BLOCK;
    cudaError_t error = fast ? (cudaError_t)scan_ragged(&device->ragged, rows, first, count, workspace, stream)
                             : ragged_general_run(device, rows, first, count, workspace, stream);
    for (uint64_t r = first; r < first + count && rows->length > length_max && !error; r++) {
        struct scan_rows row = scan_rows_joined(rows, r, 1);
        if (row.length > length_max)
            error = (cudaError_t)scan_cuda(&row, 0, 1, workspace, stream);
    }
    return error;
}

int scan_cuda(const struct scan_rows *rows, uint64_t first, uint64_t count, void *workspace, struct CUstream_st *stream)
{
    const struct scan_rule *rule = &rows->rule;
    const bool reduces = rule->operation == SCAND_OPERATION_REDUCE;
    if (count == 0 || (rows->length == 0 && !reduces))
        return cudaSuccess;
    int id;
    cudaError_t error = cudaGetDevice(&id);
    if (error || id >= DEVICES_MAX)
        return error ? error : cudaErrorInvalidDevice;
    if (reduces)
        return reduce_run(&devices[id], rows, first, count, workspace, stream);
    if (rows->offsets)
        return ragged_run(&devices[id], rows, first, count, workspace, stream);
    if (rule->op == SCAND_OPERATOR_AFFINE)
        return affine_run(&devices[id], rows, first, count, workspace, stream);
    struct scan_plan plan = plan_of(rows, first, count);
    struct launcher launcher = {launch_fast, &devices[id], &plan};
    if (is_general(rule))
        return general_run(&launcher, rule, NULL, count, workspace, stream);
    if (is_short(rule, &plan))
        return short_run(&devices[id], rule, &plan, stream);
    const bool aligned = side_is_aligned(&plan, &plan.input) && side_is_aligned(&plan, &plan.output);
    launcher.number = kernel_of(rule, aligned);
    if (plan.blocks > 1 && scan_long_takes(&devices[id].longer, rule, &plan))
        return long_run(&launcher, rule, aligned, workspace, stream);
    return scan_run(&launcher, rule, workspace, stream);
}
