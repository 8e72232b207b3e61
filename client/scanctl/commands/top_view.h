/*
 * What `scanctl top` shows: rates from two snapshots of the daemon, as lines of text and as JSON.
 */
#ifndef SCANCTL_TOP_H
#define SCANCTL_TOP_H

#include "client/scanctl/commands/snapshot.h"

/* `before` is the earlier snapshot. Of connections and jobs at most so many lines each; what is left out is counted. */
void top_text(FILE *file, const char *server, const struct snapshot *before, const struct snapshot *now, size_t lines);
void top_json(FILE *file, const char *server, const struct snapshot *before, const struct snapshot *now);

#endif
