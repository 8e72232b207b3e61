/*
 * The places where the steps of a chunk read and write. In a plain chunk, values between steps are in its output. In
 * other chunks they lie densely, in the order of the rows, in one or two memories of the device: a step works in place
 * where it may, else from one memory into the other.
 */
#ifndef DAEMON_BETWEEN_H
#define DAEMON_BETWEEN_H

#include "device.h"

#define BETWEEN_MEMORIES 2

/* A chunk that is not plain, as a device has it. */
struct chunk_rows {
    const struct chunk *chunk;
    const struct scan_rows *rows;              /* all rows of the job: how many, and their offsets */
    const struct step_operand *operands;       /* indexed by operand number; addresses that kernels reach */
    uint64_t first;                            /* the chunk's first row among all rows */
    unsigned char *memories[BETWEEN_MEMORIES]; /* between_bytes each, aligned for any element */
};

/* Returns how many memories the chunk needs. */
uint32_t between_memories(const struct chunk *chunk);

/* Return the rows of a step: of a scan or a reduction, and of any other operation. */
struct scan_rows chunk_scan_rows(const struct chunk_rows *chunk, uint32_t step);
struct step_rows chunk_step_rows(const struct chunk_rows *chunk, uint32_t step);

/* Returns rows whose input is the index that a chunk without steps checks. */
struct step_rows chunk_index_rows(const struct chunk_rows *chunk);

/* Returns the rows of a step of a plain chunk. */
static inline struct scan_rows chunk_plain_rows(const struct chunk *chunk, uint32_t step)
{
    return step > 0 ? rows_then(chunk->rows, &chunk->steps[step].rule) : *chunk->rows;
}

#endif
