/*
 * Imported memory is pinned in units of PIN_UNIT_BYTES, one by one on helper threads, while jobs already run on the
 * units that are pinned. A struct pin_units is used by one thread at a time; helpers only get a unit's number.
 */
#ifndef DAEMON_PIN_UNITS_H
#define DAEMON_PIN_UNITS_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/core/jobs/tensor_layout.h"

/* The driver keeps its lock while it pins a unit, and all others wait that long: half a millisecond. */
#define PIN_UNIT_BYTES MIB(4)
/* The units that a helper pins one after the other before the loop hears of it, which takes as long as a fifth of a
 * unit. */
#define PIN_UNITS_AT_ONCE 4

struct pin_units {
    unsigned char *states; /* state of each unit */
    size_t count;
    size_t left;   /* not pinned */
    size_t front;  /* all units before it are pinned */
    size_t next;   /* none before it has yet to be begun */
    size_t wanted; /* the unit that a job waits for; once that has begun: nothing */
};

/* Initializes the units of a mapping of so many bytes, from its base, in whole pages. Returns 0 or -ENOMEM. */
int pin_units_init(struct pin_units *pin_units, uint64_t size_bytes);
void pin_units_finish(struct pin_units *pin_units);
/* Begins the units to pin next: from the wanted one on, or else from the first on, at most so many that follow each
 * other. Returns how many; 0: all have been begun. */
size_t pin_units_begin(struct pin_units *pin_units, size_t most, size_t *first);
/* A unit that was begun is pinned. */
void pin_units_note(struct pin_units *pin_units, size_t unit);
bool pin_units_is_pinned(const struct pin_units *pin_units, size_t unit);
/* True when all bytes of the extent are pinned; of the others the first unit is wanted now. */
bool pin_units_cover(struct pin_units *pin_units, struct extent extent);

#endif
