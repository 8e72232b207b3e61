/* The socket's place, and binding and connecting to it. */
#ifndef PROTOCOL_SOCKET_H
#define PROTOCOL_SOCKET_H

#include <stdbool.h>
#include <sys/types.h>

struct error;

#define SOCKET_PATH_BYTES   108 /* bytes of a path in a sockaddr_un, the end included */
#define SOCKET_LOOKED_BYTES 192 /* bytes of the text on the other places */

/* Writes the path that a daemon listens at: `given` unless NULL, else $SCAND_SOCKET, else $XDG_RUNTIME_DIR/scand.sock,
 * else, as root, /run/scand/scand.sock. Returns 0, or -EINVAL and *error: too long, or none can be told. */
int socket_path(const char *given, char path[SOCKET_PATH_BYTES], struct error *error);

/* Writes the path where a client finds its daemon: `given` unless NULL, else $SCAND_SOCKET, else
 * $XDG_RUNTIME_DIR/scand.sock where such a socket is there, else /run/scand/scand.sock, the one for all users. `looked`
 * says in words for a message where it has looked before, "" for nowhere. Returns 0, or -EINVAL and *error. */
int socket_find(const char *given, char path[SOCKET_PATH_BYTES], char looked[SOCKET_LOOKED_BYTES], struct error *error);

/* A connected, blocking, close-on-exec stream socket, or -ECONNREFUSED (also for a path that is not there) or another
 * -errno and *error. */
int socket_connect(const char *path, struct error *error);
/* Connects in two steps: a socket, or -errno; and its connection, for which `fd` may also be the error of socket_make.
 * The socket stays the caller's. A socket that does not block is refused where others wait for the daemon. */
int socket_make(bool blocks);
int socket_reach(int fd, const char *path, struct error *error);

/* A socket in its folder, told from others at the same path. */
struct socket_file {
    dev_t device;
    ino_t inode;
};

/* Who may connect to a socket. */
struct socket_access {
    unsigned mode; /* as chmod has it */
    gid_t group;   /* SOCKET_GROUP_OWN: that of the process */
};

#define SOCKET_GROUP_OWN ((gid_t)-1)

/* A listening, close-on-exec socket at path, to which from the first moment on those may connect who may; *file says
 * which file it is. A socket file that nobody listens at is replaced, and one that socket_listen made and whose
 * listener was killed, though processes that are ending too may still have it. -EADDRINUSE and *error where somebody
 * else listens, and for any other file. The parent folder is made where it is missing and can be. Beside the socket
 * lies PATH.lock. */
int socket_listen(const char *path, const struct socket_access *access, struct socket_file *file, struct error *error);

/* Removes the socket file, and PATH.lock, while they are there. What somebody else put at the path stays. Call it
 * before the socket is closed: another file may then have its inode. */
void socket_remove(const char *path, const struct socket_file *file);

#endif
