#include "job.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "footprint.h"
#include "kernels/order1/order.h"
#include "kernels/tutorial/reduce/reduce.h"
#include "kernels/tutorial/scan/variants.h"
#include "operation_check.h"

#define TO(STATE) (1u << JOB_##STATE)

static const unsigned job_moves[] = {
    [JOB_QUEUED] = TO(RUNNING) | TO(ENDED),
    [JOB_RUNNING] = TO(ENDING) | TO(ENDED),
    [JOB_ENDING] = TO(ENDED),
    [JOB_ENDED] = 0,
};

static void job_move(struct job *job, enum job_state to)
{
    assert(job_moves[job->state] & (1u << to));
    job->state = to;
}

static const int ranks[] = {
#define X(NAME, WORD, RANK) RANK,
    SCAND_PRIORITIES(X)
#undef X
};

/* For each job that is to start those before it are looked through: this and what uses it there is inline. */
#define INLINE static inline __attribute__((always_inline))

INLINE bool extents_meet(const struct buffer *a, const struct extent *x, const struct buffer *b, const struct extent *y)
{
    return a && b && buffers_meet(a, x, b, y);
}

static int check_places(const struct msg_job_submit_params *params, const struct job *job, struct error *error)
{
    if (!extents_meet(job->input, &job->input_extent, job->output, &job->output_extent) ||
        (job->rows.rule.operation == SCAND_OPERATION_SCAN && tensor_same(&params->input, &params->output)))
        return 0;
    if (job->input != job->output)
        return error_set(error, -EINVAL,
                         "job.submit: \"input\" (bytes %" PRIu64 " to %" PRIu64 " of buffer %" PRIu64
                         ") and \"output\" (bytes %" PRIu64 " to %" PRIu64 " of buffer %" PRIu64
                         ") overlap: both buffers are the same memory; to scan in place name one buffer in both, or "
                         "keep them apart",
                         job->input_extent.begin, job->input_extent.end, params->input.buffer, job->output_extent.begin,
                         job->output_extent.end, params->output.buffer);
    if (job->rows.rule.operation == SCAND_OPERATION_REDUCE)
        return error_set(error, -EINVAL,
                         "job.submit: \"input\" (bytes %" PRIu64 " to %" PRIu64 ") and \"output\" (bytes %" PRIu64
                         " to %" PRIu64 ") of buffer %" PRIu64
                         " overlap; with \"operation\" \"reduce\" keep them apart",
                         job->input_extent.begin, job->input_extent.end, job->output_extent.begin,
                         job->output_extent.end, params->input.buffer);
    return error_set(error, -EINVAL,
                     "job.submit: \"input\" (bytes %" PRIu64 " to %" PRIu64 ") and \"output\" (bytes %" PRIu64
                     " to %" PRIu64 ") of buffer %" PRIu64
                     " overlap; make them the same elements, of dtypes of one size, or keep them apart",
                     job->input_extent.begin, job->input_extent.end, job->output_extent.begin, job->output_extent.end,
                     params->input.buffer);
}

/* Where coefficients lie is checked after input and output are known to be apart, or one. */
static int check_coefficients(const struct msg_job_submit_params *params, struct job *job, struct error *error)
{
    int r = tensor_extent(&params->coefficients, "coefficients", job->coefficients->span.size_bytes,
                          &job->coefficient_extent, error);
    if (r || !extents_meet(job->coefficients, &job->coefficient_extent, job->output, &job->output_extent))
        return r;
    return error_set(error, -EINVAL,
                     "job.submit: \"coefficients\" (bytes %" PRIu64 " to %" PRIu64 ") and \"output\" (bytes %" PRIu64
                     " to %" PRIu64 ") of buffer %" PRIu64 " overlap; keep them apart",
                     job->coefficient_extent.begin, job->coefficient_extent.end, job->output_extent.begin,
                     job->output_extent.end, params->output.buffer);
}

/* No device reaches the memory of another. */
static int check_devices(const struct job *job, struct error *error)
{
    static const char *const names[] = {"input", "output", "coefficients"};
    const struct buffer *buffers[] = {job->input, job->output, job->coefficients};
    for (int i = 1; i < 3; i++)
        for (int k = 0; k < i; k++)
            if (buffers[i] && buffers[i]->device && buffers[k]->device && buffers[i]->device != buffers[k]->device)
                return error_set(error, -EINVAL,
                                 "job.submit: \"%s\" is in the memory of device %u and \"%s\" in that of device %u; "
                                 "all of a job's device buffers must be on one: name it as \"device\" in "
                                 "buffer.create, or use host buffers",
                                 names[k], buffers[k]->device->number, names[i], buffers[i]->device->number);
    return 0;
}

