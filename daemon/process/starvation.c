#include "starvation.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_BYTES 256

/* Reads the first line of a file about a thread in /proc. */
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

/* Returns a thread's state: 'R': ready to run, or running; 'D': waiting for a disk or a driver; 0: unknown. The state
 * stands behind the program's name, which may contain anything but is in parentheses. */
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

/* True when a ready thread had no processor for half of the period. A thread that has not run at all since the last
 * check counts when it is ready now, since Linux adds waiting up only when a thread runs. A thread that has just been
 * woken is ready as well, but it has run since the last check, or was not known then. */
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

bool starvation_sleeps(pid_t pid)
{
    return state_read(pid, (int)pid) == 'D';
}

static const struct thread_time *other_find(const struct starvation *starvation, int id)
{
    for (unsigned i = 0; i < starvation->other_count; i++)
        if (starvation->others[i].id == id)
            return &starvation->others[i];
    return NULL;
}

/* True when a thread other than the first waits for a processor or a disk, so that this period must not count as
 * served. */
static bool other_check(const struct starvation *starvation, pid_t pid, const struct thread_time *now,
                        uint64_t period_ms)
{
    const struct thread_time *before = other_find(starvation, now->id);
    const char state = state_read(pid, now->id);
    return state == 'D' || (before && is_starved(before, now, state, period_ms));
}

bool starvation_check_others(struct starvation *starvation, pid_t pid, uint64_t period_ms)
{
    static struct thread_time now[STARVATION_THREADS]; /* static: a supervisor has one thread */
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
