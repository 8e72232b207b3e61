#include "client/lib/field_values.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/text.h"

#define SHOWN_BYTES 40                     /* bytes of a value that a message shows */
#define EXACT_MAX   ((double)(1ull << 53)) /* whole numbers up to here are exact as doubles */

static bool names_match(const char *a, const char *b)
{
    for (; *a && *b; a++, b++)
        if (*a != *b && !(strchr("-_", *a) && strchr("-_", *b)))
            return false;
    return *a == *b;
}

const struct field *field_find(const struct map_type *type, size_t first, const char *name)
{
    for (size_t i = first; i < type->field_count; i++)
        if (names_match(type->fields[i].name, name))
            return &type->fields[i];
    return NULL;
}

static void *place_of(const struct field *field, void *values)
{
    return (char *)values + field->offset;
}

static int word_set(const struct words *words, const char *path, const char *text, size_t length, uint32_t *out,
                    struct error *error)
{
    char allowed[LIMIT_WORDS_BYTES];
    const int word = words_find(words, text, length);
    if (word < 0)
        return error_set(error, -EINVAL, "%s is \"%.*s\"; allowed: %s", path,
                         (int)(length < SHOWN_BYTES ? length : SHOWN_BYTES), text,
                         words_join(words, allowed, sizeof allowed));
    *out = (uint32_t)word;
    return 0;
}

/* Sets a list of words, "a,b". */
static int words_set(const struct field *field, void *values, const char *path, const char *text, struct error *error)
{
    uint32_t words[64], count = 0;
    assert(field->max <= sizeof words / sizeof words[0]);
    for (const char *at = text;; at++) {
        const size_t length = strcspn(at, ",");
        if (count == field->max)
            return error_set(error, -EINVAL, "%s is \"%.*s\"; allowed: at most %" PRIu64 " words, with commas between",
                             path, SHOWN_BYTES, text, field->max);
        int code = word_set(field->of, path, at, length, &words[count++], error);
        if (code)
            return code;
        at += length;
        if (!*at)
            break;
    }
    memcpy(place_of(field, values), words, count * sizeof words[0]);
    memcpy((char *)values + field->count_offset, &count, sizeof count);
    return 0;
}

/* Returns the largest value. An index is counted from 1 here, and from 0 on the wire. */
static uint64_t integer_most(const struct field *field)
{
    return field->kind == FIELD_INDEX ? field->max + 1 : field->max;
}

static int integer_refuse(const struct field *field, const char *path, const char *given, struct error *error)
{
    return error_set(error, -EINVAL, "%s is %.*s; allowed: whole numbers from %u to %" PRIu64, path, SHOWN_BYTES, given,
                     field_least(field), integer_most(field));
}

static int integer_set(const struct field *field, void *values, const char *path, const char *text, struct error *error)
{
    char given[SHOWN_BYTES + 3];
    uint64_t number;
    if (!number_parse(text, 0, integer_most(field), &number)) {
        snprintf(given, sizeof given, "\"%.*s\"", SHOWN_BYTES, text);
        return integer_refuse(field, path, given, error);
    }
    memcpy(place_of(field, values), &number, sizeof number);
    return 0;
}

/* Sets a real number, written with a decimal point whatever the program's locale has. */
static int real_set(const struct field *field, void *values, const char *path, const char *text, struct error *error)
{
    char *end = NULL;
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!c)
        return error_set(error, -ENOMEM, "out of memory for reading a number");
    const double number = strtod_l(text, &end, c);
    freelocale(c);
    if (end == text || *end)
        return error_set(error, -EINVAL, "%s is \"%.*s\"; allowed: a number, such as 0.9 or -1e-3", path, SHOWN_BYTES,
                         text);
    memcpy(place_of(field, values), &number, sizeof number);
    return 0;
}

static int text_set(const struct field *field, void *values, const char *path, const char *text, struct error *error)
{
    const size_t length = strlen(text);
    if (length > field->max)
        return error_set(error, -EINVAL, "%s has %zu bytes; allowed: 0 to %" PRIu64, path, length, field->max);
    memcpy(place_of(field, values), text, length + 1);
    return 0;
}

int field_set_text(const struct field *field, void *values, const char *path, const char *text, struct error *error)
{
    switch (field->kind) {
    case FIELD_WORD:
        return word_set(field->of, path, text, strlen(text), place_of(field, values), error);
    case FIELD_WORDS:
        return words_set(field, values, path, text, error);
    case FIELD_U64:
    case FIELD_INDEX:
        return integer_set(field, values, path, text, error);
    case FIELD_F64:
        return real_set(field, values, path, text, error);
    default:
        assert(field->kind == FIELD_TEXT);
        return text_set(field, values, path, text, error);
    }
}

int field_set_number(const struct field *field, void *values, const char *path, double number, struct error *error)
{
    char given[SHOWN_BYTES], allowed[LIMIT_WORDS_BYTES];
    snprintf(given, sizeof given, "%.17g", number);
    if (field->kind == FIELD_F64) {
        memcpy(place_of(field, values), &number, sizeof number);
        return 0;
    }
    if (field->kind == FIELD_WORD || field->kind == FIELD_WORDS)
        return error_set(error, -EINVAL, "%s is %s; allowed: words, given as text: %s", path, given,
                         words_join(field->of, allowed, sizeof allowed));
    assert(field->kind == FIELD_U64);
    const uint64_t whole = number >= 0 && number <= EXACT_MAX ? (uint64_t)number : UINT64_MAX;
    if ((double)whole != number || whole > field->max)
        return integer_refuse(field, path, given, error);
    memcpy(place_of(field, values), &whole, sizeof whole);
    return 0;
}
