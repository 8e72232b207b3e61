/* Operands of a job: memory that it reads or writes, and how elements lie in it. */
#ifndef DAEMON_OPERAND_H
#define DAEMON_OPERAND_H

#include "daemon/core/memory/buffer.h"
#include "kernels/scan.h"
#include "protocol/operations.h"

struct operand {
    struct buffer *buffer; /* held by the job; NULL: it has no such operand */
    struct extent extent;
    enum access access;
    enum follows follows;
    enum scand_dtype dtype;
    uint64_t item_bytes;
    uint64_t length; /* elements along the axis, or of what belongs to the job; of ragged rows those of the line */
    unsigned char *origin; /* the element of sample 0 of row 0; NULL where none is touched */
    int64_t stride;        /* from sample to sample */
    int64_t outer_strides[SCAN_OUTER_MAX];
};

#endif
