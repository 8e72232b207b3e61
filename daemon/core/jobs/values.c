#include "values.h"

#include <errno.h>
#include <inttypes.h>

#include "daemon/core/operations/operation.h"
#include "footprint.h"
#include "job.h"
#include "protocol/describe.h"

/* Values of a chunk: what a device looks through in a millisecond or less. */
#define CHUNK_VALUES (UINT64_C(1) << 18)
/* Where they lie apart, by more than so many bytes, each mostly lies on a page of its own, which a processor may have
 * yet to meet. That takes 2 us for each. */
#define APART_BYTES  64
#define CHUNK_PLACES (UINT64_C(1) << 12)

/* Finds out which step's operand this is, and the range of its values, below 0: they may be anything. */
static struct index_range operand_range(const struct job *job, uint32_t operand, uint32_t *step)
{
    for (uint32_t i = 0; i < job->step_count; i++)
        for (uint32_t k = 0; k < LIMIT_OPERANDS; k++) {
            const struct step *at = &job->steps[i];
            if (at->further[k] != operand || !at->kernel || !at->kernel->index_below)
                continue;
            *step = i;
            return (struct index_range){at->kernel->index_from, at->kernel->index_below(at->parameters, k)};
        }
    return (struct index_range){0, 0};
}

/* True when values lie on a line, as for samples of ragged rows; values between the rows and beyond them are nobody's.
 */
static bool are_on_line(const struct job *job)
{
    return job->operands[job->values.operand].follows == FOLLOWS_SAMPLES && job->rows.offsets;
}

/* The place of a row's first value in the operand, and the number of values. */
static uint64_t first_element(const struct job *job)
{
    return are_on_line(job) ? job->rows.offsets[0] : 0;
}

static uint64_t element_count(const struct job *job)
{
    const uint64_t *offsets = job->rows.offsets;
    return are_on_line(job) ? offsets[job->rows.row_count] - offsets[0] : job->operands[job->values.operand].length;
}

/* Goes to the next operand that is to be checked. */
static void next_operand(struct job *job)
{
    struct values *values = &job->values;
    uint32_t operand = values->operand > 0 ? values->operand : OPERAND_FURTHER - 1;
    *values = (struct values){.operand = 0};
    while (++operand < job->operand_count && values->operand == 0) {
        if (!job->operands[operand].origin)
            continue;
        const struct index_range range = operand_range(job, operand, &values->step);
        values->from = range.from;
        values->below = range.below;
        values->operand = range.below > 0 ? operand : 0;
        if (values->operand > 0 && element_count(job) == 0)
            values->operand = 0;
    }
}

void values_begin(struct job *job)
{
    job->values = (struct values){.operand = 0};
    if (!job->plain)
        next_operand(job);
}

bool values_are_left(const struct job *job)
{
    return job->values.operand > 0;
}

/* Returns how many rows have values of their own. */
static uint64_t row_count(const struct job *job)
{
    const struct operand *operand = &job->operands[job->values.operand];
    bool shared = true;
    for (uint32_t k = 0; k < job->rows.outer_rank; k++)
        shared &= operand->outer_strides[k] == 0;
    return shared || operand->follows == FOLLOWS_JOB ? 1 : job->rows.row_count;
}

static bool is_apart(int64_t stride)
{
    return stride > APART_BYTES || stride < -APART_BYTES;
}

static uint64_t least_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Returns the most values of a row that a chunk has. */
static uint64_t most_elements(const struct job *job)
{
    return is_apart(job->operands[job->values.operand].stride) ? CHUNK_PLACES : CHUNK_VALUES;
}

/* Returns the most rows of a chunk: so many places, with all rows that lie side by side at each. */
static uint64_t most_rows(const struct job *job)
{
    const struct operand *operand = &job->operands[job->values.operand];
    const uint64_t length = element_count(job), most = length < most_elements(job) ? most_elements(job) / length : 1;
    uint64_t rows = CHUNK_PLACES;
    uint32_t k = job->rows.outer_rank;
    while (k > 0 && rows < most && !is_apart(operand->outer_strides[k - 1]))
        rows *= least_of(job->rows.outer_shape[--k], CHUNK_VALUES);
    return k == 0 ? most : least_of(rows, most);
}

