/*
 * Text that came from outside (a socket, a file, a command line): shown to somebody, on a terminal, in a log, in
 * another program's list; or read as a number.
 */
#ifndef PROTOCOL_TEXT_H
#define PROTOCOL_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of the UTF-8 character at NUL-ended `text`, as RFC 3629 has it; 0 where there is none. */
size_t utf8_length(const char *text);

/* Puts a '?' in place of each byte of control characters, which a terminal would obey, of characters that change the
 * direction of text, and of what is not UTF-8. */
void text_clean(char *text);

/* Copies text to be quoted in an error, as one line of ASCII without quotation marks, cut to size. Returns out. */
char *text_show(char *out, size_t size, const char *text, size_t length);

/* Parses a decimal number in [low, high], with nothing before or after it. False, and *out is as it was, for any other
 * text. */
bool number_parse(const char *text, uint64_t low, uint64_t high, uint64_t *out);

#endif
