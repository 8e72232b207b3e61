/*
 * A synthetic shot gather: reflections of a Ricker wavelet on hyperbolas over noise, with a small offset per trace, as
 * marine data have. The same seed makes the same bits, however traces are shared out among threads.
 */
#ifndef SCANCTL_GATHER_H
#define SCANCTL_GATHER_H

#include <stdint.h>

struct gather {
    uint64_t traces, samples, seed;
};

/* Fills traces first <= t < first + count, `samples` f32 each, one after the other; `out` is trace `first`. */
void gather_fill(const struct gather *gather, uint64_t first, uint64_t count, float *out);

#endif
