#include <cuda_runtime.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "chain.h"
#include "daemon/device/devices.h"
#include "daemon/process/log.h"
#include "error.h"
#include "export.h"
#include "identity.h"
#include "kernels/cuda/scan_cuda.h"
#include "kernels/tutorial/reduce/reduce.h"
#include "kernels/tutorial/scan/variants.h"
#include "range.h"
#include "small.h"
#include "stage.h"

/*
 * Slots form a ring; uploads, kernels and downloads have a stream each, so that those of consecutive chunks overlap.
 * Kernels follow each other on one stream, so they share one workspace.
 *
 * Events neither take the time nor wake a thread: either keeps the copy engines waiting between chunks (8.7 ms instead
 * of 8.2 for 400 MB each way on an H200). The device's thread looks at them, and at the clock when one has passed.
 * Chunks of 8 MiB: there 16 took 1 % longer, 4 as well. Of device memory alone larger ones: 512 MiB take as long as two
 * chunks that are copied.
 */
#define SLOTS                LIMIT_CHUNKS_IN_FLIGHT
#define SLOT_BYTES           MIB(16)
#define CHUNK_BYTES          MIB(8)
#define RESIDENT_CHUNK_BYTES MIB(512)
#define SPIN_CHECKS          4    /* of the events before looking for new chunks: some 10 us */
#define SPIN_US              2000 /* without a chunk that finishes, before pausing after each such look */
#define PAUSE_NS             50000
#define NEXT_US              100 /* after a small job, for which its client's next one is awaited without blocking */

/* What a chunk passes. Only rows in memory that is not pinned have something to do in the first and the last, in which
 * the processor copies them; the others have a stream each. */
enum stage { STAGE_GATHER, STAGE_UPLOAD, STAGE_KERNEL, STAGE_DOWNLOAD, STAGE_SCATTER, STAGES };

struct slot {
    unsigned char *memory;
    unsigned char *pinned; /* where rows are staged, each where it lies in `memory`; NULL until one is */
    cudaEvent_t passed[STAGES];
    uint64_t entered_us; /* the stage that it is in */
    uint64_t took_us[STAGES];
    struct chunk *chunk, copied;    /* copied: as its samples travel */
    struct scan_rows joined;        /* those of `copied`, of ragged rows */
    struct sides sides;             /* of `copied` */
    struct scan_rows rows, between; /* as kernels take them */
    uint32_t step;                  /* the first that is not queued */
    bool gathers, scatters;
    struct stage_task task;
    int status;                         /* not 0: nothing more is queued for it */
    uint64_t *offsets, *device_offsets; /* of a chunk of ragged rows: pinned, to be uploaded from; on the device */
    void *beyond;                       /* for what is between steps and too large for `memory`, or NULL */
};

#define BETWEEN_BYTES ((SMALL_BATCHES + 1) * SMALL_BYTES)
#define OFFSETS_BYTES ((LIMIT_CHUNK_ROWS + 1) * sizeof(uint64_t))
#define LEAST_BYTES   (SLOTS * (SLOT_BYTES + OFFSETS_BYTES) + BETWEEN_BYTES)
struct cuda_device {
    struct device device; /* first */
    int index;
    cudaStream_t streams[STAGES];
    /* The n-th chunk has slot n % SLOTS. */
    struct slot slots[SLOTS];
    uint64_t started, passed[STAGES], finished; /* chunks so far */
    uint64_t passed_us[STAGES];                 /* when the last one passed */
    struct cuda_small small;
    struct cuda_stage *stage; /* NULL until something is staged */
    uint64_t waited_us;       /* since when nothing has finished, while chunks are out */
    unsigned char *between;   /* SMALL_BYTES for each batch of small ones, and for STAGE_KERNEL's stream */
    void *workspace;
    uint64_t workspace_bytes;
    uint64_t taken_bytes; /* of device memory; helpers allocate too */
    atomic_bool lost;     /* a sticky error: nothing works in this process any more; helpers see one too */
};

static struct cuda_device *cuda_of(struct device *device)
{
    return (struct cuda_device *)device;
}

