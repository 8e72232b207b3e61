#include "between.h"

#define NOWHERE BETWEEN_MEMORIES /* stands for the input and the output */

static bool works_in_place(const struct step *step, uint64_t length)
{
    return step->kernel ? step->kernel->in_place && step->length == length
                        : step->rule.operation == SCAND_OPERATION_SCAN;
}

/* Returns the memory of what the first `steps` steps leave. */
static uint32_t memory_behind(const struct chunk *chunk, uint32_t steps)
{
    uint32_t memory = NOWHERE;
    for (uint32_t i = 0; i < steps; i++)
        if (memory == NOWHERE || !works_in_place(&chunk->steps[i], chunk->steps[i - 1].length))
            memory = memory == 0 ? 1 : 0;
    return memory;
}

uint32_t between_memories(const struct chunk *chunk)
{
    uint32_t count = 0;
    for (uint32_t steps = 1; steps < chunk->step_count; steps++)
        if (memory_behind(chunk, steps) >= count)
            count = memory_behind(chunk, steps) + 1;
    return count;
}

/* Returns the address of element 0 of the job's row 0, which lies `before` elements before the memory, since the memory
 * begins with the chunk's first row. */
static char *origin_before(unsigned char *memory, uint64_t before, uint64_t item_bytes)
{
    return (char *)((uintptr_t)memory - before * item_bytes);
}

static struct step_operand between_operand(const struct chunk_rows *chunk, uint32_t steps)
{
    const struct scan_rows *rows = chunk->rows;
    struct step_operand operand = {.length = chunk->chunk->steps[steps - 1].length,
                                   .dtype = chunk->operands[OPERAND_OUTPUT].dtype,
                                   .on_line = rows->offsets != NULL};
    const uint64_t item_bytes = dtype_size_bytes(operand.dtype),
                   before = rows->offsets ? rows->offsets[chunk->first] : chunk->first * operand.length;
    int64_t pitch = (int64_t)(operand.length * item_bytes);
    operand.origin = origin_before(chunk->memories[memory_behind(chunk->chunk, steps)], before, item_bytes);
    operand.stride = (int64_t)item_bytes;
    for (uint32_t k = rows->offsets ? 0 : rows->outer_rank; k-- > 0; pitch *= (int64_t)rows->outer_shape[k])
        operand.outer_strides[k] = pitch;
    return operand;
}

/* Returns the operand that the first `steps` steps leave: without steps the input, after all of them the output. */
static struct step_operand operand_behind(const struct chunk_rows *chunk, uint32_t steps)
{
    if (steps == 0)
        return chunk->operands[OPERAND_INPUT];
    return steps == chunk->chunk->step_count ? chunk->operands[OPERAND_OUTPUT] : between_operand(chunk, steps);
}

struct step_rows chunk_step_rows(const struct chunk_rows *chunk, uint32_t step)
{
    const struct scan_rows *rows = chunk->rows;
    const uint8_t *further = chunk->chunk->steps[step].further;
    struct step_rows steps = {.row_count = rows->row_count,
                              .offsets = rows->offsets,
                              .device_offsets = rows->device_offsets,
                              .outer_rank = rows->outer_rank,
                              .input = operand_behind(chunk, step),
                              .output = operand_behind(chunk, step + 1)};
    memcpy(steps.outer_shape, rows->outer_shape, sizeof steps.outer_shape);
    for (uint32_t i = 0; i < LIMIT_OPERANDS; i++)
        if (further[i] > 0)
            steps.further[i] = chunk->operands[further[i]];
    return steps;
}

struct step_rows chunk_index_rows(const struct chunk_rows *chunk)
{
    const struct scan_rows *rows = chunk->rows;
    struct step_rows index = {
        .row_count = rows->row_count, .outer_rank = rows->outer_rank, .input = chunk->operands[0]};
    memcpy(index.outer_shape, rows->outer_shape, sizeof index.outer_shape);
    return index;
}

_Static_assert(LIMIT_OPERANDS <= STEP_FURTHER_MAX, "a step's operands go where its kernel looks for them");

struct scan_rows chunk_scan_rows(const struct chunk_rows *chunk, uint32_t step)
{
    const struct step *scan = &chunk->chunk->steps[step];
    const struct step_operand input = operand_behind(chunk, step), output = operand_behind(chunk, step + 1);
    struct scan_rows rows = *chunk->rows;
    rows.rule = scan->rule;
    rows.length = rows.offsets ? rows.length : input.length;
    if (rows.offsets && rows.rule.operation == SCAND_OPERATION_SCAN)
        rows.outer_rank = 0; /* ragged rows lie on a line; the outer dimension belongs to what follows rows */
    rows.input = input.origin;
    rows.input_stride = input.stride;
    memcpy(rows.input_outer_strides, input.outer_strides, sizeof rows.input_outer_strides);
    rows.output = output.origin;
    rows.output_stride = output.stride;
    memcpy(rows.output_outer_strides, output.outer_strides, sizeof rows.output_outer_strides);
    if (scan->further[0] > 0) {
        const struct step_operand *coefficients = &chunk->operands[scan->further[0]];
        rows.coefficients = coefficients->origin;
        rows.coefficient_stride = coefficients->stride;
        memcpy(rows.coefficient_outer_strides, coefficients->outer_strides, sizeof rows.coefficient_outer_strides);
    }
    return rows;
}