/* The size of the next chunk: whole rows, or a part of one. */
static uint64_t next_rows(const struct job *job)
{
    return least_of(row_count(job) - job->values.row, most_rows(job));
}

static uint64_t next_elements(const struct job *job)
{
    return least_of(element_count(job) - job->values.element, most_elements(job));
}

bool values_are_ready(const struct job *job)
{
    const struct operand *operand = &job->operands[job->values.operand];
    return !buffer_is_partial(operand->buffer) || buffer_is_ready(operand->buffer, values_footprint(job));
}

struct extent values_footprint(const struct job *job)
{
    struct operand part = job->operands[job->values.operand];
    part.origin += (int64_t)(first_element(job) + job->values.element) * part.stride;
    part.follows = FOLLOWS_VECTORS;
    part.length = next_elements(job);
    return operand_footprint(&part, &job->rows, job->values.row, next_rows(job));
}

void values_next_chunk(struct job *job, struct chunk *chunk)
{
    struct values *values = &job->values;
    values->checked = job->layouts[values->operand];
    values->checked.origin += (int64_t)(first_element(job) + values->element) * values->checked.stride;
    values->checked.length = next_elements(job);
    values->checked.on_line = false;
    values->out = true;
    *chunk = (struct chunk){
        .rows = &job->rows,
        .operands = &values->checked,
        .operand_count = 1,
        .below = values->below,
        .from = values->from,
        .first = values->row,
        .count = next_rows(job),
        .spans = {job->operands[values->operand].buffer->span},
        .owner = job,
    };
}

uint64_t values_chunk_bytes(const struct chunk *chunk)
{
    return chunk->count * chunk->operands->length * dtype_size_bytes(chunk->operands->dtype);
}

static const char *operand_name(const struct job *job)
{
    const struct step *step = &job->steps[job->values.step];
    uint32_t k = 0;
    while (step->further[k] != job->values.operand)
        k++;
    return operand_rows[step->operation][k].name;
}

static int refuse(const struct job *job, const struct index_fault *fault, struct error *error)
{
    const struct values *values = &job->values;
    const uint64_t element = first_element(job) + values->element + fault->element;
    const char *name = operand_name(job);
    if (job->operands[values->operand].follows == FOLLOWS_JOB || are_on_line(job))
        return error_set(error, -EINVAL,
                         "\"steps[%u].%s\"[%" PRIu64 "] is %" PRId64 "; allowed: %" PRIu64 " to %" PRIu64
                         "; nothing has been written",
                         (unsigned)values->step, name, element, fault->value, values->from, values->below - 1);
    return error_set(error, -EINVAL,
                     "element %" PRIu64 " of \"steps[%u].%s\" for row %" PRIu64 " is %" PRId64 "; allowed: %" PRIu64
                     " to %" PRIu64 "; nothing has been written",
                     element, (unsigned)values->step, name, fault->row, fault->value, values->from, values->below - 1);
}

int values_return(struct job *job, const struct chunk *chunk, struct error *error)
{
    struct values *values = &job->values;
    values->out = false;
    if (chunk->status == -EFAULT)
        return 0; /* memory that is not pinned: the job says more of that */
    if (chunk->status)
        return error_set(error, chunk->status,
                         "the device failed while it looked at \"steps[%u].%s\"; nothing has been written: submit it "
                         "again",
                         (unsigned)values->step, operand_name(job));
    if (chunk->fault.found)
        return refuse(job, &chunk->fault, error);
    values->element += chunk->operands->length;
    if (values->element < element_count(job))
        return 0;
    values->element = 0;
    values->row += chunk->count;
    if (values->row == row_count(job))
        next_operand(job);
    return 0;
}
