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

#define SYSTEM_SOCKET "/run/scand/scand.sock"
#define CONNECT_S     10 /* longest wait for a daemon whose queue of connections is full */

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
        return path_write(path, SYSTEM_SOCKET, "", error);
    return error_set(error, -EINVAL,
                     "no socket path: give --socket, or set SCAND_SOCKET, or XDG_RUNTIME_DIR to a folder of your own");
}

static bool is_socket(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISSOCK(status.st_mode);
}

int socket_find(const char *given, char path[SOCKET_PATH_BYTES], char looked[SOCKET_LOOKED_BYTES], struct error *error)
{
    const char *variable = getenv("SCAND_SOCKET"), *folder = getenv("XDG_RUNTIME_DIR");
    char own[SOCKET_PATH_BYTES];
    looked[0] = '\0';
    if (given || (variable && *variable))
        return socket_path(given, path, error);
    if (!folder || !*folder) {
        snprintf(looked, SOCKET_LOOKED_BYTES, "SCAND_SOCKET and XDG_RUNTIME_DIR are not set");
        return path_write(path, SYSTEM_SOCKET, "", error);
    }
    int code = path_write(own, folder, "/scand.sock", error);
    if (code)
        return code;
    if (is_socket(own)) {
        snprintf(looked, SOCKET_LOOKED_BYTES, "SCAND_SOCKET is not set");
        return path_write(path, own, "", error);
    }
    snprintf(looked, SOCKET_LOOKED_BYTES, "SCAND_SOCKET is not set, and there is no socket %s", own);
    return path_write(path, SYSTEM_SOCKET, "", error);
}

static int address_set(struct sockaddr_un *address, const char *path, struct error *error)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (!*path)
        return error_set(error, -EINVAL, "the socket path is empty");
    return path_write(address->sun_path, path, "", error);
}

static int address_reach(int fd, const struct sockaddr_un *address)
{
    const struct timeval longest = {.tv_sec = CONNECT_S};
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &longest, sizeof longest);
    int code;
    do
        code = connect(fd, (const struct sockaddr *)address, sizeof *address) ? -errno : 0;
    while (code == -EINTR);
    return code;
}

int socket_make(bool blocks)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | (blocks ? 0 : SOCK_NONBLOCK), 0);
    return fd < 0 ? -errno : fd;
}

/* A socket that is connected to the address and does not block, or -errno. */
static int address_try(const struct sockaddr_un *address)
{
    int fd = socket_make(false);
    int code = fd < 0 ? fd : address_reach(fd, address);
    if (code && fd >= 0)
        close(fd);
    return code ? code : fd;
}

int socket_reach(int fd, const char *path, struct error *error)
{
    struct sockaddr_un address;
    int code = address_set(&address, path, error);
    if (code)
        return code;
    code = fd < 0 ? fd : address_reach(fd, &address);
    switch (code) {
    case 0:
        return 0;
    case -ENOENT:
    case -ENOTDIR:
        return error_set(error, -ECONNREFUSED, "no daemon at %s: no such socket; start scand or set SCAND_SOCKET",
                         path);
    case -ECONNREFUSED:
    case -EPROTOTYPE:
        return error_set(error, -ECONNREFUSED, "no daemon at %s: %s", path,
                         is_socket(path) ? "nobody listens there; start scand"
                                         : "that is no socket; set SCAND_SOCKET to the socket of a daemon");
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
        return error_set(error, code, "cannot connect to %s: %s%s", path, strerror(-code), errno_advice(-code));
    }
}

int socket_connect(const char *path, struct error *error)
{
    int fd = socket_make(true);
    int code = socket_reach(fd, path, error);
    if (!code)
        return fd;
    if (fd >= 0)
        close(fd);
    return code;
}

/* The folder that the path lies in is made where it is missing. */
static int folder_make(const char *path, struct error *error)
{
    char folder[SOCKET_PATH_BYTES];
    const char *slash = strrchr(path, '/');
    if (!slash || slash == path)
        return 0;
    memcpy(folder, path, (size_t)(slash - path));
    folder[slash - path] = '\0';
    if (mkdir(folder, 0755) && errno != EEXIST)
        return error_set(error, -errno,
                         "cannot make the folder %s: %s; choose a socket path in a folder that exists and that you "
                         "may write to",
                         folder, strerror(errno));
    return 0;
}

