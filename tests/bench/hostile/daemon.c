#include "tests/bench/hostile/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/bench/bench.h"
#include "tests/bench/client.h"
#include "tests/bench/hostile/process.h"

#define LOOK_US    5000
#define FLOOR_PART 4 /* of the memory that is there at the start this part is left to others */
#define ANSWER_MS  60000

static uint64_t available_kib(void)
{
    char line[128];
    uint64_t kib = 0;
    FILE *file = fopen("/proc/meminfo", "re");
    while (file && fgets(line, sizeof line, file) && sscanf(line, "MemAvailable: %" SCNu64, &kib) != 1)
        ;
    if (file)
        fclose(file);
    return kib;
}

/* The worker first, so that what it holds is free at once; its supervisor must not start another. */
static void kill_all(const struct daemon *daemon)
{
    kill(daemon->server.pid, SIGSTOP);
    pid_t worker = server_worker(&daemon->server);
    if (worker > 0)
        kill(worker, SIGKILL);
    kill(daemon->server.pid, SIGKILL);
}

static void guard(struct daemon *daemon)
{
    if (daemon->guarded || available_kib() >= daemon->floor_kib)
        return;
    daemon->guarded = true;
    kill_all(daemon);
}

static bool has_ended(pid_t pid)
{
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == pid;
}

bool daemon_watch_process(struct daemon *daemon, pid_t pid, double until_ms)
{
    while (!has_ended(pid)) {
        if (bench_now_ms() >= until_ms)
            return false;
        guard(daemon);
        usleep(LOOK_US);
    }
    return true;
}

/* Starts the daemon. The daemon's stderr, and nothing else, goes to a file without a name. */
int daemon_start(struct daemon *daemon, const char *scand, const char *const *arguments)
{
    *daemon = (struct daemon){.log = memfd_create("log", MFD_CLOEXEC), .floor_kib = available_kib() / FLOOR_PART};
    int own = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
    if (own < 0 || daemon->log < 0 || fcntl(daemon->log, F_SETFL, O_APPEND) || dup2(daemon->log, STDERR_FILENO) < 0)
        return client_fail("log", strerror(errno));
    int r = server_start(&daemon->server, scand, arguments);
    dup2(own, STDERR_FILENO);
    close(own);
    return r;
}

/* Connects once, in a process of its own, which may wait. */
static void connect_once(const void *argument)
{
    const struct server *server = argument;
    struct scand *client;
    int status = scand_connect(server->socket, "scand-bench", &client);
    if (status)
        usleep(LOOK_US);
    _exit(status != SCAND_OK);
}

static bool answers(struct daemon *daemon, double patience_ms)
{
    int status = 1;
    pid_t process = process_start(connect_once, &daemon->server, PROCESS_SELF);
    if (process < 0)
        return false;
    if (!daemon_watch_process(daemon, process, bench_now_ms() + patience_ms))
        kill(process, SIGKILL);
    waitpid(process, &status, 0);
    return status == 0;
}

int daemon_await(struct daemon *daemon, double patience_ms)
{
    double until_ms = bench_now_ms() + patience_ms;
    bool answered = false;
    while (!answered && !server_has_ended(&daemon->server) && bench_now_ms() < until_ms)
        answered = answers(daemon, until_ms - bench_now_ms());
    daemon->worker = answered ? server_worker(&daemon->server) : 0;
    return answered ? 0 : 1;
}

void daemon_drain(struct daemon *daemon)
{
    daemon->drains = true;
    kill(daemon->server.pid, SIGTERM);
}

double daemon_end(struct daemon *daemon, double patience_ms)
{
    double begin_ms = bench_now_ms();
    if (!daemon->drains)
        daemon_drain(daemon);
    bool ended = daemon_watch_process(daemon, daemon->server.pid, begin_ms + patience_ms);
    double took_ms = bench_now_ms() - begin_ms;
    if (!ended)
        kill_all(daemon);
    server_stop(&daemon->server);
    close(daemon->log);
    return took_ms;
}

bool daemon_lives(struct daemon *daemon)
{
    return !daemon->guarded && server_worker(&daemon->server) == daemon->worker && answers(daemon, ANSWER_MS);
}

uint64_t daemon_log_lines(const struct daemon *daemon)
{
    char bytes[65536];
    uint64_t lines = 0;
    off_t at = 0;
    for (ssize_t n; (n = pread(daemon->log, bytes, sizeof bytes, at)) > 0; at += n)
        for (ssize_t i = 0; i < n; i++)
            lines += bytes[i] == '\n';
    return lines;
}

void daemon_log_last(const struct daemon *daemon, char *out, size_t size)
{
    off_t end = lseek(daemon->log, 0, SEEK_END);
    off_t from = end > (off_t)size - 1 ? end - (off_t)size + 1 : 0;
    ssize_t n = pread(daemon->log, out, size - 1, from);
    out[n > 0 ? n : 0] = '\0';
    if (n > 0 && out[n - 1] == '\n')
        out[n - 1] = '\0';
    const char *mark = strrchr(out, '\n'), *line = mark ? mark + 1 : out;
    memmove(out, line, strlen(line) + 1);
}
