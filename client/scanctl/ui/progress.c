#include "client/scanctl/ui/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "client/scanctl/ui/text.h"
#include "protocol/clock.h"

#define PROGRESS_AFTER_US 1000000
#define PROGRESS_EVERY_US 100000
#define PROGRESS_WIDTH    20

void progress_begin(struct progress *progress, uint64_t total, uint64_t row_bytes)
{
    *progress = (struct progress){
        .wanted = isatty(STDERR_FILENO), .begun_us = clock_us(), .total = total, .row_bytes = row_bytes};
}

/* Writes a time in its two largest units: "2 h 5 min". */
static void time_left(uint64_t seconds, char *out)
{
    if (seconds >= 3600)
        snprintf(out, GROUPED_BYTES, "%" PRIu64 " h %" PRIu64 " min", seconds / 3600, seconds / 60 % 60);
    else if (seconds >= 60)
        snprintf(out, GROUPED_BYTES, "%" PRIu64 " min %" PRIu64 " s", seconds / 60, seconds % 60);
    else
        snprintf(out, GROUPED_BYTES, "%" PRIu64 " s", seconds);
}

const char *progress_text(const struct progress *progress, uint64_t done, uint64_t elapsed_us, char *out)
{
    char rows[GROUPED_BYTES], total[GROUPED_BYTES], left[GROUPED_BYTES];
    double rate = gigabytes_per_second(done * progress->row_bytes, elapsed_us);
    if (!progress->total) {
        snprintf(out, PROGRESS_BYTES, "%s rows, %.2f GB/s", grouped(done, rows), rate);
        return out;
    }
    uint64_t rest = done < progress->total ? progress->total - done : 0;
    time_left(done ? (uint64_t)((double)rest * (double)elapsed_us / (double)done / 1e6) : 0, left);
    snprintf(out, PROGRESS_BYTES, "%s of %s rows, %.2f GB/s, %s left", grouped(done, rows),
             grouped(progress->total, total), rate, done ? left : "some time");
    return out;
}

void progress_update(struct progress *progress, uint64_t done)
{
    char text[PROGRESS_BYTES];
    uint64_t now = progress->wanted ? clock_us() : 0;
    if (!progress->wanted || now - progress->begun_us < PROGRESS_AFTER_US ||
        now - progress->drawn_us < PROGRESS_EVERY_US)
        return;
    double fraction = progress->total ? (double)done / (double)progress->total : 0;
    int filled = fraction < 1 ? (int)(fraction * PROGRESS_WIDTH) : PROGRESS_WIDTH;
    fprintf(stderr, "\r[");
    for (int i = 0; i < PROGRESS_WIDTH; i++)
        fputc(i < filled ? '#' : ' ', stderr);
    fprintf(stderr, "] %s\033[K", progress_text(progress, done, now - progress->begun_us, text));
    progress->drawn_us = now;
    progress->shown = true;
}

void progress_end(struct progress *progress)
{
    if (progress->shown)
        fprintf(stderr, "\r\033[K");
}
