/*
 * Copies of a chunk's rows between host memory and a slot on a CUDA device: as rectangles of bytes, split where host
 * memory was pinned in units. Rows that are no rectangles are not copied: the kernel then works on the mapped host
 * memory itself.
 */
#ifndef DAEMON_COPY_H
#define DAEMON_COPY_H

#include <cuda_runtime.h>

#include "daemon/device/device.h"

enum transport {
    TRANSPORT_NONE,    /* used where it lies: device memory, or mapped host memory */
    TRANSPORT_ROWS,    /* rows of contiguous samples: each row is a line */
    TRANSPORT_COLUMNS, /* contiguous rows, samples far apart: each sample of all rows is a line */
};

/* One side of a chunk, an operand: its rows as they lie, and as they will lie in the slot. */
struct side {
    const struct scan_rows *rows;
    uint64_t first, count;
    const struct span *span;
    const int64_t *outer_strides;
    uint64_t length; /* elements of a row: samples, one result, or a vector of its own */
    int64_t stride;  /* from sample to sample */
    uint64_t item_bytes;
    unsigned char *address; /* address of sample 0 of row 0 */
    enum transport transport;
    bool shared;  /* one row is that of all: only it is copied */
    bool by_rows; /* an element for each row */
    bool written;
};

static inline bool is_reduction(const struct scan_rows *rows)
{
    return rows->rule.operation == SCAND_OPERATION_REDUCE;
}

/* True when the processor copies the side to or from memory that is pinned. */
static inline bool side_is_staged(const struct side *side)
{
    return side->transport != TRANSPORT_NONE && side->span->staged;
}

/* Rows that no rectangles are made of, or too many for a slot, are for kernels on memory that they can reach. */
static inline bool side_is_out_of_reach(const struct side *side)
{
    return side->transport == TRANSPORT_NONE && side->address && side->span->staged;
}

/* Return the sides of a plain chunk; without coefficients, their side is one of which nothing is copied. */
struct side side_input(const struct chunk *chunk);
struct side side_output(const struct chunk *chunk);
struct side side_coefficients(const struct chunk *chunk);
/* Returns the side of an operand of any other chunk. line: ragged rows as a single one. */
struct side side_operand(const struct chunk *chunk, const struct scan_rows *line, uint32_t number);
/* Bytes that the side takes in a slot. */
uint64_t side_bytes(const struct side *side);
/* Bytes that the side takes in a slot, with padding that keeps the next side aligned. */
uint64_t side_room_bytes(const struct side *side);
/* The sides of a chunk, by the numbers of operands, and where each lies in the chunk's slot. Nothing is copied of
 * operands that are not there. */
struct sides {
    uint32_t count;
    struct side side[LIMIT_JOB_OPERANDS], between;
    unsigned char *at[LIMIT_JOB_OPERANDS], *between_at;
};

/* Places the sides of a plain chunk in a slot of size_bytes: input and output in the same place when they have the same
 * form, else one after the other, then the coefficients. A side too large for the slot stays where it is: the kernel
 * works on mapped host memory. */
void sides_place(struct sides *sides, unsigned char *slot, uint64_t size_bytes);
/* Places the sides of any other chunk in a slot, one after the other. */
void sides_place_apart(struct sides *sides, unsigned char *slot, uint64_t size_bytes);
/* Strides and address of row 0, sample 0, as if all rows lay densely around the slot's `count` ones. */
void side_place(const struct side *side, unsigned char *slot, int64_t outer_strides[SCAN_OUTER_MAX], int64_t *stride,
                unsigned char **address);
/* Queues the copies of a side to or from its slot. */
cudaError_t side_copy(const struct side *side, unsigned char *slot, enum cudaMemcpyKind direction, cudaStream_t stream);

enum staging {
    STAGING_GATHER,  /* from where the rows are */
    STAGING_SCATTER, /* to there */
};

/* Copies one of so many parts of a side by the processor, between where its rows are and memory in which they lie as
 * in a slot. */
void side_stage(const struct side *side, unsigned char *memory, enum staging staging, unsigned part, unsigned parts);

#endif
