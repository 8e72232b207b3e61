/*
 * Common parts of fuzz targets. A target is one function, for libFuzzer and for fuzz_replay: it asserts what must hold
 * of any input. Targets that make something of an input rather than read it take numbers from it, which are 0 after its
 * end.
 */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

struct supply {
    const uint8_t *at;
    size_t left;
};

/* A number of `count` bytes. */
static inline uint64_t take(struct supply *supply, unsigned count)
{
    uint64_t number = 0;
    for (; count > 0; count--) {
        number = number << 8 | (supply->left ? *supply->at : 0);
        supply->at += supply->left > 0;
        supply->left -= supply->left > 0;
    }
    return number;
}

static inline uint32_t take_below(struct supply *supply, uint32_t bound)
{
    return (uint32_t)take(supply, bound > 256 ? 2 : 1) % bound;
}

/* A copy of exactly that size, so that a sanitizer sees a read beyond it; with a zero behind it where that is asked
 * for. */
static inline uint8_t *exact_copy(const uint8_t *bytes, size_t size, bool ended)
{
    uint8_t *copy = malloc(size + ended > 0 ? size + ended : 1);
    assert(copy);
    if (size)
        memcpy(copy, bytes, size);
    if (ended)
        copy[size] = 0;
    return copy;
}

/* A line that may be shown: not empty, and without control characters. */
static inline void check_line(const char *text)
{
    assert(text[0] != '\0');
    for (const char *at = text; *at; at++)
        assert((unsigned char)*at >= ' ' && *at != 0x7f);
}

#endif
