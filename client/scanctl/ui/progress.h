/*
 * A bar on standard error, when that is a terminal and the work takes more than a second.
 */
#ifndef SCANCTL_PROGRESS_H
#define SCANCTL_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
    bool wanted, shown;
    uint64_t begun_us, drawn_us;
    uint64_t total; /* of whatever is counted */
};

void progress_begin(struct progress *progress, uint64_t total);
void progress_update(struct progress *progress, uint64_t done);
/* Takes the bar away. */
void progress_end(struct progress *progress);

#endif
