/* The core's view of job.submit's params, for tests of its parts: the steps, and rows without addresses. */
#ifndef TESTS_UNIT_SUBMITTED_H
#define TESTS_UNIT_SUBMITTED_H

#include "daemon/core/jobs/rows.h"
#include "daemon/core/operations/operation.h"

struct submitted {
    struct msg_job_run_params run;
    struct request request;
    struct step steps[LIMIT_STEPS];
};

static inline int submitted_steps(struct submitted *submitted, const struct msg_job_submit_params *params,
                                  struct error *error)
{
    int r = request_init_submit(&submitted->request, params, &submitted->run, error);
    return r ? r : steps_check(&submitted->request, submitted->steps, error);
}

static inline int submitted_rows(const struct msg_job_submit_params *params, struct scan_rows *rows,
                                 struct error *error)
{
    static struct submitted submitted;
    struct operand operands[LIMIT_JOB_OPERANDS] = {{0}};
    struct scan_rows made = {.length = 0};
    struct step *first = &submitted.steps[0];
    int r = request_init_submit(&submitted.request, params, &submitted.run, error);
    r = r ? r : rows_check_tensors(&submitted.request, error);
    r = r ? r : steps_check(&submitted.request, submitted.steps, error);
    r = r ? r : rows_lay_out(&submitted.request, &made, operands, error);
    if (!r && params->algorithm[0])
        r = operations[first->operation]->check_algorithm(&submitted.request, operands, &made, &first->rule, error);
    if (r)
        return r;
    made.rule = first->rule;
    rows_bind(operands, submitted.request.operand_count, &made);
    *rows = made;
    return 0;
}

#endif
