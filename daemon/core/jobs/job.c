#include "job.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/operations/operation.h"
#include "footprint.h"
#include "kernels/order1/order.h"
#include "loads.h"

#define TO(STATE) (1u << JOB_##STATE)

static const unsigned job_moves[] = {
    [JOB_QUEUED] = TO(RUNNING) | TO(ENDED),
    [JOB_RUNNING] = TO(ENDING) | TO(ENDED),
    [JOB_ENDING] = TO(ENDED),
    [JOB_ENDED] = 0,
};

/* A sanitizer sees who uses a job that has ended if it is freed. */
#if defined(__SANITIZE_ADDRESS__)
#define SPARE_JOBS 0
#else
#define SPARE_JOBS LIMIT_SPARE_JOBS
#endif

static struct job *spare_job(struct spare_jobs *spare)
{
    struct job *job = spare->first;
    if (!job)
        return malloc(sizeof *job);
    spare->first = job->next;
    spare->count--;
    return job;
}

struct job *job_create(struct spare_jobs *spare, uint32_t operand_count)
{
    struct job *job = spare_job(spare);
    if (!job)
        return NULL;
    memset(job, 0, offsetof(struct job, outcome));
    memset(job->operands, 0, operand_count * sizeof job->operands[0]);
    error_clear(&job->outcome);
    job->operand_count = operand_count;
    return job;
}

static void job_move(struct job *job, enum job_state to)
{
    assert(job_moves[job->state] & (1u << to));
    job->state = to;
}

/* The functions that compare jobs are inline: for each job that is to start, all before it are looked through. */
#define INLINE static inline __attribute__((always_inline))

void job_make_ragged(struct job *job, struct offsets_copy *copy)
{
    job->offsets = copy->values;
    job->rows.offsets = copy->values;
    job->rows.length = copy->longest;
    job->rows.row_count = copy->count - 1;
    copy->values = NULL;
    job->operands[OPERAND_OFFSETS].buffer = NULL;
    values_begin(job);
}

int job_check_between(const struct job *job, uint64_t length, struct error *error)
{
    if (job->between_bytes == 0 || length <= LIMIT_BETWEEN_BYTES / job->between_bytes)
        return 0;
    uint32_t step = 0;
    while (job->steps[step].length < length)
        step++;
    return error_set(error, -EINVAL,
                     "\"steps[%u]\" would leave %" PRIu64 " elements of a row, of %" PRIu64
                     " bytes each, for the step after "
                     "it; allowed: %" PRIu64 " bytes in all; submit the steps from there on as a job of their own",
                     (unsigned)step, length, job->between_bytes, LIMIT_BETWEEN_BYTES);
}

int job_check_ragged(const struct job *job, uint64_t longest, struct error *error)
{
    int r = 0;
    for (uint32_t i = 0; i < job->step_count && !r; i++)
        r = step_check_row(job->steps[i].operation, i, longest, error);
    return r ? r : job_check_between(job, longest, error);
}

uint64_t *job_disown_offsets(struct job *job)
{
    uint64_t *offsets = job->offsets;
    job->offsets = NULL;
    return offsets;
}

void job_destroy(struct spare_jobs *spare, struct job *job)
{
    free(job->offsets);
    free(job->loads);
    if (!spare || spare->count == SPARE_JOBS) {
        free(job);
        return;
    }
    job->next = spare->first;
    spare->first = job;
    spare->count++;
}

void spare_jobs_free(struct spare_jobs *spare)
{
    for (struct job *job = spare->first, *next; job; job = next) {
        next = job->next;
        free(job);
    }
    *spare = (struct spare_jobs){.first = NULL};
}

INLINE bool operand_meets(const struct operand *operand, const struct buffer *buffer, const struct extent *extent)
{
    return operand->buffer && buffers_may_meet(operand->buffer, &operand->extent, buffer, extent);
}

bool job_reads(const struct job *job, const struct buffer *buffer, const struct extent *extent)
{
    for (uint32_t i = 0; i < job->operand_count; i++)
        if (job->operands[i].access == ACCESS_READ && operand_meets(&job->operands[i], buffer, extent))
            return true;
    return false;
}

bool job_writes(const struct job *job, const struct buffer *buffer, const struct extent *extent)
{
    for (uint32_t i = 0; i < job->operand_count; i++)
        if (job->operands[i].access == ACCESS_WRITE && operand_meets(&job->operands[i], buffer, extent))
            return true;
    return false;
}

/* True when an operand's elements fill its extent: no two elements share a byte, so there are no gaps then. Some
 * samples of ragged rows are not written. */
