#include "chunk_size.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JOB_BYTES MIB(384) /* each way: of a large job, to which beginning and end matter little */
#define NEARLY    1.01     /* times as long as the fastest */

const struct tuning tuning_candidates[] = {
    {MIB(2), 3, 0}, {MIB(2), 4, 0}, {MIB(4), 3, 0},  {MIB(4), 4, 0},
    {MIB(8), 3, 0}, {MIB(8), 4, 0}, {MIB(16), 3, 0}, {MIB(16), 4, 0},
};
const size_t tuning_candidate_count = sizeof tuning_candidates / sizeof tuning_candidates[0];

static uint64_t in_flight_bytes(const struct tuning *tuning)
{
    return tuning->chunk_bytes * tuning->chunks;
}

/* Downloads follow uploads at the distance of a chunk, whatever the other chunks' sizes are: so far they must wait for
 * the first one, and so much is left of them after the last. */
static double job_s(const struct tuning *tuning)
{
    return (double)(JOB_BYTES + tuning->chunk_bytes) / (double)(tuning->bytes_per_s ? tuning->bytes_per_s : 1);
}

struct tuning tuning_choose(const struct tuning *measured, size_t count)
{
    const struct tuning *chosen = NULL;
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

struct line {
    const char *begin;
    size_t size; /* without its end */
};

/* The line at *at, which moves behind it; false at the end, of which an unfinished line is a part. */
static bool next_line(const char *text, size_t size, size_t *at, struct line *line)
{
    const char *end = *at < size ? memchr(text + *at, '\n', size - *at) : NULL;
    if (!end)
        return false;
    *line = (struct line){text + *at, (size_t)(end - (text + *at))};
    *at += line->size + 1;
    return true;
}

static bool is_of(const struct line *line, const char *identity)
{
    size_t length = strlen(identity);
    return line->size > length && memcmp(line->begin, identity, length) == 0 && line->begin[length] == '\t';
}

static bool is_candidate(const struct tuning *tuning)
{
    for (size_t i = 0; i < tuning_candidate_count; i++)
        if (tuning->chunk_bytes == tuning_candidates[i].chunk_bytes && tuning->chunks == tuning_candidates[i].chunks)
            return true;
    return false;
}

/* The fields behind the identity. */
static bool read_fields(const char *text, size_t size, struct tuning *out)
{
    char copy[96];
    int length = -1;
    struct tuning tuning;
    if (size >= sizeof copy || memchr(text, '\0', size))
        return false;
    memcpy(copy, text, size);
    copy[size] = '\0';
    if (sscanf(copy, "\t%20" SCNu64 "\t%9" SCNu32 "\t%20" SCNu64 "%n", &tuning.chunk_bytes, &tuning.chunks,
               &tuning.bytes_per_s, &length) != 3 ||
        (size_t)length != size || !is_candidate(&tuning))
        return false;
    *out = tuning;
    return true;
}

bool tuning_find(const char *text, size_t size, const char *identity, struct tuning *out)
{
    struct line line;
    size_t length = strlen(identity), at = 0;
    while (next_line(text, size, &at, &line))
        if (is_of(&line, identity))
            return read_fields(line.begin + length, line.size - length, out);
    return false;
}

size_t tuning_record(const char *text, size_t size, const char *identity, const struct tuning *tuning,
                     char out[TUNING_FILE_BYTES])
{
    struct line line;
    size_t at = 0;
    assert(strlen(identity) < TUNING_IDENTITY_BYTES);
    size_t length = (size_t)snprintf(out, TUNING_FILE_BYTES, "%s\t%" PRIu64 "\t%" PRIu32 "\t%" PRIu64 "\n", identity,
                                     tuning->chunk_bytes, tuning->chunks, tuning->bytes_per_s);
    while (next_line(text, size, &at, &line)) {
        if (is_of(&line, identity) || length + line.size + 1 > TUNING_FILE_BYTES)
            continue;
        memcpy(out + length, line.begin, line.size + 1);
        length += line.size + 1;
    }
    return length;
}
