#include "tests/bench/vitals.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define NAME_BYTES 300
#define PATH_BYTES (NAME_BYTES + 32)

static FILE *open_of(pid_t pid, const char *name)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    return fopen(path, "re");
}

/* The number after a word at the beginning of a line of a "status" file. */
static bool status_read(FILE *file, const char *word, uint64_t *out)
{
    char line[256];
    size_t length = strlen(word);
    rewind(file);
    while (fgets(line, sizeof line, file))
        if (strncmp(line, word, length) == 0)
            return sscanf(line + length, "%" SCNu64, out) == 1;
    return false;
}

static bool count_lines(pid_t pid, const char *name, uint64_t *out)
{
    FILE *file = open_of(pid, name);
    if (!file)
        return false;
    *out = 0;
    for (int c; (c = getc(file)) != EOF;)
        *out += c == '\n';
    fclose(file);
    return true;
}

static bool count_files(pid_t pid, const char *name, uint64_t *out)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    DIR *folder = opendir(path);
    if (!folder)
        return false;
    *out = 0;
    for (struct dirent *entry; (entry = readdir(folder));)
        *out += entry->d_name[0] != '.';
    closedir(folder);
    return true;
}

bool vitals_read(pid_t pid, struct vitals *out)
{
    FILE *status = open_of(pid, "status");
    if (!status)
        return false;
    bool read = status_read(status, "VmRSS:", &out->resident_kib) &&
                status_read(status, "RssAnon:", &out->anonymous_kib) &&
                status_read(status, "VmData:", &out->data_kib) && status_read(status, "Threads:", &out->threads);
    fclose(status);
    return read && count_lines(pid, "maps", &out->mappings) && count_files(pid, "fd", &out->descriptors);
}

/* True for a thread of the driver: "cuda-EvtHandlr" looks at its descriptors ten times a second. */
static bool is_drivers(pid_t pid, const char *thread)
{
    char name[NAME_BYTES], comm[sizeof "cuda"] = "";
    snprintf(name, sizeof name, "task/%s/comm", thread);
    FILE *file = open_of(pid, name);
    bool read = file && fgets(comm, sizeof comm, file);
    if (file)
        fclose(file);
    return read && strcmp(comm, "cuda") == 0;
}

static bool thread_add(pid_t pid, const char *thread, struct activity *out)
{
    char name[NAME_BYTES];
    uint64_t wakes, busy_ns;
    snprintf(name, sizeof name, "task/%s/status", thread);
    FILE *status = open_of(pid, name);
    snprintf(name, sizeof name, "task/%s/schedstat", thread);
    FILE *times = open_of(pid, name);
    bool read = status && times && status_read(status, "voluntary_ctxt_switches:", &wakes) &&
                fscanf(times, "%" SCNu64, &busy_ns) == 1;
    if (status)
        fclose(status);
    if (times)
        fclose(times);
    if (!read)
        return false;
    *(is_drivers(pid, thread) ? &out->driver_wakes : &out->wakes) += wakes;
    out->busy_ns += busy_ns;
    return true;
}

bool activity_read(pid_t pid, struct activity *out)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *folder = opendir(path);
    bool read = folder;
    *out = (struct activity){0};
    for (struct dirent *entry; read && (entry = readdir(folder));)
        if (entry->d_name[0] != '.')
            read = thread_add(pid, entry->d_name, out);
    if (folder)
        closedir(folder);
    return read;
}

static bool daemon_activity(const struct server *server, struct activity *out)
{
    struct activity worker;
    if (!activity_read(server_worker(server), &worker) || !activity_read(server->pid, out))
        return false;
    out->wakes += worker.wakes;
    out->driver_wakes += worker.driver_wakes;
    out->busy_ns += worker.busy_ns;
    return true;
}

bool daemon_watch(const struct server *server, unsigned seconds, struct activity *out)
{
    struct activity before, after;
    if (!daemon_activity(server, &before))
        return false;
    sleep(seconds);
    if (!daemon_activity(server, &after))
        return false;
    *out = (struct activity){.wakes = after.wakes - before.wakes,
                             .driver_wakes = after.driver_wakes - before.driver_wakes,
                             .busy_ns = after.busy_ns - before.busy_ns};
    return true;
}
