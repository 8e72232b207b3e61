/* A chunk on its way through a slot: where its operands lie, and its uploads, kernels and downloads, queued on streams.
 * */
#include <errno.h>
#include <string.h>

#include "cuda_device.h"
#include "range.h"

static void slot_free_beyond(struct cuda_device *self, struct slot *slot)
{
    cuda_release(self, slot->beyond, side_room_bytes(&slot->sides.between));
    slot->beyond = NULL;
}

/* Places the values between a plain chunk's steps behind the other sides. Values of a row without room there have
 * memory of their own while the chunk is out; without such memory they stay in host memory. */
static void slot_place_between(struct cuda_device *self, struct slot *slot)
{
    struct sides *sides = &slot->sides;
    uint64_t bytes = side_room_bytes(&sides->side[OPERAND_INPUT]) + side_room_bytes(&sides->side[OPERAND_FURTHER]);
    sides->between = side_between(slot->chunk, &sides->side[OPERAND_OUTPUT]);
    sides->between_at = slot->memory + bytes;
    if (slot->row)
        sides->between_at = slot->row->between;
    else if (bytes + side_room_bytes(&sides->between) > SLOT_BYTES &&
             cuda_acquire(self, side_room_bytes(&sides->between), &slot->beyond) == cudaSuccess)
        sides->between_at = slot->beyond;
    else if (bytes + side_room_bytes(&sides->between) > SLOT_BYTES)
        sides->between_at = NULL;
    if (!sides->between_at)
        sides->between.transport = TRANSPORT_NONE;
    cudaGetLastError();
}

/* Returns the address in the slot of a side that is copied. */
static void *side_at(const struct sides *sides, uint32_t number, int64_t outer_strides[SCAN_OUTER_MAX], int64_t *stride)
{
    unsigned char *address;
    side_place(&sides->side[number], sides->at[number], outer_strides, stride, &address);
    return address;
}

/* The rows as kernels take them. */
static void slot_place_rows(struct slot *slot)
{
    const struct sides *sides = &slot->sides;
    struct scan_rows rows = *slot->chunk->rows;
    if (sides->side[OPERAND_INPUT].transport != TRANSPORT_NONE)
        rows.input = side_at(sides, OPERAND_INPUT, rows.input_outer_strides, &rows.input_stride);
    if (sides->side[OPERAND_OUTPUT].transport != TRANSPORT_NONE)
        rows.output = side_at(sides, OPERAND_OUTPUT, rows.output_outer_strides, &rows.output_stride);
    if (sides->side[OPERAND_FURTHER].transport != TRANSPORT_NONE)
        rows.coefficients = side_at(sides, OPERAND_FURTHER, rows.coefficient_outer_strides, &rows.coefficient_stride);
    if (rows.offsets)
        chain_shift(&rows, slot->chunk, sides, slot->device_offsets);
    slot->rows = slot->between = rows;
    if (sides->between.transport != TRANSPORT_NONE)
        slot->between = chain_between(&rows, &sides->between, sides->between_at);
}

/* An operand of a chunk of ragged rows, of which row 0 is the chunk's first: what was copied of a line begins with that
 * row, and what has an element for each row lies there as if all rows did. */
static void operand_shift(struct step_operand *operand, const struct side *side, const struct chunk *chunk)
{
    if (!operand->on_line)
        operand->origin += scan_row_offset(chunk->rows, operand->outer_strides, chunk->first);
    else if (side->transport != TRANSPORT_NONE)
        operand->origin = (char *)((uintptr_t)operand->origin -
                                   (uintptr_t)((int64_t)chunk->rows->offsets[chunk->first] * operand->stride));
}

/* The operands as kernels take them. */
static void slot_place_operands(struct slot *slot)
{
    const struct chunk *chunk = slot->chunk;
    slot->rows = *chunk->rows;
    for (uint32_t i = 0; i < chunk->operand_count; i++) {
        struct step_operand *operand = &slot->operands[i];
        *operand = chunk->operands[i];
        if (slot->sides.side[i].transport != TRANSPORT_NONE)
            operand->origin = side_at(&slot->sides, i, operand->outer_strides, &operand->stride);
        if (chunk->rows->offsets && operand->origin)
            operand_shift(operand, &slot->sides.side[i], chunk);
    }
    if (!chunk->rows->offsets)
        return;
    slot->rows.row_count = chunk->count;
    slot->rows.offsets += chunk->first;
    slot->rows.device_offsets = slot->device_offsets;
}

