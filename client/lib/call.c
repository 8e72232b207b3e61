/* Requests that wait for their answer, and answers. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "client/lib/internal.h"

#define X(HANDLER, METHOD, PARAMS, RESULT) [METHOD_##HANDLER] = &msg_##RESULT##_type,
static const struct map_type *const result_types[METHOD_COUNT] = {METHODS(X)};
#undef X

int response_read(const struct message *message, const struct map_type *type, void *out, struct error *error)
{
    return message_read(message, type, out, error) ? -EBADMSG : 0;
}

void failure_take(const struct msg_failure *failure, struct error *out)
{
    failure_to_error(failure, out);
    if (out->message[0] == '\0')
        strcpy(out->message, status_text(status_from_errno(out->code)));
}

int take_failure(const struct message *message, struct error *out, struct error *error)
{
    struct msg_failure failure;
    if (response_read(message, &msg_failure_type, &failure, error))
        return -EBADMSG;
    failure_take(&failure, out);
    return 0;
}

static int take_descriptors(struct scand *daemon, uint64_t count, int *fds, struct error *error)
{
    if (connection_take_fds(daemon->connection, fds, count) == 0)
        return 0;
    return error_set(error, -EBADMSG, "%llu descriptors announced, %zu came", (unsigned long long)count,
                     connection_fd_count(daemon->connection));
}

/* Descriptors that an answer announces. */
static uint64_t announced_fds(enum method method, const void *result)
{
    switch (method) {
    case METHOD_buffer_create:
        return ((const struct msg_buffer_create_result *)result)->fds;
    case METHOD_buffer_export:
        return ((const struct msg_buffer_export_result *)result)->fds;
    default:
        return 0;
    }
}

static int call_take_response(struct scand *daemon, struct call *call, const struct message *message,
                              struct error *error)
{
    if (message->failed) {
        int code = take_failure(message, &call->error, error);
        call->answered = code == 0;
        return code;
    }
    struct msg_nothing nothing;
    if (response_read(message, result_types[call->method], call->result ? call->result : &nothing, error))
        return -EBADMSG;
    call->taken_count = announced_fds(call->method, call->result);
    if (take_descriptors(daemon, call->taken_count, call->taken, error))
        return -EBADMSG;
    call->answered = true;
    return 0;
}

static int drop_descriptors(struct scand *daemon, uint64_t count, struct error *error)
{
    int fds[LIMIT_MESSAGE_FDS];
    int code = take_descriptors(daemon, count, fds, error);
    for (size_t i = 0; code == 0 && i < count; i++)
        close(fds[i]);
    return code;
}

/* An answer that came after its call's time: gives back the buffer that it brings. Others bring nothing to keep. */
static int late_take_response(struct scand *daemon, const struct message *message, struct error *error)
{
    struct msg_buffer_create_result created = {0};
    struct msg_buffer_export_result exported;
    struct msg_buffer_id id;
    if (message->failed || !(message->msgid & MSGID_MARKS))
        return 0;
    if (message->msgid & MSGID_EXPORT)
        return message_read(message, &msg_buffer_export_result_type, &exported, error)
                   ? -EBADMSG
                   : drop_descriptors(daemon, exported.fds, error);
    if (message->msgid & MSGID_CREATE) {
        if (message_read(message, &msg_buffer_create_result_type, &created, error) ||
            drop_descriptors(daemon, created.fds, error))
            return -EBADMSG;
        id.buffer = created.buffer;
    } else if (message_read(message, &msg_buffer_id_type, &id, error)) {
        return -EBADMSG;
    }
    struct error before = daemon->error;
    (void)session_send(daemon, session_next_msgid(daemon, 0),
                       &(struct call){.method = METHOD_buffer_release, .params = &id});
    daemon->error = before;
    return 0;
}

int take_response(struct scand *daemon, const struct message *message, struct error *error)
{
    for (struct call *call = daemon->call; call; call = call->outer)
        if (call->msgid == message->msgid)
            return call_take_response(daemon, call, message, error);
    struct scand_job *job = job_find(daemon, message->msgid);
    if (job && job->index > 0)
        return batch_take_response(daemon, message, error);
    return job ? job_take_response(job, message, error) : late_take_response(daemon, message, error);
}

static uint32_t call_mark(const struct call *call)
{
    switch (call->method) {
    case METHOD_buffer_create:
        return MSGID_CREATE;
    case METHOD_buffer_import:
    case METHOD_buffer_import_device:
        return MSGID_IMPORT;
    case METHOD_buffer_export:
        return MSGID_EXPORT;
    default:
        return 0;
    }
}

int call_try(struct scand *daemon, struct call *call)
{
    int64_t timeout_ms = call->timeout_ms ? call->timeout_ms : CALL_MS;
    call->answered = false;
    call->error = (struct error){.code = 0};
    call->msgid = session_next_msgid(daemon, call_mark(call));
    int code = session_send(daemon, call->msgid, call);
    if (code && code != -EPIPE)
        return code;
    call->outer = daemon->call;
    daemon->call = call;
    code = session_run(daemon, &call->answered, clock_ms() + timeout_ms);
    daemon->call = call->outer;
    if (code == -ETIMEDOUT)
        return session_fail(daemon, code,
                            "the daemon has not answered %s within %lld s: it hangs, or has too much to do",
                            method_name(call->method), (long long)timeout_ms / 1000);
    if (code == 0 && call->error.code) {
        daemon->error = call->error;
        code = call->error.code;
    }
    return code;
}

static bool call_is_harmless(enum method method)
{
    return method == METHOD_server_ping || method == METHOD_server_stats || method == METHOD_server_devices ||
           method == METHOD_server_kernels || method == METHOD_server_histograms || method == METHOD_server_jobs ||
           method == METHOD_server_clients || method == METHOD_server_trace || method == METHOD_buffer_create ||
           method == METHOD_buffer_import || method == METHOD_buffer_import_device;
}

int call_run(struct scand *daemon, struct call *call)
{
    for (int attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
        int code = session_ready(daemon);
        if (code)
            return code;
        code = call_try(daemon, call);
        if (code != -EPIPE)
            return code;
        if (!call_is_harmless(call->method))
            return session_fail(daemon, -EOWNERDEAD,
                                "the connection broke before the daemon answered %s: whether it was done is unknown",
                                method_name(call->method));
    }
    return session_fail(daemon, -EOWNERDEAD,
                        "the connection broke %d times while the daemon was to answer %s: its log says why",
                        ATTEMPTS_MAX, method_name(call->method));
}
