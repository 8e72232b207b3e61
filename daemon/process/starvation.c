#include "starvation.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_BYTES 256

/* Of a thread, the first line of a file of Linux. */
static bool line_read(pid_t pid, int thread, const char *name, char line[LINE_BYTES])
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task/%d/%s", (int)pid, thread, name);
    FILE *file = fopen(path, "re");
    bool read = file && fgets(line, LINE_BYTES, file);
    if (file)
        fclose(file);
    return read;
}

/* 'R': it is ready to run, or runs; 'D': it waits for a disk or a driver; 0: unknown. It stands behind the program's
 * name, which may contain anything but is in parentheses. */
static char state_read(pid_t pid, int thread)
{
    char line[LINE_BYTES];
    const char *end = line_read(pid, thread, "stat", line) ? strrchr(line, ')') : NULL;
    return end && strlen(end) > 2 ? end[2] : 0;
}

static bool time_read(pid_t pid, int thread, struct thread_time *out)
{
    char line[LINE_BYTES];
    out->id = thread;
    return line_read(pid, thread, "schedstat", line) &&
           sscanf(line, "%" SCNu64 " %" SCNu64 " %" SCNu64, &out->ran_ns, &out->waited_ns, &out->turns) == 3;
}

/* One that has not run at all waits now, and Linux adds its waiting up only when it runs. A thread that has just been
 * woken is ready as well, but has run since the last check, or not been known then. */
static bool is_starved(const struct thread_time *before, const struct thread_time *now, char state, uint64_t period_ms)
{
    if (before->id != now->id)
        return false;
    if (now->turns == before->turns)
        return state == 'R' && now->ran_ns == before->ran_ns;
    return now->waited_ns - before->waited_ns >= period_ms * 1000000 / 2;
}

bool starvation_check(struct starvation *starvation, pid_t pid, uint64_t period_ms)
{
    struct thread_time now;
    if (!time_read(pid, (int)pid, &now))
        return false;
    const bool starved = is_starved(&starvation->first, &now, state_read(pid, (int)pid), period_ms);
    starvation->first = now;
    return starved;
}

static const struct thread_time *other_find(const struct starvation *starvation, int id)
{
    for (unsigned i = 0; i < starvation->other_count; i++)
        if (starvation->others[i].id == id)
            return &starvation->others[i];
    return NULL;
}

/* True: so that the others' time does not count. */
static bool other_check(const struct starvation *starvation, pid_t pid, const struct thread_time *now,
                        uint64_t period_ms)
{
    const struct thread_time *before = other_find(starvation, now->id);
    const char state = state_read(pid, now->id);
    return state == 'D' || (before && is_starved(before, now, state, period_ms));
}

bool starvation_check_others(struct starvation *starvation, pid_t pid, uint64_t period_ms)
{
    static struct thread_time now[STARVATION_THREADS]; /* of the one thread that a supervisor has */
    unsigned count = 0;
    bool starved = false;
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *folder = opendir(path);
    for (const struct dirent *entry; folder && count < STARVATION_THREADS && (entry = readdir(folder));) {
        const int id = atoi(entry->d_name);
        if (id == 0 || id == (int)pid || !time_read(pid, id, &now[count]))
            continue;
        starved |= other_check(starvation, pid, &now[count], period_ms);
        count++;
    }
    if (folder)
        closedir(folder);
    memcpy(starvation->others, now, count * sizeof now[0]);
    starvation->other_count = count;
    return starved;
}
