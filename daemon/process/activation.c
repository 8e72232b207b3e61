#include "activation.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "protocol/status.h"
#include "settings.h"

#define FIRST_FD 3 /* SD_LISTEN_FDS_START */

size_t activation_count(void)
{
    const bool ours = environment_number("LISTEN_PID") == (uint64_t)getpid();
    const size_t count = ours ? environment_number("LISTEN_FDS") : 0;
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");
    return count;
}

static bool has_option(int option, int wanted)
{
    int value;
    socklen_t size = sizeof value;
    return getsockopt(FIRST_FD, SOL_SOCKET, option, &value, &size) == 0 && value == wanted;
}

int activation_accept(size_t count, int *listen_fd, char *path, size_t size, struct error *error)
{
    struct sockaddr_un address = {0};
    socklen_t length = sizeof address - 1;
    if (count != 1)
        return error_set(
            error, -EINVAL,
            "the service manager passes %zu sockets; allowed: one, so give scand.socket one ListenStream=", count);
    if (!has_option(SO_DOMAIN, AF_UNIX) || !has_option(SO_TYPE, SOCK_STREAM) || !has_option(SO_ACCEPTCONN, 1) ||
        getsockname(FIRST_FD, (struct sockaddr *)&address, &length) || address.sun_path[0] != '/' ||
        strlen(address.sun_path) >= size)
        return error_set(error, -EINVAL,
                         "what the service manager passes is no Unix stream socket that listens at a path; give "
                         "scand.socket ListenStream=/run/scand/scand.sock and Accept=no");
    memcpy(path, address.sun_path, strlen(address.sun_path) + 1);
    fcntl(FIRST_FD, F_SETFD, FD_CLOEXEC);
    *listen_fd = FIRST_FD;
    return 0;
}
