/* Messages written by hand, and read from memory of exactly their size: for tests of the encoding. */
#ifndef TESTS_UNIT_BYTES_H
#define TESTS_UNIT_BYTES_H

#include "protocol/encoding.h"
#include "protocol/walk.h"
#include "tests/check.h"

/* A buffer of bytes that is written piece by piece. */
struct bytes {
    uint8_t bytes[4096];
    size_t size;
};

static inline void put(struct bytes *out, const void *bytes, size_t size)
{
    memcpy(out->bytes + out->size, bytes, size);
    out->size += size;
}

#define PUT(OUT, LITERAL) put(OUT, LITERAL, sizeof(LITERAL) - 1)

static inline void put_str(struct bytes *out, const char *text)
{
    uint8_t head[] = {0xd9, (uint8_t)strlen(text)};
    put(out, head, 2);
    put(out, text, strlen(text));
}

/* Opens bytes in memory of exactly their size, which the caller frees after closing. */
static inline int open_copy(struct message *message, const uint8_t *bytes, size_t size, uint8_t **copy,
                            struct error *error)
{
    size_t length = 0;
    *copy = malloc(size);
    memcpy(*copy, bytes, size);
    CHECK_EQ(walk(*copy, size, &length), 0);
    CHECK_EQ(length, size);
    return message_open(message, *copy, size, error);
}

#endif
