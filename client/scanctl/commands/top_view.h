/*
 * What `scanctl top` shows: rates from two looks at the daemon, as lines of text and as JSON.
 */
#ifndef SCANCTL_TOP_H
#define SCANCTL_TOP_H

#include "client/scanctl/commands/snapshot.h"

/* `before` is the earlier look. Of connections and jobs at most so many lines each; what is left out is counted. */
void top_text(FILE *file, const char *server, const struct look *before, const struct look *now, size_t lines);
void top_json(FILE *file, const char *server, const struct look *before, const struct look *now);

#endif
