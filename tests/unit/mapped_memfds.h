/* How many memfds are mapped into this process: a test compares the number with that of its beginning. */
#ifndef TESTS_MAPPED_MEMFDS_H
#define TESTS_MAPPED_MEMFDS_H

#include <stdio.h>
#include <string.h>

static inline int memfds_mapped(void)
{
    char line[512];
    int count = 0;
    FILE *maps = fopen("/proc/self/maps", "re");
    while (maps && fgets(line, sizeof line, maps))
        count += strstr(line, "memfd:") != NULL;
    fclose(maps);
    return count;
}

#endif
