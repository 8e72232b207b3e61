#include "small.h"

#include <stddef.h>

cudaError_t cuda_small_init(struct cuda_small *small, int priority)
{
    cudaError_t e = cudaSuccess;
    for (int i = 0; i < SMALL_BATCHES && e == cudaSuccess; i++) {
        e = cudaStreamCreateWithPriority(&small->batches[i].stream, cudaStreamNonBlocking, priority);
        if (e == cudaSuccess)
            e = cudaEventCreateWithFlags(&small->batches[i].passed, cudaEventDisableTiming);
    }
    return e;
}

void cuda_small_add(struct cuda_small *small, struct chunk *chunk)
{
    chunk_queue_push(&small->waiting, chunk);
    small->out++;
}

static void done(struct cuda_small *small, struct chunk *chunk, int status)
{
    chunk->status = status;
    chunk_queue_push(&small->done, chunk);
}

static void batch_done(struct cuda_small *small, struct small_batch *batch, int status, uint64_t each_us)
{
    struct chunk *chunk = batch->chunks, *next;
    batch->chunks = NULL;
    for (; chunk; chunk = next) {
        next = chunk->next;
        chunk->kernel_us = each_us;
        done(small, chunk, status);
    }
}

/* A chunk is queued, or done: it failed. */
static void batch_accept(struct cuda_small *small, struct chunk_queue *launched, struct chunk *chunk, int status)
{
    if (status)
        done(small, chunk, status);
    else
        chunk_queue_push(launched, chunk);
}

/* Chunks that may share a launch. */
struct group {
    int number; /* scan_cuda_group's */
    struct chunk_queue chunks;
};

static void group_add(struct group groups[SMALL_CHUNKS], unsigned *count, int number, struct chunk *chunk)
{
    unsigned i = 0;
    while (i < *count && groups[i].number != number)
        i++;
    if (i == *count)
        groups[(*count)++] = (struct group){.number = number};
    chunk_queue_push(&groups[i].chunks, chunk);
}

/* One launch for all, but of a single one the kernel that is the best for it, which may need another stream. */
static void group_launch(struct cuda_small *small, struct chunk_queue *launched, struct group *group,
                         cudaStream_t *stream, const struct small_ops *ops, void *context)
{
    struct scan_part parts[SMALL_CHUNKS];
    unsigned count = 0;
    struct chunk *chunk = group->chunks.first;
    for (; chunk; chunk = chunk->next)
        parts[count++] = (struct scan_part){chunk->rows, chunk->first, chunk->count};
    int status =
        count > 1 ? ops->run_together(context, parts, count, *stream) : ops->run(context, group->chunks.first, stream);
    while ((chunk = chunk_queue_pop(&group->chunks)))
        batch_accept(small, launched, chunk, status);
}

/* The event is behind all that the batch has queued, of which some may be on another stream. */
static void batch_close(struct small_batch *batch, cudaStream_t other)
{
    cudaEventRecord(batch->passed, batch->stream);
    if (other == batch->stream)
        return;
    cudaStreamWaitEvent(other, batch->passed, 0);
    cudaEventRecord(batch->passed, other);
}

/* A chunk whose kernel needs another stream, which is the same for all such, ends its batch. */
static void batch_launch(struct cuda_small *small, struct small_batch *batch, const struct small_ops *ops,
                         void *context)
{
    struct chunk_queue launched = {0};
    struct group groups[SMALL_CHUNKS];
    struct chunk *chunk;
    unsigned group_count = 0;
    cudaStream_t stream = batch->stream;
    const bool several = small->waiting.first->next;
    batch->count = 0;
    while (batch->count < SMALL_CHUNKS && stream == batch->stream && (chunk = chunk_queue_pop(&small->waiting))) {
        const int number = several && chunk->step_count == 1 ? scan_cuda_group(chunk->rows, chunk->count) : 0;
        batch->count++;
        if (number)
            group_add(groups, &group_count, number, chunk);
        else
            batch_accept(small, &launched, chunk, ops->run(context, chunk, &stream));
    }
    for (unsigned i = 0; i < group_count; i++) {
        cudaStream_t its = batch->stream;
        group_launch(small, &launched, &groups[i], &its, ops, context);
        stream = its == batch->stream ? stream : its;
    }
    batch_close(batch, stream);
    batch->chunks = launched.first;
}

void cuda_small_launch(struct cuda_small *small, const struct small_ops *ops, void *context, uint64_t now_us)
{
    for (int i = 0; i < SMALL_BATCHES && small->waiting.first; i++) {
        struct small_batch *batch = &small->batches[i];
        if (batch->chunks)
            continue;
        batch->launched_us = now_us;
        batch_launch(small, batch, ops, context);
    }
}

cudaError_t cuda_small_look(struct cuda_small *small, uint64_t now_us)
{
    for (int i = 0; i < SMALL_BATCHES; i++) {
        struct small_batch *batch = &small->batches[i];
        cudaError_t e = batch->chunks ? cudaEventQuery(batch->passed) : cudaErrorNotReady;
        if (e == cudaSuccess)
            batch_done(small, batch, 0, (now_us - batch->launched_us) / batch->count);
        else if (e != cudaErrorNotReady)
            return e;
    }
    return small->done.first ? cudaSuccess : cudaErrorNotReady;
}

struct chunk *cuda_small_pop(struct cuda_small *small)
{
    struct chunk *chunk = chunk_queue_pop(&small->done);
    small->out -= chunk != NULL;
    return chunk;
}

void cuda_small_fail(struct cuda_small *small, int status)
{
    struct chunk *chunk;
    for (int i = 0; i < SMALL_BATCHES; i++)
        batch_done(small, &small->batches[i], status, 0);
    while ((chunk = chunk_queue_pop(&small->waiting)))
        done(small, chunk, status);
}
