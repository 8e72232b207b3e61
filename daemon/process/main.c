/* scand: parses the command line and runs the supervisor, in the foreground or behind. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

#include "activation.h"
#include "log.h"
#include "options.h"
#include "protocol/own_descriptors.h"
#include "supervisor.h"

/* Waits, as the command that started the daemon in the background, until the daemon is ready or has failed. Returns the
 * exit code. */
static int wait_ready(pid_t daemon, int ready_fd)
{
    char byte;
    int status;
    ssize_t n;
    do
        n = read(ready_fd, &byte, 1);
    while (n < 0 && errno == EINTR);
    if (n == 1)
        return EX_OK;
    return waitpid(daemon, &status, 0) == daemon && WIFEXITED(status) ? WEXITSTATUS(status) : EX_SOFTWARE;
}

/* Detaches from the terminal and from whoever reads what the command prints; log lines still go where stderr went. */
static void detach(void)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    setsid();
    if (null < 0)
        return;
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    close(null);
}

int main(int argc, char **argv)
{
    struct options options;
    int ready[2];
    if (own_descriptors_occupy())
        return EX_OSERR;
    const size_t passed = activation_count();
    own_descriptors_close_inherited((unsigned)passed);
    int code = options_parse(argc, argv, passed, &options);
    if (code >= 0)
        return code;
    if (pipe2(ready, O_CLOEXEC)) {
        log_error("no pipe: %s", strerror(errno));
        return EX_OSERR;
    }
    pid_t daemon = options.foreground ? 0 : fork();
    if (daemon < 0) {
        log_error("could not fork: %s", strerror(errno));
        return EX_OSERR;
    }
    close(ready[daemon ? 1 : 0]);
    if (daemon)
        return wait_ready(daemon, ready[0]);
    if (!options.foreground)
        detach();
    return supervisor_run(&options, ready[1]);
}