/* Plans the copies of a plain chunk's samples; ragged rows are copied as a single one of all their samples. */
static void slot_plan_rows(struct cuda_device *self, struct slot *slot, struct chunk *chunk)
{
    struct sides *sides = &slot->sides;
    slot->copied = *chunk;
    if (chunk->rows->offsets) {
        slot->joined = scan_rows_joined(chunk->rows, chunk->first, chunk->count);
        slot->copied.rows = &slot->joined;
        slot->copied.first = 0;
        slot->copied.count = 1;
    }
    *sides = (struct sides){.count = OPERAND_FURTHER + 1};
    sides->side[OPERAND_INPUT] = side_input(&slot->copied);
    sides->side[OPERAND_OUTPUT] = side_output(is_reduction(chunk->rows) ? chunk : &slot->copied);
    sides->side[OPERAND_FURTHER] = side_coefficients(&slot->copied);
    sides_place(sides, slot->memory, SLOT_BYTES);
    slot_place_between(self, slot);
    slot_place_rows(slot);
}

/* Plans the copies of any other chunk's operands. */
static void slot_plan_operands(struct slot *slot, const struct chunk *chunk)
{
    struct sides *sides = &slot->sides;
    const uint64_t *offsets = chunk->rows->offsets;
    slot->joined = (struct scan_rows){.row_count = 1};
    if (offsets)
        slot->joined.length = offsets[chunk->first + chunk->count] - offsets[chunk->first];
    *sides = (struct sides){.count = chunk->operand_count};
    for (uint32_t i = 0; i < chunk->operand_count; i++)
        sides->side[i] = side_operand(chunk, &slot->joined, i);
    sides_place_apart(sides, slot->memory, SLOT_BYTES);
    slot_place_operands(slot);
}

