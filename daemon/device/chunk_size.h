/*
 * How large chunks are and how many a device has at a time, chosen from measurements of the device, which a file
 * remembers. Pure functions; nothing that the file says is trusted before it is checked.
 *
 * The file is text: a line for each device, its fields separated by tabs: the device's identity, the bytes of a chunk,
 * the chunks in flight, and the bytes per second that were measured with these.
 */
#ifndef DAEMON_CHUNK_SIZE_H
#define DAEMON_CHUNK_SIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/limits.h"

struct tuning {
    uint64_t chunk_bytes;
    uint32_t chunks;      /* in flight */
    uint64_t bytes_per_s; /* each way; 0: not measured */
};

/* What is measured, the least in flight first. */
#define TUNING_CANDIDATES_MAX 16
extern const struct tuning tuning_candidates[];
extern const size_t tuning_candidate_count;

/* Of measured ones, at least one: that with the least in flight, as a newcomer waits for that, among those with which a
 * large job takes hardly longer than with the best. */
struct tuning tuning_choose(const struct tuning *measured, size_t count);

#define TUNING_FILE_BYTES     KIB(16) /* at most, in all */
#define TUNING_IDENTITY_BYTES 192     /* without tabs and line ends */

/* What the file's text has of a device: false when that is nothing, or nothing that could have been measured. */
bool tuning_find(const char *text, size_t size, const char *identity, struct tuning *out);
/* Puts a device first, without what was said of it before, and as much behind it of the old text as there is room for.
 * Returns the new text's size. */
size_t tuning_record(const char *text, size_t size, const char *identity, const struct tuning *tuning,
                     char out[TUNING_FILE_BYTES]);

#endif
