#include "pool_filler.h"

#include "client_buffers.h"
#include "daemon/core/loop.h"
#include "pool.h"

static bool filler_run(struct work *work)
{
    struct filler *filler = (struct filler *)work;
    filler->status = pool_fill(filler->owner->service->pool, filler->segment);
    return filler->status > 0;
}

/* True until the daemon drains: a daemon that ends needs no more segments. */
static bool filler_is_wanted(struct work *work)
{
    return !((struct filler *)work)->owner->service->draining;
}

/* Gives the filler a segment that is left, if one is. */
static void filler_go_on(struct filler *filler)
{
    struct pool_filler *self = filler->owner;
    filler->segment = filler_is_wanted(&filler->work) ? pool_fill_begin(self->service->pool, &self->next) : NULL;
    if (filler->segment)
        helpers_add(&self->service->helpers, &self->queue, &filler->work);
    else if (--self->busy == 0)
        self->done(self);
}

static void filler_done(struct work *work)
{
    struct filler *filler = (struct filler *)work;
    struct pool_filler *self = filler->owner;
    self->failures += filler->status < 0;
    pool_fill_end(self->service->pool, filler->segment);
    filler_go_on(filler);
    waiting_pump(self->service); /* a request may have waited for it */
}

void pool_filler_start(struct pool_filler *self, struct service *service, void (*done)(struct pool_filler *filler))
{
    *self = (struct pool_filler){.service = service, .done = done, .busy = FILLERS};
    for (unsigned i = 0; i < FILLERS; i++) {
        self->fillers[i] = (struct filler){
            .work = {.run = filler_run, .done = filler_done, .is_wanted = filler_is_wanted}, .owner = self};
        filler_go_on(&self->fillers[i]);
    }
    service_pump_helpers(service);
}
