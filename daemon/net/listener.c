#include "listener.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/process/log.h"
#include "peer.h"

/* Sockets that one look tells of. */
#define EVENTS_AT_ONCE 64

static uint64_t server_now_us(const struct server *server)
{
    const struct service *service = server->service;
    return service->ops->now_us(service->context);
}

/*
 * Accepting.
 */

/* Whoever connects and leaves again costs no more than that. */
static bool has_left(int fd)
{
    char byte;
    return recv(fd, &byte, sizeof byte, MSG_PEEK | MSG_DONTWAIT) == 0;
}

static void log_turned_away(uid_t uid)
{
    log_cause(LOG_CAUSE_TURNED_AWAY, uid,
              "a connection of user %u was turned away: it has %d more than its quota or its share of %d, or %d users "
              "are there, or memory is short",
              (unsigned)uid, LIMIT_UNADMITTED, LIMIT_CLIENTS, LIMIT_USERS);
}

static void server_welcome(struct server *server, int fd)
{
    struct ucred who;
    socklen_t size = sizeof who;
    if (has_left(fd) || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size)) {
        close(fd);
        return;
    }
    if (service_is_full(server->service, who.uid)) {
        log_turned_away(who.uid);
        close(fd);
        return;
    }
    struct connection *connection = connection_create(fd);
    if (!connection)
        return;
    struct client *client = service_open(server->service, connection, who.uid);
    if (!client) {
        log_turned_away(who.uid);
        connection_destroy(connection);
        return;
    }
    client->pid = who.pid;
    int r = peer_open(server, client);
    if (r) {
        log_cause(LOG_CAUSE_UNWATCHED, who.uid, "a connection of user %u was turned away: it could not be watched: %s",
                  (unsigned)who.uid, strerror(-r));
        service_close(client);
    }
}

