/*
 * A job's `algorithm`: a scan or a reduction of the tutorials (kernels/tutorial) in place of order 1. They do less, so
 * here is checked what they take.
 */
#ifndef DAEMON_ALGORITHM_H
#define DAEMON_ALGORITHM_H

#include "kernels/scan.h"
#include "protocol/messages.h"

/* Sets rows->rule.algorithm from params, from which the rows were made. Returns 0, or -EINVAL and *error. */
int algorithm_check(const struct msg_job_submit_params *params, struct scan_rows *rows, struct error *error);

#endif
