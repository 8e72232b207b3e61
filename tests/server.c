#include "tests/server.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARGUMENTS_MAX 32

static int fail(const char *what, const char *message)
{
    fprintf(stderr, "a daemon: %s: %s\n", what, message);
    return 1;
}

static void run(const struct server *server, const char *scand, const char *const *arguments)
{
    const char *words[ARGUMENTS_MAX + 1] = {"scand", "--foreground", "--socket", server->socket};
    for (size_t count = 4; *arguments && count < ARGUMENTS_MAX; count++)
        words[count] = *arguments++;
    setenv("CACHE_DIRECTORY", server->folder, 1); /* what others have measured, perhaps on a busy GPU, does not count */
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    execv(scand, (char **)words);
    _exit(127);
}

bool server_has_ended(const struct server *server)
{
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)server->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == server->pid;
}

/* The socket's file is there some time before anybody listens; then the kernel's list has it with this flag. */
static bool is_listening(const char *path)
{
    enum { ACCEPTS = 1 << 16 };
    char line[512], name[256];
    unsigned flags;
    bool found = false;
    FILE *file = fopen("/proc/net/unix", "re");
    while (file && !found && fgets(line, sizeof line, file))
        found = sscanf(line, "%*s %*s %*s %x %*s %*s %*s %255s", &flags, name) == 2 && flags & ACCEPTS &&
                !strcmp(name, path);
    if (file)
        fclose(file);
    return found;
}

static int start(struct server *server, const char *scand, const char *const *arguments)
{
    server->pid = fork();
    if (server->pid < 0)
        return fail("fork", strerror(errno));
    if (server->pid == 0)
        run(server, scand, arguments);
    while (!is_listening(server->socket) && !server_has_ended(server))
        usleep(20000);
    return 0;
}

int server_start(struct server *server, const char *scand, const char *const *arguments)
{
    strcpy(server->folder, "/tmp/scand-test-XXXXXX");
    if (!mkdtemp(server->folder))
        return fail("temporary folder", strerror(errno));
    chmod(server->folder, 0711); /* a daemon of root's is for all users */
    snprintf(server->socket, sizeof server->socket, "%s/scand.sock", server->folder);
    return start(server, scand, arguments);
}

int server_start_again(struct server *server, const char *scand, const char *const *arguments)
{
    waitpid(server->pid, NULL, 0);
    return start(server, scand, arguments);
}

void server_drain(const struct server *server)
{
    kill(server->pid, SIGTERM);
}

void server_stop(struct server *server)
{
    kill(server->pid, SIGTERM);
    waitpid(server->pid, NULL, 0);
    unlink(server->socket);
    char lock[sizeof server->socket + 8];
    snprintf(lock, sizeof lock, "%s.lock", server->socket);
    unlink(lock);
    char calibration[sizeof server->folder + 16];
    snprintf(calibration, sizeof calibration, "%s/calibration", server->folder);
    unlink(calibration);
    rmdir(server->folder);
}

pid_t server_worker(const struct server *server)
{
    char path[64];
    int worker = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)server->pid, (int)server->pid);
    FILE *file = fopen(path, "re");
    if (file && fscanf(file, "%d", &worker) != 1)
        worker = 0;
    if (file)
        fclose(file);
    return worker;
}
