#include "socket.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "status.h"

static_assert(sizeof((struct sockaddr_un){0}.sun_path) == SOCKET_PATH_BYTES, "the header promises this size");

#define CONNECT_S 10 /* longest wait for a daemon whose queue of connections is full */

/* folder + file, or `folder` alone. */
static int path_write(char path[SOCKET_PATH_BYTES], const char *folder, const char *file, struct error *error)
{
    size_t length = strlen(folder) + strlen(file);
    if (length >= SOCKET_PATH_BYTES)
        return error_set(error, -EINVAL, "the socket path has %zu bytes; allowed: up to %d", length,
                         SOCKET_PATH_BYTES - 1);
    memcpy(path, folder, strlen(folder));
    memcpy(path + strlen(folder), file, strlen(file) + 1);
    return 0;
}

int socket_path(const char *given, char path[SOCKET_PATH_BYTES], struct error *error)
{
    const char *variable = getenv("SCAND_SOCKET"), *folder = getenv("XDG_RUNTIME_DIR");
    if (given && !*given)
        return error_set(error, -EINVAL, "the socket path is empty");
    if (given)
        return path_write(path, given, "", error);
    if (variable && *variable)
        return path_write(path, variable, "", error);
    if (folder && *folder)
        return path_write(path, folder, "/scand.sock", error);
    if (geteuid() == 0)
        return path_write(path, "/run/scand/scand.sock", "", error);
    return error_set(error, -EINVAL, "no socket path: set SCAND_SOCKET, or XDG_RUNTIME_DIR to a folder of your own");
}

static int address_set(struct sockaddr_un *address, const char *path, struct error *error)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (!*path)
        return error_set(error, -EINVAL, "the socket path is empty");
    return path_write(address->sun_path, path, "", error);
}

/* A socket that is connected to the address, or -errno. Flags: SOCK_NONBLOCK, or 0. */
static int address_connect(const struct sockaddr_un *address, int flags)
{
    const struct timeval longest = {.tv_sec = CONNECT_S};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
    if (fd < 0)
        return -errno;
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &longest, sizeof longest);
    int code;
    do
        code = connect(fd, (const struct sockaddr *)address, sizeof *address) ? -errno : 0;
    while (code == -EINTR);
    if (!code)
        return fd;
    close(fd);
    return code;
}

int socket_connect(const char *path, struct error *error)
{
    struct sockaddr_un address;
    int code = address_set(&address, path, error);
    if (code)
        return code;
    int fd = address_connect(&address, 0);
    switch (fd) {
    case -ENOENT:
    case -ENOTDIR:
        return error_set(error, -ECONNREFUSED, "no daemon at %s: no such socket; start scand or set SCAND_SOCKET",
                         path);
    case -ECONNREFUSED:
    case -EPROTOTYPE:
        return error_set(error, -ECONNREFUSED, "no daemon at %s: nobody listens there; start scand", path);
    case -EACCES:
    case -EPERM:
        return error_set(error, -EPERM,
                         "no way to the daemon at %s: you may not use that socket; ask whose it is, or start a daemon "
                         "of your own",
                         path);
    case -EAGAIN:
        return error_set(error, -ECONNREFUSED, "the daemon at %s accepts no connections: it hangs or is overloaded",
                         path);
    default:
        return fd >= 0 ? fd : error_set(error, fd, "cannot connect to %s: %s", path, strerror(-fd));
    }
}

/* The folder that the path lies in, made where it is missing; a descriptor, or -errno. */
static int folder_open(const char *path, struct error *error)
{
    char folder[SOCKET_PATH_BYTES];
    const char *slash = strrchr(path, '/');
    if (!slash)
        strcpy(folder, ".");
    else if (slash == path)
        strcpy(folder, "/");
    else {
        memcpy(folder, path, (size_t)(slash - path));
        folder[slash - path] = '\0';
    }
    if (mkdir(folder, 0755) && errno != EEXIST)
        return error_set(error, -errno, "cannot make the folder %s: %s", folder, strerror(errno));
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd >= 0 ? fd : error_set(error, -errno, "cannot open the folder %s: %s", folder, strerror(errno));
}

/* Keeps two daemons that start at the same moment from taking each other's new socket for a stale one. The lock ends
 * with the descriptor. */
static int folder_lock(int folder, const char *path, struct error *error)
{
    const struct timespec pause = {.tv_nsec = 10000000};
    for (int tries = 0; tries < 100; tries++) {
        if (flock(folder, LOCK_EX | LOCK_NB) == 0)
            return 0;
        if (errno != EWOULDBLOCK && errno != EINTR)
            break;
        nanosleep(&pause, NULL);
    }
    return error_set(error, -EADDRINUSE, "cannot lock the folder of %s: %s", path, strerror(errno));
}

/* True when the process that listened at the other end has ended. What it started may hold its socket for a moment
 * longer. A process that cannot be seen (in another namespace, on an old kernel) counts as there. */
static bool listener_is_gone(int fd)
{
    struct ucred who;
    socklen_t size = sizeof who;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) || who.pid <= 0)
        return false;
    int process = (int)syscall(SYS_pidfd_open, who.pid, 0);
    if (process < 0)
        return errno == ESRCH;
    struct pollfd end = {.fd = process, .events = POLLIN};
    bool gone = poll(&end, 1, 0) == 1; /* also one that nobody has waited for */
    close(process);
    return gone;
}

/* Removes a socket file that nobody listens at. */
static int stale_remove(const struct sockaddr_un *address, struct error *error)
{
    const char *path = address->sun_path;
    struct stat status;
    if (lstat(path, &status))
        return errno == ENOENT ? 0 : error_set(error, -errno, "cannot look at %s: %s", path, strerror(errno));
    if (!S_ISSOCK(status.st_mode))
        return error_set(error, -EADDRINUSE, "%s is there and is no socket; remove it or choose another path", path);
    int fd = address_connect(address, SOCK_NONBLOCK); /* one that is too busy to accept is alive */
    bool stale = fd == -ECONNREFUSED || (fd >= 0 && listener_is_gone(fd));
    if (fd >= 0)
        close(fd);
    if (!stale)
        return error_set(error, -EADDRINUSE, "a daemon answers at %s; stop it or choose another path", path);
    if (unlink(path))
        return error_set(error, -errno, "cannot remove the stale socket %s: %s", path, strerror(errno));
    return 0;
}

/* Binds, then sets the mode, then listens: before that nobody can connect. */
static int address_listen(const struct sockaddr_un *address, unsigned mode, struct error *error)
{
    const char *path = address->sun_path;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return error_set(error, -errno, "cannot make a socket: %s", strerror(errno));
    if (bind(fd, (const struct sockaddr *)address, sizeof *address)) {
        int code = error_set(error, -errno, "cannot bind %s: %s", path, strerror(errno));
        close(fd);
        return code;
    }
    if (chmod(path, mode) || listen(fd, SOMAXCONN)) {
        int code = error_set(error, -errno, "cannot listen at %s: %s", path, strerror(errno));
        unlink(path);
        close(fd);
        return code;
    }
    return fd;
}

int socket_listen(const char *path, unsigned mode, struct error *error)
{
    struct sockaddr_un address;
    int code = address_set(&address, path, error);
    if (code)
        return code;
    int folder = folder_open(path, error);
    if (folder < 0)
        return folder;
    code = folder_lock(folder, path, error);
    if (!code)
        code = stale_remove(&address, error);
    if (!code)
        code = address_listen(&address, mode, error);
    close(folder);
    return code;
}
