#include "chunk_size.h"

#include <assert.h>
#include <math.h>

#define JOB_BYTES MIB(384) /* a large job's bytes each way: its beginning and end matter little */
#define NEARLY    1.01     /* so many times as long as the fastest is still fast */

const struct chunk_size chunk_size_candidates[] = {
    {MIB(2), 3, 0}, {MIB(2), 4, 0}, {MIB(4), 3, 0},  {MIB(4), 4, 0},
    {MIB(8), 3, 0}, {MIB(8), 4, 0}, {MIB(16), 3, 0}, {MIB(16), 4, 0},
};
const size_t chunk_size_candidate_count = sizeof chunk_size_candidates / sizeof chunk_size_candidates[0];

static uint64_t in_flight_bytes(const struct chunk_size *chunk_size)
{
    return chunk_size->chunk_bytes * chunk_size->chunks;
}

/* Returns the time of a large job. Downloads follow uploads at the distance of one chunk, whatever the other chunks'
 * sizes are: they wait for the first upload, and that much of them is left after the last upload. */
static double job_s(const struct chunk_size *chunk_size)
{
    return (double)(JOB_BYTES + chunk_size->chunk_bytes) /
           (double)(chunk_size->bytes_per_s ? chunk_size->bytes_per_s : 1);
}

struct chunk_size chunk_size_choose(const struct chunk_size *measured, size_t count)
{
    const struct chunk_size *chosen = NULL;
    double shortest_s = INFINITY;
    assert(count > 0);
    for (size_t i = 0; i < count; i++)
        shortest_s = fmin(shortest_s, job_s(&measured[i]));
    for (size_t i = 0; i < count; i++) {
        bool fast = job_s(&measured[i]) <= NEARLY * shortest_s;
        if (fast && (!chosen || in_flight_bytes(&measured[i]) < in_flight_bytes(chosen)))
            chosen = &measured[i];
    }
    return *chosen;
}

bool chunk_size_is_candidate(const struct chunk_size *chunk_size)
{
    for (size_t i = 0; i < chunk_size_candidate_count; i++)
        if (chunk_size->chunk_bytes == chunk_size_candidates[i].chunk_bytes &&
            chunk_size->chunks == chunk_size_candidates[i].chunks)
            return true;
    return false;
}
