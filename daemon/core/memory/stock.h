/*
 * A stock that all users share, of something that nobody may use up: of what the others leave of it a user may have a
 * part, LIMIT_USER_EIGHTHS eighths or half. So there is always something left for the next.
 */
#ifndef DAEMON_STOCK_H
#define DAEMON_STOCK_H

#include <stdint.h>

#include "protocol/limits.h"

struct stock {
    uint64_t most, used; /* the most there is, and what is used, in all */
};

/* A user's part of the pool (pool.h). */
struct pool_account {
    uint64_t bytes, files;
};

/* Returns what the others leave to a user who has `own` of what is used. */
static inline uint64_t stock_left(const struct stock *stock, uint64_t own)
{
    uint64_t others = stock->used - own;
    return others < stock->most ? stock->most - others : 0;
}

/* Returns how much a user may have where one who is alone is to have nearly all. */
static inline uint64_t stock_allowed(const struct stock *stock, uint64_t own)
{
    uint64_t left = stock_left(stock, own);
    return left / 8 * LIMIT_USER_EIGHTHS + left % 8 * LIMIT_USER_EIGHTHS / 8;
}

/* Returns how much a user may have where nobody needs nearly all. */
static inline uint64_t stock_allowed_half(const struct stock *stock, uint64_t own)
{
    return stock_left(stock, own) / 2;
}

#endif
