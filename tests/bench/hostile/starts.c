#include "tests/bench/hostile/starts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <unistd.h>

#include "protocol/limits.h"
#include "tests/bench/client.h"
#include "tests/bench/hostile/daemon.h"
#include "tests/bench/vitals.h"

#define FEW_FILES        80
#define WATCH_S          1
#define BUSY_PERCENT_MAX 5.0
#define POOL_MAX_GIB     256
#define LINE_BYTES       400
#define BAD              2 /* the exit status of such a process */

/* The exit status of one that has ended; -1 of one that has not. */
static int exit_status(const struct daemon *daemon)
{
    siginfo_t info = {0};
    if (!server_has_ended(&daemon->server) ||
        waitid(P_PID, (id_t)daemon->server.pid, &info, WEXITED | WNOHANG | WNOWAIT))
        return -1;
    return info.si_status;
}

static void print_served(const struct daemon *daemon, bool *bad)
{
    struct activity idle = {0};
    daemon_watch(&daemon->server, WATCH_S, &idle);
    double busy_percent = (double)idle.busy_ns / WATCH_S / 1e7;
    printf("    daemon: serves; %.1f %% of a core with nothing to do", busy_percent);
    *bad |= busy_percent > BUSY_PERCENT_MAX;
}

static int try_start(const char *scand, const char *pool, double patience_ms, bool *bad)
{
    const char *const arguments[] = {"--device", "cpu", "--pool", pool, NULL};
    struct daemon daemon;
    char line[LINE_BYTES];
    if (daemon_start(&daemon, scand, arguments))
        return 1;
    int r = daemon_await(&daemon, patience_ms), status = exit_status(&daemon);
    if (daemon.guarded)
        printf("    daemon: killed, memory was about to run out");
    else if (status >= 0)
        printf("    daemon: ended with exit code %d", status);
    else if (r == 0)
        print_served(&daemon, bad);
    else
        printf("    daemon: runs, and does not answer");
    *bad |= daemon.guarded || (r && status <= 0);
    daemon_log_last(&daemon, line, sizeof line);
    printf("; %" PRIu64 " log lines, the last: %s\n", daemon_log_lines(&daemon), line);
    daemon_end(&daemon, patience_ms);
    return 0;
}

int start_pool_large(const char *scand, double patience_ms, bool *bad)
{
    struct sysinfo info;
    char pool[32];
    if (sysinfo(&info))
        return client_fail("memory", strerror(errno));
    uint64_t gib = 2 * (uint64_t)info.totalram * info.mem_unit / GIB(1);
    if (gib > POOL_MAX_GIB) {
        printf("    left out: a pool has at most %d GiB, which is less\n", POOL_MAX_GIB);
        return 0;
    }
    snprintf(pool, sizeof pool, "%" PRIu64 "G", gib);
    return try_start(scand, pool, patience_ms, bad);
}

/* Starts a daemon with few files, in a process of its own, as limits cannot be raised again. */
int start_few_files(const char *scand, double patience_ms, bool *bad)
{
    const struct rlimit few = {FEW_FILES, FEW_FILES};
    int status = 1;
    pid_t process = fork();
    if (process == 0) {
        bool found = false;
        int r = setrlimit(RLIMIT_NOFILE, &few) ? client_fail("open files", strerror(errno))
                                               : try_start(scand, "64M", patience_ms, &found);
        fflush(stdout);
        _exit(r ? 1 : found ? BAD : 0);
    }
    if (process < 0 || waitpid(process, &status, 0) < 0)
        return client_fail("fork", strerror(errno));
    *bad |= WIFEXITED(status) && WEXITSTATUS(status) == BAD;
    return WIFEXITED(status) && WEXITSTATUS(status) != 1 ? 0 : 1;
}
