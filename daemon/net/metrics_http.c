#include "metrics_http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/process/log.h"
#include "daemon/process/settings.h"
#include "protocol/clock.h"

#define BACKLOG         64
#define RETRY_ACCEPT_MS 1000 /* the pause while descriptors or memory are short: no event tells when it ends */

static const char wrong_path[] = "There is one page here: /metrics\n";
static const char wrong_method[] = "Only GET and HEAD are allowed.\n";

/*
 * The socket.
 */

static int listen_at(uint64_t place)
{
    uint16_t port = htons(listen_choice_port(place));
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = port, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = port, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    bool is_v4 = listen_choice_loopback(place) == LOOPBACK_V4;
    const struct sockaddr *address = is_v4 ? (const struct sockaddr *)&v4 : (const struct sockaddr *)&v6;
    socklen_t size = is_v4 ? sizeof v4 : sizeof v6;
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    /* SO_REUSEADDR: otherwise the connections of a daemon that has just ended would keep the port for a minute. */
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
    if (bind(fd, address, size) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    int code = -errno;
    close(fd);
    return code;
}

static const char *advice(int code)
{
    switch (code) {
    case -EADDRINUSE:
        return "another program has that port (ss -ltnp shows which): choose another one";
    case -EACCES:
        return "choose a port above 1023, which needs no privileges";
    default:
        return "choose another address, or off";
    }
}

int metrics_http_check(uint64_t place, struct error *error)
{
    (void)place, (void)error;
    return 0;
}

int metrics_http_listen(uint64_t place, struct error *error)
{
    char text[SETTING_TEXT_BYTES];
    int fd = listen_at(place);
    return fd >= 0 ? fd
                   : error_set(error, fd, "metrics-listen is \"%s\": %s; %s",
                               listen_choice_format(place, text, sizeof text), strerror(-fd), advice(fd));
}

/*
 * Requests.
 */

static enum MHD_Result send_error(struct MHD_Connection *connection, unsigned code, const char *text)
{
    struct MHD_Response *response = MHD_create_response_from_buffer(strlen(text), (void *)text, MHD_RESPMEM_PERSISTENT);
    if (!response)
        return MHD_NO;
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    if (code == MHD_HTTP_METHOD_NOT_ALLOWED)
        MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
    enum MHD_Result result = MHD_queue_response(connection, code, response);
    MHD_destroy_response(response);
    return result;
}

/* Returns the page as it is now, or NULL without memory. */
static struct MHD_Response *page_make(struct metrics_http *http)
{
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);
    if (!file)
        return NULL;
    http->page(http->context, file);
    bool whole = !ferror(file);
    whole &= fclose(file) == 0;
    struct MHD_Response *response = NULL;
    if (whole)
        response = MHD_create_response_from_buffer(size, text, MHD_RESPMEM_MUST_FREE);
    if (!response) {
        free(text);
        return NULL;
    }
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8");
    return response;
}

static void page_drop(struct metrics_http *http)
{
    if (http->made)
        MHD_destroy_response(http->made); /* those who are sent it hold it, too */
    http->made = NULL;
}

static enum MHD_Result send_page(struct metrics_http *http, struct MHD_Connection *connection)
{
    const uint64_t now_ms = uv_now(http->loop);
    if (now_ms >= http->made_end_ms)
        page_drop(http);
    if (!http->made) {
        http->made = page_make(http);
        http->made_end_ms = now_ms + LIMIT_HTTP_PAGE_MS;
    }
    return http->made ? MHD_queue_response(connection, MHD_HTTP_OK, http->made) : MHD_NO;
}