static bool is_filled(const struct job *job, const struct operand *operand)
{
    const uint64_t rows = operand->follows == FOLLOWS_JOB ? 1 : job->rows.row_count;
    return !job->offsets && !job->reading &&
           rows * operand->length * operand->item_bytes == operand->extent.end - operand->extent.begin;
}

static struct extent extent_without(struct extent extent, const struct extent *written)
{
    if (written->begin <= extent.begin && extent.begin < written->end)
        extent.begin = written->end < extent.end ? written->end : extent.end;
    else if (written->begin < extent.end && extent.end <= written->end)
        extent.end = written->begin;
    return extent;
}

struct extent job_leaves(const struct job *job, const struct buffer *buffer, struct extent extent)
{
    for (uint32_t i = 0; i < job->operand_count; i++) {
        const struct operand *operand = &job->operands[i];
        if (operand->access == ACCESS_WRITE && operand->buffer == buffer && is_filled(job, operand))
            extent = extent_without(extent, &operand->extent);
    }
    return extent;
}

static void reach_extend(struct reach *reach, const struct extent *extent)
{
    reach->extent.begin = extent->begin < reach->extent.begin ? extent->begin : reach->extent.begin;
    reach->extent.end = extent->end > reach->extent.end ? extent->end : reach->extent.end;
}

static void find_touches(struct job *job)
{
    const struct reach *reads = &job->reads, *writes = &job->writes;
    job->touches = reads->buffer ? *reads : *writes;
    if (job->spread || writes->buffer != job->touches.buffer)
        job->touches.buffer = NULL;
    else
        reach_extend(&job->touches, &writes->extent);
}

void job_find_reach(struct job *job)
{
    job->reads = job->writes = (struct reach){.buffer = NULL};
    job->spread = false;
    for (uint32_t i = 0; i < job->operand_count; i++) {
        const struct operand *operand = &job->operands[i];
        struct reach *reach = operand->access == ACCESS_WRITE ? &job->writes : &job->reads;
        const struct extent *extent = &operand->extent;
        if (!operand->buffer || extent->begin == extent->end)
            continue;
        if (!reach->buffer)
            *reach = (struct reach){operand->buffer, *extent};
        job->spread |= reach->buffer != operand->buffer;
        reach_extend(reach, extent);
    }
    find_touches(job);
}

bool job_operands_conflict(const struct job *later, const struct job *earlier)
{
    for (uint32_t i = 0; i < later->operand_count; i++)
        for (uint32_t k = 0; k < earlier->operand_count; k++) {
            const struct operand *a = &later->operands[i], *b = &earlier->operands[k];
            const bool written = a->access == ACCESS_WRITE || b->access == ACCESS_WRITE;
            if (written && a->buffer && operand_meets(b, a->buffer, &a->extent))
                return true;
        }
    return false;
}

static bool names_algorithm(const struct job *job)
{
    for (uint32_t i = 0; i < job->step_count; i++)
        if (step_is_named(&job->steps[i]))
            return true;
    return false;
}

/* True for a long row without slices, for which others would wait as long as it takes. */
static bool is_long_without_slices(const struct job *job, const struct device *device)
{
    return job->long_bytes == 0 && job_bytes(job, job->next_row, 1) > 2 * device->info.chunk_bytes;
}

bool job_fits_device(const struct job *job, const struct device *device)
{
    for (uint32_t i = 0; i < job->operand_count; i++) {
        const struct buffer *buffer = job->operands[i].buffer;
        if (buffer && buffer->device && buffer->device != device)
            return false;
    }
    return !device->info.helps || !(names_algorithm(job) || is_long_without_slices(job, device));
}

/* Rows without samples have nothing that follows samples, but results. */
bool job_is_empty(const struct job *job)
{
    return job->rows.row_count == 0 ||
           (job->rows.length == 0 && job->operands[OPERAND_OUTPUT].follows == FOLLOWS_SAMPLES);
}

bool job_has_rows(const struct job *job)
{
    return job->state <= JOB_RUNNING && job->next_row < job->rows.row_count;
}

