/*
 * A job as it is asked for, in one form: that of job.run. What came by job.submit or job.batch is translated, and
 * marked as `submitted`, since its fields have other names there. Errors name fields and leave out the method, which
 * whoever answers puts before them (request_method).
 */
#ifndef DAEMON_REQUEST_H
#define DAEMON_REQUEST_H

#include <stdbool.h>

#include "daemon/device/device.h"
#include "protocol/messages.h"

struct request_operand {
    const struct msg_tensor *tensor; /* NULL: the job has no such operand */
    const char *name;
    uint32_t step; /* step of a further operand */
    enum access access;
    enum follows follows;     /* relation of the output to rows, once the steps have been checked */
    enum operand_class class; /* dtypes of a further operand */
    uint64_t length;          /* elements along the axis, once the steps have been checked */
};

struct request {
    const struct msg_job_run_params *params;
    bool submitted; /* true for a job that came by job.submit */
    uint32_t operand_count;
    struct request_operand operands[LIMIT_JOB_OPERANDS];
    /* For each step of params: how many of the steps up to it are not in the message, since a step there stands for
     * several; and, a bit for each, whether it is the multiplication by a scan's scale. */
    uint8_t added[LIMIT_STEPS];
    uint32_t scales;
};

/* Begins a request. Returns 0, or -EINVAL and *error: it has too many operands or steps. *expanded has room for the
 * params with all the steps that those of the message stand for, and with one axis. Both stay the caller's. */
int request_init(struct request *request, const struct msg_job_run_params *params, struct msg_job_run_params *expanded,
                 struct error *error);
/* Begins a request that came by job.submit, whose translation is *run. Returns -EINVAL also where fields of a scan and
 * of a reduction are mixed. */
int request_init_submit(struct request *request, const struct msg_job_submit_params *params,
                        struct msg_job_run_params *run, struct error *error);

const char *request_method(bool submitted);

#define FIELD_NAME_BYTES 64

/* Return the name in messages of a parameter of a step, and of an operand; in *out, or elsewhere. */
const char *request_field(const struct request *request, uint32_t step, const char *name, char out[FIELD_NAME_BYTES]);
const char *request_operand_name(const struct request *request, uint32_t operand, char out[FIELD_NAME_BYTES]);

static inline bool request_is_ragged(const struct request *request)
{
    return request->params->offsets.shape_count > 0;
}

/* Rows that offsets make. */
static inline uint64_t request_ragged_rows(const struct request *request)
{
    const uint64_t count = request->params->offsets.shape[0];
    return count > 0 ? count - 1 : 0;
}

#endif
