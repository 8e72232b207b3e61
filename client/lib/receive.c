/* Messages that have arrived: answers go to who waits for them, notifications to their jobs. */
#include <errno.h>
#include <unistd.h>

#include "client/lib/internal.h"

/* Closes the descriptors that an answer announces. */
static int announced_fds_close(struct scand *daemon, uint64_t count, struct error *error)
{
    int fds[LIMIT_MESSAGE_FDS];
    int code = answer_pop_descriptors(daemon, count, fds, error);
    for (size_t i = 0; code == 0 && i < count; i++)
        close(fds[i]);
    return code;
}

/* Handles an answer that came after its call's time: gives back the buffer that it brings. Other answers bring nothing
 * to keep. */
static int late_answer_handle(struct scand *daemon, const struct message *message, struct error *error)
{
    struct msg_buffer_create_result created = {0};
    struct msg_buffer_export_result exported;
    struct msg_buffer_id id;
    if (message->failed || !(message->msgid & MSGID_MARKS))
        return 0;
    if (message->msgid & MSGID_EXPORT)
        return message_read(message, &msg_buffer_export_result_type, &exported, error)
                   ? -EBADMSG
                   : announced_fds_close(daemon, exported.fds, error);
    if (message->msgid & MSGID_CREATE) {
        if (message_read(message, &msg_buffer_create_result_type, &created, error) ||
            announced_fds_close(daemon, created.fds, error))
            return -EBADMSG;
        id.buffer = created.buffer;
    } else if (message_read(message, &msg_buffer_id_type, &id, error)) {
        return -EBADMSG;
    }
    struct error before = *session_error(daemon);
    (void)session_send(daemon, session_next_msgid(daemon, 0),
                       &(struct call){.method = METHOD_buffer_release, .params = &id});
    *session_error(daemon) = before;
    return 0;
}

static int answer_handle(struct scand *daemon, const struct message *message, struct error *error)
{
    struct pending *pending = pending_find(daemon, message->msgid);
    if (!pending)
        return late_answer_handle(daemon, message, error);
    pending_remove(daemon, pending);
    return pending->done(daemon, pending, message, error);
}

static int notification_handle(struct scand *daemon, const struct message *message, struct msg_job_progress *progress,
                               struct error *error)
{
    if (message->method == METHOD_job_ending)
        daemon->spin_end_us = clock_us() + ANSWER_US;
    if (message->method != METHOD_job_progress)
        return 0; /* a message of a later version */
    return message_read(message, &msg_job_progress_type, progress, error) ? -EBADMSG : 0;
}

/* Descriptors that no answer announces are nobody's, and would be taken for those of a later answer. */
static int descriptors_check(struct connection *connection, struct error *error)
{
    const size_t count = connection_fd_count(connection);
    if (count == 0 || connection_has_more(connection))
        return 0;
    return error_set(error, -EBADMSG, "%zu descriptors that it did not announce", count);
}

/* Handles one message. A callback comes last, when nothing of the message is needed: it may call the library. */
static int message_handle(struct scand *daemon, const uint8_t *bytes, size_t size)
{
    struct message message;
    struct msg_job_progress progress = {0};
    struct error error;
    error_clear(&error);
    int code = message_open_in(&message, &daemon->arena, bytes, size, &error);
    if (code == 0 && message.kind == MESSAGE_RESPONSE)
        code = answer_handle(daemon, &message, &error);
    else if (code == 0 && message.kind == MESSAGE_NOTIFICATION)
        code = notification_handle(daemon, &message, &progress, &error);
    else if (code == 0)
        code = error_set(&error, -EBADMSG, "a request, where only answers are expected");
    message_close(&message);
    connection_consume(daemon->connection);
    if (code == 0)
        code = descriptors_check(daemon->connection, &error);
    if (code) {
        if (code == -ENOMEM)
            session_fail(daemon, code, "out of memory for a message of the daemon");
        else
            session_fail(daemon, -EBADMSG,
                         "the daemon at %s sent what breaks the protocol (%s): make sure that it is scand",
                         daemon->path, error.message);
        return session_give_up(daemon);
    }
    job_report(job_find(daemon, (uint32_t)progress.job, (uint32_t)progress.index), &progress);
    return 0;
}

int session_receive(struct scand *daemon)
{
    uint64_t generation = daemon->generation;
    while (daemon->generation == generation) {
        const uint8_t *bytes;
        size_t size;
        int code = connection_peek(daemon->connection, &bytes, &size);
        if (code == 0)
            return 0;
        if (code < 0) {
            session_fail(daemon, -EBADMSG,
                         "the daemon at %s sent bytes that are no message: make sure that it is scand", daemon->path);
            return session_give_up(daemon);
        }
        code = message_handle(daemon, bytes, size);
        if (code)
            return code;
    }
    return -EPIPE;
}