/* The one translation of CUDA errors, which also clears the latched one. */
static int cuda_errno(struct cuda_device *self, cudaError_t e)
{
    if (e == cudaSuccess)
        return 0;
    cudaGetLastError();
    if (e == cudaErrorNotSupported)
        return -EOPNOTSUPP;
    log_error("CUDA device %d: %s (%d)", self->index, cudaGetErrorString(e), (int)e);
    if (cuda_is_sticky(e)) {
        self->lost = true;
        return -EOWNERDEAD;
    }
    return e == cudaErrorMemoryAllocation ? -ENOMEM : -EIO;
}

static bool reserve(struct cuda_device *self, uint64_t size_bytes)
{
    uint64_t taken = __atomic_add_fetch(&self->taken_bytes, size_bytes, __ATOMIC_RELAXED);
    if (taken <= self->device.info.memory_limit_bytes)
        return true;
    __atomic_sub_fetch(&self->taken_bytes, size_bytes, __ATOMIC_RELAXED);
    return false;
}

static void unreserve(struct cuda_device *self, uint64_t size_bytes)
{
    __atomic_sub_fetch(&self->taken_bytes, size_bytes, __ATOMIC_RELAXED);
}

static int cuda_allocate(struct device *device, uint64_t size_bytes, void **out)
{
    struct cuda_device *self = cuda_of(device);
    void *memory = NULL;
    if (!reserve(self, size_bytes))
        return -EDQUOT;
    cudaError_t e = cudaSetDevice(self->index);
    if (e == cudaSuccess)
        e = cudaMalloc(&memory, size_bytes);
    if (e == cudaSuccess)
        e = cudaMemset(memory, 0, size_bytes);
    if (e == cudaSuccess)
        e = cudaDeviceSynchronize();
    if (e != cudaSuccess) {
        cudaFree(memory);
        unreserve(self, size_bytes);
        return cuda_errno(self, e);
    }
    *out = memory;
    return 0;
}

static void cuda_free(struct device *device, void *memory, uint64_t size_bytes)
{
    struct cuda_device *self = cuda_of(device);
    cudaSetDevice(self->index);
    if (cuda_errno(self, cudaFree(memory)) == 0)
        unreserve(self, size_bytes);
}

static int cuda_device_share_create(struct device *device, uint64_t size_bytes, enum scand_sharing sharing,
                                    struct shared_memory **out)
{
    struct cuda_device *self = cuda_of(device);
    if (!reserve(self, size_bytes))
        return -EDQUOT;
    cudaError_t e = cudaSetDevice(self->index);
    if (e == cudaSuccess)
        e = cuda_share_create(self->index, size_bytes, sharing, out);
    if (e != cudaSuccess)
        unreserve(self, size_bytes);
    return cuda_errno(self, e);
}

/* What is wrong with a client's ticket is the client's to know, and nothing for the log. */
static int cuda_device_share_open(struct device *device, const struct shared_ticket *ticket, uint64_t offset,
                                  uint64_t size_bytes, struct shared_memory **out, struct error *error)
{
    struct cuda_device *self = cuda_of(device);
    cudaError_t set = cudaSetDevice(self->index);
    cudaError_t e = set == cudaSuccess ? cuda_share_open(self->index, ticket, offset, size_bytes, out, error) : set;
    if (e == cudaSuccess)
        return 0;
    if (set != cudaSuccess || cuda_is_sticky(e))
        return error_set(error, cuda_errno(self, e),
                         "buffer.import_device: the device failed; the daemon's log says why");
    cudaGetLastError();
    return e == cudaErrorInvalidDevice ? -ENODEV : error->code;
}

static int cuda_device_share_export(struct device *device, const struct shared_memory *memory,
                                    struct shared_ticket *out)
{
    struct cuda_device *self = cuda_of(device);
    cudaSetDevice(self->index);
    return cuda_errno(self, cuda_share_export(memory, out));
}

static void cuda_device_share_close(struct device *device, struct shared_memory *memory)
{
    struct cuda_device *self = cuda_of(device);
    uint64_t own_bytes = cuda_share_own_bytes(memory);
    cudaSetDevice(self->index);
    if (cuda_errno(self, cuda_share_close(memory)) == 0)
        unreserve(self, own_bytes);
}

static uint64_t cuda_memory_used_bytes(struct device *device)
{
    return __atomic_load_n(&cuda_of(device)->taken_bytes, __ATOMIC_RELAXED);
}

