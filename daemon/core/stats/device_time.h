/*
 * Counts for how long a device has had work, and for whom: while chunks are out, their owners are charged the time that
 * passes by the chunks' weights, so that the charges add up to the time in which the device was busy. It has no clock:
 * times are the caller's.
 */
#ifndef DAEMON_DEVICE_TIME_H
#define DAEMON_DEVICE_TIME_H

#include <stdint.h>

#include "protocol/limits.h"

#define DEVICE_TIME_WEIGHT 1024 /* weight of a chunk that is not small */

struct device_time {
    uint64_t busy_us;
    uint64_t read_us; /* time up to which charges are computed */
    uint64_t each_ns; /* time that a chunk of DEVICE_TIME_WEIGHT that was out all the time would have paid by now */
    uint64_t rest;    /* remainder that could not be shared out, of a nanosecond DEVICE_TIME_WEIGHT */
    uint64_t weight;  /* weight of all chunks that are out */
    unsigned count;
    struct charged {
        uint64_t *account_ns;
        uint64_t weight;
        uint64_t from_ns; /* each_ns at the time of the last payment */
    } out[LIMIT_CHUNKS_IN_FLIGHT + LIMIT_SMALL_CHUNKS];
};

/* Returns the weight of a small chunk, by its bytes: the time for which it is out is mostly waiting, which a device
 * does not notice. */
uint64_t device_time_weight(uint64_t bytes, uint64_t chunk_bytes);

/* A chunk goes out, or comes back and is paid for by *account_ns, which stays where it is meanwhile. */
void device_time_begin(struct device_time *device_time, uint64_t *account_ns, uint64_t weight, uint64_t now_us);
void device_time_end(struct device_time *device_time, uint64_t *account_ns, uint64_t weight, uint64_t now_us);
/* Charges the time that has passed, for chunks that are out. */
void device_time_read(struct device_time *device_time, uint64_t now_us);

#endif
