/*
 * Imports memory: it is checked, given pages where it is sparse, mapped, and pinned unit by unit; all of that in units
 * of a few milliseconds. Sealing memory and giving it pages wait while its client writes to its file, so readers do
 * that; helpers do the rest, and all of it where the memory is complete. For buffer.c, whose rules for threads hold.
 */
#ifndef DAEMON_IMPORT_H
#define DAEMON_IMPORT_H

#include "buffer.h"

/* Looks at the descriptors of a new import: sets file_bytes and, where nothing is left for readers, complete. */
void import_look(struct buffer *buffer);
/* A unit, as of buffer_prepare. */
int import_prepare(struct buffer *buffer, struct pool *pool, struct error *error);
/* Undoes the preparation, a unit at a time: true while more is left. */
bool import_dismantle(struct buffer *buffer, struct pool *pool);

#endif