static int cuda_memory_attach(struct device *device, void *base, uint64_t size_bytes)
{
    struct cuda_device *self = cuda_of(device);
    cudaSetDevice(self->index);
    madvise(base, size_bytes, MADV_POPULATE_WRITE); /* faster than one fault after the other; it may fail */
    return cuda_errno(self, cudaHostRegister(base, size_bytes, cudaHostRegisterPortable | cudaHostRegisterMapped));
}

static int cuda_memory_detach(struct device *device, void *base, uint64_t size_bytes)
{
    struct cuda_device *self = cuda_of(device);
    (void)size_bytes;
    cudaSetDevice(self->index);
    return cuda_errno(self, cudaHostUnregister(base));
}

static cudaError_t grow_workspace(struct cuda_device *self, uint64_t size_bytes)
{
    void *memory;
    if (size_bytes <= self->workspace_bytes)
        return cudaSuccess;
    if (!reserve(self, size_bytes))
        return cudaErrorMemoryAllocation;
    cudaError_t e = cudaMalloc(&memory, size_bytes);
    if (e != cudaSuccess) {
        unreserve(self, size_bytes);
        return e;
    }
    cudaFree(self->workspace); /* waits for the kernels that use it */
    unreserve(self, self->workspace_bytes);
    self->workspace = memory;
    self->workspace_bytes = size_bytes;
    return cudaSuccess;
}

static void slot_release_beyond(struct cuda_device *self, struct slot *slot)
{
    if (slot->beyond)
        cuda_free(&self->device, slot->beyond, side_room_bytes(&slot->sides.between));
    slot->beyond = NULL;
}

/* What is between a chunk's steps goes behind the other sides. Of a row for which there is no room it has memory of its
 * own while the chunk is out; if there is none, it stays in host memory. */
static void slot_place_between(struct cuda_device *self, struct slot *slot)
{
    struct sides *sides = &slot->sides;
    uint64_t bytes = side_room_bytes(&sides->input) + side_room_bytes(&sides->coefficients);
    sides->between = side_between(slot->chunk, &sides->output);
    sides->between_at = slot->memory + bytes;
    if (bytes + side_room_bytes(&sides->between) <= SLOT_BYTES)
        return;
    if (cuda_allocate(&self->device, side_room_bytes(&sides->between), &slot->beyond))
        sides->between.transport = TRANSPORT_NONE;
    else
        sides->between_at = slot->beyond;
}

static cudaError_t slot_upload_offsets(struct cuda_device *self, struct slot *slot)
{
    const struct chunk *chunk = slot->chunk;
    size_t size_bytes = (chunk->count + 1) * sizeof *slot->offsets;
    if (!chunk->rows->offsets)
        return cudaSuccess;
    memcpy(slot->offsets, chunk->rows->offsets + chunk->first, size_bytes);
    return cudaMemcpyAsync(slot->device_offsets, slot->offsets, size_bytes, cudaMemcpyHostToDevice,
                           self->streams[STAGE_UPLOAD]);
}

static unsigned char *slot_pinned(const struct slot *slot, const unsigned char *at)
{
    return slot->pinned + (at - slot->memory);
}

/* Between the slot and host memory, where the rows are or where they are staged. */
static cudaError_t slot_copy(const struct slot *slot, const struct side *side, unsigned char *at,
                             enum cudaMemcpyKind direction, cudaStream_t stream)
{
    if (side->transport == TRANSPORT_NONE)
        return cudaSuccess;
    if (!side->span->staged)
        return side_copy(side, at, direction, stream);
    unsigned char *pinned = slot_pinned(slot, at);
    bool up = direction == cudaMemcpyHostToDevice;
    return cudaMemcpyAsync(up ? at : pinned, up ? pinned : at, side_bytes(side), direction, stream);
}

static cudaError_t slot_upload(struct cuda_device *self, struct slot *slot)
{
    const struct sides *sides = &slot->sides;
    cudaStream_t stream = self->streams[STAGE_UPLOAD];
    cudaError_t e = slot_upload_offsets(self, slot);
    if (e == cudaSuccess)
        e = slot_copy(slot, &sides->input, sides->input_at, cudaMemcpyHostToDevice, stream);
    if (e == cudaSuccess)
        e = slot_copy(slot, &sides->coefficients, sides->coefficients_at, cudaMemcpyHostToDevice, stream);
    return e == cudaSuccess ? cudaEventRecord(slot->passed[STAGE_UPLOAD], self->streams[STAGE_UPLOAD]) : e;
}

