/* How large chunks are and how many a device has at a time, chosen from measurements of the device. Pure functions. */
#ifndef DAEMON_CHUNK_SIZE_H
#define DAEMON_CHUNK_SIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/limits.h"

struct chunk_size {
    uint64_t chunk_bytes;
    uint32_t chunks;      /* in flight */
    uint64_t bytes_per_s; /* each way; 0: not measured */
};

/* What is measured, the least in flight first. */
#define CHUNK_SIZE_CANDIDATES_MAX 16
extern const struct chunk_size chunk_size_candidates[];
extern const size_t chunk_size_candidate_count;

/* Of measured ones, at least one: that with the least in flight, as a newcomer waits for that, among those with which a
 * large job takes hardly longer than with the best. */
struct chunk_size chunk_size_choose(const struct chunk_size *measured, size_t count);

/* True for one that could have been measured. */
bool chunk_size_is_candidate(const struct chunk_size *chunk_size);

#endif
