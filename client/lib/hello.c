/* The daemon's answer to hello: the operations that steps of a task may be. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/lib/internal.h"

static int operation_read_from(const struct message *message, uint32_t index, struct msg_operation *out,
                               struct error *error)
{
    return message_read_item(message, "operations", index, &msg_operation_type, out, error);
}

/* The message itself is kept: operations take ten times as much when they are read, and few programs ask for them. */
int hello_keep(struct scand *daemon, const struct message *message, struct error *error)
{
    struct msg_operation operation;
    const uint8_t *bytes;
    size_t size;
    int count = operation_read_from(message, 0, &operation, error);
    if (count < 0 || connection_peek(daemon->connection, &bytes, &size) != 1)
        return -EBADMSG;
    uint8_t *kept = realloc(daemon->hello, size);
    if (!kept)
        return -ENOMEM;
    memcpy(kept, bytes, size);
    daemon->hello = kept;
    daemon->hello_size = size;
    daemon->runs_tasks = count > 0;
    return 0;
}

int hello_operation(struct scand *daemon, uint32_t index, struct msg_operation *out)
{
    struct message message;
    struct error error = {.message = ""};
    int code = message_open(&message, daemon->hello, daemon->hello_size, &error);
    if (code == 0)
        code = operation_read_from(&message, index, out, &error);
    message_close(&message);
    return code < 0 ? session_fail(daemon, code, "the daemon's operations cannot be read: %s", error.message) : code;
}
