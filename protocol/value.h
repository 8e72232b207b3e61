/*
 * Objects of MessagePack, one at a time, straight from bytes that walk() has accepted: nothing is allocated, and
 * nothing is looked at before it is wanted. A list or a map is only its head; what it holds comes next.
 */
#ifndef PROTOCOL_VALUE_H
#define PROTOCOL_VALUE_H

#include <stdint.h>

struct value {
    enum value_kind {
        VALUE_NIL,
        VALUE_BOOLEAN,
        VALUE_UNSIGNED, /* any integer form, of a number that is not negative */
        VALUE_NEGATIVE,
        VALUE_FLOAT, /* of either width */
        VALUE_TEXT,
        VALUE_BINARY,
        VALUE_LIST,
        VALUE_MAP
    } kind;
    union {
        uint64_t u64;
        int64_t i64;
        double f64;
        uint32_t count; /* bytes; items; pairs */
    };
    const uint8_t *bytes; /* of text and binary data */
};

/* Reads the object that begins at `at`, of a list or map the head. Returns where the next object begins. */
const uint8_t *value_read(const uint8_t *at, struct value *out);
/* Where the next object begins after the one at `at` and all that it holds. */
const uint8_t *value_skip(const uint8_t *at);

#endif
