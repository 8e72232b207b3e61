/*
 * Text that came from outside, a file or the daemon, and is shown on a terminal or in JSON.
 */
#ifndef SCANCTL_UTF8_H
#define SCANCTL_UTF8_H

#include <stddef.h>

/* Bytes of the UTF-8 character at NUL-ended `text`, as RFC 3629 has it; 0 where there is none. */
size_t utf8_bytes(const char *text);
/* Puts a '?' in place of each byte of control characters, which a terminal would obey, and of what is not UTF-8. */
void utf8_clean(char *text);

#endif