static void slot_plan(struct cuda_device *self, struct slot *slot, struct chunk *chunk)
{
    slot->chunk = chunk;
    slot->row = chunk->rest;
    chunk->rest = NULL;
    if (chunk->operands)
        slot_plan_operands(slot, chunk);
    else
        slot_plan_rows(self, slot, chunk);
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

/*
 * The operands of a job in many chunks that all rows share are uploaded once to each slot: a short copy delays a stream
 * by some 10 us.
 */

static struct kept kept_of(const struct sides *sides, uint32_t i)
{
    const struct side *side = &sides->side[i];
    const bool keeps = side->shared && side->transport != TRANSPORT_NONE && !side->span->staged;
    return keeps ? (struct kept){side->address, sides->at[i], side_bytes(side)} : (struct kept){0};
}

static bool is_kept(const struct slot *slot, uint32_t i)
{
    const struct kept *kept = &slot->kept[i], needed = kept_of(&slot->sides, i);
    return slot->kept_job > 0 && slot->kept_job == slot->chunk->job && needed.at && kept->at == needed.at &&
           kept->from == needed.from && kept->bytes == needed.bytes;
}

/* No operand is kept of a chunk that checks values: it has one operand, whose number is another one in the job's other
 * chunks. */
static void keep_operands(struct slot *slot)
{
    for (uint32_t i = 0; i < slot->sides.count; i++)
        slot->kept[i] = kept_of(&slot->sides, i);
    slot->kept_job = slot->chunk->below ? 0 : slot->chunk->job;
}

static cudaError_t slot_copy_in(struct slot *slot, cudaStream_t stream)
{
    const struct sides *sides = &slot->sides;
    cudaError_t e = cudaSuccess;
    for (uint32_t i = 0; i < sides->count && e == cudaSuccess; i++)
        if (!sides->side[i].written && !is_kept(slot, i))
            e = slot_copy(slot, &sides->side[i], sides->at[i], cudaMemcpyHostToDevice, stream);
    if (e == cudaSuccess)
        keep_operands(slot);
    else
        slot->kept_job = 0;
    return e;
}

static cudaError_t slot_copy_out(const struct slot *slot, cudaStream_t stream)
{
    const struct sides *sides = &slot->sides;
    cudaError_t e = cudaSuccess;
    for (uint32_t i = 0; i < sides->count && e == cudaSuccess; i++)
        if (sides->side[i].written)
            e = slot_copy(slot, &sides->side[i], sides->at[i], cudaMemcpyDeviceToHost, stream);
    return e;
}

static cudaError_t slot_upload(struct cuda_device *self, struct slot *slot)
{
    cudaStream_t stream = self->streams[STAGE_UPLOAD];
    cudaError_t e = slot_upload_offsets(self, slot);
    if (e == cudaSuccess)
        e = slot_copy_in(slot, stream);
    return e == cudaSuccess ? cudaEventRecord(slot->passed[STAGE_UPLOAD], self->streams[STAGE_UPLOAD]) : e;
}

static cudaError_t slot_download(struct cuda_device *self, struct slot *slot)
{
    cudaStream_t stream = self->streams[STAGE_DOWNLOAD];
    cudaError_t e = cudaStreamWaitEvent(stream, slot->passed[STAGE_KERNEL], 0);
    if (e == cudaSuccess)
        e = slot_copy_out(slot, stream);
    return e == cudaSuccess ? cudaEventRecord(slot->passed[STAGE_DOWNLOAD], stream) : e;
}

static cudaError_t slot_run(struct cuda_device *self, struct slot *slot)
{
    cudaStream_t stream = self->streams[STAGE_KERNEL];
    const struct chunk *chunk = slot->chunk;
    cudaError_t e = chunk->below      ? cuda_run_check(self, slot)
                    : chunk->operands ? cuda_run_operands(self, slot)
                                      : cuda_run_steps(self, chunk, &slot->rows, &slot->between, stream);
    return e == cudaSuccess ? cudaEventRecord(slot->passed[STAGE_KERNEL], stream) : e;
}

static bool is_queued(const struct slot *slot)
{
    return !slot->row || long_row_is_queued(slot);
}

static cudaError_t slot_compute(struct cuda_device *self, struct slot *slot, bool begins)
{
    cudaStream_t stream = slot->row ? self->long_stream : self->streams[STAGE_KERNEL];
    cudaError_t e = begins ? cudaStreamWaitEvent(stream, slot->passed[STAGE_UPLOAD], 0) : cudaSuccess;
    return e == cudaSuccess ? (slot->row ? long_row_queue : slot_run)(self, slot) : e;
}

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

/* Sets the copies that the processor makes: of sides that are read before the upload, or of sides that are written
 * after the download. */
static void slot_set_task(struct slot *slot, enum staging staging)
{
    const struct sides *sides = &slot->sides;
    slot->task = (struct stage_task){.staging = staging};
    for (uint32_t i = 0; i < sides->count; i++)
        if (sides->side[i].written == (staging == STAGING_SCATTER))
            slot->task.sides[i] = slot_staged(slot, &sides->side[i], sides->at[i]);
}

/* Decides which of the slot's sides are staged, and sets the copies that gather them. */
static int slot_stage(struct cuda_device *self, struct slot *slot)
{
    const struct sides *sides = &slot->sides;
    slot->gathers = slot->scatters = false;
    for (uint32_t i = 0; i < sides->count; i++) {
        const struct side *side = &sides->side[i];
        if (side_is_out_of_reach(side))
            return -EFAULT;
        slot->gathers |= !side->written && side_is_staged(side);
        slot->scatters |= side->written && side_is_staged(side);
    }
    int r = slot->gathers || slot->scatters ? make_staging(self, slot) : 0;
    if (!r && slot->gathers)
        slot_set_task(slot, STAGING_GATHER);
    return r;
}

/* Queues what streams do for a chunk: all of it, or up to the end of a range. */
static int slot_queue(struct cuda_device *self, struct slot *slot, bool begins)
{
    if (chunk_is_dropped(slot->chunk))
        return -ECANCELED;
    cuda_range_begin(slot->chunk);
    cudaError_t e = begins ? slot_upload(self, slot) : cudaSuccess;
    if (e == cudaSuccess)
        e = slot_compute(self, slot, begins);
    if (e == cudaSuccess && is_queued(slot))
        e = slot_download(self, slot);
    cuda_range_end();
    if (e == cudaSuccess)
        return 0;
    cudaDeviceSynchronize(); /* what was queued of it must be over before its memory is used again */
    return cuda_errno(self, e);
}

static void slot_release(struct cuda_device *self, struct slot *slot)
{
    slot_free_beyond(self, slot);
    long_row_destroy(self, slot->row);
    slot->row = NULL;
    slot->chunk = NULL;
}

int slot_start(struct cuda_device *self, struct slot *slot, struct chunk *chunk)
{
    slot_plan(self, slot, chunk);
    slot->status = 0;
    slot->stage = STAGE_GATHER;
    slot->started_us = slot->entered_us = clock_us();
    memset(slot->took_us, 0, sizeof slot->took_us);
    int r = slot_stage(self, slot);
    if (!r && !slot->row)
        r = long_row_create(self, slot);
    if (!r && slot->gathers)
        cuda_stage_start(self->stage, &slot->task);
    else if (!r)
        r = slot_queue(self, slot, true);
    if (r)
        slot_release(self, slot);
    else if (!slot->gathers)
        slot->stage = STAGE_UPLOAD;
    return r;
}

/* Notes how long the chunk was in its stage, or a range of it: not while another was, which passed it since. */
static void slot_note(struct cuda_device *self, struct slot *slot)
{
    uint64_t now = clock_us(), last = self->passed_us[slot->stage];
    slot->took_us[slot->stage] += now - (last > slot->entered_us ? last : slot->entered_us);
    slot->entered_us = self->passed_us[slot->stage] = now;
}

/* A range of a long row is over: the next one is queued, or the row left off. */
static cudaError_t slot_go_on_row(struct cuda_device *self, struct slot *slot)
{
    struct chunk *chunk = slot->chunk;
    slot_note(self, slot);
    if (chunk->slice_us && slot->entered_us - slot->started_us >= chunk->slice_us && !chunk_is_dropped(chunk)) {
        chunk->rest = slot->row;
        slot->row = NULL;
        slot->stage = STAGES;
        return cudaSuccess;
    }
    slot->status = slot_queue(self, slot, false);
    return slot->status ? cudaSuccess : cudaErrorNotReady;
}

/* Returns cudaSuccess when the chunk has passed its stage, cudaErrorNotReady when it has not. */
static cudaError_t slot_look_at(struct cuda_device *self, struct slot *slot)
{
    enum stage stage = slot->stage;
    bool staging = stage == STAGE_GATHER ? slot->gathers : stage == STAGE_SCATTER && slot->scatters;
    if (slot->status)
        return cudaSuccess;
    if (stage == STAGE_GATHER || stage == STAGE_SCATTER)
        return !staging || stage_task_is_done(&slot->task) ? cudaSuccess : cudaErrorNotReady;
    cudaError_t e = cudaEventQuery(slot->passed[stage]);
    return stage == STAGE_KERNEL && e == cudaSuccess && !is_queued(slot) ? slot_go_on_row(self, slot) : e;
}

/* Begins the work behind a stage that no stream begins by itself. */
static void slot_go_on(struct cuda_device *self, struct slot *slot, enum stage stage)
{
    if (slot->status)
        return;
    if (stage == STAGE_GATHER)
        slot->status = slot_queue(self, slot, true);
    if (stage == STAGE_DOWNLOAD && slot->scatters) {
        slot_set_task(slot, STAGING_SCATTER);
        cuda_stage_start(self->stage, &slot->task);
    }
}

cudaError_t slot_look(struct cuda_device *self, struct slot *slot)
{
    while (slot->stage < STAGES) {
        cudaError_t e = slot_look_at(self, slot);
        if (e != cudaSuccess || slot->stage == STAGES)
            return e;
        slot_note(self, slot);
        slot_go_on(self, slot, slot->stage++);
    }
    return cudaSuccess;
}

/* Reads the verdict of a chunk that checks values. */
static void slot_read_verdict(struct slot *slot)
{
    struct chunk *chunk = slot->chunk;
    const struct step_rows index = {.input = {.length = chunk->operands->length}};
    chunk->fault = index_verdict(&index, chunk->first, slot->offsets + OFFSETS_MOST);
}

struct chunk *slot_finish(struct cuda_device *self, struct slot *slot, int status)
{
    struct chunk *chunk = slot->chunk;
    chunk->status = status ? status : slot->status;
    if (chunk->below && !chunk->status)
        slot_read_verdict(slot);
    chunk->upload_us = slot->took_us[STAGE_GATHER] + slot->took_us[STAGE_UPLOAD];
    chunk->kernel_us = slot->took_us[STAGE_KERNEL];
    chunk->download_us = slot->took_us[STAGE_DOWNLOAD] + slot->took_us[STAGE_SCATTER];
    slot_release(self, slot);
    return chunk;
}

cudaError_t slot_init(struct cuda_device *self, struct slot *slot)
{
    cudaError_t e =
        cuda_reserve(self, SLOT_BYTES) ? cudaMalloc((void **)&slot->memory, SLOT_BYTES) : cudaErrorMemoryAllocation;
    if (e == cudaSuccess)
        e = cuda_reserve(self, OFFSETS_BYTES) ? cudaMalloc((void **)&slot->device_offsets, OFFSETS_BYTES)
                                              : cudaErrorMemoryAllocation;
    if (e == cudaSuccess)
        e = cudaMallocHost((void **)&slot->offsets, OFFSETS_BYTES);
    for (int i = STAGE_UPLOAD; i <= STAGE_DOWNLOAD && e == cudaSuccess; i++)
        e = cudaEventCreateWithFlags(&slot->passed[i], cudaEventDisableTiming);
    return e;
}
