#include "feed.h"

#include <errno.h>
#include <stdlib.h>

int feed_begin(struct job *job, struct error *error)
{
    if (!job_reads_files(job))
        return 0;
    struct load first = {.count = job_chunk_count(job, 0)};
    /* The places of ragged rows are not known yet. */
    int r = job->operands[OPERAND_OFFSETS].buffer || job_is_empty(job) ? 0 : load_lay_out(&first, job, error);
    if (r)
        return r;
    job->loads = calloc(1, sizeof *job->loads);
    if (!job->loads)
        return error_set(error, -ENOMEM, "out of memory for another job; try again later");
    job->loads->job = job;
    return 0;
}

/* Returns the last job that is at least as urgent as this rank, since more urgent jobs come first. */
static struct loads *last_before(const struct feed_queue *queue, int rank)
{
    struct loads *loads = queue->last;
    while (loads && loads->job->rank > rank)
        loads = loads->before;
    return loads;
}

void feed_join(struct service *service, struct job *job)
{
    struct loads *loads = job->loads;
    struct feed_queue *queue = &job->client->user->feed;
    if (!loads)
        return;
    if (!queue->first)
        round_robin_join(&service->feeding, &queue->node);
    loads->before = last_before(queue, job->rank);
    loads->next = loads->before ? loads->before->next : queue->first;
    *(loads->before ? &loads->before->next : &queue->first) = loads;
    *(loads->next ? &loads->next->before : &queue->last) = loads;
}

static void queue_remove(struct service *service, struct feed_queue *queue, struct loads *loads)
{
    *(loads->before ? &loads->before->next : &queue->first) = loads->next;
    *(loads->next ? &loads->next->before : &queue->last) = loads->before;
    if (!queue->first)
        round_robin_leave(&service->feeding, &queue->node);
}

void load_end(struct load *load)
{
    struct service *service = load->service;
    struct user *user = load->user;
    user->feed.loads--;
    user->feed.load_bytes -= load->block->size_bytes;
    service->loads.used--;
    service->load_bytes.used -= load->block->size_bytes;
    blocks_push(service, user, load->block);
    user_unhold(user);
    free(load);
}

void feed_leave(struct service *service, struct job *job)
{
    struct loads *loads = job->loads;
    if (!loads)
        return;
    queue_remove(service, &job->client->user->feed, loads);
    for (struct load *load = loads->first, *next; load; load = next) {
        next = load->next;
        load->loads = NULL;
        if (load->done)
            load_end(load);
    }
}

void feed_return(struct job *job, struct chunk *chunk)
{
    struct load *load = chunk->load;
    if (!load)
        return;
    chunk->load = NULL;
    if (chunk->rest && job->rest)
        loads_return(job->loads, load);
    else
        load_end(load);
}
