/*
 * Rows shared out among threads.
 */
#ifndef SCANCTL_PARALLEL_ROWS_H
#define SCANCTL_PARALLEL_ROWS_H

#include <stdint.h>

/* Works on rows first <= r < first + count. Called by several threads at once, on rows that do not overlap. */
typedef void row_work(void *context, uint64_t first, uint64_t count);

/* Runs work over all rows on every core that this process may use; returns when all are done. Where threads cannot be
 * started, the calling one does their part. */
void parallel_rows(uint64_t rows, row_work *work, void *context);

#endif
