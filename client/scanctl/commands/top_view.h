/*
 * The screen of `scanctl top`: rates from two snapshots of the daemon, as lines of text and as JSON.
 */
#ifndef SCANCTL_TOP_H
#define SCANCTL_TOP_H

#include "client/scanctl/commands/snapshot.h"

/* The orders of connections: X(NAME, key, word). */
#define TOP_SORTS(X)         \
    X(DEVICE, 'd', "device") \
    X(MEMORY, 'm', "memory") \
    X(RATE, 'r', "rate")     \
    X(CLIENT, 'c', "client")

enum top_sort {
#define X(NAME, KEY, WORD) TOP_SORT_##NAME,
    TOP_SORTS(X) TOP_SORT_COUNT
#undef X
};

struct top_view {
    unsigned columns; /* with fewer than TOP_WIDE only the columns that matter most are shown */
    size_t lines;     /* lines for connections and jobs together; the rest is counted */
    bool colours;
    enum top_sort sort;
};
#define TOP_WIDE 120

/* Writes the screen's text; `before` is the earlier snapshot. */
void top_text(FILE *file, const char *server, const struct snapshot *before, const struct snapshot *now,
              const struct top_view *view);
/* Writes the last line of a screen: the keys. `every_ms`: the time between two looks; 0: the screen stands still. */
void top_help(FILE *file, const struct top_view *view, unsigned every_ms);
/* Writes, in place of all rates, since when and why the daemon does not answer. */
void top_away(FILE *file, const struct top_view *view, uint64_t away_us, const char *why);
void top_json(FILE *file, const char *server, const struct snapshot *before, const struct snapshot *now);

#endif
