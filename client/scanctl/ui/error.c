#include "client/scanctl/ui/error.h"

#include <stdarg.h>
#include <stdio.h>

#include "client/scanctl/ui/utf8.h"

int fault_set(struct fault *fault, int exit_code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(fault->text, sizeof(fault->text), format, arguments);
    va_end(arguments);
    utf8_clean(fault->text); /* it may quote a file */
    fault->exit_code = exit_code;
    return exit_code;
}
