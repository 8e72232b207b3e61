/* Chooses the size of chunks and how many a device has at a time, from measurements of the device. Pure functions. */
#ifndef DAEMON_CHUNK_SIZE_H
#define DAEMON_CHUNK_SIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/limits.h"

struct chunk_size {
    uint64_t chunk_bytes;
    uint32_t chunks;      /* chunks in flight */
    uint64_t bytes_per_s; /* each way; 0: not measured */
};

/* The sizes that are measured, the least in flight first. */
#define CHUNK_SIZE_CANDIDATES_MAX 16
extern const struct chunk_size chunk_size_candidates[];
extern const size_t chunk_size_candidate_count;

/* Chooses among measured sizes, at least one: among those with which a large job takes hardly longer than with the
 * best, the one with the least in flight, since a newcomer waits for what is in flight. */
struct chunk_size chunk_size_choose(const struct chunk_size *measured, size_t count);

/* True for a size that could have been measured. */
bool chunk_size_is_candidate(const struct chunk_size *chunk_size);

#endif
