#include "client/scanctl/ui/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "protocol/text.h"

int fail(struct error *error, int exit_code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->text, sizeof(error->text), format, arguments);
    va_end(arguments);
    text_clean(error->text); /* it may quote a file */
    error->exit_code = exit_code;
    return exit_code;
}

void fail_more(struct error *error, const char *format, ...)
{
    const size_t length = strlen(error->text);
    char more[ERROR_TEXT_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(more, sizeof(more), format, arguments);
    va_end(arguments);
    snprintf(error->text + length, sizeof(error->text) - length, "; %s", more);
    text_clean(error->text);
}

const char *open_advice(int code, const char *usual)
{
    return code == EMFILE || code == ENFILE ? "raise \"ulimit -n\", or close files" : usual;
}

const char *write_advice(int code)
{
    if (code == ENOSPC || code == EDQUOT)
        return "; free some space or write elsewhere";
    return code == EFBIG ? "; raise \"ulimit -f\", or write elsewhere" : "";
}