static bool is_reduction(const struct scan_rows *rows)
{
    return rows->rule.operation == SCAND_OPERATION_REDUCE;
}

static cudaError_t run_order1(struct cuda_device *self, const struct scan_rows *rows, uint64_t first, uint64_t count,
                              cudaStream_t stream)
{
    cudaError_t e = grow_workspace(self, scan_cuda_workspace_bytes(rows, count));
    return e == cudaSuccess ? (cudaError_t)scan_cuda(rows, first, count, self->workspace, stream) : e;
}

static cudaError_t run_variant(struct cuda_device *self, const struct scan_rows *rows, uint64_t first, uint64_t count)
{
    enum variant_id id = (enum variant_id)(rows->rule.algorithm - 1);
    struct variant_scan scan = variant_scan_from(rows, first, count);
    if (variant_list[id].on_cpu)
        return cudaErrorNotSupported;
    cudaError_t e = grow_workspace(self, variant_workspace_bytes(id, &scan));
    return e == cudaSuccess ? (cudaError_t)variant_run(id, &scan, self->workspace, self->streams[STAGE_KERNEL]) : e;
}

static cudaError_t run_reduction(struct cuda_device *self, const struct scan_rows *rows, uint64_t first, uint64_t count)
{
    enum reduction_id id = (enum reduction_id)(rows->rule.algorithm - 1);
    struct reduce_rows reduce = reduce_rows_from(rows, first, count);
    cudaError_t e = grow_workspace(self, reduction_workspace_bytes(id, &reduce));
    return e == cudaSuccess ? (cudaError_t)reduction_run(id, &reduce, self->workspace, self->streams[STAGE_KERNEL]) : e;
}

static cudaError_t run_rows(struct cuda_device *self, const struct scan_rows *rows, uint64_t first, uint64_t count,
                            cudaStream_t stream)
{
    if (!rows->rule.algorithm)
        return run_order1(self, rows, first, count, stream);
    return (is_reduction(rows) ? run_reduction : run_variant)(self, rows, first, count);
}

/* Steps of a chunk, from one to before another. */
static cudaError_t run_steps(struct cuda_device *self, const struct chunk *chunk, const struct scan_rows *rows,
                             const struct scan_rows *between, uint32_t from, uint32_t to, cudaStream_t stream)
{
    uint64_t first = rows->offsets ? 0 : chunk->first;
    cudaError_t e = cudaSuccess;
    for (uint32_t i = from; i < to && e == cudaSuccess; i++) {
        struct scan_rows step = chain_step(chunk, rows, between, i);
        e = run_rows(self, &step, first, chunk->count, stream);
    }
    return e;
}

/* Steps of a row that is longer than this are queued one at a time, so that what nobody wants any more ends. */
static uint32_t steps_at_once(const struct chunk *chunk)
{
    return chunk->count == 1 && chunk->bytes > 2 * SLOT_BYTES ? 1 : 1 + chunk->then_count;
}

static bool has_steps(const struct slot *slot)
{
    return slot->step <= slot->chunk->then_count;
}

static cudaError_t slot_run_steps(struct cuda_device *self, struct slot *slot)
{
    cudaStream_t stream = self->streams[STAGE_KERNEL];
    const uint32_t from = slot->step;
    slot->step += steps_at_once(slot->chunk);
    cudaError_t e = run_steps(self, slot->chunk, &slot->rows, &slot->between, from, slot->step, stream);
    return e == cudaSuccess ? cudaEventRecord(slot->passed[STAGE_KERNEL], stream) : e;
}

static cudaError_t slot_compute(struct cuda_device *self, struct slot *slot)
{
    const struct sides *sides = &slot->sides;
    struct scan_rows rows = *slot->chunk->rows;
    unsigned char *address;
    if (sides->input.transport != TRANSPORT_NONE) {
        side_place(&sides->input, sides->input_at, rows.input_outer_strides, &rows.input_stride, &address);
        rows.input = address;
    }
    if (sides->output.transport != TRANSPORT_NONE) {
        side_place(&sides->output, sides->output_at, rows.output_outer_strides, &rows.output_stride, &address);
        rows.output = address;
    }
    if (sides->coefficients.transport != TRANSPORT_NONE) {
        side_place(&sides->coefficients, sides->coefficients_at, rows.coefficient_outer_strides,
                   &rows.coefficient_stride, &address);
        rows.coefficients = address;
    }
    if (rows.offsets)
        chain_shift(&rows, slot->chunk, sides, slot->device_offsets);
    slot->rows = slot->between = rows;
    slot->step = 0;
    if (sides->between.transport != TRANSPORT_NONE)
        slot->between = chain_between(&rows, &sides->between, sides->between_at);
    cudaError_t e = cudaStreamWaitEvent(self->streams[STAGE_KERNEL], slot->passed[STAGE_UPLOAD], 0);
    return e == cudaSuccess ? slot_run_steps(self, slot) : e;
}

