#include "cuda_chain.h"

struct side side_between(const struct chunk *chunk, const struct side *output)
{
    struct side between = *output;
    bool apart =
        chunk->then_count > 0 && output->transport == TRANSPORT_NONE && output->span->place == SCAND_PLACE_HOST;
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

struct scan_rows chain_step(const struct chunk *chunk, const struct scan_rows *rows, const struct scan_rows *between,
                            uint32_t i)
{
    struct scan_rows step = i > 0 ? rows_then(between, &chunk->then[i - 1]) : *rows;
    const struct scan_rows *to = i < chunk->then_count ? between : rows;
    step.output = to->output;
    step.output_stride = to->output_stride;
    memcpy(step.output_outer_strides, to->output_outer_strides, sizeof step.output_outer_strides);
    return step;
}
