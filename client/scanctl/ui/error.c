#include "client/scanctl/ui/error.h"

#include <stdarg.h>
#include <stdio.h>

#include "client/scanctl/ui/utf8.h"

int fail(struct error *error, int exit_code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->text, sizeof(error->text), format, arguments);
    va_end(arguments);
    utf8_clean(error->text); /* it may quote a file */
    error->exit_code = exit_code;
    return exit_code;
}
