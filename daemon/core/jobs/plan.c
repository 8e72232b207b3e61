/* Checks jobs against their buffers, and cuts them into chunks: job_plan of job.h. */
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
 * The places of operands.
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
        if (operand->access == ACCESS_WRITE && buffer_is_file(operand->buffer))
            return error_set(error, -EINVAL,
                             "\"%s.buffer\" is %" PRIu64
                             ", a file (buffer.import_file), which is only read; give a buffer of buffer.create or "
                             "buffer.import",
                             name, operand->buffer->id);
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

/* True when a job may work in place: the first of several steps has read a row before the last one writes it. */
static bool may_be_in_place(const struct job *job)
{
    const struct step_kernel *kernel = job->steps[0].kernel;
    return job->step_count > 1 || !kernel || kernel->in_place;
}

static int check_input_and_output(const struct job *job, const struct request *request, struct error *error)
{
    const struct operand *input = &job->operands[OPERAND_INPUT], *output = &job->operands[OPERAND_OUTPUT];
    if (!operands_meet(input, output))
        return 0;
    if (output->follows != FOLLOWS_SAMPLES || !tensor_same(&request->params->input, &request->params->output))
        return refuse_input_and_output(job, request, error);
    if (may_be_in_place(job))
        return 0;
    return error_set(
        error, -EINVAL,
        "\"input\" and \"output\" are the same elements, but \"steps[0].operation\" is \"%s\", which does not "
        "work in place; keep them apart",
        step_words.words[job->steps[0].operation]);
}

static int refuse_overlap(const struct job *job, const struct request *request, uint32_t one, uint32_t two,
                          struct error *error)
{
    const struct extent *a = &job->operands[one].extent, *b = &job->operands[two].extent;
    char names[2][FIELD_NAME_BYTES];
    return error_set(error, -EINVAL,
                     "\"%s\" (bytes %" PRIu64 " to %" PRIu64 ") and \"%s\" (bytes %" PRIu64 " to %" PRIu64
                     ") of buffer %" PRIu64 " overlap; keep them apart",
                     request_operand_name(request, one, names[0]), a->begin, a->end,
                     request_operand_name(request, two, names[1]), b->begin, b->end,
                     request->operands[two].tensor->buffer);
}

/* True when an operand is what a step's results are added onto, and both may be the same elements: each is read before
 * it is written, by its own step or by one before the last. */
static bool may_be_output(const struct job *job, const struct request *request, uint32_t operand)
{
    const struct step *step = &job->steps[request->operands[operand].step];
    uint32_t k = 0;
    if (!step->kernel || !tensor_same(request->operands[operand].tensor, &request->params->output))
        return false;
    while (step->further[k] != operand)
        k++;
    return step->kernel->onto >> k & 1;
}

/* Further operands are checked after input and output are known to be apart, or one. What is written is apart from all
 * others, but for offsets, of which the job has a copy, and for what is written onto. */
static int check_further(const struct job *job, const struct request *request, struct error *error)
{
    for (uint32_t i = OPERAND_FURTHER; i < job->operand_count; i++)
        for (uint32_t k = 0; k < i; k++) {
            const struct operand *operand = &job->operands[i], *other = &job->operands[k];
            const bool written = operand->access == ACCESS_WRITE || other->access == ACCESS_WRITE;
            if (!written || k == OPERAND_OFFSETS || !operands_meet(operand, other))
                continue;
            if (k != OPERAND_OUTPUT || !may_be_output(job, request, i))
                return refuse_overlap(job, request, i, k, error);
        }
    return 0;
}

/* Checks that all device memory is on one device, since none reaches the memory of another. */
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

/* Sets the operands' origins, unless nothing is computed: then nothing has checked the offsets, and nothing uses the
 * addresses. */
static void find_origins(struct job *job, const struct request *request)
{
    for (uint32_t i = 0; i < job->operand_count && job->rows.row_count > 0; i++) {
        struct operand *operand = &job->operands[i];
        if (i != OPERAND_OFFSETS && request->operands[i].tensor && operand->length > 0)
            operand->origin = (unsigned char *)operand->buffer->span.base + request->operands[i].tensor->offset;
    }
}

