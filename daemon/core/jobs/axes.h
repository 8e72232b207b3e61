/* Rows along several dimensions, as `axes` of job.run has them: one dimension in their place. */
#ifndef DAEMON_AXES_H
#define DAEMON_AXES_H

#include "request.h"

/* Makes of the dimensions that params->axes names one, params->axis, which has their elements in C order: of the input,
 * of what has an element for each sample or each row, and of the output. Other dimensions keep their order. Errors name
 * dimensions by the numbers that they have in the message. `request` names the operands; params are those of the
 * request with all its steps. 0, or -EINVAL and *error. */
int axes_merge(const struct request *request, struct msg_job_run_params *params, struct error *error);

#endif
