#include "near.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/core/jobs/job.h"
#include "daemon/device/devices.h"

struct near {
    struct device *device;
    struct spare_jobs spare;
    struct buffer buffers[LIMIT_JOB_OPERANDS]; /* of the job at hand */
};

int near_open(struct near **out, struct error *error)
{
    struct near *self = calloc(1, sizeof *self);
    if (!self)
        return error_set(error, -ENOMEM, "no memory to compute small jobs in this process");
    int r = device_cpu_open(1, 0, &self->device, error);
    if (r)
        free(self);
    else
        *out = self;
    return r;
}

void near_close(struct near *self)
{
    self->device->ops->close(self->device);
    spare_jobs_free(&self->spare);
    free(self);
}

static void set_buffers(struct near *self, const struct local_job *asked)
{
    for (unsigned i = 0; i < LIMIT_JOB_OPERANDS && asked->memories[i].base; i++)
        self->buffers[i].span = (struct span){.place = SCAND_PLACE_HOST,
                                              .base = asked->memories[i].base,
                                              .size_bytes = asked->memories[i].size_bytes,
                                              .pin_unit_bytes = asked->memories[i].size_bytes};
}

/* Returns whether the job can be computed here. A small job is one chunk, so chunks of other sizes do not matter. */
static bool job_begin(struct near *self, struct request *request, struct job *job)
{
    const struct device_info *info = &self->device->info;
    const struct job_chunks chunks = {.bytes = info->chunk_bytes, .work_per_byte = info->work_per_byte};
    struct error error;
    for (uint32_t i = 0; i < request->operand_count; i++) {
        const struct msg_tensor *tensor = request->operands[i].tensor;
        job->operands[i].buffer = tensor ? &self->buffers[tensor->buffer] : NULL;
    }
    job->operands[OPERAND_OFFSETS].access = ACCESS_READ;
    job->operands[OPERAND_OFFSETS].follows = FOLLOWS_JOB;
    return job_plan(job, request, &chunks, &error) == 0 && job_is_small(job, info->now_bytes, false);
}

/* Computes all rows. Without memory for that nothing is written. */
static bool job_run(struct near *self, struct job *job)
{
    struct chunk chunk;
    while (!job_is_empty(job) && job_has_rows(job)) {
        job_next_chunk(job, &chunk, 0);
        self->device->ops->run_now(self->device, &chunk);
        job_return(job, &chunk);
    }
    return job->outcome.code == 0;
}

bool near_compute(struct near *self, const struct local_job *asked, struct msg_job_submit_result *result)
{
    struct request request = {.submitted = false};
    struct msg_job_run_params run;
    struct error error;
    if (asked->run ? request_init(&request, asked->run, &run, &error)
                   : request_init_submit(&request, asked->submit, &run, &error))
        return false;
    struct job *job = job_create(&self->spare, request.operand_count);
    if (!job)
        return false;
    set_buffers(self, asked);
    const bool done = job_begin(self, &request, job) && job_run(self, job);
    if (done)
        *result = (struct msg_job_submit_result){.kernel_us = job->times.kernel_us, .total_us = job->times.kernel_us};
    job_destroy(&self->spare, job);
    return done;
}
