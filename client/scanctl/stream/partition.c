#include "client/scanctl/stream/partition.h"

#define SIDE_ALIGN 4096 /* of the result's first record in a buffer, and the coefficients' */

/* The axis' place, and dimension i, counted from the slowest axis. */
static uint64_t dimension(const struct array *array, uint32_t i)
{
    return array->shape[array->fortran ? array->rank - 1 - i : i];
}

static void side_set(struct side *side, const struct plan *plan, enum scand_dtype dtype, uint64_t row_bytes)
{
    /* row_bytes: from one position on the scanned axis to the next. */
    uint64_t sample_bytes = scand_dtype_bytes(dtype);
    side->dtype = dtype;
    side->length = plan->length;
    side->sample_bytes = sample_bytes;
    side->record_bytes = plan->length * row_bytes;
    side->strides[0] = (int64_t)side->record_bytes;
    side->strides[1] = (int64_t)row_bytes;
    side->strides[2] = (int64_t)sample_bytes;
}

/* Traces with headers between them: along a trace, a record is a trace; across traces, the one record is the file. */
static void plan_traces(struct plan *plan, const struct array *array, uint32_t axis)
{
    uint64_t trace_bytes = array_unit_bytes(array, SU_SAMPLE_BYTES);
    bool along = axis == 1;
    *plan = (struct plan){
        .records = along ? array->shape[0] : 1,
        .length = array->shape[axis],
        .inner = along ? 1 : array->shape[1],
        .least = 1,
        .in_place = true,
    };
    side_set(&plan->input, plan, array->dtype, along ? SU_SAMPLE_BYTES : trace_bytes);
    plan->input.offset = array->trace_header_bytes;
    if (along) {
        plan->input.record_bytes = trace_bytes;
        plan->input.strides[0] = (int64_t)trace_bytes;
    }
    plan->output = plan->input;
}

void plan_make(struct plan *plan, const struct array *array, uint32_t axis, enum scand_dtype output)
{
    if (array->trace_header_bytes) {
        plan_traces(plan, array, axis);
        return;
    }
    uint64_t input_bytes = array_sample_bytes(array), output_bytes = scand_dtype_bytes(output);
    uint32_t place = array->fortran ? array->rank - 1 - axis : axis;
    *plan = (struct plan){
        .records = 1, .length = array->shape[axis], .inner = 1, .least = 1, .in_place = output_bytes == input_bytes};
    for (uint32_t i = 0; i < place; i++)
        plan->records *= dimension(array, i);
    for (uint32_t i = place + 1; i < array->rank; i++)
        plan->inner *= dimension(array, i);
    side_set(&plan->input, plan, array->dtype, plan->inner * input_bytes);
    side_set(&plan->output, plan, output, plan->inner * output_bytes);
}

void plan_make_reduce(struct plan *plan, const struct array *array, uint32_t axis, enum scand_dtype output)
{
    uint64_t output_bytes = scand_dtype_bytes(output);
    plan_make(plan, array, axis, array->dtype);
    plan->in_place = false;
    plan->output = (struct side){
        .dtype = output,
        .length = 1,
        .sample_bytes = output_bytes,
        .record_bytes = plan->inner * output_bytes,
        .strides = {(int64_t)(plan->inner * output_bytes), (int64_t)(plan->inner * output_bytes),
                    (int64_t)output_bytes},
    };
}

void plan_make_ragged(struct plan *plan, const struct array *array, uint64_t longest, enum scand_dtype output)
{
    uint64_t input_bytes = array_sample_bytes(array), output_bytes = scand_dtype_bytes(output);
    *plan = (struct plan){.records = array->shape[0],
                          .length = 1,
                          .inner = 1,
                          .least = longest,
                          .ragged = true,
                          .in_place = output_bytes == input_bytes};
    side_set(&plan->input, plan, array->dtype, input_bytes);
    side_set(&plan->output, plan, output, output_bytes);
}

void plan_make_ragged_reduce(struct plan *plan, const struct array *array, uint64_t longest, uint64_t rows,
                             enum scand_dtype output)
{
    plan_make_ragged(plan, array, longest, output);
    plan->in_place = false;
    plan->results = rows;
}

void plan_add_coefficients(struct plan *plan, const struct array *coefficients, uint32_t axis)
{
    struct plan own;
    if (plan->ragged)
        plan_make_ragged(&own, coefficients, plan->least, coefficients->dtype);
    else
        plan_make(&own, coefficients, axis, coefficients->dtype);
    plan->has_coefficients = true;
    plan->coefficients = own.input;
}

uint64_t plan_piece_records(const struct plan *plan)
{
    uint64_t record_bytes =
        plan->input.record_bytes + (plan->in_place || plan->results ? 0 : plan->output.record_bytes);
    record_bytes += plan->has_coefficients ? plan->coefficients.record_bytes : 0;
    uint64_t records = PIECE_BYTES / record_bytes;
    return records < plan->least ? plan->least : records < plan->records ? records : plan->records;
}

static uint64_t aligned(uint64_t bytes)
{
    return (bytes + SIDE_ALIGN - 1) / SIDE_ALIGN * SIDE_ALIGN;
}

uint64_t plan_output_offset(const struct plan *plan, uint64_t records)
{
    return plan->in_place ? 0 : aligned(records * plan->input.record_bytes);
}

uint64_t plan_coefficients_offset(const struct plan *plan, uint64_t records)
{
    return aligned(plan_output_offset(plan, records) + records * plan->output.record_bytes);
}

uint64_t plan_buffer_bytes(const struct plan *plan, uint64_t records)
{
    if (plan->has_coefficients)
        return plan_coefficients_offset(plan, records) + records * plan->coefficients.record_bytes;
    return plan_output_offset(plan, records) + (plan->results ? plan->results : records) * plan->output.record_bytes;
}

static void side_tensor(const struct side *side, const struct plan *plan, uint64_t count, struct scand_tensor *tensor)
{
    tensor->offset += side->offset;
    tensor->dtype = side->dtype;
    tensor->rank = plan->ragged ? 1 : plan->inner == 1 ? 2 : 3;
    const uint64_t shape[3] = {count, side->length, plan->inner};
    for (uint32_t i = 0; i < tensor->rank; i++) {
        tensor->shape[i] = shape[i];
        tensor->strides[i] = side->strides[i];
    }
}

void plan_tensors(const struct plan *plan, struct scand_buffer *buffer, uint64_t records, uint64_t count,
                  struct scand_scan *scan)
{
    scan->input = (struct scand_tensor){.buffer = buffer};
    scan->output = (struct scand_tensor){.buffer = buffer, .offset = plan_output_offset(plan, records)};
    scan->axis = !plan->ragged;
    side_tensor(&plan->input, plan, count, &scan->input);
    side_tensor(&plan->output, plan, count, &scan->output);
    if (plan->has_coefficients) {
        scan->coefficients = (struct scand_tensor){.buffer = buffer, .offset = plan_coefficients_offset(plan, records)};
        side_tensor(&plan->coefficients, plan, count, &scan->coefficients);
    }
}
