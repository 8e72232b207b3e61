/*
 * Bytes that are stale: a job was to write them, and has failed or was refused. Later jobs of the connection that read
 * them would succeed on what was there before, so they fail with -ESTALE, unless they allow it (PROTOCOL.md, "After a
 * failure").
 *
 * Jobs that wait for the one that fails end with it. For jobs that the client has sent by then, without an answer to
 * look at, each buffer keeps the range of its stale bytes, and up to where in the client's messages it counts.
 */
#ifndef DAEMON_STALE_H
#define DAEMON_STALE_H

#include "daemon/core/call.h"

/* The client's request to write this output was refused. */
void stale_refuse(struct client *client, const struct msg_tensor *output);
/* Checks whether a planned job reads bytes that are stale. Returns 0, or -ESTALE and call->error. */
int stale_check(struct call *call, const struct job *job);
/* Marks what the job writes as not stale, as long as the job does not fail. */
void stale_replace(struct client *client, const struct job *job);
/* Stops what was to read a failed job's output, and what was to read the output of that. True when it has stopped some,
 * which are ended jobs then, all younger ones of the same client. */
bool stale_spread(struct service *service, const struct job *failed);

#endif
