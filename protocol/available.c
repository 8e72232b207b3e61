#include "available.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/param.h>

#include "limits.h"

#define PATH_BYTES 4096

/* A hierarchy of control groups. What its groups use holds file pages that are given up before anybody is killed. */
struct hierarchy {
    const char *folder;       /* below the root */
    const char *controller;   /* in /proc/self/cgroup; "" for version 2 */
    const char *limit, *used; /* files of a group */
    const char *pages[2];     /* names of such pages in its memory.stat */
};

static const struct hierarchy hierarchies[] = {
    {"/sys/fs/cgroup", "", "memory.max", "memory.current", {"inactive_file", "active_file"}},
    /* Beside version 1 its groups are there, without the memory controller. */
    {"/sys/fs/cgroup/memory",
     "memory",
     "memory.limit_in_bytes",
     "memory.usage_in_bytes",
     {"total_inactive_file", "total_active_file"}},
};

static FILE *file_open(const char *root, const char *folder, const char *name)
{
    char path[PATH_BYTES];
    return snprintf(path, sizeof path, "%s%s/%s", root, folder, name) < (int)sizeof path ? fopen(path, "re") : NULL;
}

/* The number that stands alone in a file. False when there is no such file, or no number in it, as in "max". */
static bool number_read(const char *root, const char *folder, const char *name, uint64_t *out)
{
    FILE *file = file_open(root, folder, name);
    bool found = file && fscanf(file, "%" SCNu64, out) == 1;
    if (file)
        fclose(file);
    return found;
}

/* The number after a name in a file of lines "NAME NUMBER" or "NAME: NUMBER kB", in its own unit. */
static bool named_read(const char *root, const char *folder, const char *file_name, const char *name, uint64_t *out)
{
    FILE *file = file_open(root, folder, file_name);
    char line[256];
    bool found = false;
    size_t length = strlen(name);
    while (file && !found && fgets(line, sizeof line, file)) {
        bool is_it = strncmp(line, name, length) == 0 && strchr(": ", line[length]) && line[length];
        found = is_it && sscanf(line + length + 1, "%" SCNu64, out) == 1;
    }
    if (file)
        fclose(file);
    return found;
}

/* "memory" is among "cpu,memory,pids". */
static bool lists(const char *controllers, const char *wanted)
{
    size_t length = strlen(wanted);
    for (const char *at = controllers;; at++) {
        size_t word = strcspn(at, ",");
        if (word == length && strncmp(at, wanted, word) == 0)
            return true;
        at += word;
        if (!*at)
            return false;
    }
}

/* Finds this process's group in a hierarchy, as in a line "4:memory:/path". False: the process has none. */
static bool group_find(const char *root, const char *controller, char *out, size_t size)
{
    FILE *file = file_open(root, "/proc/self", "cgroup");
    char line[PATH_BYTES];
    bool found = false;
    while (file && !found && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':'), *path = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!path)
            continue;
        *path++ = '\0';
        found = lists(controllers + 1, controller) && snprintf(out, size, "%s", path) < (int)size;
    }
    if (file)
        fclose(file);
    return found;
}

/* Returns how much one group may still take; UINT64_MAX: the group has no limit. */
static uint64_t group_left(const char *root, const struct hierarchy *hierarchy, const char *folder)
{
    uint64_t limit, used, pages;
    if (!number_read(root, folder, hierarchy->limit, &limit) || !number_read(root, folder, hierarchy->used, &used))
        return UINT64_MAX;
    for (unsigned i = 0; i < 2; i++)
        if (named_read(root, folder, "memory.stat", hierarchy->pages[i], &pages))
            used -= MIN(used, pages);
    return limit - MIN(limit, used);
}

/* A group and all that it lies in; in a container the upper ones, and often the path, are not to be seen. */
static uint64_t hierarchy_left(const char *root, const struct hierarchy *hierarchy)
{
    char group[PATH_BYTES / 2], folder[PATH_BYTES];
    uint64_t least = UINT64_MAX;
    if (!group_find(root, hierarchy->controller, group, sizeof group))
        return UINT64_MAX;
    for (;;) {
        snprintf(folder, sizeof folder, "%s%s", hierarchy->folder, group);
        uint64_t left = group_left(root, hierarchy, folder);
        least = MIN(least, left);
        char *slash = strrchr(group, '/');
        if (!slash)
            return least;
        *slash = '\0';
    }
}

static uint64_t machine_left(const char *root)
{
    uint64_t kib;
    return named_read(root, "/proc", "meminfo", "MemAvailable", &kib) ? KIB(kib) : UINT64_MAX;
}

uint64_t memory_available_below(const char *root, const char **limit)
{
    uint64_t machine = machine_left(root), group = UINT64_MAX;
    for (size_t i = 0; i < sizeof hierarchies / sizeof hierarchies[0]; i++) {
        uint64_t left = hierarchy_left(root, &hierarchies[i]);
        group = MIN(group, left);
    }
    uint64_t least = MIN(machine, group);
    *limit = group < machine ? "memory left to this control group (memory.max)"
                             : "available memory of the machine (MemAvailable)";
    return least == UINT64_MAX ? least : least - MIN(least, LIMIT_MEMORY_RESERVE_BYTES);
}

uint64_t memory_available_bytes(void)
{
    const char *limit;
    return memory_available_below("", &limit);
}
