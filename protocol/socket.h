/* The socket's place, and binding and connecting to it. */
#ifndef PROTOCOL_SOCKET_H
#define PROTOCOL_SOCKET_H

struct error;

#define SOCKET_PATH_BYTES 108 /* of a sockaddr_un, the end included */

/* Writes the path to use: `given` unless NULL, else $SCAND_SOCKET, else $XDG_RUNTIME_DIR/scand.sock, else, as root,
 * /run/scand/scand.sock. Returns 0, or -EINVAL and *error: too long, or none can be told. */
int socket_path(const char *given, char path[SOCKET_PATH_BYTES], struct error *error);

/* A connected, blocking, close-on-exec stream socket, or -ECONNREFUSED (also for a path that is not there) or another
 * -errno and *error. */
int socket_connect(const char *path, struct error *error);

/* A listening, close-on-exec socket at path with the given mode. A socket file that nobody listens at, or
 * whose listener has been killed and left it to processes that are ending too, is replaced; -EADDRINUSE and *error
 * where a daemon answers at it. The parent folder is made where it is missing and can be. */
int socket_listen(const char *path, unsigned mode, struct error *error);

#endif
