/*
 * Where the steps of a chunk read and write. In a plain chunk values between steps are in its output. In others they
 * lie densely, in the order of the rows, in one or two memories of the device's: a step works in place where it may,
 * else from one memory into the other.
 */
#ifndef DAEMON_BETWEEN_H
#define DAEMON_BETWEEN_H

#include "device.h"

#define BETWEEN_MEMORIES 2

/* A chunk that is not plain, as a device has it. */
struct chunk_rows {
    const struct chunk *chunk;
    const struct scan_rows *rows;              /* how many there are, with those of other chunks; offsets */
    const struct step_operand *operands;       /* by number, at addresses that kernels reach */
    uint64_t first;                            /* the chunk's first row among them */
    unsigned char *memories[BETWEEN_MEMORIES]; /* of between_bytes each, aligned for any element */
};

/* How many memories the chunk needs. */
uint32_t between_memories(const struct chunk *chunk);

/* The rows of a step: for a scan or a reduction, and for any other operation. */
struct scan_rows chunk_scan_rows(const struct chunk_rows *chunk, uint32_t step);
struct step_rows chunk_step_rows(const struct chunk_rows *chunk, uint32_t step);

/* For a chunk that checks values: rows whose input these values are. */
struct step_rows chunk_index_rows(const struct chunk_rows *chunk);

/* The rows of a step of a plain chunk. */
static inline struct scan_rows chunk_plain_rows(const struct chunk *chunk, uint32_t step)
{
    return step > 0 ? rows_then(chunk->rows, &chunk->steps[step].rule) : *chunk->rows;
}

#endif
