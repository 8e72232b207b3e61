#include "cuda_small.h"

#include <stddef.h>

static void queue_add(struct chunk_queue *queue, struct chunk *chunk)
{
    chunk->next = NULL;
    if (queue->first)
        queue->last->next = chunk;
    else
        queue->first = chunk;
    queue->last = chunk;
}

static struct chunk *queue_take(struct chunk_queue *queue)
{
    struct chunk *chunk = queue->first;
    if (chunk)
        queue->first = chunk->next;
    return chunk;
}

cudaError_t cuda_small_init(struct cuda_small *small)
{
    cudaError_t e = cudaSuccess;
    for (int i = 0; i < SMALL_BATCHES && e == cudaSuccess; i++) {
        e = cudaStreamCreateWithFlags(&small->batches[i].stream, cudaStreamNonBlocking);
        if (e == cudaSuccess)
            e = cudaEventCreateWithFlags(&small->batches[i].passed, cudaEventDisableTiming);
    }
    return e;
}

void cuda_small_add(struct cuda_small *small, struct chunk *chunk)
{
    queue_add(&small->waiting, chunk);
    small->out++;
}

static void done(struct cuda_small *small, struct chunk *chunk, int status)
{
    chunk->status = status;
    queue_add(&small->done, chunk);
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
static void batch_take(struct cuda_small *small, struct chunk_queue *launched, struct chunk *chunk, int status)
{
    if (status)
        done(small, chunk, status);
    else
        queue_add(launched, chunk);
}

static bool goes_together(const struct chunk *chunk)
{
    return chunk->then_count == 0 && scan_cuda_goes_together(chunk->rows, chunk->count);
}

/* One launch for all, but of a single one the kernel that is the best for it. */
static void launch_together(struct cuda_small *small, struct chunk_queue *launched, struct chunk_queue *together,
                            cudaStream_t stream, const struct small_ops *ops, void *context)
{
    struct scan_part parts[SMALL_CHUNKS];
    unsigned count = 0;
    struct chunk *chunk = together->first;
    for (; chunk; chunk = chunk->next)
        parts[count++] = (struct scan_part){chunk->rows, chunk->first, chunk->count};
    int status = count > 1    ? ops->run_together(context, parts, count, stream)
                 : count == 1 ? ops->run(context, together->first, &stream)
                              : 0;
    while ((chunk = queue_take(together)))
        batch_take(small, launched, chunk, status);
}

/* The event is behind all that the batch has queued, of which the last may be on another stream. */
static void batch_close(struct small_batch *batch, cudaStream_t last)
{
    cudaEventRecord(batch->passed, batch->stream);
    if (last == batch->stream)
        return;
    cudaStreamWaitEvent(last, batch->passed, 0);
    cudaEventRecord(batch->passed, last);
}

/* A chunk whose kernel needs another stream ends its batch. */
static void batch_launch(struct cuda_small *small, struct small_batch *batch, const struct small_ops *ops,
                         void *context)
{
    struct chunk_queue launched = {0}, together = {0};
    struct chunk *chunk;
    cudaStream_t stream = batch->stream;
    const bool several = small->waiting.first->next;
    batch->count = 0;
    while (batch->count < SMALL_CHUNKS && stream == batch->stream && (chunk = queue_take(&small->waiting))) {
        batch->count++;
        if (several && goes_together(chunk))
            queue_add(&together, chunk);
        else
            batch_take(small, &launched, chunk, ops->run(context, chunk, &stream));
    }
    launch_together(small, &launched, &together, batch->stream, ops, context);
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

struct chunk *cuda_small_take(struct cuda_small *small)
{
    struct chunk *chunk = queue_take(&small->done);
    small->out -= chunk != NULL;
    return chunk;
}

void cuda_small_fail(struct cuda_small *small, int status)
{
    struct chunk *chunk;
    for (int i = 0; i < SMALL_BATCHES; i++)
        batch_done(small, &small->batches[i], status, 0);
    while ((chunk = queue_take(&small->waiting)))
        done(small, chunk, status);
}
