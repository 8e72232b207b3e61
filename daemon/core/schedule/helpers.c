#include "helpers.h"

#include <assert.h>

void helpers_add(struct helpers *helpers, struct work_queue *queue, struct work *work)
{
    work->helpers = helpers;
    work->queue = queue;
    work_list_push(&queue->waiting, work);
    if (queue->waiting.first == work)
        round_robin_join(&helpers->turn, &queue->node);
}

static bool may_go(const struct helpers *helpers, const struct work_queue *queue)
{
    const unsigned left = helpers->most - (helpers->out - queue->out);
    if (helpers->each > 0 && (queue->out >= helpers->each || queue->out >= (left + 1) / 2))
        return false;
    if (helpers->out + 1 < helpers->most || helpers->most == 1)
        return helpers->out < helpers->most;
    return helpers->out < helpers->most && queue->out == 0 && !queue->waiting.first->lasts;
}

/* The next queue in turn of which a unit may go. */
static struct work_queue *find_queue(struct helpers *helpers)
{
    struct round_robin *at = helpers->turn;
    if (!at)
        return NULL;
    do {
        struct work_queue *queue = (struct work_queue *)at;
        if (may_go(helpers, queue))
            return queue;
        at = at->next;
    } while (at != helpers->turn);
    return NULL;
}

struct work *helpers_next(struct helpers *helpers)
{
    struct work_queue *queue = find_queue(helpers);
    if (!queue)
        return NULL;
    struct work *work = work_list_pop(&queue->waiting);
    round_robin_leave(&helpers->turn, &queue->node);
    if (queue->waiting.first)
        round_robin_join(&helpers->turn, &queue->node); /* behind all others */
    queue->out++;
    helpers->out++;
    return work;
}

void helpers_return(struct work *work)
{
    struct helpers *helpers = work->helpers;
    assert(helpers->out > 0 && work->queue->out > 0);
    helpers->out--;
    work->queue->out--;
}