static cudaError_t slot_download(struct cuda_device *self, struct slot *slot)
{
    cudaStream_t stream = self->streams[STAGE_DOWNLOAD];
    cudaError_t e = cudaStreamWaitEvent(stream, slot->passed[STAGE_KERNEL], 0);
    if (e == cudaSuccess)
        e = slot_copy(slot, &slot->sides.output, slot->sides.output_at, cudaMemcpyDeviceToHost, stream);
    return e == cudaSuccess ? cudaEventRecord(slot->passed[STAGE_DOWNLOAD], stream) : e;
}

static uint64_t now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* How a chunk's samples are copied: ragged rows as a single one of all of them. */
static void slot_plan(struct cuda_device *self, struct slot *slot, struct chunk *chunk)
{
    slot->chunk = chunk;
    slot->copied = *chunk;
    if (chunk->rows->offsets) {
        slot->joined = scan_rows_joined(chunk->rows, chunk->first, chunk->count);
        slot->copied.rows = &slot->joined;
        slot->copied.first = 0;
        slot->copied.count = 1;
    }
    slot->sides = (struct sides){.input = side_input(&slot->copied),
                                 .output = side_output(is_reduction(chunk->rows) ? chunk : &slot->copied),
                                 .coefficients = side_coefficients(&slot->copied)};
    sides_place(&slot->sides, slot->memory, SLOT_BYTES);
    slot_place_between(self, slot);
    slot->status = 0;
}

static bool is_idle(const struct cuda_device *self)
{
    return self->started == self->finished && self->small.out == 0;
}

/* Where a small chunk's values are between its steps. Kernels of a stream follow each other, so it has one place. */
static const struct scan_rows *small_between(struct cuda_device *self, const struct chunk *chunk, cudaStream_t stream,
                                             struct scan_rows *out)
{
    int i = 0;
    if (chunk->then_count == 0)
        return chunk->rows;
    struct side output = side_output(chunk);
    output.transport = TRANSPORT_NONE;
    struct side between = side_between(chunk, &output);
    if (between.transport == TRANSPORT_NONE)
        return chunk->rows;
    while (i < SMALL_BATCHES && self->small.batches[i].stream != stream)
        i++;
    *out = chain_between(chunk->rows, &between, self->between + i * SMALL_BYTES);
    return out;
}

static bool needs_workspace(const struct chunk *chunk, const struct scan_rows *between)
{
    bool needs = false;
    for (uint32_t i = 0; i <= chunk->then_count && !needs; i++) {
        struct scan_rows step = chain_step(chunk, chunk->rows, between, i);
        needs = scan_cuda_workspace_bytes(&step, chunk->count) > 0;
    }
    return needs;
}

/* On mapped memory. A chunk whose kernels need the workspace goes where the others do that use it. */
static int run_small(void *context, const struct chunk *chunk, cudaStream_t *stream)
{
    struct cuda_device *self = context;
    struct scan_rows room;
    const struct scan_rows *between = small_between(self, chunk, *stream, &room);
    if (needs_workspace(chunk, between)) {
        *stream = self->streams[STAGE_KERNEL];
        between = small_between(self, chunk, *stream, &room);
    }
    cuda_range_begin(chunk);
    cudaError_t e = run_steps(self, chunk, chunk->rows, between, 0, 1 + chunk->then_count, *stream);
    cuda_range_end();
    return cuda_errno(self, e);
}

static int run_small_together(void *context, const struct scan_part *parts, unsigned count, cudaStream_t stream)
{
    return cuda_errno(context, (cudaError_t)scan_cuda_together(parts, count, stream));
}

static const struct small_ops small_ops = {run_small, run_small_together};

/*
 * Staging.
 */

