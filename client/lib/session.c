/* The session's connection: opening, dropping, sending, and handling what arrives. */
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>

#include "client/lib/internal.h"

#define X(HANDLER, METHOD, PARAMS, RESULT) [METHOD_##HANDLER] = &msg_##PARAMS##_type,
static const struct map_type *const params_types[METHOD_COUNT] = {METHODS(X)};
#undef X

int64_t clock_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static uint64_t now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

int session_fail(struct scand *daemon, int code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    daemon->error = (struct error){.code = code};
    vsnprintf(daemon->error.message, sizeof daemon->error.message, format, arguments);
    va_end(arguments);
    return code;
}

uint32_t session_next_msgid(struct scand *daemon, uint32_t mark)
{
    do
        daemon->last_msgid = (daemon->last_msgid + 1) & ~MSGID_MARKS;
    while (daemon->last_msgid == 0 || job_find(daemon, daemon->last_msgid));
    return daemon->last_msgid | mark;
}

static int session_connect(struct scand *daemon)
{
    int code = socket_reach(process_open(daemon), daemon->path, &daemon->error);
    /* Whatever keeps us from it, the daemon is unavailable; the message says why. */
    if (code)
        return daemon->error.code = code == -EINVAL || code == -EPERM ? code : -ECONNREFUSED;
    if (!process_take(daemon))
        return session_fail(daemon, -ENOMEM, "out of memory while connecting to %s", daemon->path);
    struct epoll_event event = {.events = EPOLLIN};
    daemon->watches_output = false;
    if (epoll_ctl(daemon->epoll, EPOLL_CTL_ADD, connection_fd(daemon->connection), &event))
        return session_fail(daemon, -ENOMEM, "cannot watch the connection to %s: %s", daemon->path, strerror(errno));
    return 0;
}

static int session_hello(struct scand *daemon)
{
    struct msg_hello_params params = {.version_min = 1, .version_max = PROTOCOL_VERSION};
    struct msg_hello_result result;
    memcpy(params.client, daemon->name, sizeof params.client);
    int code = call_try(daemon, &(struct call){.method = METHOD_hello, .params = &params, .result = &result});
    if (code)
        return code;
    if (result.version < 1 || result.version > PROTOCOL_VERSION)
        return session_fail(
            daemon, -EPROTONOSUPPORT,
            "the daemon at %s chose protocol version %llu; this library speaks 1 to %d: upgrade one of them",
            daemon->path, (unsigned long long)result.version, PROTOCOL_VERSION);
    /* Its limits are for it to enforce: what it refuses, it explains. But fields that it does not know, it ignores. */
    daemon->job_steps = result.limits.job_steps;
    daemon->batch_jobs = result.limits.batch_jobs;
    memcpy(daemon->server, result.server, sizeof daemon->server);
    return 0;
}

int session_check_owner(struct scand *daemon)
{
    if (!process_is_child(daemon))
        return 0;
    return session_fail(daemon, -ECHILD,
                        "this connection is that of the process which forked this one: connect anew here; "
                        "scand_disconnect or scand_forget frees what this process has of it");
}

int session_open(struct scand *daemon)
{
    int code = session_connect(daemon);
    if (code == 0)
        code = session_hello(daemon);
    if (code == -EPIPE)
        session_fail(daemon, code, "the daemon at %s closed the connection before it answered: its log says why",
                     daemon->path);
    if (code == -ETIMEDOUT)
        session_fail(
            daemon, code,
            "the daemon at %s took the connection but did not answer within %d s: it hangs, or starts too slowly",
            daemon->path, CALL_MS / 1000);
    if (code)
        session_drop(daemon);
    return code;
}

void session_drop(struct scand *daemon)
{
    const bool connected = daemon->connection != NULL;
    if (connected)
        epoll_ctl(daemon->epoll, EPOLL_CTL_DEL, daemon->socket, NULL);
    process_close(daemon);
    if (!connected)
        return;
    daemon->generation++;
    /* Ids of one connection mean nothing on the next. */
    for (struct scand_job *job = daemon->jobs; job; job = job->next)
        job->msgid = 0;
}

int session_give_up(struct scand *daemon)
{
    session_drop(daemon);
    daemon->gone = true;
    for (struct scand_job *job = daemon->jobs, *next; job; job = next) {
        next = job->next;
        if (!job->done)
            job_end(job, &daemon->error);
    }
    return daemon->error.code;
}

/* Writes what the socket takes. With output left, scand_fd's descriptor is readable when the socket is writable. */
static int session_flush(struct scand *daemon)
{
    int code = connection_flush(daemon->connection);
    bool waits = code == -EAGAIN;
    if (waits != daemon->watches_output) {
        struct epoll_event event = {.events = waits ? EPOLLIN | EPOLLOUT : EPOLLIN};
        epoll_ctl(daemon->epoll, EPOLL_CTL_MOD, connection_fd(daemon->connection), &event);
        daemon->watches_output = waits;
    }
    return waits ? 0 : code;
}