static struct visit *visit_of(struct MHD_Connection *connection)
{
    return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

/* Answers a request whose head is there. A body is not read: the answer ends the connection. */
static enum MHD_Result answer(void *context, struct MHD_Connection *connection, const char *path, const char *method,
                              const char *version, const char *body, size_t *body_size, void **own)
{
    (void)version, (void)body, (void)body_size, (void)own;
    visit_of(connection)->answered = true;
    if (strcmp(path, "/metrics") != 0)
        return send_error(connection, MHD_HTTP_NOT_FOUND, wrong_path);
    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
        return send_error(connection, MHD_HTTP_METHOD_NOT_ALLOWED, wrong_method);
    return send_page(context, connection);
}

/*
 * Connections.
 */

static struct visit *free_visit(struct metrics_http *http)
{
    for (struct visit *visit = http->visits; visit < http->visits + LIMIT_HTTP_CONNECTIONS; visit++)
        if (visit->fd < 0)
            return visit;
    return NULL;
}

/* Notes that libmicrohttpd has begun, or is about to end, a connection. */
static void on_connection(void *context, struct MHD_Connection *connection, void **own,
                          enum MHD_ConnectionNotificationCode what)
{
    struct metrics_http *http = context;
    if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
        ((struct visit *)*own)->fd = -1;
        return;
    }
    struct visit *visit = free_visit(http); /* found: without a free visit nothing is accepted */
    visit->fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    visit->end_ms = uv_now(http->loop) + LIMIT_HTTP_MS;
    visit->number = ++http->visits_begun;
    visit->answered = false;
    *own = visit;
}

/* Ends a connection, for which libmicrohttpd has no call: it finds it shut when it runs. */
static void cut(struct visit *visit)
{
    shutdown(visit->fd, SHUT_RDWR);
    visit->end_ms = UINT64_MAX;
}

/* Returns the connection that makes room for others: the oldest one whose request has not come, else the oldest. */
static struct visit *least_visit(struct metrics_http *http)
{
    struct visit *least = http->visits;
    for (struct visit *visit = http->visits; visit < http->visits + LIMIT_HTTP_CONNECTIONS; visit++)
        if (visit->answered != least->answered ? least->answered : visit->number < least->number)
            least = visit;
    return least;
}

/* Has a place for a connection. A place is not waited for: whoever holds all of them and says nothing would keep
 * everybody else out. */
static bool make_room(struct metrics_http *http)
{
    if (free_visit(http))
        return true;
    cut(least_visit(http));
    MHD_run(http->daemon);
    return free_visit(http);
}

/* Ends connections whose time is over. libmicrohttpd ends by itself those from which nothing at all comes for so long,
 * also where it has missed that the client is gone. */
static void cut_slow(struct metrics_http *http)
{
    uint64_t now_ms = uv_now(http->loop);
    for (struct visit *visit = http->visits; visit < http->visits + LIMIT_HTTP_CONNECTIONS; visit++) {
        if (visit->fd >= 0 && visit->end_ms <= now_ms)
            cut(visit);
    }
}

/*
 * The loop.
 */

static void on_ready(uv_poll_t *poll, int status, int events);
static void on_listening(uv_poll_t *poll, int status, int events);
static void on_timer(uv_timer_t *timer);

static uint64_t next_ms(const struct metrics_http *http)
{
    MHD_UNSIGNED_LONG_LONG wait_ms;
    uint64_t now_ms = uv_now(http->loop), next = http->resting ? now_ms + RETRY_ACCEPT_MS : UINT64_MAX;
    for (const struct visit *visit = http->visits; visit < http->visits + LIMIT_HTTP_CONNECTIONS; visit++)
        if (visit->fd >= 0 && visit->end_ms < next)
            next = visit->end_ms;
    if (MHD_get_timeout(http->daemon, &wait_ms) == MHD_YES && now_ms + wait_ms < next)
        next = now_ms + wait_ms;
    return next;
}