/*
 * The lock file beside the socket, which this user alone can open: while somebody holds its lock nobody else replaces,
 * makes or removes a socket there. It is there for as long as the socket is, and says which file that is: the only one
 * that is ever removed although somebody listens at it.
 */

#define LOCK_PATH_BYTES (SOCKET_PATH_BYTES + 5)
#define LOCK_TRIES      100
#define LOCK_PAUSE_NS   10000000

static void lock_path(const char *path, char out[LOCK_PATH_BYTES])
{
    snprintf(out, LOCK_PATH_BYTES, "%s.lock", path);
}

/* Whoever could write to it could also hold its lock, for ever. */
static int lock_check(int fd, const char *path, struct error *error)
{
    struct stat status;
    if (fstat(fd, &status))
        return error_set(error, -errno, "cannot look at %s: %s", path, strerror(errno));
    if (!S_ISREG(status.st_mode) || status.st_uid != geteuid() || (status.st_mode & 077) != 0)
        return error_set(error, -EADDRINUSE,
                         "%s is no regular file that user %u alone can open; remove it or choose another socket path",
                         path, (unsigned)geteuid());
    return 0;
}

/* Another process has removed the file, or made a new one, since this one was opened. */
static bool lock_is_gone(int fd, const char *path)
{
    struct stat own, there;
    return fstat(fd, &own) || lstat(path, &there) || own.st_dev != there.st_dev || own.st_ino != there.st_ino;
}

static int lock_open(const char *path, struct error *error)
{
    int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600);
    if (fd < 0)
        return error_set(error, -errno, "cannot open %s: %s; choose a socket path in a folder where you may make files",
                         path, strerror(errno));
    int code = lock_check(fd, path, error);
    if (code)
        close(fd);
    return code ? code : fd;
}

/* A descriptor with which the lock ends, or -errno. */
static int lock_acquire(const char *socket, struct error *error)
{
    const struct timespec pause = {.tv_nsec = LOCK_PAUSE_NS};
    char path[LOCK_PATH_BYTES];
    lock_path(socket, path);
    for (int tries = 0; tries < LOCK_TRIES; tries++) {
        int fd = lock_open(path, error);
        if (fd < 0)
            return fd;
        bool taken = flock(fd, LOCK_EX | LOCK_NB) == 0;
        if (taken && !lock_is_gone(fd, path))
            return fd;
        close(fd);
        if (!taken)
            nanosleep(&pause, NULL);
    }
    return error_set(error, -EADDRINUSE, "another daemon that starts or ends at %s holds %s", socket, path);
}

static void lock_write(int lock, const struct socket_file *file)
{
    char text[64];
    int length = snprintf(text, sizeof text, "%ju %ju\n", (uintmax_t)file->device, (uintmax_t)file->inode);
    /* Failure is ignored: without this line the socket has to be removed by hand if its daemon is killed at a bad
     * moment. */
    if (ftruncate(lock, 0) || pwrite(lock, text, (size_t)length, 0) != length)
        return;
}

/* Empties the lock file after a failure: it names a socket only where an own one is there. */
static void lock_drop(int lock, const char *socket)
{
    struct stat status;
    char path[LOCK_PATH_BYTES];
    lock_path(socket, path);
    if (fstat(lock, &status) == 0 && status.st_size == 0)
        unlink(path);
}

static bool lock_names(int lock, const struct stat *status)
{
    char text[64];
    uintmax_t device, inode;
    ssize_t length = pread(lock, text, sizeof text - 1, 0);
    text[length > 0 ? length : 0] = '\0';
    return sscanf(text, "%ju %ju", &device, &inode) == 2 && device == status->st_dev && inode == status->st_ino;
}

/* True when the process that listened at the other end has ended. What it started may hold its socket for a moment
 * longer. A process that cannot be seen (in another namespace, on an old kernel) counts as there. */
static bool listener_is_gone(int fd)
{
    struct ucred who = {.pid = 0};
    socklen_t size = sizeof who;
    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size); /* 0, where that cannot be told, is no process */
    int process = (int)syscall(SYS_pidfd_open, who.pid, 0);
    if (process < 0)
        return errno == ESRCH;
    struct pollfd end = {.fd = process, .events = POLLIN};
    bool gone = poll(&end, 1, 0) == 1; /* also one that nobody has waited for */
    close(process);
    return gone;
}

