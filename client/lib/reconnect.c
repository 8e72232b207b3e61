/*
 * Reconnecting after a broken connection: the daemon's worker ended, and the next one listens at the same socket, soon
 * or now. Host buffers and this program's own device memory are imported again from what is kept here, groups are begun
 * again, and jobs that had no answer are submitted again where that is safe (repeat.c). Other jobs end as lost.
 */
#include <errno.h>
#include <string.h>

#include "client/lib/internal.h"

/* Prepares the greeting. Its params and result live as long as the session: the answer may come while another call
 * waits. */
static void greeting_prepare(struct scand *daemon)
{
    struct greeting *greeting = &daemon->mending.greeting;
    greeting->params = (struct msg_hello_params){.version_min = 1, .version_max = PROTOCOL_VERSION};
    memcpy(greeting->params.client, daemon->name, sizeof greeting->params.client);
    greeting->call = (struct call){
        .method = METHOD_hello, .params = &greeting->params, .result = &greeting->result, .is_interruptible = true};
}

static int greeting_apply(struct scand *daemon)
{
    const struct msg_hello_result *result = &daemon->mending.greeting.result;
    if (result->version < 1 || result->version > PROTOCOL_VERSION)
        return session_fail(
            daemon, -EPROTONOSUPPORT,
            "the daemon at %s chose protocol version %llu; this library speaks 1 to %d: upgrade one of them",
            daemon->path, (unsigned long long)result->version, PROTOCOL_VERSION);
    /* The daemon's limits are for the daemon to enforce: what it refuses, it explains. But fields that it does not
     * know, it ignores. */
    daemon->job_steps = result->limits.job_steps;
    daemon->batch_jobs = result->limits.batch_jobs;
    daemon->batches_tasks = result->limits.batch_steps != 0;
    daemon->client_jobs = result->limits.client_jobs > 0 ? result->limits.client_jobs : 1; /* which it may refuse */
    daemon->offers_rings = result->limits.ring_bytes == LIMIT_RING_BYTES && !daemon->local;
    daemon->small_jobs = 0;
    if (strcmp(daemon->server, result->server) != 0) /* programs may be reading the name */
        memcpy(daemon->server, result->server, sizeof daemon->server);
    return 0;
}

/* Explains what greeting came to. */
static int greeting_failed(struct scand *daemon, int code)
{
    if (code == -EPIPE)
        return session_fail(daemon, code, "the daemon at %s closed the connection before it answered: its log says why",
                            daemon->path);
    if (code == -ETIMEDOUT)
        return session_fail(
            daemon, code,
            "the daemon at %s took the connection but did not answer within %d s: it hangs, or starts too slowly",
            daemon->path, CALL_MS / 1000);
    return code;
}

int session_open(struct scand *daemon)
{
    int code = session_connect(daemon, true);
    greeting_prepare(daemon);
    if (code == 0)
        code = greeting_failed(daemon, call_try(daemon, &daemon->mending.greeting.call));
    if (code == 0 && !daemon->connection) /* what came behind the answer was no message */
        code = session_error(daemon)->code;
    if (code == 0)
        code = greeting_apply(daemon);
    daemon->is_up = code == 0;
    if (code)
        session_drop(daemon);
    return code;
}

static void buffers_lose_device(struct scand *daemon)
{
    for (struct scand_buffer *buffer = daemon->buffers; buffer; buffer = buffer->next)
        if (buffer->place == SCAND_PLACE_DEVICE && !buffer->foreign)
            buffer->lost = DEVICE_MEMORY_ENDS;
}

static bool trying_may_help(int code)
{
    return code == -ECONNREFUSED || code == -EPERM || code == -EPIPE || code == -EAGAIN;
}

/* Handles a failed try, which the session's error explains: another one follows, or the session is given up. */
static int try_failed(struct scand *daemon, int code)
{
    struct mending *mending = &daemon->mending;
    const int64_t now_ms = clock_ms();
    session_drop(daemon);
    mending->next_try_ms = now_ms + RECONNECT_PAUSE_MS;
    if (trying_may_help(code) && !daemon->gone && now_ms < mending->give_up_at_ms)
        return 0;
    if (trying_may_help(code) && !daemon->gone)
        session_fail(daemon, -ECONNREFUSED, "no daemon came back at %s within %g s: start one with \"scand\"",
                     daemon->path, daemon->options.give_up_ms / 1e3);
    else if (code == -EPIPE)
        session_fail(daemon, -ECONNREFUSED, "the daemon at %s closes its connections: its log says why", daemon->path);
    return session_give_up(daemon);
}