/* Lets libmicrohttpd do what it can, then waits for the next event. */
static void turn(struct metrics_http *http)
{
    MHD_run(http->daemon);
    if (http->resting)
        uv_poll_stop(&http->listening);
    else if (!uv_is_active((uv_handle_t *)&http->listening))
        uv_poll_start(&http->listening, UV_READABLE, on_listening);
    uint64_t now_ms = uv_now(http->loop), next = next_ms(http);
    if (next == UINT64_MAX)
        uv_timer_stop(&http->timer);
    else
        uv_timer_start(&http->timer, on_timer, next > now_ms ? next - now_ms : 0, 0);
}

static void on_timer(uv_timer_t *timer)
{
    struct metrics_http *http = timer->data;
    http->resting = false;
    cut_slow(http);
    turn(http);
}

static void on_ready(uv_poll_t *poll, int status, int events)
{
    (void)status, (void)events;
    turn(poll->data);
}

/* Accepts a connection. Returns 0 or -errno. */
static int accept_one(struct metrics_http *http)
{
    struct sockaddr_storage from;
    socklen_t size = sizeof from;
    int fd = accept4(http->listen_fd, (struct sockaddr *)&from, &size, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return errno == EINTR || errno == ECONNABORTED ? 0 : -errno;
    MHD_add_connection(http->daemon, fd, (struct sockaddr *)&from, size); /* closes fd on failure */
    MHD_run(http->daemon); /* some versions begin a connection only then: until then its place looks free */
    return 0;
}

/* Accepts connections for as long as a turn takes, one at least. */
static void on_listening(uv_poll_t *poll, int status, int events)
{
    struct metrics_http *http = poll->data;
    const uint64_t end_us = clock_us() + LIMIT_TURN_US;
    int r;
    (void)status, (void)events;
    do
        r = make_room(http) ? accept_one(http) : -EAGAIN;
    while (!r && clock_us() < end_us);
    http->resting = r < 0 && r != -EAGAIN; /* otherwise the same connection would wake the loop for ever */
    if (r == -EMFILE || r == -ENFILE)
        log_error("a request for metrics waits: the limit of open files is reached; raise it (ulimit -n)");
    else if (http->resting)
        log_error("a request for metrics waits: %s", strerror(-r));
    turn(http);
}

int metrics_http_start(struct metrics_http *http, uv_loop_t *loop, int listen_fd, http_page *page, void *context)
{
    *http = (struct metrics_http){.loop = loop, .page = page, .context = context, .listen_fd = listen_fd};
    for (unsigned i = 0; i < LIMIT_HTTP_CONNECTIONS; i++)
        http->visits[i].fd = -1;
    /* libmicrohttpd accepts nothing itself: without free descriptors it would do nothing but try again. */
    http->daemon = MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET, 0, NULL, NULL, answer, http,
                                    MHD_OPTION_CONNECTION_LIMIT, (unsigned)LIMIT_HTTP_CONNECTIONS,
                                    MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)LIMIT_HTTP_BYTES,
                                    MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)(LIMIT_HTTP_MS / 1000),
                                    MHD_OPTION_NOTIFY_CONNECTION, on_connection, http, MHD_OPTION_END);
    if (!http->daemon)
        return -ENOMEM;
    int epoll_fd = MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
    int r;
    if ((r = uv_poll_init(loop, &http->listening, listen_fd)) || (r = uv_poll_init(loop, &http->ready, epoll_fd)))
        return r;
    uv_timer_init(loop, &http->timer);
    http->listening.data = http->ready.data = http->timer.data = http;
    r = uv_poll_start(&http->ready, UV_READABLE, on_ready);
    return r ? r : uv_poll_start(&http->listening, UV_READABLE, on_listening);
}

void metrics_http_stop(struct metrics_http *http)
{
    uv_close((uv_handle_t *)&http->listening, NULL);
    uv_close((uv_handle_t *)&http->ready, NULL); /* before libmicrohttpd closes its descriptor */
    uv_close((uv_handle_t *)&http->timer, NULL);
    MHD_stop_daemon(http->daemon);
    page_drop(http);
}
