/* Explanations of what went wrong, which scand_message shows. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "client/lib/internal.h"

int session_fail(struct scand *daemon, int code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    daemon->error = (struct error){.code = code};
    vsnprintf(daemon->error.message, sizeof daemon->error.message, format, arguments);
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
