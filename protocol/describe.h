/* What there is to know of operations beside their messages, from the list in operations.h: their further operands, and
 * what hello tells. */
#ifndef PROTOCOL_DESCRIBE_H
#define PROTOCOL_DESCRIBE_H

#include "messages.h"

/* An operand that a step may have. */
struct operand_row {
    const char *name;
    size_t offset; /* of its tensor, in the step's message */
    enum access access;
    enum follows follows;
    enum operand_class class;
};

/* Those of each operation, up to one without a name. */
extern const struct operand_row *const operand_rows[OPERATION_COUNT];

void operation_describe(enum operation_id operation, struct msg_operation *out);

#endif
