/*
 * Metrics for a Prometheus server: one page over HTTP, by libmicrohttpd, on a loopback address. Everything runs on the
 * loop's thread: libmicrohttpd has an epoll descriptor of its own, for which the loop waits as for any other, and works
 * only when it is told to. While nobody is connected nothing wakes the loop.
 *
 * A connection has one request and LIMIT_HTTP_MS from its start to its end, whatever it does meanwhile. One beyond
 * LIMIT_HTTP_CONNECTIONS takes the place of the oldest whose request has not come, so that nobody is kept out by those
 * who say nothing. A page is made at most once in LIMIT_HTTP_PAGE_MS, and given to all who ask meanwhile: with many
 * users it takes some milliseconds of the loop.
 */
#ifndef DAEMON_METRICS_HTTP_H
#define DAEMON_METRICS_HTTP_H

#include <stdbool.h>
#include <stdio.h>
#include <uv.h>

#include "protocol/limits.h"
#include "protocol/status.h"

/* Writes the page for a request. */
typedef void http_page(void *context, FILE *file);

/* A connection, and when its time is over. */
struct visit {
    int fd;          /* libmicrohttpd's descriptor; -1: no connection */
    uint64_t end_ms; /* UINT64_MAX: the connection was cut off and is about to end */
    uint64_t number; /* of all that there have been */
    bool answered;
};

struct metrics_http {
    uv_loop_t *loop;
    uv_poll_t listening, ready;
    uv_timer_t timer; /* runs only while there are connections, or accepting failed */
    struct MHD_Daemon *daemon;
    http_page *page;
    void *context;
    struct MHD_Response *made; /* the latest page, or NULL */
    uint64_t made_end_ms;      /* when another one is to be made */
    int listen_fd;
    bool resting; /* accepting failed and is tried again after a while */
    struct visit visits[LIMIT_HTTP_CONNECTIONS];
    uint64_t visits_begun;
};

/* Whether this build listens at a place of settings.h. Returns 0 or -ENOTSUP with *error. */
int metrics_http_check(uint64_t place, struct error *error);
/* Listens at a place of settings.h that is not LOOPBACK_NONE. Returns the socket, which outlives workers, or -errno
 * with *error. */
int metrics_http_listen(uint64_t place, struct error *error);
/* Begins to answer on listen_fd, which stays the caller's. Returns 0 or -errno. */
int metrics_http_start(struct metrics_http *http, uv_loop_t *loop, int listen_fd, http_page *page, void *context);
/* Closes everything; the loop must run once more. */
void metrics_http_stop(struct metrics_http *http);

#endif
