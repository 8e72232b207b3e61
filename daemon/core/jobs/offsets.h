/*
 * The offsets of a job's ragged rows. They lie in memory that the client can change at any time, so a job has a copy of
 * its own, which is what is checked and used.
 */
#ifndef DAEMON_OFFSETS_H
#define DAEMON_OFFSETS_H

#include "daemon/device/device.h"
#include "protocol/messages.h"
#include "tensor_layout.h"

/* A copy that is made in units, so that no thread is busy with it for long. Whoever begins it frees its values. */
struct offsets_copy {
    uint64_t *values;
    uint64_t count, done; /* offsets: in all, and copied so far */
    uint64_t longest;     /* samples of the longest row so far */
    uint64_t most;        /* allowed: the input's samples */
    const unsigned char *from;
    int64_t stride;
    enum scand_dtype dtype;
};

/* Checks everything about the tensor but its values: 0 and *extent, or -EINVAL and *error unless it can be read. */
int offsets_check(const struct msg_job_run_params *params, const struct span *span, struct extent *extent,
                  struct error *error);
/* Begins a copy of a checked tensor's values: 0, or -ENOMEM and *error. */
int offsets_begin(const struct msg_job_run_params *params, const struct span *span, struct offsets_copy *copy,
                  struct error *error);
/* Copies `count` more at most; on any thread. Returns 0, or -EINVAL and *error where they decrease or leave the input.
 */
int offsets_continue(struct offsets_copy *copy, uint64_t count, struct error *error);
static inline uint64_t offsets_left(const struct offsets_copy *copy)
{
    return copy->count - copy->done;
}
/* Returns how many offsets to copy at a time: some milliseconds' worth, though each lies on a page that has to be
 * found. */
uint64_t offsets_unit(const struct offsets_copy *copy);

#endif
