/*
 * Progress on standard error: a bar, a rate and the time that is left, when that is a terminal and the work takes more
 * than a second.
 */
#ifndef SCANCTL_PROGRESS_H
#define SCANCTL_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
    bool wanted, shown;
    uint64_t begun_us, drawn_us;
    uint64_t total;     /* rows; 0: nobody knows */
    uint64_t row_bytes; /* bytes that are read and written for each row, for the rate */
};

void progress_begin(struct progress *progress, uint64_t total, uint64_t row_bytes);
void progress_update(struct progress *progress, uint64_t done);
/* Takes the line away; `shown` still tells whether there was one. */
void progress_end(struct progress *progress);

/* Writes progress after so many microseconds: "12,000 of 100,000 rows, 1.20 GB/s, 2 min 5 s left". Returns out, of
 * PROGRESS_BYTES. */
#define PROGRESS_BYTES 128
const char *progress_text(const struct progress *progress, uint64_t done, uint64_t elapsed_us, char *out);

#endif
