#include "starvation.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LINE_BYTES 256

static bool line_read(pid_t pid, const char *name, char line[LINE_BYTES])
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    FILE *file = fopen(path, "re");
    bool read = file && fgets(line, LINE_BYTES, file);
    if (file)
        fclose(file);
    return read;
}

/* The state stands behind the program's name, which may contain anything but is in parentheses. */
static bool is_ready(pid_t pid)
{
    char line[LINE_BYTES];
    const char *end = line_read(pid, "stat", line) ? strrchr(line, ')') : NULL;
    return end && strncmp(end, ") R", 3) == 0;
}

bool starvation_check(struct starvation *starvation, pid_t pid, uint64_t period_ms)
{
    char line[LINE_BYTES];
    uint64_t ran_ns;
    if (!line_read(pid, "schedstat", line) || sscanf(line, "%" SCNu64, &ran_ns) != 1)
        return false;
    const uint64_t since_ns = ran_ns - starvation->ran_ns;
    starvation->ran_ns = ran_ns;
    return since_ns < period_ms * 1000000 / 2 && is_ready(pid);
}
