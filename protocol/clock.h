/* The monotonic clock. */
#ifndef PROTOCOL_CLOCK_H
#define PROTOCOL_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t clock_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static inline int64_t clock_ms(void)
{
    return (int64_t)(clock_us() / 1000);
}

#endif
