#include "client/scanctl/ui/progress.h"

#include <stdio.h>
#include <unistd.h>

#include "client/scanctl/ui/clock.h"

#define PROGRESS_AFTER_US 1000000
#define PROGRESS_EVERY_US 100000
#define PROGRESS_WIDTH    40

void progress_begin(struct progress *progress, uint64_t total)
{
    *progress = (struct progress){.wanted = total && isatty(STDERR_FILENO), .begun_us = clock_now_us(), .total = total};
}

void progress_update(struct progress *progress, uint64_t done)
{
    uint64_t now = progress->wanted ? clock_now_us() : 0;
    if (!progress->wanted || now - progress->begun_us < PROGRESS_AFTER_US ||
        now - progress->drawn_us < PROGRESS_EVERY_US)
        return;
    double fraction = (double)done / (double)progress->total;
    int filled = fraction < 1 ? (int)(fraction * PROGRESS_WIDTH) : PROGRESS_WIDTH;
    fprintf(stderr, "\r[");
    for (int i = 0; i < PROGRESS_WIDTH; i++)
        fputc(i < filled ? '#' : ' ', stderr);
    fprintf(stderr, "] %3.0f %%", fraction < 1 ? 100 * fraction : 100);
    progress->drawn_us = now;
    progress->shown = true;
}

void progress_end(struct progress *progress)
{
    if (progress->shown)
        fprintf(stderr, "\r%*s\r", PROGRESS_WIDTH + 8, "");
    progress->shown = false;
}
