#include "tests/bench/team.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define RESULT_BYTES (TEAM_MAX * sizeof(double))

static int fail(const char *what)
{
    fprintf(stderr, "scand-bench: processes: %s: %s\n", what, strerror(errno));
    return 1;
}

static void close_end(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static int team_init(struct team *team)
{
    *team = (struct team){.ready = {-1, -1}, .begin = {-1, -1}};
    void *memory = mmap(NULL, RESULT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return fail("memory");
    team->shared = memory;
    return pipe(team->ready) || pipe(team->begin) ? fail("pipe") : 0;
}

/* Starts a member. It closes the ends of pipes that it does not use: the others see an end of file when the last copy
 * of an end is closed. */
static int team_add(struct team *team, team_work *work, const void *argument)
{
    int index = team->count;
    pid_t child = fork();
    if (child == 0) {
        close_end(&team->ready[0]);
        close_end(&team->begin[1]);
        _exit(work(team, index, argument));
    }
    if (child < 0)
        return fail("fork");
    team->members[team->count++] = child;
    return 0;
}

int team_start(struct team *team, int count, team_work *work, const void *argument)
{
    char bytes;
    int r = team_init(team);
    while (team->count < count && !r)
        r = team_add(team, work, argument);
    close_end(&team->ready[1]);
    close_end(&team->begin[0]);
    for (int i = 0; i < count && !r; i++)
        if (read(team->ready[0], &bytes, 1) != 1)
            r = fail("one ended before it was ready");
    return r;
}

int team_meet(struct team *team)
{
    char byte = 0;
    int r = write(team->ready[1], &byte, 1) != 1;
    close_end(&team->ready[1]);
    return r || read(team->begin[0], &byte, 1) != 0;
}

void team_begin(struct team *team)
{
    close_end(&team->begin[1]);
}

void team_give(struct team *team, int index, double result)
{
    team->shared[index] = result;
}

int team_end(struct team *team)
{
    int failed = 0;
    team_begin(team);
    for (int i = 0; i < team->count; i++) {
        int status = 1;
        waitpid(team->members[i], &status, 0);
        failed |= status;
    }
    close_end(&team->ready[0]);
    if (team->shared) {
        memcpy(team->results, team->shared, RESULT_BYTES);
        munmap(team->shared, RESULT_BYTES);
    }
    return failed;
}