/* Input and output of a chunk have one place when their samples have one size. */
static uint64_t bytes_per_sample(const struct job *job)
{
    const struct scan_rows *rows = &job->rows;
    uint64_t input_bytes = dtype_size_bytes(rows->rule.input), output_bytes = dtype_size_bytes(rows->rule.output);
    uint64_t sample_bytes = input_bytes == output_bytes ? input_bytes : input_bytes + output_bytes;
    if (job->coefficients)
        sample_bytes += dtype_size_bytes(rows->rule.coefficients);
    return sample_bytes;
}

/* What a pass over a sample takes, in those of a sum of f32 or f64: measured, in powers of two. A variant's is that of
 * one thread that goes along the row. */
static uint64_t pass_work(const struct scan_rule *rule)
{
    const bool f2 = rule->accumulator == SCAND_ACCUMULATOR_F2, affine = rule->op == SCAND_OPERATOR_AFFINE;
    return (f2 ? 4 : 1) * (affine ? 8 : 1) * (rule->algorithm ? 4 : 1);
}

static uint64_t rule_work(const struct scan_rule *rule)
{
    return rule->pass_count * pass_work(rule) + rule->demean;
}

/* All steps, in bytes that take as long to be moved. */
static uint64_t work_bytes(const struct job *job, uint32_t work_per_byte)
{
    uint64_t work = rule_work(&job->rows.rule);
    for (uint32_t i = 0; i < job->then_count; i++)
        work += rule_work(&job->then[i]);
    return work_per_byte ? (work + work_per_byte - 1) / work_per_byte : 0;
}

static uint64_t rows_per_chunk(const struct scan_rows *rows, uint64_t chunk_samples)
{
    return rows->length >= chunk_samples || rows->length == 0 ? 1 : chunk_samples / rows->length;
}

/* A row of a reduction has one output element, and may have no samples. */
static uint64_t reductions_per_chunk(const struct scan_rows *rows, uint64_t sample_bytes, uint64_t chunk_bytes)
{
    uint64_t row_bytes = rows->length * sample_bytes + dtype_size_bytes(rows->rule.output);
    return row_bytes >= chunk_bytes ? 1 : chunk_bytes / row_bytes;
}

static int parse_steps(struct job *job, const struct msg_job_submit_params *params, struct error *error)
{
    int r = 0;
    if (params->then_count == 0)
        return 0;
    job->then = calloc(params->then_count, sizeof *job->then);
    if (!job->then)
        return error_set(error, -ENOMEM, "job.submit: out of memory for another job; try again later");
    for (; job->then_count < params->then_count && !r; job->then_count++)
        r = operation_check_step(params, job->then_count, &job->then[job->then_count], error);
    return r;
}

/* A reduction's output is one element for each row. */
static void job_cut(struct job *job, const struct job_chunks *chunks)
{
    const struct scan_rule *rule = &job->rows.rule;
    const uint64_t work = work_bytes(job, chunks->work_per_byte), moved = bytes_per_sample(job);
    const uint64_t input_bytes = dtype_size_bytes(rule->input);
    job->sample_bytes = moved > work ? moved : work;
    job->long_bytes = chunks->long_bytes;
    job->chunk_samples = chunks->bytes / job->sample_bytes; /* where a row has no more */
    job->chunk_rows = rule->operation == SCAND_OPERATION_REDUCE
                          ? reductions_per_chunk(&job->rows, input_bytes > work ? input_bytes : work, chunks->bytes)
                          : rows_per_chunk(&job->rows, job->chunk_samples);
}

int job_plan(struct job *job, const struct msg_job_submit_params *params, struct buffer *input, struct buffer *output,
             struct buffer *coefficients, const struct job_chunks *chunks, struct error *error)
{
    job->input = input;
    job->output = output;
    job->coefficients = coefficients;
    int r;
    if ((r = tensor_rows(params, &job->rows, error)) ||
        (r = tensor_extent(&params->input, "input", input->span.size_bytes, &job->input_extent, error)) ||
        (r = tensor_extent(&params->output, "output", output->span.size_bytes, &job->output_extent, error)) ||
        (r = tensor_disjoint(&params->output, "output", error)) || (r = check_places(params, job, error)))
        return r;
    if (coefficients && (r = check_coefficients(params, job, error)))
        return r;
    if ((r = check_devices(job, error)) || (r = parse_steps(job, params, error)))
        return r;
    if (job->rows.row_count > 0) { /* otherwise nothing has checked the offsets, and nothing uses the addresses */
        if (job->rows.length > 0)
            job->rows.input = (const unsigned char *)input->span.base + params->input.offset;
        job->rows.output = (unsigned char *)output->span.base + params->output.offset;
        if (coefficients)
            job->rows.coefficients = (const unsigned char *)coefficients->span.base + params->coefficients.offset;
    }
    job_cut(job, chunks);
    job->wants_progress = params->progress;
    job->wants_ending = params->ending;
    job->after_failure = params->after_failure;
    job->priority = (enum scand_priority)params->priority;
    job->rank = ranks[params->priority];
    return 0;
}