static struct stage_side slot_staged(const struct slot *slot, const struct side *side, unsigned char *at)
{
    return side_is_staged(side) ? (struct stage_side){side, slot_pinned(slot, at)} : (struct stage_side){0};
}

/* Memory and threads for staging are made when they are first needed. */
static int make_staging(struct cuda_device *self, struct slot *slot)
{
    if (!slot->pinned) {
        int r = cuda_errno(self, cudaMallocHost((void **)&slot->pinned, SLOT_BYTES));
        if (r)
            return r;
    }
    if (!self->stage)
        self->stage = cuda_stage_create();
    return self->stage ? 0 : -ENOMEM;
}

/* Which of the slot's sides are staged, and how they are gathered. */
static int slot_stage(struct cuda_device *self, struct slot *slot)
{
    const struct sides *sides = &slot->sides;
    slot->gathers = side_is_staged(&sides->input) || side_is_staged(&sides->coefficients);
    slot->scatters = side_is_staged(&sides->output);
    if (side_is_out_of_reach(&sides->input) || side_is_out_of_reach(&sides->output) ||
        side_is_out_of_reach(&sides->coefficients))
        return -EFAULT;
    int r = slot->gathers || slot->scatters ? make_staging(self, slot) : 0;
    if (!r && slot->gathers)
        slot->task = (struct stage_task){STAGING_GATHER,
                                         {slot_staged(slot, &sides->input, sides->input_at),
                                          slot_staged(slot, &sides->coefficients, sides->coefficients_at)},
                                         0};
    return r;
}

/* Queues what streams do for a chunk: all of it, or up to the end of a step. */
static int slot_queue(struct cuda_device *self, struct slot *slot, bool begins)
{
    if (chunk_is_dropped(slot->chunk))
        return -ECANCELED;
    cuda_range_begin(slot->chunk);
    cudaError_t e = begins ? slot_upload(self, slot) : cudaSuccess;
    if (e == cudaSuccess)
        e = (begins ? slot_compute : slot_run_steps)(self, slot);
    if (e == cudaSuccess && !has_steps(slot))
        e = slot_download(self, slot);
    cuda_range_end();
    if (e == cudaSuccess)
        return 0;
    cudaDeviceSynchronize(); /* what was queued of it must be over before its memory is used again */
    return cuda_errno(self, e);
}

static int cuda_start(struct device *device, struct chunk *chunk)
{
    struct cuda_device *self = cuda_of(device);
    if (self->lost)
        return -EOWNERDEAD;
    cudaError_t e = cudaSetDevice(self->index); /* of this thread: small chunks are launched when it looks for others */
    if (e != cudaSuccess)
        return cuda_errno(self, e);
    if (is_idle(self))
        self->waited_us = now_us();
    if (chunk->small) {
        cuda_small_add(&self->small, chunk);
        return 0;
    }
    struct slot *slot = &self->slots[self->started % SLOTS];
    slot_plan(self, slot, chunk);
    int r = slot_stage(self, slot);
    bool first = self->passed[STAGE_GATHER] == self->started;
    memset(slot->took_us, 0, sizeof slot->took_us);
    slot->entered_us = now_us();
    if (!r && first && !slot->gathers)
        r = slot_queue(self, slot, true);
    if (r) {
        slot_release_beyond(self, slot);
        return r;
    }
    self->started++;
    self->passed[STAGE_GATHER] += first && !slot->gathers;
    if (slot->gathers)
        cuda_stage_start(self->stage, &slot->task);
    return 0;
}

/* Whether the oldest chunk in a stage has passed it: cudaErrorNotReady when it has not, or has begun another step. */
static cudaError_t slot_look(struct cuda_device *self, struct slot *slot, enum stage stage)
{
    bool staging = stage == STAGE_GATHER ? slot->gathers : stage == STAGE_SCATTER && slot->scatters;
    if (slot->status)
        return cudaSuccess;
    if (stage == STAGE_GATHER || stage == STAGE_SCATTER)
        return !staging || stage_task_is_done(&slot->task) ? cudaSuccess : cudaErrorNotReady;
    cudaError_t e = cudaEventQuery(slot->passed[stage]);
    if (stage != STAGE_KERNEL || e != cudaSuccess || !has_steps(slot))
        return e;
    slot->status = slot_queue(self, slot, false);
    return slot->status ? cudaSuccess : cudaErrorNotReady;
}

