/* Operations as the list in operations.h describes them, beside their messages: their further operands, and what hello
 * returns. */
#ifndef PROTOCOL_DESCRIBE_H
#define PROTOCOL_DESCRIBE_H

#include "messages.h"

/* An operand that a step may have. */
struct operand_row {
    const char *name;
    size_t offset; /* offset of the operand's tensor in the step's message */
    enum access access;
    enum follows follows;
    enum operand_class class;
};

/* The operands of each operation; the last row has no name. */
extern const struct operand_row *const operand_rows[OPERATION_COUNT];

void operation_describe(enum operation_id operation, struct msg_operation *out);

#endif