/*
 * Steps.
 */

/* True for scans one after another, of which the first alone may have coefficients, or for one reduction. */
static bool is_plain(const struct job *job, const struct request *request)
{
    for (uint32_t i = 0; i < job->step_count; i++)
        if (job->steps[i].kernel)
            return false;
    for (uint32_t i = OPERAND_FURTHER; i < job->operand_count; i++)
        if (request->operands[i].step > 0)
            return false;
    return job->step_count == 1 || job->operands[OPERAND_OUTPUT].follows == FOLLOWS_SAMPLES;
}

/* Returns the length of the longest values between steps. */
static uint64_t between_length(const struct job *job)
{
    uint64_t longest = 0;
    for (uint32_t i = 0; i + 1 < job->step_count; i++)
        longest = job->steps[i].length > longest ? job->steps[i].length : longest;
    return longest;
}

/* Places the values between steps: in the output, or in memory of the device. The number of a ragged row's values is
 * checked when the row's length is known. */
static int place_between(struct job *job, const struct request *request, struct error *error)
{
    job->plain = is_plain(job, request);
    if (job->plain || job->step_count == 1)
        return 0;
    job->between_bytes = job->operands[OPERAND_OUTPUT].item_bytes;
    job->between_length = between_length(job);
    return request_is_ragged(request) ? 0 : job_check_between(job, job->between_length, error);
}

static int check_algorithm(struct job *job, const struct request *request, struct error *error)
{
    struct step *first = &job->steps[0];
    const struct operation *operation = operations[first->operation];
    if (request->params->algorithm[0] == '\0')
        return 0;
    if (first->kernel && job->step_count == 1)
        return step_check_algorithm(request, job->operands, &job->rows, first, error);
    if (!job->plain || !operation->check_algorithm)
        return error_set(
            error, -EINVAL,
            "\"algorithm\" is given, and the steps are not scans alone, or a single one; allowed then: none; "
            "leave it out, or submit the first step as a job of its own");
    return operation->check_algorithm(request, job->operands, &job->rows, &first->rule, error);
}

static struct step_operand layout_of(const struct job *job, const struct operand *operand, bool ragged)
{
    struct step_operand layout = {.origin = (char *)operand->origin,
                                  .length = operand->length,
                                  .stride = operand->stride,
                                  .dtype = operand->dtype,
                                  .on_line = ragged && operand->follows == FOLLOWS_SAMPLES};
    memcpy(layout.outer_strides, operand->outer_strides, job->rows.outer_rank * sizeof layout.outer_strides[0]);
    return layout;
}

/* Puts operands into rows as devices take them. */
static void bind_rows(struct job *job, const struct request *request)
{
    if (job->plain) {
        job->rows.rule = job->steps[0].rule;
        rows_bind(job->operands, job->operand_count, &job->rows);
        return;
    }
    job->written = 0;
    for (uint32_t i = 0; i < job->operand_count; i++) {
        const struct operand *operand = &job->operands[i];
        job->layouts[i] = i == OPERAND_OFFSETS ? (struct step_operand){.origin = NULL}
                                               : layout_of(job, operand, request_is_ragged(request));
        job->written |= (uint32_t)(operand->access == ACCESS_WRITE) << i;
    }
}

/*
 * Chunks.
 */

/* The least cost of a row of a step in tiles, however short it is, as `work` of struct operation: some 30 ns. */
#define TILE_ROW_WORK 100

/* Returns the work of all steps, in bytes of a sample that take as long to be moved. */
static uint64_t work_bytes(const struct job *job, uint32_t work_per_byte)
{
    const uint64_t samples = job->rows.length > 0 ? job->rows.length : 1;
    uint64_t work = 0, before = job->rows.length;
    for (uint32_t i = 0; i < job->step_count; i++) {
        const struct step *step = &job->steps[i];
        const uint64_t longer = step->length > before ? step->length : before;
        work += longer == samples ? step->work : step->work * ((longer + samples - 1) / samples);
        before = step->length;
    }
    return work_per_byte ? (work + work_per_byte - 1) / work_per_byte : 0;
}

