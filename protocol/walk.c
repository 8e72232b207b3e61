#include "walk.h"

#include <errno.h>
#include <stdbool.h>

#include "limits.h"
#include "token.h"

/* The containers that are open, with the number of objects that each still waits for: the innermost has `left`, and
 * the others are outside[0..depth). */
struct nesting {
    uint64_t left, outside[LIMIT_MESSAGE_DEPTH];
    size_t depth;
};

/* Notes that an object begins with this token. The last object of a container ends that container too, and so on
 * outwards. */
static inline void nesting_note(struct nesting *nesting, uint64_t children)
{
    nesting->left--;
    if (children > 0) {
        nesting->outside[nesting->depth++] = nesting->left;
        nesting->left = children;
    }
    while (nesting->left == 0 && nesting->depth > 0)
        nesting->left = nesting->outside[--nesting->depth];
}

int walk(const uint8_t *bytes, size_t size, size_t *length)
{
    struct nesting nesting;
    uint64_t at = 0, end = 1; /* where the next token begins, and where the object ends if each one owed is a byte */
    int code = 0;
    nesting.left = 1;
    nesting.depth = 0;
    while (nesting.left > 0 && at < size && code == 0) {
        struct token token;
        code = token_read(&token, bytes + at, size - at);
        if (code == -EBADMSG || (code == 0 && token_is_container(&token) && nesting.depth == LIMIT_MESSAGE_DEPTH))
            return -EBADMSG;
        const uint64_t children = code ? 0 : token_children(&token);
        const uint64_t payload = code ? 0 : token_payload_bytes(&token);
        at += token.head_bytes + payload;
        end += token.head_bytes - 1 + payload + children;
        if (end > LIMIT_MESSAGE_BYTES)
            return -EMSGSIZE;
        nesting_note(&nesting, children);
    }
    *length = end;
    return nesting.left > 0 || at > size ? -EAGAIN : 0;
}
