#include "batch.h"

#include <stdlib.h>

#include "daemon/core/replies.h"

/* Sets no more than tells that there is nothing: the texts of errors are most of a batch. */
static void outcome_clear(struct msg_job_outcome *outcome)
{
    outcome->times = (struct msg_job_submit_result){0};
    outcome->error.code = outcome->error.retry_ms = 0;
    outcome->error.name[0] = outcome->error.message[0] = '\0';
}

struct batch *batch_create(uint32_t jobs)
{
    struct batch *batch = malloc(sizeof *batch);
    if (!batch)
        return NULL;
    batch->holds = 1;
    batch->failing = false;
    batch->result.jobs_count = jobs;
    for (uint32_t i = 0; i < jobs; i++)
        outcome_clear(&batch->result.jobs[i]);
    return batch;
}

void batch_unhold(struct batch *batch, struct client *client, uint32_t msgid)
{
    if (--batch->holds > 0)
        return;
    client->failing_batches -= batch->failing;
    reply_result(client, msgid, &msg_job_batch_result_type, &batch->result);
    free(batch);
}

void batch_note_failure(struct batch *batch, struct client *client, uint32_t at, const struct error *error)
{
    client->failing_batches += !batch->failing;
    batch->failing = true;
    count_refusal(&client->service->stats, error->code);
    error_to_failure(error, &batch->result.jobs[at].error);
}

void batch_note(const struct job *job)
{
    if (job->outcome.code)
        batch_note_failure(job->batch, job->client, job->index - 1, &job->outcome);
    else
        job->batch->result.jobs[job->index - 1].times = job->times;
    batch_unhold(job->batch, job->client, job->msgid);
}