/* Removes a socket file that nobody listens at, or one of a daemon that has ended. */
static int stale_remove(const struct sockaddr_un *address, int lock, struct error *error)
{
    const char *path = address->sun_path;
    struct stat status;
    if (lstat(path, &status))
        return errno == ENOENT ? 0 : error_set(error, -errno, "cannot look at %s: %s", path, strerror(errno));
    if (!S_ISSOCK(status.st_mode))
        return error_set(error, -EADDRINUSE, "%s is there and is no socket; remove it or choose another path", path);
    int fd = address_try(address); /* a daemon that is too busy to accept is alive */
    bool own = lock_names(lock, &status), stale = fd == -ECONNREFUSED || (fd >= 0 && own && listener_is_gone(fd));
    if (fd >= 0)
        close(fd);
    if (!stale)
        return error_set(error, -EADDRINUSE,
                         "%s answers at %s; stop it, wait for its end if it drains, or choose another path",
                         own ? "a daemon" : "another program", path);
    if (ftruncate(lock, 0) || unlink(path))
        return error_set(error, -errno, "cannot remove the stale socket %s: %s", path, strerror(errno));
    return 0;
}

static int file_identify(const char *path, struct socket_file *file)
{
    struct stat status;
    if (lstat(path, &status))
        return -errno;
    *file = (struct socket_file){.device = status.st_dev, .inode = status.st_ino};
    return 0;
}

/* The group goes first: a change of it can take bits of the mode away. */
static int file_admit(const char *path, const struct socket_access *access, struct error *error)
{
    if (lchown(path, (uid_t)-1, access->group))
        return error_set(error, -errno, "cannot give %s to group %u: %s; choose a group that this user is in", path,
                         (unsigned)access->group, strerror(errno));
    if (chmod(path, access->mode))
        return error_set(error, -errno, "cannot change the mode of %s: %s", path, strerror(errno));
    return 0;
}

/* Binds, then says who may connect, then listens: nobody connects before that, and nobody is turned away after it. */
static int address_listen(const struct sockaddr_un *address, const struct socket_access *access,
                          struct socket_file *file, struct error *error)
{
    const char *path = address->sun_path;
    int fd = socket_make(true);
    if (fd < 0)
        return error_set(error, fd, "cannot make a socket: %s", strerror(-fd));
    if (bind(fd, (const struct sockaddr *)address, sizeof *address)) {
        int code = error_set(error, -errno, "cannot bind %s: %s", path, strerror(errno));
        close(fd);
        return code;
    }
    int code = file_admit(path, access, error);
    if (!code && (listen(fd, LIMIT_BACKLOG) || file_identify(path, file)))
        code = error_set(error, -errno, "cannot listen at %s: %s", path, strerror(errno));
    if (!code)
        return fd;
    unlink(path);
    close(fd);
    return code;
}

static int listen_locked(const struct sockaddr_un *address, const struct socket_access *access, int lock,
                         struct socket_file *file, struct error *error)
{
    int code = stale_remove(address, lock, error);
    if (code)
        return code;
    int fd = address_listen(address, access, file, error);
    if (fd >= 0)
        lock_write(lock, file);
    return fd;
}

int socket_listen(const char *path, const struct socket_access *access, struct socket_file *file, struct error *error)
{
    struct sockaddr_un address;
    struct socket_file made;
    int code = address_set(&address, path, error);
    if (!code)
        code = folder_make(path, error);
    if (code)
        return code;
    int lock = lock_acquire(path, error);
    if (lock < 0)
        return lock;
    int fd = listen_locked(&address, access, lock, &made, error);
    if (fd < 0)
        lock_drop(lock, path);
    close(lock);
    if (fd >= 0)
        *file = made;
    return fd;
}

void socket_remove(const char *path, const struct socket_file *file)
{
    char beside[LOCK_PATH_BYTES];
    struct stat status;
    int lock = lock_acquire(path, NULL);
    if (lstat(path, &status) == 0 && status.st_dev == file->device && status.st_ino == file->inode) {
        unlink(path);
        lock_path(path, beside);
        if (lock >= 0)
            unlink(beside);
    }
    if (lock >= 0)
        close(lock);
}