/* Sends what the next connection needs; the answer is looked at by mending_check. */
static int mending_call(struct scand *daemon, struct call *call)
{
    int code = call_begin(daemon, call);
    daemon->mending.call = code ? NULL : call;
    daemon->mending.call_end_ms = clock_ms() + call_time_ms(call);
    return code;
}

int session_try(struct scand *daemon)
{
    buffers_lose_device(daemon);
    daemon->mending.group = NULL;
    greeting_prepare(daemon);
    int code = session_connect(daemon, false);
    if (code == 0)
        code = mending_call(daemon, &daemon->mending.greeting.call);
    session_wake_reader(daemon); /* the reader may wait for something else yet */
    return code ? try_failed(daemon, code) : 0;
}

static void buffer_not_imported(struct scand_buffer *buffer)
{
    if (buffer)
        buffer->lost = "the restarted daemon did not take it over: release the buffer and create one";
}

/* Sends the import of the next buffer that the daemon does not know. False: there is none. */
static bool import_next(struct scand *daemon)
{
    struct mending *mending = &daemon->mending;
    for (struct scand_buffer *buffer = daemon->buffers; buffer; buffer = buffer->next) {
        if (buffer->lost || buffer->generation == daemon->generation)
            continue;
        mending->buffer = buffer;
        import_prepare(&mending->import, buffer);
        if (mending_call(daemon, &mending->import.call) == 0)
            return true;
        buffer_not_imported(buffer);
    }
    mending->buffer = NULL;
    return false;
}

/* Begins again the next group after the latest one. Returns false after the last group. */
static bool group_next(struct scand *daemon)
{
    struct mending *mending = &daemon->mending;
    struct group *group = mending->group ? mending->group + 1 : daemon->groups;
    for (; group < daemon->groups + LIMIT_CLIENT_GROUPS; group++) {
        if (!group->is_open || group->generation == daemon->generation)
            continue;
        mending->group = group;
        mending->group_call =
            (struct call){.method = METHOD_group_begin, .params = &group->params, .result = &mending->group_number};
        if (mending_call(daemon, &mending->group_call) == 0)
            return true;
    }
    mending->group = NULL;
    return false;
}

/* Imports the next of the buffers that the daemon does not know, then begins groups, and has all jobs go on. */
static void mending_next(struct scand *daemon)
{
    daemon->mending.call = NULL;
    if (import_next(daemon) || group_next(daemon))
        return;
    daemon->is_up = daemon->has_changed = true;
    daemon->gone = false;
    jobs_end_unrepeatable(daemon);
    jobs_submit_again(daemon);
}

/* Notes the answer to group.begin. A daemon that refuses it lists its jobs one by one. */
static void group_check_begun(struct scand *daemon)
{
    struct group *group = daemon->mending.group;
    const struct call *call = &daemon->mending.group_call;
    if (call->answered && !call->error.code) {
        group->generation = call->generation;
        group->number = daemon->mending.group_number.job;
    }
    if (call->answered && !call->error.code && !group->is_open) /* the group was ended meanwhile */
        (void)session_send(
            daemon, session_next_msgid(daemon, 0),
            &(struct call){.method = METHOD_group_end, .params = &(struct msg_group_label){group->params.group}});
    mending_next(daemon);
}

static void import_check(struct scand *daemon)
{
    struct mending *mending = &daemon->mending;
    const bool imported = mending->import.call.answered && !mending->import.call.error.code;
    if (!imported)
        buffer_not_imported(mending->buffer);
    else if (mending->buffer)
        import_apply(&mending->import, mending->buffer);
    else /* the buffer was released meanwhile */
        (void)session_send(daemon, session_next_msgid(daemon, 0),
                           &(struct call){.method = METHOD_buffer_release,
                                          .params = &(struct msg_buffer_id){import_id(&mending->import)}});
    mending_next(daemon);
}

