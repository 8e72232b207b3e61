/* Jobs on their way to the daemon, and their answers. */
#include <errno.h>

#include "client/lib/internal.h"

void job_set_times(struct scand_job *job, const struct msg_job_submit_result *result)
{
    job->times = (struct scand_times){result->queued_us, result->upload_us, result->kernel_us, result->download_us,
                                      result->total_us};
}

static void job_succeeded(struct scand_job *job, const struct msg_job_submit_result *result)
{
    struct error outcome;
    error_clear(&outcome);
    job_set_times(job, result);
    job->daemon->spin_end_us = 0;
    job_take_answer(job, &outcome);
}

static int job_done(struct scand *daemon, struct pending *pending, const struct message *message, struct error *error)
{
    struct scand_job *job = (struct scand_job *)pending; /* a job begins with its pending */
    struct error outcome;
    struct msg_job_submit_result result;
    if (!message->failed) {
        if (message_read(message, &msg_job_submit_result_type, &result, error))
            return -EBADMSG;
        job_succeeded(job, &result);
        return 0;
    }
    error_clear(&outcome);
    if (answer_read_failure(message, &outcome, error))
        return -EBADMSG;
    daemon->spin_end_us = 0;
    job_take_answer(job, &outcome);
    return 0;
}

bool job_results_receive(struct scand *daemon)
{
    struct msg_job_submit_result result;
    uint32_t msgid;
    bool some = false;
    for (; local_result(daemon, &msgid, &result); some = true) {
        struct pending *pending = pending_find(daemon, msgid);
        if (!pending)
            continue;
        pending_remove(daemon, pending);
        job_succeeded((struct scand_job *)pending, &result);
    }
    return some;
}

/* Sets the time that is left for the job to start, which runs on while the daemon is away. */
static int job_time_left(struct scand_job *job)
{
    uint64_t *deadline_ms = job_common(job).deadline_ms;
    if (*deadline_ms == 0)
        return 0;
    const int64_t now_ms = clock_ms();
    if (job->attempts == 0)
        job->start_by_ms = now_ms + (int64_t)*deadline_ms;
    if (job->start_by_ms <= now_ms)
        return session_fail(job->daemon, -ETIME,
                            "the time in which the job was to start ended while the daemon's worker was away: submit "
                            "it again");
    *deadline_ms = (uint64_t)(job->start_by_ms - now_ms);
    return 0;
}

/* Checks that the daemon knows the operations that the job asks for, since it may be older than the library. */
static int job_check_steps(const struct scand_job *job)
{
    const bool runs = job->method == METHOD_job_run;
    const unsigned further = runs ? job->params.run.steps_count - 1 : job->params.submit.then_count;
    if (runs && !job->daemon->runs_tasks)
        return session_fail(job->daemon, -EOPNOTSUPP,
                            "this daemon (%s) takes no tasks: upgrade it, or submit scans and reductions",
                            job->daemon->server);
    if (further <= job->daemon->job_steps)
        return 0;
    return session_fail(job->daemon, -EOPNOTSUPP,
                        "%s is %u: this daemon (%s) takes %llu further steps: submit them as jobs, or upgrade it",
                        runs ? "the number of steps after the first" : "then_count", further, job->daemon->server,
                        (unsigned long long)job->daemon->job_steps);
}

/* Lists a job alone where the daemon does not know its group. */
static void job_check_group(struct scand_job *job)
{
    const struct scand *daemon = job->daemon;
    const bool is_known = job->group > 0 && daemon->groups[job->group - 1].generation == daemon->generation;
    *job_common(job).group = is_known ? job->group : 0;
}

uint64_t job_input_bytes(struct scand_job *job)
{
    const struct msg_tensor *input = job_common(job).input;
    uint64_t bytes = dtype_size_bytes(input->dtype);
    for (uint32_t i = 0; i < input->shape_count; i++)
        bytes *= input->shape[i];
    return bytes;
}

bool job_is_small(struct scand_job *job)
{
    return job_input_bytes(job) <= SHORT_BYTES;
}

int job_make_ready(struct scand_job *job)
{
    job_check_group(job);
    int code = job_check_steps(job);
    if (code == 0)
        code = job_time_left(job);
    if (code)
        return code;
    for (uint32_t i = 0; i < job->operand_count; i++)
        job->operands[i].params->buffer = job->operands[i].buffer->id;
    return 0;
}

void job_set_sent(struct scand_job *job, bool sent)
{
    const struct scand *daemon = job->daemon;
    job->attempts++;
    job->refused = false;
    if (daemon->connection)
        job->sent_with = connection_sent_bytes(daemon->connection) + connection_output_bytes(daemon->connection);
    /* A daemon that drains will refuse what it gets. */
    job->sent = sent ? daemon->held_end_ms == 0 : job->sent;
}

int job_submit(struct scand_job *job)
{
    struct scand *daemon = job->daemon;
    int code = job_make_ready(job);
    if (code)
        return code;
    job->pending = (struct pending){.msgid = session_next_msgid(daemon, 0), .done = job_done};
    job->index = 0;
    if (!local_submit(job))
        code = session_send(daemon, job->pending.msgid, &(struct call){.method = job->method, .params = &job->params});
    job_set_sent(job, code == 0);
    if (code && code != -EPIPE)
        return code;
    /* A broken connection shows when reading; reconnecting then submits the job again. */
    pending_add(daemon, &job->pending);
    rings_consider(daemon, code == 0 && job_is_small(job));
    return 0;
}
