#include "log.h"

#include <stdarg.h>
#include <stdio.h>

/* One write per line, so that lines of several processes do not mix. */
static void log_line(const char *level, const char *format, va_list arguments)
{
    char text[1024];
    vsnprintf(text, sizeof text, format, arguments);
    fprintf(stderr, "scand: %s%s\n", level, text);
}

void log_info(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    log_line("", format, arguments);
    va_end(arguments);
}

void log_error(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    log_line("error: ", format, arguments);
    va_end(arguments);
}
