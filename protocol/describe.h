/* What hello tells of operations, from the list in operations.h. */
#ifndef PROTOCOL_DESCRIBE_H
#define PROTOCOL_DESCRIBE_H

#include "messages.h"

void operation_describe(enum operation_id operation, struct msg_operation *out);

#endif
