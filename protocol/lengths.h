/*
 * What steps do to the length of rows: the column of the list in operations.h that daemon and clients infer shapes
 * from. Pure functions.
 */
#ifndef PROTOCOL_LENGTHS_H
#define PROTOCOL_LENGTHS_H

#include "messages.h"

/* How many elements a step leaves of a row of `length` along `axis`: of none none, but a number for each row; more than
 * 2^63 are UINT64_MAX. Of the step's operands nothing but shapes is used. */
typedef uint64_t length_after_step(const union msg_step *step, uint64_t axis, uint64_t length);

uint64_t length_after(const union msg_step *step, uint64_t axis, uint64_t length);

/* Elements along `axis` of an operand that follows vectors: of one for each row, or of one for all. */
uint64_t vector_length(const struct msg_tensor *tensor, uint64_t axis);

/* Whether the operation leaves one element for each row, which has no samples any more. */
bool operation_leaves_rows(enum operation_id operation);
/* Whether the step leaves rows as long as they were, whatever they are. */
bool step_keeps_length(const union msg_step *step, uint64_t axis);

#endif