/* What has to be begun by hand behind a stage. */
static void slot_go_on(struct cuda_device *self, struct slot *slot, enum stage stage)
{
    if (slot->status)
        return;
    if (stage == STAGE_GATHER)
        slot->status = slot_queue(self, slot, true);
    if (stage == STAGE_DOWNLOAD && slot->scatters) {
        slot->task =
            (struct stage_task){STAGING_SCATTER, {slot_staged(slot, &slot->sides.output, slot->sides.output_at)}, 0};
        cuda_stage_start(self->stage, &slot->task);
    }
}

/* Looks which chunks have passed a stage, and notes how long they were in it, waiting for the one before left out. */
static cudaError_t stage_look(struct cuda_device *self, enum stage stage)
{
    uint64_t entered = stage == STAGE_GATHER ? self->started : self->passed[stage - 1];
    while (self->passed[stage] < entered) {
        struct slot *slot = &self->slots[self->passed[stage] % SLOTS];
        cudaError_t e = slot_look(self, slot, stage);
        if (e != cudaSuccess)
            return e;
        uint64_t now = now_us(), last = self->passed_us[stage];
        slot->took_us[stage] = now - (last > slot->entered_us ? last : slot->entered_us);
        slot->entered_us = self->passed_us[stage] = now;
        self->passed[stage]++;
        slot_go_on(self, slot, stage);
    }
    return cudaSuccess;
}

/* 0 when the oldest chunk out is done, -EAGAIN when it is not, or why nothing works any more. */
static int cuda_look(struct cuda_device *self)
{
    for (enum stage stage = STAGE_GATHER; stage < STAGES; stage++) {
        cudaError_t e = stage_look(self, stage);
        if (e != cudaSuccess && e != cudaErrorNotReady) {
            cuda_errno(self, e);
            self->lost = true; /* what a stream reports later is beyond one chunk */
            return -EOWNERDEAD;
        }
    }
    return self->passed[STAGE_SCATTER] > self->finished ? 0 : -EAGAIN;
}

static int small_look(struct cuda_device *self)
{
    cudaError_t e = self->small.out > 0 ? cuda_small_look(&self->small, now_us()) : cudaErrorNotReady;
    if (e == cudaSuccess)
        return 0;
    if (e == cudaErrorNotReady)
        return -EAGAIN;
    cuda_errno(self, e);
    self->lost = true;
    return -EOWNERDEAD;
}

/* Looks for a moment only, so that a new chunk is started while others run: the copy engines must not run dry. */
static int cuda_await(struct cuda_device *self, int timeout_ms)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    int r = -EAGAIN;
    for (int i = 0; i < (timeout_ms ? SPIN_CHECKS : 1) && r == -EAGAIN; i++) {
        int small = small_look(self);
        r = cuda_look(self);
        if (r == -EAGAIN || small == -EOWNERDEAD)
            r = small;
    }
    if (r == -EAGAIN && timeout_ms && now_us() - self->waited_us >= SPIN_US)
        nanosleep(&pause, NULL);
    return r;
}

/* The oldest, which is done. */
static struct chunk *slot_finish(struct cuda_device *self, int r)
{
    struct slot *slot = &self->slots[self->finished % SLOTS];
    struct chunk *chunk = slot->chunk;
    chunk->status = r ? r : slot->status;
    chunk->upload_us = slot->took_us[STAGE_GATHER] + slot->took_us[STAGE_UPLOAD];
    chunk->kernel_us = slot->took_us[STAGE_KERNEL];
    chunk->download_us = slot->took_us[STAGE_DOWNLOAD] + slot->took_us[STAGE_SCATTER];
    slot_release_beyond(self, slot);
    self->finished++;
    return chunk;
}

/* Waits for a moment only, whatever it may: chunks are short, and the driver ends kernels that hang. */
static struct chunk *cuda_finish(struct device *device, int timeout_ms)
{
    struct cuda_device *self = cuda_of(device);
    if (is_idle(self))
        return NULL;
    if (!self->lost)
        cuda_small_launch(&self->small, &small_ops, self, now_us());
    int r = self->lost ? -EOWNERDEAD : cuda_await(self, timeout_ms);
    if (r == -EAGAIN)
        return NULL;
    if (r)
        cuda_small_fail(&self->small, r);
    self->waited_us = now_us();
    struct chunk *chunk = cuda_small_take(&self->small);
    return chunk ? chunk : slot_finish(self, r);
}