int session_send(struct scand *daemon, uint32_t msgid, const struct call *call)
{
    struct encoded out = {.bytes = daemon->outgoing, .capacity = sizeof daemon->outgoing};
    int code = encode_request(&out, msgid, call->method, params_types[call->method], call->params);
    if (code)
        return session_fail(daemon, code, "the request %s does not fit a message", method_name(call->method));
    code = connection_send(daemon->connection, out.bytes, out.size, call->fds, call->fd_count);
    if (code == -ENOBUFS)
        return session_fail(daemon, -EAGAIN,
                            "the daemon does not read its requests: wait for a job before submitting more");
    if (code)
        return session_fail(daemon, code == -EMFILE ? -EBADF : code, "cannot send %s: %s", method_name(call->method),
                            strerror(-code));
    return session_flush(daemon) ? -EPIPE : 0;
}

static int take_notification(struct scand *daemon, const struct message *message, struct msg_job_progress *progress,
                             struct error *error)
{
    if (message->method == METHOD_job_ending)
        daemon->spin_end_us = now_us() + ANSWER_US;
    if (message->method != METHOD_job_progress)
        return 0; /* of a later version */
    return message_read(message, &msg_job_progress_type, progress, error) ? -EBADMSG : 0;
}

/* Handles one message. A callback comes last, when nothing of the message is needed: it may call the library. */
static int session_take(struct scand *daemon, const uint8_t *bytes, size_t size)
{
    struct message message;
    struct msg_job_progress progress = {0};
    struct error error = {.message = ""};
    int code = message_open(&message, bytes, size, &error);
    if (code == 0 && message.kind == MESSAGE_RESPONSE)
        code = take_response(daemon, &message, &error);
    else if (code == 0 && message.kind == MESSAGE_NOTIFICATION)
        code = take_notification(daemon, &message, &progress, &error);
    else if (code == 0)
        code = error_set(&error, -EBADMSG, "a request, where only answers are expected");
    message_close(&message);
    connection_consume(daemon->connection);
    if (code) {
        if (code == -ENOMEM)
            session_fail(daemon, code, "out of memory for a message of the daemon");
        else
            session_fail(daemon, -EBADMSG,
                         "the daemon at %s sent what breaks the protocol (%s): make sure that it is scand",
                         daemon->path, error.message);
        return session_give_up(daemon);
    }
    job_report(job_find_at(daemon, (uint32_t)progress.job, (uint32_t)progress.index), &progress);
    return 0;
}

static int session_take_all(struct scand *daemon)
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
        code = session_take(daemon, bytes, size);
        if (code)
            return code;
    }
    return -EPIPE;
}

static int session_poll(struct scand *daemon, int64_t deadline_ms)
{
    struct pollfd poller = {.fd = connection_fd(daemon->connection), .events = POLLIN};
    if (daemon->watches_output)
        poller.events |= POLLOUT;
    for (;;) {
        const bool soon = now_us() < daemon->spin_end_us;
        int64_t left_ms = deadline_ms - clock_ms();
        left_ms = left_ms < 0 ? 0 : left_ms;
        int block_ms = deadline_ms == INT64_MAX ? -1 : left_ms > INT32_MAX ? INT32_MAX : (int)left_ms;
        int count = poll(&poller, 1, soon ? 0 : block_ms);
        if (count > 0)
            return 0;
        if (count == 0 && (soon ? left_ms == 0 : left_ms < INT32_MAX))
            return -ETIMEDOUT;
        if (count < 0 && errno != EINTR)
            return -EPIPE;
    }
}

int session_step(struct scand *daemon, int64_t deadline_ms)
{
    const uint8_t *bytes;
    size_t size;
    int code = session_check_owner(daemon); /* a callback may have forked */
    if (code)
        return code;
    if (!daemon->connection)
        return -EPIPE;
    /* A call from a callback finds the rest of what came with its message. */
    if (connection_peek(daemon->connection, &bytes, &size))
        return session_take_all(daemon);
    (void)session_flush(daemon); /* Answers may be readable though nothing can be written any more. */
    code = session_poll(daemon, deadline_ms);
    if (code == -ETIMEDOUT)
        return code;
    code = code ? code : connection_receive(daemon->connection);
    if (code == -EMFILE || code == -EBADF) {
        session_fail(daemon, -EBADF, "descriptors from the daemon were lost: %s",
                     code == -EMFILE ? "this process has too many files open; raise ulimit -n, or close some"
                                     : "it sent more than it may");
        return session_give_up(daemon);
    }
    if (code > 0)
        return session_take_all(daemon);
    if (code == -EAGAIN)
        return 0;
    session_drop(daemon);
    return -EPIPE;
}

int session_run(struct scand *daemon, const bool *done, int64_t deadline_ms)
{
    uint64_t generation = daemon->generation;
    for (;;) {
        int code = session_step(daemon, deadline_ms);
        if (*done)
            return 0;
        if (code)
            return code;
        if (daemon->generation != generation)
            return -EPIPE;
        if (clock_ms() >= deadline_ms)
            return -ETIMEDOUT;
    }
}
