/* Explanations of what went wrong, which scand_message shows. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "client/lib/internal.h"

/* A thread's last error in a session: a thread's failures are its own, whoever else uses its sessions. */
struct failure {
    uint64_t session; /* the session's number; 0: none */
    struct error error;
};

static _Thread_local struct failure failures[ERROR_SESSIONS];
static _Thread_local unsigned next_failure;

static _Thread_local struct error connect_error;

int connect_failed(int code, const struct error *error)
{
    connect_error = *error;
    return (int)status_from_errno(code == -EPIPE ? -ECONNREFUSED : code);
}

const char *scand_connect_message(void)
{
    return connect_error.message;
}

uint32_t scand_retry_ms(const struct scand *daemon)
{
    return daemon ? session_error(daemon)->retry_ms : connect_error.retry_ms;
}

struct error *session_error(const struct scand *daemon)
{
    for (size_t i = 0; i < ERROR_SESSIONS; i++)
        if (failures[i].session == daemon->number)
            return &failures[i].error;
    struct failure *failure = &failures[next_failure++ % ERROR_SESSIONS];
    *failure = (struct failure){.session = daemon->number};
    return &failure->error;
}

int session_fail(struct scand *daemon, int code, const char *format, ...)
{
    struct error *error = session_error(daemon);
    va_list arguments;
    va_start(arguments, format);
    *error = (struct error){.code = code};
    vsnprintf(error->message, sizeof error->message, format, arguments);
    va_end(arguments);
    return code;
}

void error_set_stale(struct error *error, const char *outcome)
{
    error_set(
        error, -ESTALE,
        "the job %s, but an earlier job, which was to write what this one reads, has failed: submit both again, or "
        "set after_failure to have it run on what is there",
        outcome);
}
