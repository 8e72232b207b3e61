/* Answers that calls and jobs wait for, and reading what they bring. */
#include <errno.h>
#include <string.h>

#include "client/lib/internal.h"

void pending_add(struct scand *daemon, struct pending *pending)
{
    pending->next = daemon->pending;
    daemon->pending = pending;
}

void pending_remove(struct scand *daemon, const struct pending *pending)
{
    struct pending **link = &daemon->pending;
    while (*link && *link != pending)
        link = &(*link)->next;
    if (*link)
        *link = pending->next;
}

struct pending *pending_find(const struct scand *daemon, uint32_t msgid)
{
    struct pending *pending = daemon->pending;
    while (pending && pending->msgid != msgid)
        pending = pending->next;
    return pending;
}

int answer_read(const struct message *message, const struct map_type *type, void *out, struct error *error)
{
    return message_read(message, type, out, error) ? -EBADMSG : 0;
}

void error_from_failure(const struct msg_failure *failure, struct error *out)
{
    failure_to_error(failure, out);
    if (out->message[0] == '\0')
        strcpy(out->message, status_text(status_from_errno(out->code)));
}

int answer_read_failure(const struct message *message, struct error *out, struct error *error)
{
    struct msg_failure failure;
    if (answer_read(message, &msg_failure_type, &failure, error))
        return -EBADMSG;
    error_from_failure(&failure, out);
    return 0;
}

int answer_pop_descriptors(struct scand *daemon, uint64_t count, int *fds, struct error *error)
{
    if (connection_pop_fds(daemon->connection, fds, count) == 0)
        return 0;
    return error_set(error, -EBADMSG, "%llu descriptors announced, %zu came", (unsigned long long)count,
                     connection_fd_count(daemon->connection));
}
