/*
 * Imports memory: it is checked, given pages where it is sparse, mapped, and pinned unit by unit; all of that in units
 * that a helper thread does in a few milliseconds. For buffer.c, whose rules for threads hold.
 */
#ifndef DAEMON_IMPORT_H
#define DAEMON_IMPORT_H

#include "buffer.h"

/* A unit: 1 while more is left, 0, or -errno and *error. */
int import_prepare(struct buffer *buffer, struct pool *pool, struct error *error);
/* Undoes the preparation, a unit at a time: true while more is left. */
bool import_dismantle(struct buffer *buffer, struct pool *pool);

#endif
