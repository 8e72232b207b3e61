#include "chain.h"

struct side side_between(const struct chunk *chunk, const struct side *output)
{
    struct side between = *output;
    bool apart =
        chunk->step_count > 1 && output->transport == TRANSPORT_NONE && output->span->place == SCAND_PLACE_HOST;
    between.transport = apart ? TRANSPORT_ROWS : TRANSPORT_NONE;
    return between;
}

struct scan_rows chain_between(const struct scan_rows *rows, const struct side *between, unsigned char *memory)
{
    struct scan_rows there = *rows;
    unsigned char *address;
    side_place(between, memory, there.output_outer_strides, &there.output_stride, &address);
    there.output = address;
    if (rows->offsets) /* which count from before the chunk's first sample */
        there.output = (void *)((uintptr_t)address - rows->offsets[0] * (uintptr_t)there.output_stride);
    return there;
}

void chain_shift(struct scan_rows *rows, const struct chunk *chunk, const struct sides *sides,
                 const uint64_t *device_offsets)
{
    uint64_t first = chunk->first;
    int64_t begin = (int64_t)rows->offsets[first];
    if (sides->side[OPERAND_INPUT].transport != TRANSPORT_NONE)
        rows->input = (const void *)((uintptr_t)rows->input - (uintptr_t)(begin * rows->input_stride));
    if (rows->rule.operation == SCAND_OPERATION_REDUCE)
        rows->output = (char *)rows->output + scan_row_offset(rows, rows->output_outer_strides, first);
    else if (sides->side[OPERAND_OUTPUT].transport != TRANSPORT_NONE)
        rows->output = (void *)((uintptr_t)rows->output - (uintptr_t)(begin * rows->output_stride));
    if (sides->side[OPERAND_FURTHER].transport != TRANSPORT_NONE)
        rows->coefficients =
            (const void *)((uintptr_t)rows->coefficients - (uintptr_t)(begin * rows->coefficient_stride));
    rows->row_count = chunk->count;
    rows->offsets += first;
    rows->device_offsets = device_offsets;
}

struct scan_rows chain_step(const struct chunk *chunk, const struct scan_rows *rows, const struct scan_rows *between,
                            uint32_t i)
{
    struct scan_rows step = i > 0 ? rows_then(between, &chunk->steps[i].rule) : *rows;
    const struct scan_rows *to = i + 1 < chunk->step_count ? between : rows;
    step.output = to->output;
    step.output_stride = to->output_stride;
    memcpy(step.output_outer_strides, to->output_outer_strides, sizeof step.output_outer_strides);
    return step;
}
