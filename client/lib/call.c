/* Calls: requests that somebody waits for, on the connection that there is. */
#include <errno.h>

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
    struct call *call = (struct call *)pending; /* it begins with it */
    if (message->failed) {
        int code = answer_read_failure(message, &call->error, error);
        call->answered = code == 0;
        return code;
    }
    struct msg_nothing nothing;
    if (answer_read(message, result_types[call->method], call->result ? call->result : &nothing, error))
        return -EBADMSG;
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
    call->pending = (struct pending){.msgid = session_next_msgid(daemon, call_mark(call)), .done = call_done};
    int code = session_send(daemon, call->pending.msgid, call);
    if (code && code != -EPIPE)
        return code;
    pending_add(daemon, &call->pending);
    code = session_run(daemon, &call->answered, clock_ms() + timeout_ms);
    pending_remove(daemon, &call->pending);
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
