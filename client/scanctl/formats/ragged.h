/*
 * Rows of differing lengths in an input of one dimension, as a file of offsets says: row r is the samples from the r-th
 * offset up to the next one.
 */
#ifndef SCANCTL_RAGGED_H
#define SCANCTL_RAGGED_H

#include "client/scanctl/formats/array.h"

struct ragged {
    uint64_t *offsets; /* rows + 1: from 0 to all samples of the input */
    uint64_t rows;
    uint64_t longest; /* samples of the longest row */
};

/*
 * Reads a file of offsets whole, .npy of integers or raw ones of 64 bits in this machine's byte order, for the rows of
 * `array`. EX_DATAERR where they are no rows of it, EX_USAGE where it cannot have such. Free with ragged_free.
 */
int ragged_read(struct ragged *ragged, const char *path, const struct array *array, struct error *error);
void ragged_free(struct ragged *ragged);

/* Returns how many rows from `row` on are for one job: of at most `samples` samples, but at least one. */
uint64_t ragged_pick(const struct ragged *ragged, uint64_t row, uint64_t samples);
/* The most rows that ragged_pick returns. */
uint64_t ragged_pick_max(const struct ragged *ragged);

#endif
