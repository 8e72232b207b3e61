/*
 * The memory of a stream: one or two slots for a batch each, as large as the daemon can spare.
 */
#ifndef SCANCTL_SLOTS_H
#define SCANCTL_SLOTS_H

#include "client/scanctl/stream/stream.h"

/* Sets records, slot_count and the slots' buffers. */
int slots_create(struct stream *stream, struct error *error);
/* Gives the buffers of the slots back, for the next file of the connection. */
void slots_release(struct stream *stream);

#endif