/* Returns as many rows as a chunk's samples hold, but at least one. */
static uint64_t ragged_chunk_rows(const struct job *job, uint64_t first)
{
    uint64_t left = job->rows.row_count - first, low = 1, high = left < LIMIT_CHUNK_ROWS ? left : LIMIT_CHUNK_ROWS;
    while (low < high) {
        uint64_t middle = high - (high - low) / 2;
        if (job_bytes(job, first, middle) <= job->chunk_bytes)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

uint64_t job_chunk_count(const struct job *job, uint64_t first)
{
    uint64_t left = job->rows.row_count - first;
    uint64_t wanted = job->offsets ? ragged_chunk_rows(job, first) : job->chunk_rows;
    return left < wanted ? left : wanted;
}

static uint64_t next_count(const struct job *job)
{
    return job_chunk_count(job, job->next_row);
}

bool job_is_ready(const struct job *job)
{
    if (job->loads && !loads_are_ready(job))
        return false;
    if (values_are_left(job))
        return values_are_ready(job);
    uint64_t count = 0; /* of the next rows, once it is needed */
    for (uint32_t i = 0; i < job->operand_count; i++) {
        const struct operand *operand = &job->operands[i];
        if (!operand->buffer || !buffer_is_partial(operand->buffer))
            continue;
        count = count > 0 ? count : next_count(job);
        if (!buffer_is_ready(operand->buffer, operand_footprint(operand, &job->rows, job->next_row, count)))
            return false;
    }
    return true;
}

static uint64_t job_samples(const struct job *job, uint64_t first, uint64_t count)
{
    const uint64_t *offsets = job->rows.offsets;
    return offsets ? offsets[first + count] - offsets[first] : count * job->rows.length;
}

uint64_t job_chunk_samples(const struct job *job, const struct chunk *chunk)
{
    return job_samples(job, chunk->first, chunk->count);
}

uint64_t job_bytes(const struct job *job, uint64_t first, uint64_t count)
{
    return job_samples(job, first, count) * job->sample_bytes + count * job->row_bytes;
}

uint64_t job_next_bytes(const struct job *job)
{
    return job_bytes(job, job->next_row, next_count(job));
}

uint64_t job_left_bytes(const struct job *job)
{
    return job_bytes(job, job->next_row, job->rows.row_count - job->next_row);
}

bool job_next_is_long(const struct job *job)
{
    return !values_are_left(job) && job->long_bytes > 0 && job_bytes(job, job->next_row, 1) > job->long_bytes;
}

/* True when some of its memory is not pinned. */
static bool job_is_staged(const struct job *job)
{
    for (uint32_t i = 0; i < job->operand_count; i++)
        if (job->operands[i].buffer && job->operands[i].buffer->span.staged)
            return true;
    return false;
}

bool job_is_small(const struct job *job, uint64_t small_bytes, bool ragged)
{
    const struct scan_rows *rows = &job->rows;
    if (rows->offsets && (!ragged || rows->row_count > LIMIT_SMALL_RAGGED_ROWS))
        return false;
    return job->plain && !job->loads && !job_is_staged(job) && !job->reading && !rows->rule.algorithm &&
           rows->length <= ORDER_BLOCK && job_bytes(job, 0, rows->row_count) <= small_bytes;
}

static uint64_t host_bytes(const struct job *job, const struct chunk *chunk, uint32_t operand)
{
    const struct operand *at = &job->operands[operand];
    if (chunk->spans[operand].place != SCAND_PLACE_HOST)
        return 0;
    if (job->offsets && at->follows == FOLLOWS_SAMPLES)
        return job_chunk_samples(job, chunk) * at->item_bytes;
    return chunk->count * at->length * at->item_bytes;
}

uint64_t job_upload_bytes(const struct job *job, const struct chunk *chunk)
{
    return host_bytes(job, chunk, OPERAND_INPUT);
}

uint64_t job_download_bytes(const struct job *job, const struct chunk *chunk)
{
    return host_bytes(job, chunk, OPERAND_OUTPUT);
}

/* Rows without samples have memory for one, too: kernels find out where they would lie. */
static void chunk_set_operands(struct chunk *chunk, const struct job *job)
{
    const uint64_t counted = job->offsets ? job_chunk_samples(job, chunk) : chunk->count * job->between_length;
    const uint64_t elements = counted > 0 ? counted : 1;
    chunk->operands = job->layouts;
    chunk->operand_count = job->operand_count;
    chunk->written = job->written;
    chunk->between_bytes = elements * job->between_bytes;
}

void job_next_chunk(struct job *job, struct chunk *chunk, uint64_t now_us)
{
    assert(job_has_rows(job) && !job->long_out && !job->values.out);
    if (job->state == JOB_QUEUED) {
        job_move(job, JOB_RUNNING);
        job->started_us = now_us;
        job->times.queued_us = now_us - job->arrived_us;
    }
    job->in_flight++;
    if (values_are_left(job)) {
        values_next_chunk(job, chunk);
        if (job->loads)
            loads_bind(job, chunk);
        return;
    }
    *chunk = (struct chunk){
        .rows = &job->rows,
        .first = job->next_row,
        .count = next_count(job),
        .steps = job->steps,
        .step_count = job->step_count,
        .owner = job,
    };
    if (!job->plain)
        chunk_set_operands(chunk, job);
    for (uint32_t i = 0; i < job->operand_count; i++)
        if (job->operands[i].buffer)
            chunk->spans[i] = job->operands[i].buffer->span;
    if (job->loads)
        loads_bind(job, chunk);
    if (job_next_is_long(job)) {
        job->long_out = true;
        job->long_us = job->rest ? job->long_us : 0;
        chunk->rest = job->rest;
        job->rest = NULL;
        return;
    }
    job->next_row += chunk->count;
    if (job->next_row == job->rows.row_count)
        job_move(job, JOB_ENDING);
}

static void job_discard(struct job *job)
{
    if (job->rest)
        job->rest_device->ops->discard(job->rest_device, job->rest);
    job->rest = NULL;
}

/* A long row that came back is done, or is kept to go on, or has failed. */
static void job_return_long(struct job *job, const struct chunk *chunk)
{
    job->long_out = false;
    job->long_us += chunk->kernel_us;
    job->rest = chunk->rest;
    job->rest_device = chunk->device;
    if (job->state != JOB_RUNNING)
        job_discard(job);
    if (job->rest || chunk->status || chunk->rest)
        return;
    job->next_row += chunk->count;
    if (job->state == JOB_RUNNING && job->next_row == job->rows.row_count)
        job_move(job, JOB_ENDING);
}

static bool job_settle(struct job *job)
{
    if (job->state == JOB_ENDING && job->in_flight == 0)
        job_move(job, JOB_ENDED);
    return job->state == JOB_ENDED;
}

static void refuse_step(const struct step *step, int code, struct error *error)
{
    const struct operation *operation = operations[step->operation];
    if (step->kernel && step->algorithm)
        step_refuse_algorithm(step, code, error);
    else if (operation->refuse)
        operation->refuse(step, code, error);
    else
        error_set(error, code, "this daemon's device cannot do \"%s\"; a daemon started with --device cpu can",
                  step_words.words[step->operation]);
}

/* The step that a device could not do is the first where `algorithm` names it, else it may be any. */
static void job_fail(struct job *job, const struct chunk *chunk)
{
    const struct step *first = &job->steps[0];
    if (chunk->status == -EFAULT)
        error_set(&job->outcome, -EOPNOTSUPP,
                  "the job's imported memory could not be pinned (the user's quota \"pinned-memory\", or the system's "
                  "memory), and only rows of up to 16 MiB that lie side by side are scanned without; release other "
                  "imports and import it again, or use buffer.create%s",
                  chunk->first > 0 && !chunk->below ? "; some of it was when the job began, so the output is incomplete"
                                                    : "");
    else if (chunk->status == -EOPNOTSUPP)
        refuse_step(first, chunk->status, &job->outcome);
    else
        error_set(&job->outcome, chunk->status,
                  "the device failed on rows %" PRIu64 " to %" PRIu64 "; the output is incomplete", chunk->first,
                  chunk->first + chunk->count - 1);
}

/* Counts a chunk's rows as done, or notes what a check of values has found. True when nothing was wrong. */
static bool job_return_chunk(struct job *job, const struct chunk *chunk)
{
    struct error error;
    if (!chunk->below) {
        job->rows_done += chunk->status || chunk->rest ? 0 : chunk->count;
        return chunk->status == 0;
    }
    const int r = values_return(job, chunk, &error);
    if (r && job->outcome.code == 0)
        job->outcome = error;
    return chunk->status == 0 && r == 0;
}

bool job_return(struct job *job, const struct chunk *chunk)
{
    assert(job->in_flight > 0);
    job->in_flight--;
    job->times.upload_us += chunk->upload_us;
    job->times.kernel_us += chunk->kernel_us;
    job->times.download_us += chunk->download_us;
    if (chunk->slice_us)
        job_return_long(job, chunk);
    const bool right = job_return_chunk(job, chunk);
    if (chunk->status && job->outcome.code == 0)
        job_fail(job, chunk);
    if (!right && job->state == JOB_RUNNING)
        job_move(job, JOB_ENDING);
    return job_settle(job);
}

bool job_stop(struct job *job, int code, const char *message)
{
    if (job->state == JOB_ENDED)
        return true;
    if (job->outcome.code == 0)
        error_set(&job->outcome, code, "%s", message);
    job_discard(job);
    if (job->state == JOB_QUEUED)
        job_move(job, JOB_ENDED);
    else if (job->state == JOB_RUNNING)
        job_move(job, JOB_ENDING);
    return job_settle(job);
}
