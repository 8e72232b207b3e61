/*
 * Turns tensors into rows as kernels compute them: every check of shapes against each other is here. Pure functions.
 */
#ifndef DAEMON_ROWS_H
#define DAEMON_ROWS_H

#include "operand.h"
#include "request.h"

/* Checks each tensor by itself, and the axis: 0, or -EINVAL and *error. */
int rows_check_tensors(const struct request *request, struct error *error);
/*
 * Checks shapes, takes the axis out and merges the other dimensions where the strides of all operands allow. Sets of
 * *rows how many there are, and of what lengths; of each operand its dtype's size, strides, access and what it follows.
 * Strides that no element uses are replaced. Ragged rows are one, of all samples, until their offsets are known, but
 * what an operand follows by rows has its element for each. Returns 0, or -EINVAL and *error.
 */
int rows_lay_out(const struct request *request, struct scan_rows *rows, struct operand operands[LIMIT_JOB_OPERANDS],
                 struct error *error);
/* Puts the operands of a plain job into rows. */
void rows_bind(const struct operand operands[LIMIT_JOB_OPERANDS], uint32_t count, struct scan_rows *rows);

#endif
