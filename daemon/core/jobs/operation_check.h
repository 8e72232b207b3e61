/*
 * What a job asks to be computed, as kernels are told it: which types, accumulators and operators go together, which
 * fields belong to a scan and which to a reduction, and what stands for a field that was left out.
 */
#ifndef DAEMON_OPERATION_CHECK_H
#define DAEMON_OPERATION_CHECK_H

#include "kernels/scan.h"
#include "protocol/messages.h"

/* Sets *rule, its accumulator never being AUTO. Returns 0, or -EINVAL and *error. */
int operation_check(const struct msg_job_submit_params *params, struct scan_rule *rule, struct error *error);
/* The rule of step k of params->then, likewise: a scan of values of the output's dtype. */
int operation_check_step(const struct msg_job_submit_params *params, uint32_t k, struct scan_rule *rule,
                         struct error *error);

#endif
