#include "log.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

/* $JOURNAL_STREAM says which file the journal reads. It is inherited also by programs whose stderr is another one. */
static bool is_journal(void)
{
    const char *stream = getenv("JOURNAL_STREAM");
    char own[64];
    struct stat status;
    if (!stream || fstat(STDERR_FILENO, &status))
        return false;
    snprintf(own, sizeof own, "%ju:%ju", (uintmax_t)status.st_dev, (uintmax_t)status.st_ino);
    return strcmp(stream, own) == 0;
}

/* One write per line, so that lines of several processes do not mix. */
static void log_line(int priority, const char *format, va_list arguments)
{
    char text[1024];
    vsnprintf(text, sizeof text, format, arguments);
    if (is_journal())
        fprintf(stderr, "<%d>%s\n", priority, text);
    else
        fprintf(stderr, "scand: %s%s\n", priority == LOG_ERR ? "error: " : "", text);
}

void log_info(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    log_line(LOG_INFO, format, arguments);
    va_end(arguments);
}

void log_error(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    log_line(LOG_ERR, format, arguments);
    va_end(arguments);
}
