/*
 * The offsets of a job's ragged rows. They lie in memory that the client can change at any time, so a job has a copy of
 * its own, which is what is checked and used.
 */
#ifndef DAEMON_OFFSETS_H
#define DAEMON_OFFSETS_H

#include "device.h"
#include "protocol/messages.h"

/* Checks everything about the tensor but its values: -EINVAL and *error unless it can be read. */
int offsets_check(const struct msg_job_submit_params *params, const struct span *span, struct error *error);
/*
 * Copies a checked tensor's values into *offsets, which the caller frees, and sets *longest to the samples of the
 * longest row. Returns 0, or -errno and *error: -EINVAL where they decrease or leave the input.
 */
int offsets_take(const struct msg_job_submit_params *params, const struct span *span, uint64_t **offsets,
                 uint64_t *longest, struct error *error);

#endif
