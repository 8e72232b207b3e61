/* A daemon of a test's or benchmark's own: a process, at a socket in a folder of its own. It goes when they do. */
#ifndef TESTS_SERVER_H
#define TESTS_SERVER_H

#include <stdbool.h>
#include <sys/types.h>

struct server {
    char folder[32], socket[64];
    pid_t pid;
};

/* Starts `scand` with these arguments, NULL at their end, and waits until it has made its socket or ended. 0, or 1
 * after a line on stderr; after 0 server_stop comes last. */
int server_start(struct server *server, const char *scand, const char *const *arguments);
/* Starts another one at the same socket, once the first has ended. 0, or 1 after a line on stderr. */
int server_start_again(struct server *server, const char *scand, const char *const *arguments);
/* Asks the daemon to end, as a service manager does, and does not wait. */
void server_drain(const struct server *server);
/* True when the daemon has ended by itself. Its exit status stays for server_stop. */
bool server_has_ended(const struct server *server);
/* Asks the daemon to end, and waits for its end. */
void server_stop(struct server *server);
/* Returns the worker, the only child of the supervisor; 0 where there is none. */
pid_t server_worker(const struct server *server);

#endif
