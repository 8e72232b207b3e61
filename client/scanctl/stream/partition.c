#include "client/scanctl/stream/partition.h"

#define SIDE_ALIGN 4096 /* alignment of the result's first record in a buffer, and of further operands' first */

/* The axis' place, and dimension i, counted from the slowest axis. */
static uint64_t dimension(const struct array *array, uint32_t i)
{
    return array->shape[array->fortran ? array->rank - 1 - i : i];
}

static void side_set(struct side *side, const struct partition *partition, enum scand_dtype dtype, uint64_t row_bytes)
{
    /* row_bytes is the distance from one position on the scanned axis to the next. */
    uint64_t sample_bytes = scand_dtype_bytes(dtype);
    side->dtype = dtype;
    side->length = partition->length;
    side->sample_bytes = sample_bytes;
    side->record_bytes = partition->length * row_bytes;
    side->strides[0] = (int64_t)side->record_bytes;
    side->strides[1] = (int64_t)row_bytes;
    side->strides[2] = (int64_t)sample_bytes;
}

/* A side whose rows have headers before them. */
static void side_set_traces(struct side *side, const struct partition *partition, const struct array *array,
                            enum scand_dtype dtype, bool along)
{
    uint64_t sample_bytes = scand_dtype_bytes(dtype), trace_bytes = array_unit_bytes(array, sample_bytes);
    side_set(side, partition, dtype, along ? sample_bytes : trace_bytes);
    side->offset = array->trace_header_bytes;
    if (along) {
        side->record_bytes = trace_bytes;
        side->strides[0] = (int64_t)trace_bytes;
    }
}

/* Traces with headers between them: along a trace, a record is a trace; across traces, the one record is the file. */
static void partition_traces(struct partition *partition, const struct array *array, uint32_t axis,
                             enum scand_dtype output)
{
    bool along = axis == 1;
    *partition = (struct partition){
        .records = along ? array->shape[0] : 1,
        .length = array->shape[axis],
        .inner = along ? 1 : array->shape[1],
        .least = 1,
        .in_place = scand_dtype_bytes(output) == array_sample_bytes(array),
    };
    side_set_traces(&partition->input, partition, array, array->dtype, along);
    side_set_traces(&partition->output, partition, array, output, along);
}

void partition_make(struct partition *partition, const struct array *array, uint32_t axis, enum scand_dtype output)
{
    if (array->trace_header_bytes) {
        partition_traces(partition, array, axis, output);
        if (array->open_ended)
            partition->records = UINT64_MAX;
        return;
    }
    uint64_t input_bytes = array_sample_bytes(array), output_bytes = scand_dtype_bytes(output);
    uint32_t place = array->fortran ? array->rank - 1 - axis : axis;
    *partition = (struct partition){
        .records = 1, .length = array->shape[axis], .inner = 1, .least = 1, .in_place = output_bytes == input_bytes};
    for (uint32_t i = 0; i < place; i++)
        partition->records *= dimension(array, i);
    for (uint32_t i = place + 1; i < array->rank; i++)
        partition->inner *= dimension(array, i);
    if (array->open_ended)
        partition->records = UINT64_MAX;
    side_set(&partition->input, partition, array->dtype, partition->inner * input_bytes);
    side_set(&partition->output, partition, output, partition->inner * output_bytes);
}

void partition_make_reduce(struct partition *partition, const struct array *array, uint32_t axis,
                           enum scand_dtype output)
{
    uint64_t output_bytes = scand_dtype_bytes(output);
    partition_make(partition, array, axis, array->dtype);
    partition->in_place = false;
    partition->output = (struct side){
        .dtype = output,
        .length = 1,
        .sample_bytes = output_bytes,
        .record_bytes = partition->inner * output_bytes,
        .strides = {(int64_t)(partition->inner * output_bytes), (int64_t)(partition->inner * output_bytes),
                    (int64_t)output_bytes},
    };
}

void partition_make_ragged(struct partition *partition, const struct array *array, uint64_t longest,
                           enum scand_dtype output)
{
    uint64_t input_bytes = array_sample_bytes(array), output_bytes = scand_dtype_bytes(output);
    *partition = (struct partition){.records = array->shape[0],
                                    .length = 1,
                                    .inner = 1,
                                    .least = longest,
                                    .ragged = true,
                                    .in_place = output_bytes == input_bytes};
    side_set(&partition->input, partition, array->dtype, input_bytes);
    side_set(&partition->output, partition, output, output_bytes);
}

void partition_make_ragged_reduce(struct partition *partition, const struct array *array, uint64_t longest,
                                  uint64_t rows, enum scand_dtype output)
{
    partition_make_ragged(partition, array, longest, output);
    partition->in_place = false;
    partition->results = rows;
}

