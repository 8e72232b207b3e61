/* Calls: requests that somebody waits for, on the connection that there is. */
#include <errno.h>
#include <unistd.h>

#include "client/lib/internal.h"

#define X(HANDLER, METHOD, PARAMS, RESULT) [METHOD_##HANDLER] = &msg_##RESULT##_type,
static const struct map_type *const result_types[METHOD_COUNT] = {METHODS(X)};
#undef X

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

static int call_done(struct scand *daemon, struct pending *pending, const struct message *message, struct error *error)
{
    struct call *call = (struct call *)pending; /* a call begins with its pending */
    if (message->failed) {
        int code = answer_read_failure(message, &call->error, error);
        call->answered = code == 0;
        return code;
    }
    struct msg_nothing nothing;
    if (answer_read(message, result_types[call->method], call->result ? call->result : &nothing, error))
        return -EBADMSG;
    if (call->method == METHOD_hello) {
        int code = hello_keep(daemon, message, error);
        if (code)
            return code;
    }
    call->received_count = announced_fds(call->method, call->result);
    if (answer_pop_descriptors(daemon, call->received_count, call->received, error))
        return -EBADMSG;
    call->answered = true;
    return 0;
}

static uint32_t call_mark(const struct call *call)
{
    switch (call->method) {
    case METHOD_buffer_create:
        return MSGID_CREATE;
    case METHOD_buffer_import:
    case METHOD_buffer_import_file:
    case METHOD_buffer_import_device:
        return MSGID_IMPORT;
    case METHOD_buffer_export:
        return MSGID_EXPORT;
    default:
        return 0;
    }
}

int64_t call_time_ms(const struct call *call)
{
    return call->timeout_ms ? call->timeout_ms : CALL_MS;
}

int call_begin(struct scand *daemon, struct call *call)
{
    call->answered = false;
    call->error = (struct error){.code = 0};
    call->generation = daemon->generation;
    call->pending = (struct pending){.msgid = session_next_msgid(daemon, call_mark(call)), .done = call_done};
    int code = session_send(daemon, call->pending.msgid, call);
    if (code && code != -EPIPE)
        return code;
    /* A broken connection shows when reading: an answer may have come before. */
    pending_add(daemon, &call->pending);
    return 0;
}

/* True when what an answer has brought is gone with its connection, which broke before this thread was woken. */
static bool is_outdated(const struct scand *daemon, const struct call *call)
{
    if (call->error.code || call->generation == daemon->generation || !call_mark(call))
        return false;
    for (size_t i = 0; i < call->received_count; i++)
        close(call->received[i]);
    return true;
}

int call_try(struct scand *daemon, struct call *call)
{
    int64_t timeout_ms = call_time_ms(call), deadline_ms = clock_ms() + timeout_ms;
    int code = call_begin(daemon, call);
    if (code)
        return code;
    do
        code = session_run(daemon, &call->answered, deadline_ms);
    while (code == -EINTR && !call->is_interruptible);
    pending_remove(daemon, &call->pending);
    if (code == 0 && is_outdated(daemon, call))
        return -EPIPE;
    if (code == -ETIMEDOUT)
        return session_fail(daemon, code,
                            "the daemon has not answered %s within %lld s: it hangs, or has too much to do",
                            method_name(call->method), (long long)timeout_ms / 1000);
    if (code == 0 && call->error.code) {
        *session_error(daemon) = call->error;
        code = call->error.code;
    }
    return code;
}
