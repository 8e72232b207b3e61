/*
 * MessagePack's tokens: each object begins with one, and lists and maps go on with the objects in them. Inline, as who
 * reads one of a certain kind needs little of it.
 */
#ifndef PROTOCOL_TOKEN_H
#define PROTOCOL_TOKEN_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum token_kind {
    TOKEN_REFUSED,
    TOKEN_NIL,
    TOKEN_BOOLEAN,
    TOKEN_POSITIVE, /* an integer from 0 on */
    TOKEN_NEGATIVE, /* any other */
    TOKEN_FLOAT,
    TOKEN_TEXT,
    TOKEN_BINARY,
    TOKEN_LIST,
    TOKEN_MAP
};

struct token {
    enum token_kind kind;
    size_t head_bytes;    /* up to its text or data, or the first object in it */
    const uint8_t *bytes; /* of text or data */
    union {
        uint64_t count; /* bytes of text or data, objects in a list, pairs in a map */
        uint64_t positive;
        int64_t negative;
        double floating;
    };
};

/* The tokens from 0xc0 to 0xdf. Width: of the number that follows the first byte, a value or a count. Extension types
 * are refused. */
// clang-format off
static const struct {
    uint8_t kind, width;
} token_forms[32] = {
    {TOKEN_NIL, 0},      {TOKEN_REFUSED, 0},  {TOKEN_BOOLEAN, 0},  {TOKEN_BOOLEAN, 0},  /* c0: nil, never used, false, true */
    {TOKEN_BINARY, 1},   {TOKEN_BINARY, 2},   {TOKEN_BINARY, 4},                        /* c4: bin 8, 16, 32 */
    {TOKEN_REFUSED, 0},  {TOKEN_REFUSED, 0},  {TOKEN_REFUSED, 0},                       /* c7: ext 8, 16, 32 */
    {TOKEN_FLOAT, 4},    {TOKEN_FLOAT, 8},                                              /* ca: float 32, 64 */
    {TOKEN_POSITIVE, 1}, {TOKEN_POSITIVE, 2}, {TOKEN_POSITIVE, 4}, {TOKEN_POSITIVE, 8}, /* cc: uint 8, 16, 32, 64 */
    {TOKEN_NEGATIVE, 1}, {TOKEN_NEGATIVE, 2}, {TOKEN_NEGATIVE, 4}, {TOKEN_NEGATIVE, 8}, /* d0: int 8, 16, 32, 64 */
    {TOKEN_REFUSED, 0},  {TOKEN_REFUSED, 0},  {TOKEN_REFUSED, 0},  {TOKEN_REFUSED, 0},  /* d4: fixext 1, 2, 4, 8 */
    {TOKEN_REFUSED, 0},                                                                 /* d8: fixext 16 */
    {TOKEN_TEXT, 1},     {TOKEN_TEXT, 2},     {TOKEN_TEXT, 4},                          /* d9: str 8, 16, 32 */
    {TOKEN_LIST, 2},     {TOKEN_LIST, 4},                                               /* dc: array 16, 32 */
    {TOKEN_MAP, 2},      {TOKEN_MAP, 4},                                                /* de: map 16, 32 */
};
// clang-format on

static inline uint64_t token_number(const uint8_t *bytes, size_t width)
{
    uint64_t value = 0;
    for (size_t i = 0; i < width; i++)
        value = value << 8 | bytes[i];
    return value;
}

static inline double token_float(uint64_t bits, size_t width)
{
    const uint32_t half = (uint32_t)bits;
    float narrow;
    double wide;
    memcpy(&narrow, &half, sizeof narrow);
    memcpy(&wide, &bits, sizeof wide);
    return width == sizeof narrow ? (double)narrow : wide;
}

/* Notes what a number of that many bytes says about a token of that kind. */
static inline __attribute__((always_inline)) void token_set(struct token *token, enum token_kind kind, uint64_t number,
                                                            size_t width)
{
    token->kind = kind;
    token->count = number; /* or positive */
    if (kind == TOKEN_FLOAT) {
        token->floating = token_float(number, width);
    } else if (kind == TOKEN_NEGATIVE) {
        token->negative = (int64_t)(number << (64 - 8 * width)) >> (64 - 8 * width);
        token->kind = token->negative < 0 ? TOKEN_NEGATIVE : TOKEN_POSITIVE;
    }
}

/* The token at bytes[0..available), which has a byte at least. Returns 0, -EBADMSG, or -EAGAIN: only head_bytes is
 * known, and more than there is. Text and data may be incomplete. */
static inline __attribute__((always_inline)) int token_read(struct token *token, const uint8_t *bytes, size_t available)
{
    const uint8_t first = bytes[0];
    token->head_bytes = 1;
    if (first < 0x80) {
        token_set(token, TOKEN_POSITIVE, first, 1);
    } else if (first < 0xc0) {
        const enum token_kind kind = first < 0x90 ? TOKEN_MAP : first < 0xa0 ? TOKEN_LIST : TOKEN_TEXT;
        token_set(token, kind, first & (kind == TOKEN_TEXT ? 0x1f : 0x0f), 1);
    } else if (first >= 0xe0) {
        token_set(token, TOKEN_NEGATIVE, first, 1);
    } else {
        const size_t width = token_forms[first - 0xc0].width;
        const enum token_kind kind = token_forms[first - 0xc0].kind;
        if (kind == TOKEN_REFUSED)
            return -EBADMSG;
        token->head_bytes = 1 + width;
        if (available < 1 + width)
            return -EAGAIN;
        token_set(token, kind, token_number(bytes + 1, width), width);
    }
    token->bytes = bytes + token->head_bytes;
    return 0;
}

static inline bool token_is_container(const struct token *token)
{
    return token->kind == TOKEN_LIST || token->kind == TOKEN_MAP;
}

/* Its text or data. */
static inline uint64_t token_payload_bytes(const struct token *token)
{
    return token->kind == TOKEN_TEXT || token->kind == TOKEN_BINARY ? token->count : 0;
}

/* The objects that belong to it. */
static inline uint64_t token_children(const struct token *token)
{
    return token->kind == TOKEN_MAP ? 2 * token->count : token->kind == TOKEN_LIST ? token->count : 0;
}

/* The next token of an object that walk() has accepted. *at moves behind it, and its text or data. */
static inline __attribute__((always_inline)) struct token token_next(const uint8_t **at)
{
    struct token token = {.kind = TOKEN_NIL};
    token_read(&token, *at, SIZE_MAX);
    *at += token.head_bytes + token_payload_bytes(&token);
    return token;
}

/* Moves behind such an object. */
static inline void token_skip(const uint8_t **at)
{
    for (uint64_t owed = 1; owed > 0; owed--) {
        const struct token token = token_next(at);
        owed += token_children(&token);
    }
}

#endif
