#include "between.h"

/* An address whose sample `before` is the memory's first: rows count from the job's, and the memory is the chunk's. */
static void *address_before(void *memory, uint64_t before, uint64_t item_bytes)
{
    return (void *)((uintptr_t)memory - before * item_bytes);
}

/* The first step's rows, with the memory as their output. */
static struct scan_rows rows_between(const struct chunk *chunk, void *memory)
{
    struct scan_rows rows = *chunk->rows;
    const uint64_t item_bytes = dtype_size_bytes(rows.rule.output);
    rows.output_stride = (int64_t)item_bytes;
    if (rows.offsets) { /* they lie on a line; the outer dimension is that of results */
        rows.outer_rank = 0;
        rows.output = address_before(memory, rows.offsets[chunk->first], item_bytes);
        return rows;
    }
    int64_t pitch = (int64_t)(rows.length * item_bytes);
    rows.output = address_before(memory, chunk->first * rows.length, item_bytes);
    for (uint32_t k = rows.outer_rank; k-- > 0; pitch *= (int64_t)rows.outer_shape[k])
        rows.output_outer_strides[k] = pitch;
    return rows;
}

/* The last step's rows, with the memory as their input. */
static struct scan_rows rows_behind(const struct chunk *chunk, const struct scan_rows *between)
{
    struct scan_rows rows = *chunk->rows;
    rows.rule = chunk->steps[chunk->step_count - 1].rule;
    rows.input = between->output;
    rows.input_stride = between->output_stride;
    rows.coefficients = NULL;
    for (uint32_t k = 0; k < SCAN_OUTER_MAX; k++)
        rows.input_outer_strides[k] = between->outer_rank > 0 ? between->output_outer_strides[k] : 0;
    return rows;
}

struct scan_rows chunk_step_rows(const struct chunk *chunk, uint32_t step, void *between)
{
    const struct scan_rule *rule = &chunk->steps[step].rule;
    if (chunk->between_bytes == 0)
        return step > 0 ? rows_then(chunk->rows, rule) : *chunk->rows;
    const struct scan_rows rows = rows_between(chunk, between);
    if (step + 1 == chunk->step_count)
        return rows_behind(chunk, &rows);
    return step > 0 ? rows_then(&rows, rule) : rows;
}
