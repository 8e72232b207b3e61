#include "walk.h"

#include <errno.h>

#include "limits.h"

/* The head of one token. */
struct token {
    size_t head_bytes;
    uint64_t payload_bytes; /* bytes that follow the head */
    uint64_t children;      /* objects that follow it */
    int is_container;
};

enum shape { REFUSED, LEAF, BYTES, ARRAY, MAP };

/* The tokens from 0xc0 to 0xdf. Width: of a leaf its payload, of the others the length that follows the first byte. */
// clang-format off
static const struct {
    uint8_t shape, width;
} shapes[32] = {
    {LEAF, 0},    {REFUSED, 0}, {LEAF, 0},    {LEAF, 0},    /* c0: nil, never used, false, true */
    {BYTES, 1},   {BYTES, 2},   {BYTES, 4},                 /* c4: bin 8, 16, 32 */
    {REFUSED, 0}, {REFUSED, 0}, {REFUSED, 0},               /* c7: ext 8, 16, 32 */
    {LEAF, 4},    {LEAF, 8},                                /* ca: float 32, 64 */
    {LEAF, 1},    {LEAF, 2},    {LEAF, 4},    {LEAF, 8},    /* cc: uint 8, 16, 32, 64 */
    {LEAF, 1},    {LEAF, 2},    {LEAF, 4},    {LEAF, 8},    /* d0: int 8, 16, 32, 64 */
    {REFUSED, 0}, {REFUSED, 0}, {REFUSED, 0}, {REFUSED, 0}, /* d4: fixext 1, 2, 4, 8 */
    {REFUSED, 0},                                           /* d8: fixext 16 */
    {BYTES, 1},   {BYTES, 2},   {BYTES, 4},                 /* d9: str 8, 16, 32 */
    {ARRAY, 2},   {ARRAY, 4},                               /* dc: array 16, 32 */
    {MAP, 2},     {MAP, 4},                                 /* de: map 16, 32 */
};
// clang-format on

static struct token token_of(enum shape shape, size_t head_bytes, uint64_t length)
{
    struct token token = {.head_bytes = head_bytes, .is_container = shape == ARRAY || shape == MAP};
    if (token.is_container)
        token.children = shape == MAP ? 2 * length : length;
    else
        token.payload_bytes = length;
    return token;
}

/* Returns 0, -EBADMSG, or -EAGAIN with only head_bytes known. */
static int token_read(const uint8_t *bytes, size_t available, struct token *token)
{
    uint8_t first = bytes[0];
    if (first < 0x80 || first >= 0xe0)
        *token = token_of(LEAF, 1, 0);
    else if (first < 0x90)
        *token = token_of(MAP, 1, first & 0x0f);
    else if (first < 0xa0)
        *token = token_of(ARRAY, 1, first & 0x0f);
    else if (first < 0xc0)
        *token = token_of(BYTES, 1, first & 0x1f);
    else {
        enum shape shape = shapes[first - 0xc0].shape;
        size_t width = shapes[first - 0xc0].width;
        if (shape == REFUSED)
            return -EBADMSG;
        if (shape == LEAF) {
            *token = token_of(LEAF, 1, width);
            return 0;
        }
        token->head_bytes = 1 + width;
        if (available < 1 + width)
            return -EAGAIN;
        uint64_t length = 0;
        for (size_t i = 1; i <= width; i++)
            length = length << 8 | bytes[i];
        *token = token_of(shape, 1 + width, length);
    }
    return 0;
}

/* The containers that are open, innermost last, each with the number of objects that it still waits for. */
struct nesting {
    uint64_t left[LIMIT_MESSAGE_DEPTH];
    size_t depth;
};

/* Notes one token. The last object of a container ends that container too, and so on outwards. */
static int nesting_note(struct nesting *nesting, const struct token *token)
{
    if (token->is_container && nesting->depth == LIMIT_MESSAGE_DEPTH)
        return -EBADMSG;
    if (token->children > 0) {
        nesting->left[nesting->depth++] = token->children;
        return 0;
    }
    while (nesting->depth > 0 && --nesting->left[nesting->depth - 1] == 0)
        nesting->depth--;
    return 0;
}

int walk(const uint8_t *bytes, size_t size, size_t *length)
{
    struct nesting nesting = {.depth = 0};
    uint64_t at = 0;   /* beginning of the next token */
    uint64_t owed = 1; /* objects announced and not yet seen, each a byte or more */
    while (owed > 0 && at < size) {
        struct token token;
        int code = token_read(bytes + at, size - at, &token);
        if (code == -EAGAIN) {
            at += token.head_bytes - 1;
            break;
        }
        if (code == 0)
            code = nesting_note(&nesting, &token);
        if (code)
            return code;
        at += token.head_bytes + token.payload_bytes;
        owed += token.children - 1;
        if (at + owed > LIMIT_MESSAGE_BYTES)
            return -EMSGSIZE;
    }
    if (at + owed > LIMIT_MESSAGE_BYTES)
        return -EMSGSIZE;
    *length = at + owed;
    return owed > 0 || at > size ? -EAGAIN : 0;
}
