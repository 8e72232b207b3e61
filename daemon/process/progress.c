#include "progress.h"

#include <string.h>

#include "daemon/core/jobs/job.h"

#define ESTIMATES 100 /* a chunk may take so many times its estimate, besides the floor */

void progress_init(struct progress *progress)
{
    memset(progress, 0, sizeof *progress);
}

const struct chunk *progress_oldest(const struct station *station)
{
    const struct chunk *oldest = NULL;
    for (size_t i = 0; i < sizeof station->chunks / sizeof station->chunks[0]; i++) {
        const struct chunk *chunk = &station->chunks[i];
        if (chunk->owner && (!oldest || chunk->handed_us < oldest->handed_us))
            oldest = chunk;
    }
    return oldest;
}

/* Estimates a chunk's time from what its user was charged, times the user's weight. */
static uint64_t estimate_ms(const struct chunk *chunk)
{
    const struct job *job = chunk->owner;
    return chunk->charge_ns * (job->lane ? job->lane->user->weight : 1) / 1000000;
}

uint64_t progress_floor_ms(const struct chunk *chunk, uint64_t limit_ms, bool served)
{
    const struct step *first = chunk->step_count > 0 ? &chunk->steps[0] : NULL;
    const bool slow = (first && step_is_named(first)) || (chunk->device->info.on_processor && !served);
    return slow ? 6 * limit_ms : limit_ms;
}

static void show_device(struct progress_device *out, const struct chunk *oldest, uint64_t limit_ms)
{
    if (!oldest) {
        atomic_store(&out->handed_us, 0);
        return;
    }
    atomic_store(&out->job, oldest->job);
    atomic_store(&out->user, oldest->user);
    const uint64_t more_ms = ESTIMATES * estimate_ms(oldest);
    atomic_store(&out->allowed_ms, progress_floor_ms(oldest, limit_ms, false) + more_ms);
    atomic_store(&out->served_ms, progress_floor_ms(oldest, limit_ms, true) + more_ms);
    atomic_store(&out->handed_us, oldest->handed_us);
}

void progress_show(struct progress *progress, const struct service *service, uint64_t limit_ms)
{
    for (unsigned i = 0; i < service->scheduler.station_count; i++)
        show_device(&progress->devices[i], progress_oldest(&service->scheduler.stations[i]), limit_ms);
    atomic_fetch_add(&progress->turns, 1);
}