static void cuda_close(struct device *device)
{
    /* The context goes with the process; tearing it down piece by piece only takes time. */
    cuda_stage_destroy(cuda_of(device)->stage);
    free(device);
}

static const struct device_ops cuda_ops = {
    .start = cuda_start,
    .finish = cuda_finish,
    .memory_attach = cuda_memory_attach,
    .memory_detach = cuda_memory_detach,
    .allocate = cuda_allocate,
    .free = cuda_free,
    .share_create = cuda_device_share_create,
    .share_open = cuda_device_share_open,
    .share_export = cuda_device_share_export,
    .share_close = cuda_device_share_close,
    .memory_used_bytes = cuda_memory_used_bytes,
    .close = cuda_close,
};

static cudaError_t slot_init(struct cuda_device *self, struct slot *slot)
{
    cudaError_t e =
        reserve(self, SLOT_BYTES) ? cudaMalloc((void **)&slot->memory, SLOT_BYTES) : cudaErrorMemoryAllocation;
    if (e == cudaSuccess)
        e = reserve(self, OFFSETS_BYTES) ? cudaMalloc((void **)&slot->device_offsets, OFFSETS_BYTES)
                                         : cudaErrorMemoryAllocation;
    if (e == cudaSuccess)
        e = cudaMallocHost((void **)&slot->offsets, OFFSETS_BYTES);
    for (int i = STAGE_UPLOAD; i <= STAGE_DOWNLOAD && e == cudaSuccess; i++)
        e = cudaEventCreateWithFlags(&slot->passed[i], cudaEventDisableTiming);
    return e;
}

static cudaError_t cuda_init(struct cuda_device *self)
{
    cudaError_t e = cudaSetDevice(self->index);
    for (int i = STAGE_UPLOAD; i <= STAGE_DOWNLOAD && e == cudaSuccess; i++)
        e = cudaStreamCreateWithFlags(&self->streams[i], cudaStreamNonBlocking);
    for (int i = 0; i < SLOTS && e == cudaSuccess; i++)
        e = slot_init(self, &self->slots[i]);
    if (e == cudaSuccess)
        e = cuda_small_init(&self->small);
    if (e == cudaSuccess)
        e = reserve(self, BETWEEN_BYTES) ? cudaMalloc((void **)&self->between, BETWEEN_BYTES)
                                         : cudaErrorMemoryAllocation;
    return e == cudaSuccess ? (cudaError_t)scan_cuda_init() : e;
}

static cudaError_t cuda_describe(struct cuda_device *self, uint64_t memory_limit_bytes)
{
    struct device_info *info = &self->device.info;
    *info = (struct device_info){.backend = "cuda",
                                 .memory_limit_bytes = memory_limit_bytes,
                                 .chunk_bytes = CHUNK_BYTES,
                                 .resident_chunk_bytes = RESIDENT_CHUNK_BYTES,
                                 .slots = SLOTS,
                                 .small_slots = LIMIT_SMALL_CHUNKS,
                                 .small_bytes = SMALL_BYTES,
                                 .spin_us = NEXT_US};
    return cuda_identify(self->index, info);
}

int device_cuda_open(int index, uint64_t memory_limit_bytes, struct device **out, struct error *error)
{
    if (index >= device_cuda_count())
        return cuda_refuse_index(index, error);
    if (memory_limit_bytes < LEAST_BYTES)
        return error_set(error, -EINVAL,
                         "--device-memory is %llu MiB; a CUDA device needs %llu, and more for device buffers",
                         (unsigned long long)(memory_limit_bytes >> 20), (unsigned long long)(LEAST_BYTES >> 20) + 1);
    struct cuda_device *self = calloc(1, sizeof *self);
    if (!self)
        return error_set(error, -ENOMEM, "out of memory for CUDA device %d", index);
    self->device.ops = &cuda_ops;
    self->index = index;
    cuda_share_init();
    cuda_range_init();
    cudaError_t e = cuda_describe(self, memory_limit_bytes);
    if (e == cudaSuccess)
        e = cuda_init(self);
    if (e != cudaSuccess) {
        free(self);
        return error_set(error, -EIO, "CUDA device %d does not start: %s", index, cudaGetErrorString(e));
    }
    *out = &self->device;
    return 0;
}
