#include "value.h"

#include <string.h>

static uint64_t big_endian(const uint8_t *bytes, unsigned width)
{
    uint64_t number = 0;
    for (unsigned i = 0; i < width; i++)
        number = number << 8 | bytes[i];
    return number;
}

/* Forms of one byte. */
static const uint8_t *read_short(const uint8_t *at, struct value *out)
{
    uint8_t first = *at++;
    if (first < 0x80) {
        *out = (struct value){.kind = VALUE_UNSIGNED, .u64 = first};
    } else if (first < 0x90) {
        *out = (struct value){.kind = VALUE_MAP, .count = first & 0x0f};
    } else if (first < 0xa0) {
        *out = (struct value){.kind = VALUE_LIST, .count = first & 0x0f};
    } else if (first < 0xc0) {
        *out = (struct value){.kind = VALUE_TEXT, .count = first & 0x1f, .bytes = at};
        at += out->count;
    } else {
        *out = (struct value){.kind = VALUE_NEGATIVE, .i64 = (int8_t)first};
    }
    return at;
}

static struct value integer(uint64_t bits, unsigned width)
{
    int64_t number = (int64_t)(bits << (64 - 8 * width)) >> (64 - 8 * width);
    return number < 0 ? (struct value){.kind = VALUE_NEGATIVE, .i64 = number}
                      : (struct value){.kind = VALUE_UNSIGNED, .u64 = (uint64_t)number};
}

static struct value floating(uint64_t bits, unsigned width)
{
    struct value value = {.kind = VALUE_FLOAT};
    uint32_t low = (uint32_t)bits;
    float narrow;
    memcpy(&narrow, &low, sizeof narrow);
    memcpy(&value.f64, &bits, sizeof value.f64);
    if (width == sizeof narrow)
        value.f64 = narrow;
    return value;
}

/* The forms from 0xc0 to 0xdf: what they are, and how wide the number is that follows, theirs or their length. */
static const struct {
    uint8_t kind, width;
} forms[32] = {
    [0x00] = {VALUE_NIL, 0},      [0x02] = {VALUE_BOOLEAN, 0},  [0x03] = {VALUE_BOOLEAN, 0},
    [0x04] = {VALUE_BINARY, 1},   [0x05] = {VALUE_BINARY, 2},   [0x06] = {VALUE_BINARY, 4},
    [0x0a] = {VALUE_FLOAT, 4},    [0x0b] = {VALUE_FLOAT, 8},    [0x0c] = {VALUE_UNSIGNED, 1},
    [0x0d] = {VALUE_UNSIGNED, 2}, [0x0e] = {VALUE_UNSIGNED, 4}, [0x0f] = {VALUE_UNSIGNED, 8},
    [0x10] = {VALUE_NEGATIVE, 1}, [0x11] = {VALUE_NEGATIVE, 2}, [0x12] = {VALUE_NEGATIVE, 4},
    [0x13] = {VALUE_NEGATIVE, 8}, [0x19] = {VALUE_TEXT, 1},     [0x1a] = {VALUE_TEXT, 2},
    [0x1b] = {VALUE_TEXT, 4},     [0x1c] = {VALUE_LIST, 2},     [0x1d] = {VALUE_LIST, 4},
    [0x1e] = {VALUE_MAP, 2},      [0x1f] = {VALUE_MAP, 4},
};

const uint8_t *value_read(const uint8_t *at, struct value *out)
{
    if (*at < 0xc0 || *at >= 0xe0)
        return read_short(at, out);
    const enum value_kind kind = forms[*at - 0xc0].kind;
    const unsigned width = forms[*at - 0xc0].width;
    const uint64_t number = big_endian(at + 1, width);
    at += 1 + width;
    switch (kind) {
    case VALUE_UNSIGNED:
        *out = (struct value){.kind = kind, .u64 = number};
        return at;
    case VALUE_NEGATIVE:
        *out = integer(number, width);
        return at;
    case VALUE_FLOAT:
        *out = floating(number, width);
        return at;
    default:
        *out = (struct value){.kind = kind, .count = (uint32_t)number, .bytes = at};
        return kind == VALUE_TEXT || kind == VALUE_BINARY ? at + number : at;
    }
}

const uint8_t *value_skip(const uint8_t *at)
{
    uint64_t left = 1;
    while (left-- > 0) {
        struct value value;
        at = value_read(at, &value);
        if (value.kind == VALUE_LIST)
            left += value.count;
        else if (value.kind == VALUE_MAP)
            left += 2 * (uint64_t)value.count;
    }
    return at;
}
