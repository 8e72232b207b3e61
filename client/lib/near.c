/* Small jobs that this process computes, although there is a daemon, if that changes nothing for any other job. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/lib/internal.h"

int near_choose(struct scand *daemon, bool *here)
{
    const char *variable = getenv("SCAND_SMALL_JOBS");
    const bool is_set = variable && *variable;
    if (is_set && strcmp(variable, "here") != 0)
        return session_fail(daemon, -EINVAL,
                            "SCAND_SMALL_JOBS is \"%.64s\": allowed is \"here\", which computes small jobs in this "
                            "process; unset it to leave them to the daemon",
                            variable);
    const enum scand_small_jobs option = (enum scand_small_jobs)daemon->options.small_jobs;
    *here = option == SCAND_SMALL_JOBS_HERE || (option == SCAND_SMALL_JOBS_DEFAULT && is_set);
    return 0;
}

int near_prepare(struct scand *daemon)
{
    const struct local_library *library = local_find(daemon);
    int code = library ? library->near_open(&daemon->near, session_error(daemon)) : session_error(daemon)->code;
    if (code)
        error_prefix(session_error(daemon), "small jobs");
    else
        daemon->near_library = library;
    return code;
}

/* A child of fork leaves it as it is: another thread of the parent may have had its locks. */
void near_finish(struct scand *daemon)
{
    if (daemon->near && !process_is_child(daemon))
        daemon->near_library->near_close(daemon->near);
    daemon->near = NULL;
}

static bool is_small(const struct msg_tensor *input)
{
    uint64_t samples = 1;
    for (uint32_t i = 0; i < input->shape_count; i++)
        if (__builtin_mul_overflow(samples, input->shape[i], &samples))
            return false;
    return samples <= NEAR_SAMPLES;
}

/* True for a task that is one scan or one reduction: for tasks what local_is_as_read is for other jobs. */
static bool is_plain(const struct msg_job_run_params *params)
{
    const union msg_step *step = &params->steps[0];
    if (params->steps_count != 1 || params->axes_count > 0 || params->deadline_ms > LIMIT_DEADLINE_MS ||
        params->algorithm[0] != '\0')
        return false;
    return step->operation == OPERATION_reduce || step->operation == OPERATION_scan;
}

/* True for small jobs of which nobody sees anything but the end. */
static bool is_simple(struct scand_job *job)
{
    const struct common_params common = job_common(job);
    if (*common.progress || *common.group > 0 || job_is_ragged(job) || !is_small(common.input))
        return false;
    return job->method == METHOD_job_run ? is_plain(&job->params.run) : local_is_as_read(&job->params.submit);
}

/* Returns the index of an operand's memory: one of the `count` that earlier operands have, or the next one. -1: it has
 * no address here, or another buffer is the same memory. */
static int find_memory(const struct scand_job *job, uint32_t operand, const struct local_job *asked, int count)
{
    const struct extent *extent = &job->operands[operand].extent;
    const void *base = job->operands[operand].buffer->data;
    for (int i = 0; i < count; i++)
        if (asked->memories[i].base == base)
            return i;
    for (uint32_t i = 0; i < operand; i++)
        if (job->operands[i].extent.inode == extent->inode && job->operands[i].extent.device == extent->device)
            return -1;
    return base ? count : -1;
}

/* Fills in the memories of the operands, and their indices. Returns false where the daemon has to compute the job: its
 * ids of the buffers are filled in whenever the job is sent (job_make_ready). */
static bool set_memories(const struct scand_job *job, struct local_job *asked)
{
    int count = 0;
    for (uint32_t i = 0; i < job->operand_count; i++) {
        const struct scand_buffer *buffer = job->operands[i].buffer;
        const int index = count < LIMIT_JOB_OPERANDS ? find_memory(job, i, asked, count) : -1;
        if (index < 0)
            return false;
        asked->memories[index].base = buffer->data;
        asked->memories[index].size_bytes = buffer->size_bytes;
        job->operands[i].params->buffer = (uint64_t)index;
        count += index == count;
    }
    return true;
}

bool near_compute(struct scand_job *job)
{
    const struct scand *daemon = job->daemon;
    const bool runs = job->method == METHOD_job_run;
    struct local_job asked = {.submit = runs ? NULL : &job->params.submit, .run = runs ? &job->params.run : NULL};
    struct msg_job_submit_result result;
    if (!daemon->near || !is_simple(job) || job_may_have_to_wait(job) || !set_memories(job, &asked))
        return false;
    job->done = daemon->near_library->near_compute(daemon->near, &asked, &result);
    if (job->done)
        job->times = (struct scand_times){.kernel_us = result.kernel_us, .total_us = result.total_us};
    return job->done;
}
