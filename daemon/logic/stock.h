/*
 * A stock that all users share, of something that nobody may use up: of what the others leave of it a user may have
 * LIMIT_USER_EIGHTHS eighths. So one who is alone has nearly all, and there is always something left for the next.
 */
#ifndef DAEMON_STOCK_H
#define DAEMON_STOCK_H

#include <stdint.h>

#include "protocol/limits.h"

struct stock {
    uint64_t most, used; /* in all */
};

/* What a user has taken of the pool (pool.h). */
struct pool_account {
    uint64_t bytes, files;
};

/* As much a user may have, who has `own` of what is used. */
static inline uint64_t stock_share(const struct stock *stock, uint64_t own)
{
    uint64_t others = stock->used - own, left = others < stock->most ? stock->most - others : 0;
    return left / 8 * LIMIT_USER_EIGHTHS + left % 8 * LIMIT_USER_EIGHTHS / 8;
}

#endif
