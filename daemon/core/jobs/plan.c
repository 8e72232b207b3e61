/* How jobs are checked against their buffers, and cut into chunks: job_plan of job.h. */
#include <errno.h>
#include <inttypes.h>

#include "daemon/core/operations/operation.h"
#include "job.h"
#include "rows.h"
#include "tensor_layout.h"

static const int ranks[] = {
#define X(NAME, WORD, RANK) RANK,
    SCAND_PRIORITIES(X)
#undef X
};

/*
 * Where operands lie.
 */

static int check_extents(struct job *job, const struct request *request, struct error *error)
{
    int r = 0;
    for (uint32_t i = 0; i < job->operand_count && !r; i++) {
        struct operand *operand = &job->operands[i];
        const struct msg_tensor *tensor = request->operands[i].tensor;
        char room[FIELD_NAME_BYTES];
        if (i == OPERAND_OFFSETS || !tensor)
            continue;
        const char *name = request_operand_name(request, i, room);
        r = tensor_extent(tensor, name, operand->buffer->span.size_bytes, &operand->extent, error);
        if (!r && operand->access == ACCESS_WRITE)
            r = tensor_disjoint(tensor, name, error);
    }
    return r;
}

static bool operands_meet(const struct operand *a, const struct operand *b)
{
    return buffers_meet(a->buffer, &a->extent, b->buffer, &b->extent);
}

static int refuse_input_and_output(const struct job *job, const struct request *request, struct error *error)
{
    const struct operand *input = &job->operands[OPERAND_INPUT], *output = &job->operands[OPERAND_OUTPUT];
    const struct extent *read = &input->extent, *written = &output->extent;
    if (input->buffer != output->buffer)
        return error_set(error, -EINVAL,
                         "\"input\" (bytes %" PRIu64 " to %" PRIu64 " of buffer %" PRIu64 ") and \"output\" (bytes "
                         "%" PRIu64 " to %" PRIu64 " of buffer %" PRIu64 ") overlap: both buffers are the same memory; "
                         "to scan in place name one buffer in both, or keep them apart",
                         read->begin, read->end, request->params->input.buffer, written->begin, written->end,
                         request->params->output.buffer);
    return error_set(error, -EINVAL,
                     "\"input\" (bytes %" PRIu64 " to %" PRIu64 ") and \"output\" (bytes %" PRIu64 " to %" PRIu64
                     ") of buffer %" PRIu64 " overlap; %s",
                     read->begin, read->end, written->begin, written->end, request->params->input.buffer,
                     output->follows == FOLLOWS_SAMPLES
                         ? "make them the same elements, of dtypes of one size, or keep them apart"
                         : "with \"operation\" \"reduce\" keep them apart");
}

static int check_input_and_output(const struct job *job, const struct request *request, struct error *error)
{
    const struct operand *input = &job->operands[OPERAND_INPUT], *output = &job->operands[OPERAND_OUTPUT];
    if (!operands_meet(input, output) ||
        (output->follows == FOLLOWS_SAMPLES && tensor_same(&request->params->input, &request->params->output)))
        return 0;
    return refuse_input_and_output(job, request, error);
}

/* Further operands are checked after input and output are known to be apart, or one. */
static int check_further(const struct job *job, const struct request *request, struct error *error)
{
    const struct operand *output = &job->operands[OPERAND_OUTPUT];
    for (uint32_t i = OPERAND_FURTHER; i < job->operand_count; i++) {
        const struct operand *operand = &job->operands[i];
        char name[FIELD_NAME_BYTES];
        if (operands_meet(operand, output))
            return error_set(error, -EINVAL,
                             "\"%s\" (bytes %" PRIu64 " to %" PRIu64 ") and \"output\" (bytes %" PRIu64 " to %" PRIu64
                             ") of buffer %" PRIu64 " overlap; keep them apart",
                             request_operand_name(request, i, name), operand->extent.begin, operand->extent.end,
                             output->extent.begin, output->extent.end, request->params->output.buffer);
    }
    return 0;
}

/* No device reaches the memory of another. */
static int check_devices(const struct job *job, const struct request *request, struct error *error)
{
    uint32_t first = 0; /* the first operand in device memory */
    for (uint32_t i = 0; i < job->operand_count; i++) {
        const struct device *device = job->operands[i].buffer ? job->operands[i].buffer->device : NULL;
        const struct device *other = job->operands[first].buffer ? job->operands[first].buffer->device : NULL;
        char one[FIELD_NAME_BYTES], two[FIELD_NAME_BYTES];
        if (device && other && device != other)
            return error_set(error, -EINVAL,
                             "\"%s\" is in the memory of device %u and \"%s\" in that of device %u; all of a job's "
                             "device buffers must be on one: name it as \"device\" in buffer.create, or use host "
                             "buffers",
                             request_operand_name(request, first, one), other->number,
                             request_operand_name(request, i, two), device->number);
        first = device && !other ? i : first;
    }
    return 0;
}