/* The cost of beginning with a row of a scan or a reduction, where they are computed one by one: for a step, and for
 * each unit of its work for a sample. Some 0.2 us for a pass of sums, 0.7 us for two in f2, 2.5 us for an affine one in
 * f2. */
#define ROW_WORK      400
#define ROW_UNIT_WORK 250

/* Other rows are scanned many at a time, or are reduced, which counts by itself. */
static bool goes_row_by_row(const struct step *step, bool ragged)
{
    const struct scan_rule *rule = &step->rule;
    return ragged || rule->op == SCAND_OPERATOR_AFFINE || rule->kind == SCAND_KIND_TRAPEZOID || rule->demean;
}

static uint64_t own_row_work(const struct step *step)
{
    const struct operation *operation = operations[step->operation];
    return operation->row_work ? operation->row_work(step) : 0;
}

/* Returns a step's work for a row besides that for its samples. */
static uint64_t step_row_work(const struct step *step, bool ragged)
{
    if (step->kernel)
        return own_row_work(step) + TILE_ROW_WORK;
    return own_row_work(step) + (goes_row_by_row(step, ragged) ? ROW_WORK + ROW_UNIT_WORK * step->work : 0);
}

/* Returns the work of all steps for a row besides that for its samples, in bytes as work_bytes does. */
static uint64_t row_work_bytes(const struct job *job, uint32_t work_per_byte)
{
    const bool ragged = job->operands[OPERAND_OFFSETS].buffer != NULL;
    uint64_t work = 0;
    for (uint32_t i = 0; i < job->step_count; i++)
        work += step_row_work(&job->steps[i], ragged);
    return (work + work_per_byte - 1) / work_per_byte;
}

/* Returns the own work of steps in tiles for a row, in bytes of which a chunk has so many when it has the work that it
 * may have. Rows of scans and reductions are begun while a GPU moves other rows, and do not count. */
static uint64_t tile_row_bytes(const struct job *job, uint64_t chunk_bytes, uint64_t chunk_row_work)
{
    uint64_t work = 0;
    for (uint32_t i = 0; i < job->step_count; i++)
        work += job->steps[i].kernel ? own_row_work(&job->steps[i]) : 0;
    return chunk_row_work ? (work * chunk_bytes + chunk_row_work - 1) / chunk_row_work : 0;
}

/* True when input and output of a chunk share one place: in a plain job whose samples have one size. */
static bool shares_place(const struct job *job)
{
    const struct operand *input = &job->operands[OPERAND_INPUT], *output = &job->operands[OPERAND_OUTPUT];
    return job->plain && output->follows == input->follows && output->item_bytes == input->item_bytes;
}

/* True when an operand's bytes count: it is there, and not in the input's place. */
static bool is_moved(const struct job *job, uint32_t operand)
{
    return job->operands[operand].buffer && !(operand == OPERAND_OUTPUT && shares_place(job));
}

/* What the processor moves for an element that no other shares a line of its cache with. It takes 25 to 50 ns, as such
 * an element mostly lies on a page of its own, too. */
#define LINE_BYTES 64

static bool steps_over_lines(uint64_t extent, int64_t stride)
{
    return extent <= 1 || stride >= LINE_BYTES || stride <= -LINE_BYTES;
}

/* True when the first elements of no two rows share a line, whichever is read after which. */
static bool rows_lie_apart(const struct job *job, const struct operand *operand)
{
    bool apart = true;
    for (uint32_t k = 0; k < job->rows.outer_rank; k++)
        apart = apart && steps_over_lines(job->rows.outer_shape[k], operand->outer_strides[k]);
    return apart;
}

/* True when no two elements share a line, whichever is read after which. */
static bool lies_apart(const struct job *job, const struct operand *operand)
{
    return steps_over_lines(operand->length, operand->stride) && rows_lie_apart(job, operand);
}

static uint64_t element_bytes(const struct job *job, const struct operand *operand, uint32_t work_per_byte)
{
    return work_per_byte && lies_apart(job, operand) ? LINE_BYTES : operand->item_bytes;
}