void job_make_ragged(struct job *job, struct offsets_copy *copy)
{
    job->offsets = copy->values;
    job->rows.offsets = copy->values;
    job->rows.length = copy->longest;
    job->rows.row_count = copy->count - 1;
    copy->values = NULL;
    job->offsets_in = NULL;
}

uint64_t *job_disown_offsets(struct job *job)
{
    uint64_t *offsets = job->offsets;
    job->offsets = NULL;
    return offsets;
}

void job_destroy(struct job *job)
{
    free(job->offsets);
    free(job->then);
    free(job);
}

INLINE bool reads(const struct job *job, const struct buffer *buffer, const struct extent *extent)
{
    return extents_meet(job->input, &job->input_extent, buffer, extent) ||
           extents_meet(job->coefficients, &job->coefficient_extent, buffer, extent) ||
           extents_meet(job->offsets_in, &job->offsets_extent, buffer, extent);
}

bool job_reads(const struct job *job, const struct buffer *buffer, const struct extent *extent)
{
    return reads(job, buffer, extent);
}

/* No two elements share a byte, so there are no gaps where they fill the extent. Of ragged rows some samples are not
 * written. */
static bool fills_output(const struct job *job)
{
    const struct scan_rows *rows = &job->rows;
    uint64_t row_elements = rows->rule.operation == SCAND_OPERATION_REDUCE ? 1 : rows->length;
    return !job->offsets && !job->reading &&
           rows->row_count * row_elements * dtype_size_bytes(rows->rule.output) ==
               job->output_extent.end - job->output_extent.begin;
}

struct extent job_leaves(const struct job *job, const struct buffer *buffer, struct extent extent)
{
    const struct extent *written = &job->output_extent;
    if (buffer != job->output || !fills_output(job))
        return extent;
    if (written->begin <= extent.begin && extent.begin < written->end)
        extent.begin = written->end < extent.end ? written->end : extent.end;
    else if (written->begin < extent.end && extent.end <= written->end)
        extent.end = written->begin;
    return extent;
}

bool job_conflicts(const struct job *later, const struct job *earlier)
{
    return extents_meet(later->output, &later->output_extent, earlier->output, &earlier->output_extent) ||
           reads(earlier, later->output, &later->output_extent) ||
           reads(later, earlier->output, &earlier->output_extent);
}

bool job_fits_device(const struct job *job, const struct device *device)
{
    const struct buffer *buffers[] = {job->input, job->output, job->coefficients};
    for (size_t i = 0; i < sizeof buffers / sizeof buffers[0]; i++)
        if (buffers[i] && buffers[i]->device && buffers[i]->device != device)
            return false;
    return true;
}

bool job_is_empty(const struct job *job)
{
    return job->rows.row_count == 0 || (job->rows.length == 0 && job->rows.rule.operation == SCAND_OPERATION_SCAN);
}

bool job_has_rows(const struct job *job)
{
    return job->state <= JOB_RUNNING && job->next_row < job->rows.row_count;
}