/* Where nothing is computed nothing has checked the offsets, and nothing uses the addresses. */
static void find_origins(struct job *job, const struct request *request)
{
    for (uint32_t i = 0; i < job->operand_count && job->rows.row_count > 0; i++) {
        struct operand *operand = &job->operands[i];
        const bool empty = operand->follows == FOLLOWS_SAMPLES && job->rows.length == 0;
        if (i != OPERAND_OFFSETS && request->operands[i].tensor && !empty)
            operand->origin = (unsigned char *)operand->buffer->span.base + request->operands[i].tensor->offset;
    }
}

/*
 * Chunks.
 */

/* All steps, in bytes that take as long to be moved. */
static uint64_t work_bytes(const struct job *job, uint32_t work_per_byte)
{
    uint64_t work = 0;
    for (uint32_t i = 0; i < job->step_count; i++)
        work += operations[job->steps[i].operation]->work(&job->steps[i].rule);
    return work_per_byte ? (work + work_per_byte - 1) / work_per_byte : 0;
}

/* Input and output of a chunk have one place when their samples have one size. */
static uint64_t moved_bytes(const struct job *job, enum follows follows)
{
    const struct operand *input = &job->operands[OPERAND_INPUT], *output = &job->operands[OPERAND_OUTPUT];
    const bool shared = output->follows == input->follows && output->item_bytes == input->item_bytes;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < job->operand_count; i++)
        if (job->operands[i].buffer && job->operands[i].follows == follows && !(shared && i == OPERAND_OUTPUT))
            bytes += job->operands[i].item_bytes;
    return follows == FOLLOWS_SAMPLES ? bytes + job->between_bytes : bytes;
}

static void job_cut(struct job *job, const struct job_chunks *chunks)
{
    const uint64_t work = work_bytes(job, chunks->work_per_byte), moved = moved_bytes(job, FOLLOWS_SAMPLES);
    job->sample_bytes = moved > work ? moved : work;
    job->result_bytes = moved_bytes(job, FOLLOWS_ROWS);
    job->long_bytes = chunks->long_bytes;
    job->chunk_samples = chunks->bytes / job->sample_bytes; /* where a row has no more */
    const uint64_t row_bytes = job->rows.length * job->sample_bytes + job->result_bytes;
    job->chunk_rows = row_bytes >= chunks->bytes || row_bytes == 0 ? 1 : chunks->bytes / row_bytes;
}

/* Values between steps are in the output where it has an element for each sample. Ragged rows are checked again when
 * their lengths are known. */
static int check_between(struct job *job, const struct request *request, bool reshapes, struct error *error)
{
    const struct operand *output = &job->operands[OPERAND_OUTPUT];
    if (job->step_count == 1 || output->follows == FOLLOWS_SAMPLES)
        return 0;
    if (!reshapes)
        return error_set(
            error, -EOPNOTSUPP,
            "\"steps[%u].operation\" is \"%s\" behind other steps, which this daemon's device takes alone; "
            "submit it as a job of its own; a daemon started with --device cpu takes both in one",
            (unsigned)job->step_count - 1, step_words.words[job->steps[job->step_count - 1].operation]);
    job->between_bytes = output->item_bytes;
    return request_is_ragged(request) ? 0 : job_check_between(job, job->rows.length, error);
}

static void bind_rows(struct job *job)
{
    const uint32_t further = job->operand_count - OPERAND_FURTHER;
    job->rows.rule = job->steps[0].rule;
    rows_bind(job->operands, &job->rows);
    operations[job->steps[0].operation]->bind(&job->operands[OPERAND_FURTHER], further, &job->rows);
}

static int check_algorithm(struct job *job, const struct request *request, struct error *error)
{
    struct step *first = &job->steps[0];
    if (request->params->algorithm[0] == '\0')
        return 0;
    return operations[first->operation]->check_algorithm(request, job->operands, &job->rows, &first->rule, error);
}

int job_plan(struct job *job, struct request *request, const struct job_chunks *chunks, struct error *error)
{
    const struct msg_job_run_params *params = request->params;
    int r;
    job->operand_count = request->operand_count;
    job->step_count = params->steps_count;
    if ((r = rows_check_tensors(request, error)) || (r = steps_check(request, job->steps, error)) ||
        (r = rows_lay_out(request, &job->rows, job->operands, error)) || (r = check_extents(job, request, error)) ||
        (r = check_input_and_output(job, request, error)) || (r = check_further(job, request, error)) ||
        (r = check_devices(job, request, error)) || (r = check_algorithm(job, request, error)) ||
        (r = check_between(job, request, chunks->reshapes, error)))
        return r;
    find_origins(job, request);
    bind_rows(job);
    job_cut(job, chunks);
    job->submitted = request->submitted;
    job->wants_progress = params->progress;
    job->wants_ending = params->ending;
    job->after_failure = params->after_failure;
    job->priority = (enum scand_priority)params->priority;
    job->rank = ranks[params->priority];
    return 0;
}
