/*
 * The effect of steps on the length of rows: the column of the list in operations.h that daemon and clients infer
 * shapes from. Pure functions.
 */
#ifndef PROTOCOL_LENGTHS_H
#define PROTOCOL_LENGTHS_H

#include "messages.h"

/* The elements of a step's result for a row of `length` along `axis`: 0 for a row of 0, except for a number for each
 * row; UINT64_MAX stands for more than 2^63. Only the shapes of the step's operands are used. */
uint64_t length_after(const union msg_step *step, uint64_t axis, uint64_t length);

/* Elements along `axis` of an operand that is a vector for each row, or one vector for all rows. */
uint64_t vector_length(const struct msg_tensor *tensor, uint64_t axis);

/* True when the operation leaves one element for each row, which has no samples any more. */
bool operation_leaves_rows(enum operation_id operation);
/* True when the step leaves rows as long as they were, whatever their length. */
bool step_keeps_length(const union msg_step *step, uint64_t axis);

#endif