static void open_spare(struct server *server)
{
    if (server->spare_fd < 0)
        server->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* With no descriptor left the connection would stay pending and wake the loop for ever. Returns what accept4 says with
 * one more descriptor: -EAGAIN when no connection is pending, since it looks for a descriptor first. */
static int turn_away(struct server *server)
{
    if (server->spare_fd < 0)
        return -EMFILE;
    close(server->spare_fd);
    server->spare_fd = -1;
    int fd = accept4(server->listen_fd, NULL, NULL, SOCK_CLOEXEC), code = fd < 0 ? -errno : 0;
    if (fd >= 0)
        close(fd);
    open_spare(server);
    if (fd >= 0)
        log_cause(LOG_CAUSE_DESCRIPTORS, LOG_NOBODY,
                  "a connection was turned away: the limit of open files is reached; raise it (ulimit -n)");
    return code;
}

/* Accepts a connection, or turns it away. 0 or -errno. */
static int accept_one(struct server *server)
{
    int fd = accept4(server->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return errno == EMFILE || errno == ENFILE ? turn_away(server) : -errno;
    server_welcome(server, fd);
    return 0;
}

static int watch_listening(struct server *server, int how, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = &server->listen_fd};
    return epoll_ctl(server->epoll_fd, how, server->listen_fd, &event) ? -errno : 0;
}

static void rest_ended(uv_timer_t *timer)
{
    struct server *server = timer->data;
    open_spare(server);
    watch_listening(server, EPOLL_CTL_MOD, EPOLLIN);
}

/* What keeps connections from being accepted lasts: without a rest they would wake the loop for ever. */
static void rest(struct server *server, int code)
{
    log_cause(LOG_CAUSE_ACCEPT, LOG_NOBODY, "connections cannot be accepted: %s; the next try is in %d ms",
              strerror(-code), LIMIT_ACCEPT_REST_MS);
    watch_listening(server, EPOLL_CTL_MOD, 0);
    uv_timer_start(&server->resting, rest_ended, LIMIT_ACCEPT_REST_MS, 0);
}

/* For as long as a turn takes; those that are left wake the loop again. */
static void server_accept(struct server *server)
{
    uint64_t end_us = server_now_us(server) + LIMIT_TURN_US;
    int r;
    server->arriving = false;
    do
        r = accept_one(server);
    while ((r == 0 || r == -EINTR || r == -ECONNABORTED) && server_now_us(server) < end_us);
    if (r && r != -EAGAIN && r != -EINTR && r != -ECONNABORTED)
        rest(server, r);
}

/*
 * Rounds of the loop.
 */

/* Answers of a client that goes on to ask are gathered for a while: each time that it gets some is a call of the kernel
 * here and there. */
static bool gathers(const struct peer *peer, uint64_t now_us)
{
    return peer->client->turn.ready && now_us - peer->flushed_us < LIMIT_GATHER_US;
}

/* What is sent is charged as well. */
static void flush_all(struct server *server)
{
    uint64_t now_us = server->to_flush ? server_now_us(server) : 0;
    struct peer *peer = server->to_flush, *next;
    server->to_flush = NULL;
    for (; peer; peer = next) {
        struct user *user = peer->client->user;
        next = peer->next_flush;
        peer->flush_queued = false;
        if (gathers(peer, now_us)) {
            server_output(server, peer->client);
            continue;
        }
        peer->flushed_us = now_us;
        peer_flush(peer);
        now_us = service_charge(server->service, user, now_us);
    }
}

static void server_notice(struct server *server, const struct epoll_event *event)
{
    void *what = event->data.ptr;
    if (what == server->loop)
        server->due = true;
    else if (what == &server->listen_fd)
        server->arriving = true;
    else if (what == &server->wake_fd)
        atomic_store(&server->woken, false);
    else
        peer_notice(what, event->events);
}

/* What libuv has to do without a descriptor's event: timers, and handles that close. */
static bool loop_is_due(const struct server *server)
{
    return server->due || uv_backend_timeout(server->loop) == 0;
}

void server_wait(struct server *server, bool may_wait)
{
    struct epoll_event events[EVENTS_AT_ONCE];
    flush_all(server);
    bool hurried = !may_wait || server->service->turns.users || server->to_flush || server->due;
    int timeout_ms = hurried ? 0 : uv_backend_timeout(server->loop);
    int count = epoll_wait(server->epoll_fd, events, EVENTS_AT_ONCE, timeout_ms);
    uv_update_time(server->loop);
    for (int i = 0; i < count; i++)
        server_notice(server, &events[i]);
    if (!loop_is_due(server))
        return;
    server->due = false;
    uv_run(server->loop, UV_RUN_NOWAIT);
}

void server_serve(struct server *server)
{
    struct service *service = server->service;
    struct client *client = service_next(service);
    uint64_t now_us = client ? server_now_us(server) : 0, end_us = now_us + LIMIT_TURN_US;
    for (; client; client = now_us < end_us ? service_next(service) : NULL) {
        struct user *user = client->user;
        peer_turn(client->edge, end_us);
        now_us = service_charge(service, user, now_us);
    }
    if (server->arriving)
        server_accept(server);
}

void server_wake(struct server *server)
{
    if (!atomic_exchange(&server->woken, true))
        eventfd_write(server->wake_fd, 1);
}

static int watch(struct server *server, int fd, uint32_t events, void *what)
{
    struct epoll_event event = {.events = events, .data.ptr = what};
    return epoll_ctl(server->epoll_fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

static int watch_begin(struct server *server)
{
    int flags = fcntl(server->listen_fd, F_GETFL);
    if (flags < 0 || fcntl(server->listen_fd, F_SETFL, flags | O_NONBLOCK))
        return -errno;
    server->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (server->epoll_fd < 0)
        return -errno;
    server->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int r = server->wake_fd < 0 ? -errno : 0;
    if (!r)
        r = watch(server, server->wake_fd, EPOLLIN | EPOLLET, &server->wake_fd);
    if (!r)
        r = watch(server, uv_backend_fd(server->loop), EPOLLIN, server->loop);
    if (!r)
        r = watch_listening(server, EPOLL_CTL_ADD, EPOLLIN);
    if (!r)
        return 0;
    if (server->wake_fd >= 0)
        close(server->wake_fd);
    close(server->epoll_fd);
    return r;
}

int server_start(struct server *server, uv_loop_t *loop, struct service *service, int listen_fd)
{
    *server = (struct server){.service = service, .loop = loop, .listen_fd = listen_fd, .spare_fd = -1, .due = true};
    int r = watch_begin(server);
    if (r)
        return r;
    open_spare(server);
    uv_timer_init(loop, &server->resting); /* never fails */
    server->resting.data = server;
    return 0;
}

/*
 * The end.
 */

/* Fills waits with the sockets that do not take all that is left for them, and returns how many; *later: to some
 * clients it is descriptors that cannot be sent, which no socket tells the end of. */
static nfds_t flush_clients(struct server *server, struct pollfd *waits, bool *later)
{
    nfds_t count = 0;
    *later = false;
    for (struct peer *peer = server->peers; peer; peer = peer->next) {
        struct connection *connection = peer->client->connection;
        int r = connection_flush(connection);
        *later |= r == -ETOOMANYREFS;
        if (r == -EAGAIN)
            waits[count++] = (struct pollfd){.fd = connection_fd(connection), .events = POLLOUT};
    }
    return count;
}

void server_flush(struct server *server, unsigned timeout_ms)
{
    struct pollfd waits[LIMIT_CLIENTS];
    uint64_t end_ms = uv_hrtime() / 1000000 + timeout_ms, now_ms;
    bool later;
    nfds_t count;
    while (((count = flush_clients(server, waits, &later)) > 0 || later) && (now_ms = uv_hrtime() / 1000000) < end_ms)
        poll(waits, count, later && end_ms - now_ms > RESEND_MS ? RESEND_MS : (int)(end_ms - now_ms));
}

void server_stop(struct server *server)
{
    while (server->peers)
        peer_close(server->peers);
    uv_close((uv_handle_t *)&server->resting, NULL);
    close(server->wake_fd);
    close(server->epoll_fd);
    if (server->spare_fd >= 0)
        close(server->spare_fd);
}
