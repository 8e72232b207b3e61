/* The session's connection: making it, sending on it, dropping it. */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#include "client/lib/internal.h"

#define X(HANDLER, METHOD, PARAMS, RESULT) [METHOD_##HANDLER] = &msg_##PARAMS##_type,
static const struct map_type *const params_types[METHOD_COUNT] = {METHODS(X)};
#undef X

int session_check(struct scand *daemon)
{
    if (process_is_child(daemon))
        return session_fail(daemon, -ECHILD,
                            "this connection is that of the process which forked this one: connect anew here; "
                            "scand_disconnect or scand_forget frees what this process has of it");
    if (daemon->is_ending)
        return session_fail(daemon, -ENOTCONN,
                            "another thread has called scand_disconnect meanwhile: the connection and its jobs have "
                            "ended");
    return 0;
}

uint32_t session_next_msgid(struct scand *daemon, uint32_t mark)
{
    do
        daemon->last_msgid = (daemon->last_msgid + 1) & ~MSGID_MARKS;
    while (daemon->last_msgid == 0 || pending_find(daemon, daemon->last_msgid));
    return daemon->last_msgid | mark;
}

static int daemon_connect(struct scand *daemon, bool blocks)
{
    struct error *error = session_error(daemon);
    int code = socket_reach(process_open(daemon, blocks), daemon->path, error);
    /* Whatever the cause, the daemon is unavailable; the message says why. */
    if (code)
        return error->code = code == -EINVAL || code == -EPERM ? code : -ECONNREFUSED;
    if (!process_connect(daemon))
        return session_fail(daemon, -ENOMEM, "out of memory while connecting to %s", daemon->path);
    struct epoll_event event = {.events = EPOLLIN};
    daemon->watches_output = false;
    if (epoll_ctl(daemon->epoll, EPOLL_CTL_ADD, connection_fd(daemon->connection), &event))
        return session_fail(daemon, -ENOMEM, "cannot watch the connection to %s: %s", daemon->path, strerror(errno));
    return 0;
}

int session_connect(struct scand *daemon, bool blocks)
{
    *session_error(daemon) = (struct error){.code = 0};
    return daemon->local ? local_connect(daemon) : daemon_connect(daemon, blocks);
}

/* Pauses for a random time: one of the waiting clients may be what ends workers, and then the others have a worker for
 * themselves. */
void session_pause(struct scand *daemon, unsigned attempts)
{
    if (attempts < ATTEMPTS_AT_ONCE || daemon->connection)
        return;
    const uint64_t spread_ms = (attempts - ATTEMPTS_AT_ONCE + 1) * SUSPECT_MS / 2;
    const int64_t pause_ms = SUSPECT_MS + (int64_t)(clock_us() % spread_ms);
    daemon->mending.next_try_ms = clock_ms() + pause_ms;
    daemon->mending.give_up_at_ms = daemon->mending.next_try_ms + daemon->options.give_up_ms;
}

/* Returns how often the open job that was submitted most often was submitted. */
static unsigned jobs_attempts(const struct scand *daemon)
{
    unsigned most = 0;
    for (const struct scand_job *job = daemon->jobs; job; job = job->next)
        if (!job->done && job->attempts > most)
            most = job->attempts;
    return most;
}

/* No daemon has begun a job whose message has not been sent to its end. */
static void jobs_keep_unsent(struct scand *daemon)
{
    const uint64_t sent_bytes = connection_sent_bytes(daemon->connection);
    for (struct scand_job *job = daemon->jobs; job; job = job->next)
        if (job->pending.msgid != 0 && job->sent_with > sent_bytes)
            job->sent = false;
}

void session_drop(struct scand *daemon)
{
    const bool connected = daemon->connection != NULL;
    if (connected) {
        jobs_keep_unsent(daemon);
        epoll_ctl(daemon->epoll, EPOLL_CTL_DEL, daemon->socket, NULL);
    }
    process_close(daemon);
    if (!connected)
        return;
    daemon->generation++;
    daemon->has_changed = true;
    session_wake_reader(daemon);
    const bool was_up = daemon->is_up;
    daemon->is_up = false;
    daemon->probe_end_ms = 0;
    daemon->resend_ms = INT64_MAX;
    held_reset(daemon);
    daemon->mending.call = NULL;
    daemon->mending.next_try_ms = clock_ms();
    if (was_up) {
        daemon->mending.give_up_at_ms = daemon->mending.next_try_ms + daemon->options.give_up_ms;
        session_pause(daemon, jobs_attempts(daemon));
    }
    /* Ids of one connection mean nothing on the next. */
    for (struct scand_job *job = daemon->jobs; job; job = job->next)
        job->pending.msgid = 0;
    daemon->pending = NULL;
}

int session_give_up(struct scand *daemon)
{
    struct error error = *session_error(daemon);
    session_drop(daemon);
    daemon->gone = true;
    daemon->mending.error = error;
    for (struct scand_job *job = daemon->jobs, *next; job; job = next) {
        next = job->next;
        if (job->done)
            continue;
        if (job->refused && error.code == -ECONNREFUSED)
            held_end(job, error.message);
        else
            job_end(job, &error);
    }
    return error.code;
}

int session_flush(struct scand *daemon)
{
    int code = connection_flush(daemon->connection);
    const bool waits = code == -EAGAIN, later = code == -ETOOMANYREFS;
    daemon->resend_ms = later ? clock_ms() + RESEND_MS : INT64_MAX;
    if (later)
        session_wake_reader(daemon);
    if (waits != daemon->watches_output && !daemon->local) {
        struct epoll_event event = {.events = waits ? EPOLLIN | EPOLLOUT : EPOLLIN};
        epoll_ctl(daemon->epoll, EPOLL_CTL_MOD, connection_fd(daemon->connection), &event);
        daemon->watches_output = waits;
        session_wake_reader(daemon);
    }
    return waits || later ? 0 : code;
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
        return session_fail(daemon, code == -EMFILE ? -EBADF : code, "cannot send %s: %s%s", method_name(call->method),
                            strerror(-code), errno_advice(-code));
    return session_flush(daemon) ? -EPIPE : 0;
}
