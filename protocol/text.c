#include "text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Lengths by the range of the second byte. */
size_t utf8_length(const char *text)
{
    const unsigned char *bytes = (const unsigned char *)text;
    unsigned char first = bytes[0], low = 0x80, high = 0xbf;
    size_t length = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
    if (length < 2)
        return length;
    if (first == 0xe0)
        low = 0xa0; /* shorter forms exist */
    if (first == 0xed)
        high = 0x9f; /* surrogates */
    if (first == 0xf0)
        low = 0x90;
    if (first == 0xf4)
        high = 0x8f; /* past U+10FFFF */
    if (bytes[1] < low || bytes[1] > high)
        return 0;
    for (size_t i = 2; i < length; i++)
        if ((bytes[i] & 0xc0) != 0x80)
            return 0;
    return length;
}

/* True for control characters of ASCII, or U+0080 to U+009F: some terminals take these for escape sequences, too. */
static bool is_control(const char *text)
{
    const unsigned char *bytes = (const unsigned char *)text;
    return bytes[0] < 0x20 || bytes[0] == 0x7f || (bytes[0] == 0xc2 && bytes[1] < 0xa0);
}

/* True for what turns the direction of text around or breaks its line, in terminals that know such characters: U+061C,
 * U+200E and U+200F, U+2028 to U+202E, U+2066 to U+2069. With one of these in a name, the rest of a line would read
 * differently from what it is. */
static bool is_layout(const char *text)
{
    const unsigned char *bytes = (const unsigned char *)text;
    if (bytes[0] == 0xd8)
        return bytes[1] == 0x9c;
    if (bytes[0] != 0xe2)
        return false;
    if (bytes[1] == 0x80)
        return bytes[2] == 0x8e || bytes[2] == 0x8f || (bytes[2] >= 0xa8 && bytes[2] <= 0xae);
    return bytes[1] == 0x81 && bytes[2] >= 0xa6 && bytes[2] <= 0xa9;
}

void text_clean(char *text)
{
    while (*text) {
        if (*text >= ' ' && *text <= '~') { /* nearly all of every text */
            text++;
            continue;
        }
        size_t length = utf8_length(text), step = length ? length : 1;
        if (!length || is_control(text) || is_layout(text))
            memset(text, '?', step);
        text += step;
    }
}

char *text_show(char *out, size_t size, const char *text, size_t length)
{
    size_t n = length < size - 1 ? length : size - 1;
    for (size_t i = 0; i < n; i++)
        out[i] = text[i] >= ' ' && text[i] <= '~' && text[i] != '"' ? text[i] : '?';
    out[n] = '\0';
    return out;
}

bool number_parse(const char *text, uint64_t low, uint64_t high, uint64_t *out)
{
    char *end;
    if (*text < '0' || *text > '9') /* strtoull takes spaces and signs */
        return false;
    errno = 0;
    const unsigned long long value = strtoull(text, &end, 10);
    if (*end || errno || value < low || value > high)
        return false;
    *out = value;
    return true;
}