/* Returns the bytes moved for each row besides its elements: the rest of a line that is longer than they are
 * and shared with no other row. */
static uint64_t row_line_bytes(const struct job *job, uint32_t work_per_byte)
{
    uint64_t rest = 0;
    for (uint32_t i = 0; i < job->operand_count && work_per_byte && job->rows.row_count > 1; i++) {
        const struct operand *operand = &job->operands[i];
        const uint64_t bytes = element_bytes(job, operand, work_per_byte) * operand->length;
        if (bytes < LINE_BYTES && is_moved(job, i) && operand->follows != FOLLOWS_JOB && rows_lie_apart(job, operand))
            rest += LINE_BYTES - bytes;
    }
    return rest;
}

/* Returns the bytes moved for each sample. Bytes of vectors, and of operands with more or fewer elements than samples,
 * are divided among all samples. */
static uint64_t sample_bytes(const struct job *job, uint32_t work_per_byte)
{
    uint64_t bytes = 0, row_bytes = job->between_bytes * job->between_length;
    for (uint32_t i = 0; i < job->operand_count; i++) {
        const struct operand *operand = &job->operands[i];
        if (!is_moved(job, i))
            continue;
        if (operand->follows == FOLLOWS_SAMPLES && operand->length == job->rows.length)
            bytes += element_bytes(job, operand, work_per_byte);
        else if (operand->follows == FOLLOWS_SAMPLES || operand->follows == FOLLOWS_VECTORS)
            row_bytes += element_bytes(job, operand, work_per_byte) * operand->length;
    }
    return row_bytes > 0 && job->rows.length > 0 ? bytes + (row_bytes + job->rows.length - 1) / job->rows.length
                                                 : bytes;
}

static uint64_t result_bytes(const struct job *job)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < job->operand_count; i++)
        if (job->operands[i].buffer && job->operands[i].follows == FOLLOWS_ROWS)
            bytes += job->operands[i].item_bytes;
    return bytes;
}

/* A device has memory for what is between the steps of one chunk. */
static uint64_t chunk_bytes(const struct job *job, const struct job_chunks *chunks)
{
    const bool bounded = job->between_bytes > 0 && chunks->bytes > LIMIT_BETWEEN_CHUNK_BYTES;
    return bounded ? LIMIT_BETWEEN_CHUNK_BYTES : chunks->bytes;
}

static void job_cut(struct job *job, const struct job_chunks *chunks)
{
    for (uint32_t i = 0; i < job->step_count; i++)
        job->steps[i].work = operations[job->steps[i].operation]->work(&job->steps[i]);
    const uint64_t work = work_bytes(job, chunks->work_per_byte), moved = sample_bytes(job, chunks->work_per_byte);
    job->sample_bytes = moved > work ? moved : work;
    job->result_bytes = result_bytes(job);
    const uint64_t bytes = chunk_bytes(job, chunks);
    const uint64_t row_work = chunks->work_per_byte ? row_work_bytes(job, chunks->work_per_byte)
                                                    : tile_row_bytes(job, bytes, chunks->row_work);
    const uint64_t row_moved = row_line_bytes(job, chunks->work_per_byte);
    job->row_bytes = row_moved > row_work ? row_moved : row_work;
    job->long_bytes = chunks->long_bytes;
    job->chunk_bytes = bytes;
    const uint64_t row_bytes = job->rows.length * job->sample_bytes + job->result_bytes + job->row_bytes;
    job->chunk_rows = row_bytes >= bytes || row_bytes == 0 ? 1 : bytes / row_bytes;
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
        (r = check_devices(job, request, error)) || (r = place_between(job, request, error)) ||
        (r = check_algorithm(job, request, error)))
        return r;
    find_origins(job, request);
    bind_rows(job, request);
    values_begin(job);
    job_cut(job, chunks);
    job->submitted = request->submitted;
    job->wants_progress = params->progress;
    job->wants_ending = params->ending;
    job->after_failure = params->after_failure;
    job->priority = (enum scand_priority)params->priority;
    job->rank = ranks[params->priority];
    return 0;
}
