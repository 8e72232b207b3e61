/*
 * Which pieces of imported memory are pinned. They are pinned one by one on helper threads, while jobs already run on
 * those that are. Whoever keeps a struct pieces has it on one thread at a time; helpers only get a piece's number.
 */
#ifndef DAEMON_PIN_UNITS_H
#define DAEMON_PIN_UNITS_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/core/jobs/tensor_layout.h"

/* A job's first chunks wait for one. With pieces of 16 MiB the driver is busy with other things too often. */
#define PIECE_BYTES MIB(32)

struct pieces {
    unsigned char *states; /* of each */
    size_t count;
    size_t left;   /* not pinned */
    size_t next;   /* none before it has yet to be begun */
    size_t wanted; /* what a job waits for; once it has begun: nothing */
};

/* For a mapping of so many bytes, from its base, whole pages. 0 or -ENOMEM. */
int pieces_init(struct pieces *pieces, uint64_t size_bytes);
void pieces_finish(struct pieces *pieces);
/* The piece to pin next: what is wanted, or else the first. False: all have been begun. */
bool pieces_begin(struct pieces *pieces, size_t *piece);
/* A piece that was begun is pinned. */
void pieces_note(struct pieces *pieces, size_t piece);
bool pieces_is_pinned(const struct pieces *pieces, size_t piece);
/* True when all bytes of the extent are pinned; of the others the first piece is wanted now. */
bool pieces_cover(struct pieces *pieces, struct extent extent);

#endif
