#include "provision.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>

#include "protocol/limits.h"
#include "protocol/status.h"

#define SMALL_BYTES LIMIT_LARGE_SEGMENT_BYTES /* memory for small segments, beside the large ones */

/* Descriptors for the loop, a page of metrics and the first clients: with fewer nobody could be served. */
#define FILES_MIN     32
#define FILES_GUESSED 64 /* assumed to be open where /proc does not tell */
#define FILES_KEPT    16 /* descriptors for the loop, and a page of metrics */

#define STACK_MIN MIB(1) /* four times what the loop has taken; drivers of GPUs have needs of their own */

uint64_t provision_pool_most(uint64_t available_bytes)
{
    uint64_t rest = available_bytes > SMALL_BYTES ? available_bytes - SMALL_BYTES : 0;
    return rest / LIMIT_LARGE_SEGMENT_BYTES * LIMIT_LARGE_SEGMENT_BYTES;
}

int provision_memory(uint64_t pool_bytes, uint64_t available_bytes, const char *limit, struct error *error)
{
    uint64_t most = provision_pool_most(available_bytes);
    if (pool_bytes <= most)
        return 0;
    return error_set(error, -ENOMEM,
                     "pool is %" PRIu64 "M, and the %s suffices for %" PRIu64
                     "M; give a smaller --pool, at most %" PRIu64 "M, or make memory free",
                     pool_bytes >> 20, limit, most >> 20, most >> 20);
}

int provision_files(size_t open, size_t segments, uint64_t most, struct error *error)
{
    uint64_t needed = (uint64_t)open + segments + FILES_MIN;
    if (needed <= most)
        return 0;
    return error_set(error, -EMFILE,
                     "the limit of open files is %" PRIu64 "; needed: %" PRIu64
                     ", of these %zu for the pool, one for each "
                     "%d MiB and some for small buffers; raise it (ulimit -Hn, LimitNOFILE=), or give a smaller --pool",
                     most, needed, segments, (int)(LIMIT_LARGE_SEGMENT_BYTES >> 20));
}

int provision_stacks(uint64_t most, struct error *error)
{
    if (most >= STACK_MIN)
        return 0;
    return error_set(error, -ENOMEM,
                     "the limit of stacks is %" PRIu64 " KiB; needed: %" PRIu64 "; raise it (ulimit -s, LimitSTACK=)",
                     most >> 10, STACK_MIN >> 10);
}

void provision_descriptors(uint64_t most, uint64_t open, uint64_t to_open, uint64_t *connections, uint64_t *others)
{
    const uint64_t taken = open + to_open + FILES_KEPT, least = FILES_MIN - FILES_KEPT,
                   room = most > taken + least ? most - taken : least;
    *connections = room / 2 < LIMIT_CLIENTS ? room / 2 : LIMIT_CLIENTS;
    *others = room - *connections;
}

size_t descriptors_count(void)
{
    DIR *folder = opendir("/proc/self/fd");
    size_t entries = 0;
    if (!folder)
        return FILES_GUESSED;
    while (readdir(folder))
        entries++;
    closedir(folder);
    return entries - 3; /* "." and "..", and the folder's own descriptor */
}