static int greeting_check(struct scand *daemon)
{
    struct call *call = &daemon->mending.greeting.call;
    int code = call->answered ? call->error.code : greeting_failed(daemon, -ETIMEDOUT);
    if (call->answered)
        *session_error(daemon) = call->error;
    if (code == 0)
        code = greeting_apply(daemon);
    if (code)
        return try_failed(daemon, code);
    mending_next(daemon);
    return 0;
}

/* Goes on where the answer that was waited for has come, or will not. */
static int mending_check(struct scand *daemon)
{
    struct call *call = daemon->mending.call;
    if (!call || (!call->answered && clock_ms() < daemon->mending.call_end_ms))
        return 0;
    pending_remove(daemon, &call->pending);
    if (call->method == METHOD_hello)
        return greeting_check(daemon);
    if (call->method == METHOD_group_begin)
        group_check_begun(daemon);
    else
        import_check(daemon);
    return 0;
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Asks a daemon that has said nothing for long whether it is there. One that does not answer stands still, as nothing
 * else keeps it from that; then its connection is as good as broken. */
static void probe_check(struct scand *daemon)
{
    static const struct msg_nothing nothing;
    const int64_t now_ms = clock_ms();
    if (now_ms < session_probe_ms(daemon))
        return;
    pending_remove(daemon, &daemon->probe.pending);
    if (daemon->probe_end_ms > 0) {
        session_drop(daemon);
        return;
    }
    daemon->probe = (struct call){.method = METHOD_server_ping, .params = &nothing};
    (void)call_begin(daemon, &daemon->probe); /* without room for the probe, the daemon does not read */
    daemon->probe_end_ms = now_ms + CALL_MS;
}

int session_advance(struct scand *daemon, const bool *done, int64_t deadline_ms)
{
    struct mending *mending = &daemon->mending;
    int code = daemon->connection ? 0 : session_check(daemon); /* with a connection, session_step checks */
    if (code)
        return code;
    if (!daemon->connection && clock_ms() >= mending->next_try_ms)
        return session_try(daemon);
    const bool was_up = daemon->is_up;
    const int64_t due_ms = was_up               ? session_due_ms(daemon)
                           : daemon->connection ? mending->call_end_ms
                                                : mending->next_try_ms;
    code = daemon->connection ? session_step(daemon, done, earlier(deadline_ms, due_ms))
                              : session_rest(daemon, done, earlier(deadline_ms, due_ms));
    if (code == -EPIPE && !daemon->connection && !was_up)
        return try_failed(daemon, code);
    if (code == -ETIMEDOUT && daemon->is_up)
        probe_check(daemon);
    held_check(daemon);
    const int checked = code == 0 || code == -ETIMEDOUT ? mending_check(daemon) : 0;
    if (checked)
        return checked;
    return code == -EPIPE || (code == -ETIMEDOUT && due_ms < deadline_ms) ? 0 : code;
}

bool session_is_given_up(const struct scand *daemon)
{
    return daemon->gone && !daemon->connection;
}

/* Fails a call while the daemon is away: no call waits for longer than the program allows. */
static int away(struct scand *daemon)
{
    session_fail(daemon, -ECONNREFUSED,
                 "the daemon at %s is away, and has not come back within %g s (reconnect_ms); the library goes on "
                 "trying: call again, or scand_dispatch",
                 daemon->path, daemon->options.reconnect_ms / 1e3);
    session_error(daemon)->retry_ms = RECONNECT_PAUSE_MS;
    return -ECONNREFUSED;
}

int session_ready(struct scand *daemon)
{
    int code = session_check(daemon);
    if (code || daemon->is_up)
        return code;
    const int64_t deadline_ms = clock_ms() + daemon->options.reconnect_ms;
    if (session_is_given_up(daemon))
        code = session_try(daemon); /* may have had to wait for the time of the next try */
    const bool was_gone = daemon->gone;
    while (code == 0 && !daemon->is_up) {
        code = session_advance(daemon, &daemon->is_up, deadline_ms);
        if (code == 0 && daemon->gone && !was_gone) {
            *session_error(daemon) = daemon->mending.error; /* another thread has given up */
            return daemon->mending.error.code;
        }
    }
    return code == -ETIMEDOUT && !session_is_given_up(daemon) ? away(daemon) : code;
}
