/*
 * The bytes that a tensor touches, as clients describe it: every check on bounds and strides is here, overflow
 * included. Pure functions.
 */
#ifndef DAEMON_TENSOR_LAYOUT_H
#define DAEMON_TENSOR_LAYOUT_H

#include <stdbool.h>

#include "protocol/messages.h"

/* The bytes [begin, end) of a buffer that a tensor touches; empty for a tensor without elements. */
struct extent {
    uint64_t begin, end;
};

/*
 * Checks `tensor`, called `what` in messages, against its buffer of buffer_bytes. Returns 0 and sets *extent, or
 * -EINVAL and *error.
 */
int tensor_extent(const struct msg_tensor *tensor, const char *what, uint64_t buffer_bytes, struct extent *extent,
                  struct error *error);

/* Checks that no two elements of `tensor` share a byte. Strides of which only a search could tell are refused too. */
int tensor_disjoint(const struct msg_tensor *tensor, const char *what, struct error *error);

/* True when both describe the same bytes of the same buffer as their elements, in dtypes of one size. */
bool tensor_same(const struct msg_tensor *a, const struct msg_tensor *b);

/* True when it has no elements. */
bool tensor_is_empty(const struct msg_tensor *tensor);

#endif
