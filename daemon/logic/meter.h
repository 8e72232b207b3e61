/*
 * For how long the device has had work, and for whom: while n chunks are out, each of their owners is charged an n-th
 * of the time, so that what owners are charged adds up to the time in which the device was busy. No clock: times are
 * the caller's.
 */
#ifndef DAEMON_METER_H
#define DAEMON_METER_H

#include <stdint.h>

#include "protocol/limits.h"

struct meter {
    uint64_t busy_us;
    uint64_t read_us; /* up to when time has been charged */
    unsigned count;
    uint64_t *accounts[LIMIT_CHUNKS_IN_FLIGHT + LIMIT_SMALL_CHUNKS]; /* one for each chunk out, some of them the same */
};

/* A chunk goes out, or comes back, at the cost of *account_us, which stays where it is meanwhile. */
void meter_begin(struct meter *meter, uint64_t *account_us, uint64_t now_us);
void meter_end(struct meter *meter, uint64_t *account_us, uint64_t now_us);
/* Charges what has passed. */
void meter_read(struct meter *meter, uint64_t now_us);

#endif
