/*
 * The bytes that tensors touch, and the plans of jobs, against an enumeration of the elements; numbers as large as
 * messages allow, against wider arithmetic.
 */
#include "daemon/core/jobs/job.h"
#include "daemon/core/jobs/tensor_layout.h"
#include "tests/fuzz/fuzz_job.h"

#define BUFFER_BYTES 16384

static struct error error;

/* Memory that nothing touches, and on either side some that belongs to nobody. */
static unsigned char memory[JOB_BUFFERS][BUFFER_BYTES];
static struct buffer buffers[JOB_BUFFERS];

/*
 * Tensors.
 */

static __int128 element_at(const struct msg_tensor *tensor, uint64_t number)
{
    __int128 at = tensor->offset;
    for (uint32_t k = tensor->shape_count; k-- > 0; number /= tensor->shape[k])
        at += (__int128)(number % tensor->shape[k]) * tensor->strides[k];
    return at;
}

static uint64_t element_count(const struct msg_tensor *tensor)
{
    uint64_t count = 1;
    for (uint32_t k = 0; k < tensor->shape_count; k++)
        count *= tensor->shape[k];
    return count;
}

/* True when a tensor lies inside its buffer: from corner to corner, each dimension by itself. */
static bool is_inside(const struct msg_tensor *tensor, uint64_t buffer_bytes)
{
    const __int128 most = (__int128)1 << 64;
    __int128 low = tensor->offset, high = low + (__int128)dtype_size_bytes(tensor->dtype);
    for (uint32_t k = 0; k < tensor->shape_count; k++) {
        if (tensor->shape[k] - 1 > (uint64_t)INT64_MAX)
            return false; /* refused, whatever the stride is */
        __int128 reach = (__int128)(tensor->shape[k] - 1) * tensor->strides[k];
        if (reach > most || reach < -most)
            return false;
        *(reach < 0 ? &low : &high) += reach;
    }
    return low >= 0 && high <= buffer_bytes;
}

static void check_wide(struct supply *supply)
{
    struct msg_tensor tensor = take_tensor(supply);
    uint64_t buffer_bytes = take(supply, 8) & INT64_MAX;
    struct extent extent;
    tensor.offset = take(supply, 8);
    for (uint32_t k = 0; k < tensor.shape_count; k++) {
        tensor.shape[k] = take(supply, 1 + take_below(supply, 8));
        tensor.strides[k] = (int64_t)take(supply, 8);
    }
    int code = tensor_extent(&tensor, "input", buffer_bytes, &extent, &error);
    assert(code == 0 || code == -EINVAL);
    if (tensor_is_empty(&tensor))
        assert(code == 0 && extent.begin == extent.end);
    else
        assert((code == 0) == is_inside(&tensor, buffer_bytes));
}

static struct extent reach_of(const struct msg_tensor *tensor)
{
    const uint64_t item = dtype_size_bytes(tensor->dtype);
    struct extent reach = {UINT64_MAX, 0};
    for (uint64_t i = 0; i < element_count(tensor); i++) {
        uint64_t at = (uint64_t)element_at(tensor, i);
        reach.begin = at < reach.begin ? at : reach.begin;
        reach.end = at + item > reach.end ? at + item : reach.end;
        if (at > INT64_MAX)
            return (struct extent){0, UINT64_MAX}; /* before its buffer: in none */
    }
    return reach;
}

/* Elements that a tensor accepted as disjoint writes: none twice. */
static void check_disjoint(const struct msg_tensor *tensor)
{
    static unsigned char written[BUFFER_BYTES];
    const uint64_t item = dtype_size_bytes(tensor->dtype);
    memset(written, 0, sizeof written);
    for (uint64_t i = 0; i < element_count(tensor); i++)
        for (uint64_t byte = 0; byte < item; byte++) {
            unsigned char *at = &written[(size_t)element_at(tensor, i) + byte];
            assert(*at == 0);
            *at = 1;
        }
}

/* The buffer ends where the tensor does, or a byte sooner or later. */
static void check_small(struct supply *supply)
{
    struct msg_tensor tensor = take_tensor(supply);
    struct extent extent, reach = reach_of(&tensor);
    uint64_t buffer_bytes = reach.end < BUFFER_BYTES ? reach.end + take_below(supply, 3) - 1 : BUFFER_BYTES;
    int code = tensor_extent(&tensor, "output", buffer_bytes, &extent, &error);
    if (tensor_is_empty(&tensor)) {
        assert(code == 0 && extent.begin == extent.end);
        return;
    }
    assert((code == 0) == (reach.end <= buffer_bytes));
    assert(code || (extent.begin == reach.begin && extent.end == reach.end));
    if (code == 0 && tensor_disjoint(&tensor, "output", &error) == 0)
        check_disjoint(&tensor);
}