/* As many rows, but at least one, as a chunk's samples hold. */
static uint64_t ragged_chunk_rows(const struct job *job)
{
    const uint64_t *offsets = job->rows.offsets + job->next_row;
    uint64_t left = job->rows.row_count - job->next_row, low = 1,
             high = left < LIMIT_CHUNK_ROWS ? left : LIMIT_CHUNK_ROWS;
    while (low < high) {
        uint64_t middle = high - (high - low) / 2;
        if (offsets[middle] - offsets[0] <= job->chunk_samples)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

static uint64_t next_count(const struct job *job)
{
    uint64_t left = job->rows.row_count - job->next_row;
    uint64_t wanted = job->offsets ? ragged_chunk_rows(job) : job->chunk_rows;
    return left < wanted ? left : wanted;
}

bool job_is_ready(const struct job *job)
{
    struct buffer *const buffers[ARRAYS] = {job->input, job->output, job->coefficients};
    uint64_t count = 0; /* of the next rows, once it is needed */
    for (enum array array = 0; array < ARRAYS; array++) {
        struct buffer *buffer = buffers[array];
        if (!buffer || !buffer_is_partial(buffer))
            continue;
        count = count > 0 ? count : next_count(job);
        if (!buffer_is_ready(buffer, rows_footprint(&job->rows, array, buffer->span.base, job->next_row, count)))
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
    return job_samples(job, first, count) * job->sample_bytes;
}

bool job_next_is_long(const struct job *job)
{
    return job->long_bytes > 0 && job_bytes(job, job->next_row, 1) > job->long_bytes;
}

bool job_is_staged(const struct job *job)
{
    return job->input->span.staged || job->output->span.staged || (job->coefficients && job->coefficients->span.staged);
}

bool job_is_small(const struct job *job, uint64_t small_bytes, bool ragged)
{
    const struct scan_rows *rows = &job->rows;
    if (rows->offsets && (!ragged || rows->row_count > LIMIT_SMALL_RAGGED_ROWS))
        return false;
    return !job_is_staged(job) && !job->reading && !rows->rule.algorithm && rows->length <= ORDER_BLOCK &&
           job_bytes(job, 0, rows->row_count) <= small_bytes;
}

uint64_t job_upload_bytes(const struct job *job, const struct chunk *chunk)
{
    if (chunk->input.place != SCAND_PLACE_HOST)
        return 0;
    return job_chunk_samples(job, chunk) * dtype_size_bytes(job->rows.rule.input);
}

uint64_t job_download_bytes(const struct job *job, const struct chunk *chunk)
{
    bool reduces = job->rows.rule.operation == SCAND_OPERATION_REDUCE;
    if (chunk->output.place != SCAND_PLACE_HOST)
        return 0;
    return (reduces ? chunk->count : job_chunk_samples(job, chunk)) * dtype_size_bytes(job->rows.rule.output);
}

void job_next_chunk(struct job *job, struct chunk *chunk, uint64_t now_us)
{
    assert(job_has_rows(job) && !job->long_out);
    if (job->state == JOB_QUEUED) {
        job_move(job, JOB_RUNNING);
        job->started_us = now_us;
        job->times.queued_us = now_us - job->arrived_us;
    }
    *chunk = (struct chunk){
        .rows = &job->rows,
        .first = job->next_row,
        .count = next_count(job),
        .then = job->then,
        .then_count = job->then_count,
        .input = job->input->span,
        .output = job->output->span,
        .coefficients = job->coefficients ? job->coefficients->span : (struct span){0},
        .owner = job,
    };
    job->in_flight++;
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

static void job_fail(struct job *job, const struct chunk *chunk)
{
    const struct scan_rule *rule = &job->rows.rule;
    if (chunk->status == -EOPNOTSUPP && rule->algorithm && rule->operation == SCAND_OPERATION_REDUCE) {
        error_set(&job->outcome, chunk->status,
                  "job.submit: \"algorithm\" is \"%s\", which this daemon's device cannot run; a daemon started with "
                  "--device cuda can, if built with SCAND_TUTORIAL",
                  reduction_list[rule->algorithm - 1].name);
    } else if (chunk->status == -EOPNOTSUPP && rule->algorithm) {
        const struct variant *variant = &variant_list[rule->algorithm - 1];
        error_set(&job->outcome, chunk->status,
                  "job.submit: \"algorithm\" is \"%s\", which this daemon's device cannot run; a daemon started with "
                  "--device %s can%s",
                  variant->name, variant->on_cpu ? "cpu" : "cuda",
                  variant->on_cpu ? "" : ", if built with SCAND_TUTORIAL");
    } else if (chunk->status == -EFAULT) {
        error_set(
            &job->outcome, -EOPNOTSUPP,
            "job.submit: the job's imported memory could not be pinned (the user's quota \"pinned-memory\", or the "
            "system's memory), and only rows of up to 16 MiB that lie side by side are scanned without; release "
            "other imports and import it again, or use buffer.create%s",
            chunk->first > 0 ? "; some of it was when the job began, so the output is incomplete" : "");
    } else if (chunk->status == -EOPNOTSUPP) {
        error_set(
            &job->outcome, chunk->status,
            "job.submit: this daemon's device cannot do this scan (\"op\" is \"%s\", \"kind\" \"%s\", "
            "\"input.dtype\" \"%s\", \"output.dtype\" \"%s\", \"demean\" %d); a daemon started with --device cpu can",
            operator_words.words[rule->op], kind_words.words[rule->kind], dtype_words.words[rule->input],
            dtype_words.words[rule->output], rule->demean);
    } else {
        error_set(&job->outcome, chunk->status,
                  "job.submit: the device failed on rows %" PRIu64 " to %" PRIu64 "; the output is incomplete",
                  chunk->first, chunk->first + chunk->count - 1);
    }
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
    if (chunk->status == 0) {
        job->rows_done += chunk->rest ? 0 : chunk->count;
    } else if (job->outcome.code == 0) {
        job_fail(job, chunk);
        if (job->state == JOB_RUNNING)
            job_move(job, JOB_ENDING);
    }
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