void partition_set_output(struct partition *partition, const struct array *result, uint32_t axis)
{
    struct partition own;
    partition_make(&own, result, axis, result->dtype);
    partition->output = own.input;
    partition->in_place = false;
}

void partition_add(struct partition *partition, const struct array *array, uint32_t axis, bool shared, bool broadcast)
{
    struct partition own;
    if (partition->ragged || shared)
        partition_make_ragged(&own, array, partition->least, array->dtype);
    else
        partition_make(&own, array, axis, array->dtype);
    struct further *further = &partition->further[partition->further_count++];
    *further = (struct further){own.input, shared, broadcast};
    if (!shared)
        return;
    further->side.length = array->shape[0];
    further->side.record_bytes *= array->shape[0];
    if (!broadcast)
        return;
    further->side.strides[0] = further->side.strides[2] = 0;
    further->side.strides[1] = (int64_t)own.input.sample_bytes;
}

uint64_t partition_batch_records(const struct partition *partition)
{
    uint64_t record_bytes = partition->input.record_bytes +
                            (partition->in_place || partition->results ? 0 : partition->output.record_bytes);
    for (uint32_t i = 0; i < partition->further_count; i++)
        record_bytes += partition->further[i].shared ? 0 : partition->further[i].side.record_bytes;
    uint64_t records = (partition->records == UINT64_MAX ? PIPE_BATCH_BYTES : BATCH_BYTES) / record_bytes;
    return records < partition->least ? partition->least : records < partition->records ? records : partition->records;
}

static uint64_t aligned(uint64_t bytes)
{
    return (bytes + SIDE_ALIGN - 1) / SIDE_ALIGN * SIDE_ALIGN;
}

uint64_t partition_output_offset(const struct partition *partition, uint64_t records)
{
    return partition->in_place ? 0 : aligned(records * partition->input.record_bytes);
}

static uint64_t further_bytes(const struct further *further, uint64_t records)
{
    return (further->shared ? 1 : records) * further->side.record_bytes;
}

uint64_t partition_further_offset(const struct partition *partition, uint64_t records, uint32_t further)
{
    const uint64_t results = partition->results ? partition->results : records;
    uint64_t offset = aligned(partition_output_offset(partition, records) + results * partition->output.record_bytes);
    for (uint32_t i = 0; i < further; i++)
        offset += aligned(further_bytes(&partition->further[i], records));
    return offset;
}

uint64_t partition_buffer_bytes(const struct partition *partition, uint64_t records)
{
    const uint32_t count = partition->further_count;
    if (count > 0)
        return partition_further_offset(partition, records, count - 1) +
               further_bytes(&partition->further[count - 1], records);
    return partition_output_offset(partition, records) +
           (partition->results ? partition->results : records) * partition->output.record_bytes;
}

static void side_tensor(const struct side *side, const struct partition *partition, uint64_t count,
                        struct scand_tensor *tensor)
{
    tensor->offset += side->offset;
    tensor->dtype = side->dtype;
    tensor->rank = partition->ragged ? 1 : partition->inner == 1 ? 2 : 3;
    const uint64_t shape[3] = {count, side->length, partition->inner};
    for (uint32_t i = 0; i < tensor->rank; i++) {
        tensor->shape[i] = shape[i];
        tensor->strides[i] = side->strides[i];
    }
}

static void vector_tensor(const struct side *side, struct scand_tensor *tensor)
{
    tensor->dtype = side->dtype;
    tensor->rank = 1;
    tensor->shape[0] = side->length;
    tensor->strides[0] = (int64_t)side->sample_bytes;
}

void partition_tensors(const struct partition *partition, struct scand_buffer *buffer, uint64_t records, uint64_t count,
                       struct operands *operands)
{
    operands->input = (struct scand_tensor){.buffer = buffer};
    operands->output = (struct scand_tensor){.buffer = buffer, .offset = partition_output_offset(partition, records)};
    operands->axis = !partition->ragged;
    side_tensor(&partition->input, partition, count, &operands->input);
    side_tensor(&partition->output, partition, count, &operands->output);
    operands->further_count = partition->further_count;
    for (uint32_t i = 0; i < partition->further_count; i++) {
        const struct further *further = &partition->further[i];
        operands->further[i] =
            (struct scand_tensor){.buffer = buffer, .offset = partition_further_offset(partition, records, i)};
        if (further->shared && !further->broadcast)
            vector_tensor(&further->side, &operands->further[i]);
        else
            side_tensor(&further->side, partition, count, &operands->further[i]);
    }
}
