/* A daemon of the benchmarks' own, at a socket in a folder of its own. */
#ifndef TESTS_BENCH_SERVER_H
#define TESTS_BENCH_SERVER_H

#include <sys/types.h>

struct server {
    char folder[32], socket[64];
    pid_t pid;
};

/* Starts `scand` with these arguments, NULL at their end, and waits until it has made its socket. 0, or 1 after a line
 * on stderr. */
int server_start(struct server *server, const char *scand, const char *const *arguments);
/* Asks it to end, and waits for that. */
void server_stop(struct server *server);

#endif