/*
 * Jobs.
 */

static void buffers_begin(void)
{
    for (size_t i = 0; i < JOB_BUFFERS; i++) {
        struct span span = {SCAND_PLACE_HOST, memory[i], BUFFER_BYTES, BUFFER_BYTES, false, false};
        buffers[i] = (struct buffer){.span = span, .id = i + 1, .holds = 1};
    }
}

/* Elements that an operand has for a row. */
static uint64_t row_items(const struct operand *operand)
{
    return operand->follows == FOLLOWS_ROWS ? 1 : operand->length;
}

/* No element of any row is outside of its buffer's memory. */
static void check_operand(const struct job *job, const struct operand *operand, uint64_t row)
{
    const struct scan_rows *rows = &job->rows;
    const unsigned char *base = operand->buffer->span.base;
    const int64_t from = operand->origin - base + scan_row_offset(rows, operand->outer_strides, row);
    const uint64_t items = row_items(operand);
    if (items == 0)
        return;
    const int64_t to = from + (int64_t)(items - 1) * operand->stride;
    assert(from >= (int64_t)operand->extent.begin &&
           from + (int64_t)operand->item_bytes <= (int64_t)operand->extent.end);
    assert(to >= (int64_t)operand->extent.begin && to + (int64_t)operand->item_bytes <= (int64_t)operand->extent.end);
}

/* The number, in C order, of a row's sample. */
static uint64_t sample_number(const struct msg_tensor *tensor, uint64_t axis, uint64_t row, uint64_t sample)
{
    uint64_t number = 0, weight = 1;
    for (uint32_t k = tensor->shape_count; k-- > 0; weight *= tensor->shape[k]) {
        number += (k == axis ? sample : row % tensor->shape[k]) * weight;
        row /= k == axis ? 1 : tensor->shape[k];
    }
    return number;
}

/* The samples of a row are those that the tensor has along its axis. */
static void check_samples(const struct job *job, const struct operand *operand, const struct msg_tensor *tensor,
                          uint64_t axis, uint64_t row)
{
    for (uint64_t i = 0; i < operand->length; i++) {
        const int64_t at = operand->origin - (const unsigned char *)operand->buffer->span.base +
                           scan_row_offset(&job->rows, operand->outer_strides, row) + (int64_t)i * operand->stride;
        assert(at == (int64_t)element_at(tensor, sample_number(tensor, axis, row, i)));
    }
}

static void check_row(const struct job *job, const struct msg_job_run_params *run, uint64_t row)
{
    for (uint32_t i = 0; i < job->operand_count; i++)
        if (job->operands[i].buffer && job->operands[i].origin && job->operands[i].follows != FOLLOWS_JOB)
            check_operand(job, &job->operands[i], row);
    if (job->operands[OPERAND_INPUT].origin)
        check_samples(job, &job->operands[OPERAND_INPUT], &run->input, run->axis, row);
    if (job->operands[OPERAND_OUTPUT].origin && job->operands[OPERAND_OUTPUT].follows == FOLLOWS_SAMPLES)
        check_samples(job, &job->operands[OPERAND_OUTPUT], &run->output, run->axis, row);
}

/* Chunks are whole rows, each once and in order. */
static void check_chunks(struct job *job)
{
    uint64_t next = 0;
    bool ended = false;
    while (job_has_rows(job)) {
        struct chunk chunk;
        job_next_chunk(job, &chunk, 0);
        assert(chunk.first == next && chunk.count > 0 && chunk.count <= job->chunk_rows);
        next += chunk.count;
        ended = job_return(job, &chunk);
    }
    assert(next == job->rows.row_count && (ended || next == 0));
}

static void check_plan(struct supply *supply)
{
    static struct msg_job_run_params run, repeated;
    static struct job job;
    struct request request;
    struct job_chunks chunks = {.bytes = take(supply, 2) + 1, .work_per_byte = take_below(supply, 3)};
    take_run(supply, &run);
    buffers_begin();
    job = (struct job){.arrived_us = 1};
    if (request_init(&request, &run, &repeated, &error))
        return;
    for (uint32_t i = 0; i < request.operand_count; i++)
        if (request.operands[i].tensor)
            job.operands[i].buffer = &buffers[request.operands[i].tensor->buffer - 1];
    int code = job_plan(&job, &request, &chunks, &error);
    assert(code == 0 || code == -EINVAL);
    if (code) {
        check_line(error.message);
        return;
    }
    for (uint64_t row = 0; row < job.rows.row_count; row++)
        check_row(&job, &run, row);
    if (!values_are_left(&job))
        check_chunks(&job);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static void (*const checks[])(struct supply *) = {check_plan, check_plan, check_small, check_wide};
    struct supply supply = {bytes, size};
    checks[take_below(&supply, 4)](&supply);
    return 0;
}
