/*
 * Checks of values, before a job writes anything: those of operands that are indices must be in range. A device reads
 * them, in chunks of their own, one after the other, which are scheduled and charged like all others, and end when the
 * job does. A job that has such operands hands out its rows once all values are known to be right.
 */
#ifndef DAEMON_VALUES_H
#define DAEMON_VALUES_H

#include "kernels/steps/index/index.h"
#include "operand.h"

struct job;
struct chunk;

/* A job's values that are yet to be checked. All zeros: none. */
struct values {
    uint32_t operand, step;      /* operand whose values are next, and its step; operand 0: all are checked */
    uint64_t row, element;       /* the first of them */
    uint64_t from, below;        /* allowed are from <= value < below */
    bool out;                    /* a chunk of them is with a device */
    struct step_operand checked; /* the part of the operand that this chunk reads */
};

/* Notes what is to be checked of a job whose operands and steps are known; again once its offsets are. */
void values_begin(struct job *job);
/* True when some values are to be checked before rows can be handed out. */
bool values_are_left(const struct job *job);
/* True when the memory of the next values is ready. */
bool values_are_ready(const struct job *job);
/* The bytes of the buffer that the next values span. */
struct extent values_footprint(const struct job *job);
/* Fills a chunk with the next values of a job of which no chunk of values is out. */
void values_next_chunk(struct job *job, struct chunk *chunk);
/* Bytes that a chunk of values reads. */
uint64_t values_chunk_bytes(const struct chunk *chunk);
/* Takes in a chunk of values that a device has checked. Returns 0, or -EINVAL and *error: a value is out of range. */
int values_return(struct job *job, const struct chunk *chunk, struct error *error);

#endif
