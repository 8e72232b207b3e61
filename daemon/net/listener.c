#include "listener.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "close_now.h"
#include "daemon/core/memory/client_descriptors.h"
#include "daemon/core/trust.h"
#include "daemon/process/log.h"
#include "peer.h"
#include "protocol/clock.h"

/* The number of events that one epoll_wait returns at most. */
#define EVENTS_AT_ONCE 64

#define ANSWER_BYTES 64 /* of the answer to a small job, about */

static uint64_t listener_now_us(const struct listener *listener)
{
    const struct service *service = listener->service;
    return service->ops->now_us(service->context);
}

/*
 * Accepting.
 */

/* Has bytes that are sent out of band read as others are: the system would drop each with its descriptors, and their
 * last close may last, when the loop reads what follows. */
static int read_in_line(int fd)
{
    const int on = 1;
    return setsockopt(fd, SOL_SOCKET, SO_OOBINLINE, &on, sizeof on);
}

/* True when a client has already left again, so that no connection is made for it. */
static bool has_left(int fd)
{
    char byte;
    return recv(fd, &byte, sizeof byte, MSG_PEEK | MSG_DONTWAIT) == 0;
}

static void log_turned_away(uid_t uid, unsigned clients_most)
{
    log_cause(
        LOG_CAUSE_TURNED_AWAY, uid,
        "a connection of user %u was turned away: it has %d more than its quota or its share of %u, or opens more "
        "than %d a second, or %d users are there, or memory is short",
        (unsigned)uid, LIMIT_UNADMITTED, clients_most, LIMIT_CONNECTS, LIMIT_USERS);
}

static void turn_away(struct listener *listener, uid_t uid, int fd)
{
    if (!client_descriptors_turn_away(listener->service, uid, fd))
        close_now(fd);
}

/* Makes a client of a connection, or turns it away. Returns the user, if the service knows the user: accepting is
 * charged as well. */
static struct user *listener_welcome(struct listener *listener, int fd)
{
    struct service *service = listener->service;
    struct ucred who;
    socklen_t size = sizeof who;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) || read_in_line(fd)) {
        close_now(fd);
        return NULL;
    }
    if (has_left(fd)) {
        close(fd); /* nothing waits in it */
        return user_find(&service->users, who.uid);
    }
    struct connection *connection = service_is_full(service, who.uid) ? NULL : connection_create(fd);
    struct client *client = connection ? service_open(service, connection, who.uid) : NULL;
    if (!client) {
        const int waiting = connection ? connection_end(connection) : fd;
        log_turned_away(who.uid, service->clients_most);
        connection_destroy(connection);
        if (waiting >= 0)
            turn_away(listener, who.uid, waiting);
        return user_find(&service->users, who.uid);
    }
    client->pid = who.pid;
    int r = peer_open(listener, client);
    if (r) {
        log_cause(LOG_CAUSE_UNWATCHED, who.uid, "a connection of user %u was turned away: it could not be watched: %s",
                  (unsigned)who.uid, strerror(-r));
        service_close(client);
        return NULL;
    }
    return client->user;
}

static void open_spare(struct listener *listener)
{
    if (listener->spare_fd < 0)
        listener->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* Accepts a connection with the spare descriptor and turns it away: with no descriptor left it would stay pending and
 * wake the loop for ever. Returns -EAGAIN when no connection is pending, which accept4 did not say before, since it
 * looks for a descriptor first. */
static int accept_spare(struct listener *listener)
{
    struct ucred who = {.uid = LOG_NOBODY};
    socklen_t size = sizeof who;
    if (listener->spare_fd < 0)
        return -EMFILE;
    close(listener->spare_fd);
    listener->spare_fd = -1;
    int fd = accept4(listener->listen_fd, NULL, NULL, SOCK_CLOEXEC), code = fd < 0 ? -errno : 0;
    if (fd >= 0 && getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0)
        turn_away(listener, who.uid, fd);
    else if (fd >= 0)
        close_now(fd);
    open_spare(listener);
    if (fd >= 0)
        log_cause(LOG_CAUSE_DESCRIPTORS, LOG_NOBODY,
                  "a connection was turned away: the limit of open files is reached; raise it (ulimit -n)");
    return code;
}

/* Accepts a connection, or turns it away. Returns 0 or -errno. *now_us is the time of the call, and becomes the time of
 * the return. */
static int accept_one(struct listener *listener, uint64_t *now_us)
{
    struct user *user = NULL;
    int fd = accept4(listener->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK), code = fd < 0 ? -errno : 0;
    if (fd >= 0)
        user = listener_welcome(listener, fd);
    else if (code == -EMFILE || code == -ENFILE)
        code = accept_spare(listener);
    *now_us = user ? service_charge(listener->service, user, *now_us) : listener_now_us(listener);
    return code;
}

static int watch_listening(struct listener *listener, int how, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = &listener->listen_fd};
    return epoll_ctl(listener->epoll_fd, how, listener->listen_fd, &event) ? -errno : 0;
}

static void rest_ended(uv_timer_t *timer)
{
    struct listener *listener = timer->data;
    open_spare(listener);
    watch_listening(listener, EPOLL_CTL_MOD, EPOLLIN);
}

/* Stops accepting for a while: the cause of an accept error lasts, and pending connections would wake the loop for
 * ever. */
static void rest(struct listener *listener, int code)
{
    log_cause(LOG_CAUSE_ACCEPT, LOG_NOBODY, "connections cannot be accepted: %s; the next try is in %d ms",
              strerror(-code), LIMIT_ACCEPT_REST_MS);
    watch_listening(listener, EPOLL_CTL_MOD, 0);
    uv_timer_start(&listener->resting, rest_ended, LIMIT_ACCEPT_REST_MS, 0);
}

/* Accepts connections for as long as a turn takes; if some are left, they wake the loop again. */
static void listener_accept(struct listener *listener)
{
    uint64_t now_us = listener_now_us(listener), end_us = now_us + LIMIT_TURN_US;
    int r;
    listener->arriving = false;
    do
        r = accept_one(listener, &now_us);
    while ((r == 0 || r == -EINTR || r == -ECONNABORTED) && now_us < end_us);
    if (r && r != -EAGAIN && r != -EINTR && r != -ECONNABORTED)
        rest(listener, r);
}

/*
 * Rounds of the loop.
 */

/* True where a client with many jobs under way sleeps until some are answered: waking it for each takes long, and may
 * take this thread's processor. It has as many answers as other jobs when it is woken. */
static bool may_sleep_on(const struct client *client)
{
    return client->job_count >= LIMIT_GATHER_JOBS && connection_peer_sleeps(client->connection) &&
           connection_output_bytes(client->connection) < client->job_count * ANSWER_BYTES;
}

/* True while answers are held back to be sent together: each sending costs a call of the kernel here and one at the
 * client, which goes on to ask meanwhile. */
static bool gathers(const struct peer *peer, uint64_t now_us)
{
    const uint64_t since_us = now_us - peer->flushed_us;
    if (trust_is_lost(peer->client))
        return false;
    return (peer->client->turn.ready && since_us < LIMIT_GATHER_US) ||
           (since_us < LIMIT_GATHER_ASLEEP_US && may_sleep_on(peer->client));
}

uint64_t listener_end_turn(struct listener *listener, struct user *user, uint64_t since_us)
{
    const uint64_t now_us = service_charge(listener->service, user, since_us);
    if (trust_end(listener->service, user, now_us - since_us))
        peer_log_slept(user);
    return now_us;
}

/* Sends the output of all clients that have some, and charges their users for it; `all`: holds nothing back. */
static void flush_all(struct listener *listener, bool all)
{
    uint64_t now_us = listener->to_flush ? listener_now_us(listener) : 0;
    struct peer *peer = listener->to_flush, *next;
    listener->to_flush = NULL;
    for (; peer; peer = next) {
        struct user *user = peer->client->user;
        next = peer->next_flush;
        peer->flush_queued = false;
        trust_begin(listener->service, user);
        if (!all && gathers(peer, now_us)) {
            peer_output(listener, peer->client);
        } else {
            peer->flushed_us = now_us;
            peer_flush(peer);
        }
        now_us = listener_end_turn(listener, user, now_us);
    }
}

static void listener_notice(struct listener *listener, const struct epoll_event *event)
{
    void *what = event->data.ptr;
    if (what == listener->loop)
        listener->due = true;
    else if (what == &listener->listen_fd)
        listener->arriving = true;
    else if (what == &listener->wake_fd)
        atomic_store(&listener->woken, false);
    else
        peer_notice(what, event->events);
}

/* True when libuv has something to do: a descriptor's event, a timer, or a handle that closes. */
static bool loop_is_due(const struct listener *listener)
{
    return listener->due || uv_backend_timeout(listener->loop) == 0;
}

/* A look takes less time than a clock, so looks are timed together; and one by one for users of whom one has lasted. */
static bool look_at_ring(struct listener *listener, struct peer *peer, bool sleeps)
{
    struct user *user = peer->client->user;
    if (!user->suspected)
        return peer_look(peer, sleeps);
    const uint64_t now_us = listener_now_us(listener);
    trust_begin(listener->service, user);
    const bool awake = peer_look(peer, sleeps);
    listener_end_turn(listener, user, now_us);
    return awake;
}

static void suspect_all(const struct listener *listener)
{
    for (const struct peer *peer = listener->awake; peer; peer = peer->next_awake)
        peer->client->user->suspected = true;
}

static void look_at_each(struct listener *listener, bool sleeps)
{
    struct peer **link = &listener->awake;
    while (*link) {
        struct peer *peer = *link;
        peer->awake = look_at_ring(listener, peer, sleeps);
        if (peer->awake)
            link = &peer->next_awake;
        else
            *link = peer->next_awake;
    }
}

/* A clock of some milliseconds, which takes no time to look at. */
static uint64_t coarse_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* Looks at the rings of peers that are awake. */
static void look_at_rings(struct listener *listener, bool sleeps)
{
    const uint64_t since_us = listener->awake ? coarse_us() : 0;
    look_at_each(listener, sleeps);
    if (listener->awake && coarse_us() - since_us >= LIMIT_SLEEP_US)
        suspect_all(listener);
}

void listener_wait(struct listener *listener, bool may_wait)
{
    struct epoll_event events[EVENTS_AT_ONCE];
    look_at_rings(listener, false); /* first, since answers to who goes on asking are gathered */
    flush_all(listener, false);
    bool hurried = !may_wait || listener->service->turns.users || listener->due;
    if (!hurried) {
        flush_all(listener, true);
        look_at_rings(listener, true);
    }
    hurried = hurried || listener->service->turns.users || listener->to_flush;
    int timeout_ms = hurried ? 0 : uv_backend_timeout(listener->loop);
    int count = epoll_wait(listener->epoll_fd, events, EVENTS_AT_ONCE, timeout_ms);
    uv_update_time(listener->loop);
    for (int i = 0; i < count; i++)
        listener_notice(listener, &events[i]);
    if (!loop_is_due(listener))
        return;
    listener->due = false;
    uv_run(listener->loop, UV_RUN_NOWAIT);
}

void listener_serve(struct listener *listener)
{
    struct service *service = listener->service;
    struct client *client = service_next(service);
    uint64_t now_us = client ? listener_now_us(listener) : 0, end_us = now_us + LIMIT_TURN_US;
    for (; client; client = now_us < end_us ? service_next(service) : NULL) {
        struct user *user = client->user;
        trust_begin(service, user);
        peer_turn(client->peer, end_us);
        now_us = listener_end_turn(listener, user, now_us);
    }
    if (listener->arriving)
        listener_accept(listener);
}

void listener_wake(struct listener *listener)
{
    if (!atomic_exchange(&listener->woken, true))
        eventfd_write(listener->wake_fd, 1);
}

static int watch(struct listener *listener, int fd, uint32_t events, void *what)
{
    struct epoll_event event = {.events = events, .data.ptr = what};
    return epoll_ctl(listener->epoll_fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

/* Watches what wakes the loop: another thread, libuv's own events, a client that connects. */
static int watch_all(struct listener *listener)
{
    int r = watch(listener, listener->wake_fd, EPOLLIN | EPOLLET, &listener->wake_fd);
    if (r)
        return r;
    r = watch(listener, uv_backend_fd(listener->loop), EPOLLIN, listener->loop);
    return r ? r : watch_listening(listener, EPOLL_CTL_ADD, EPOLLIN);
}

static int watch_begin(struct listener *listener)
{
    int flags = fcntl(listener->listen_fd, F_GETFL);
    if (flags < 0 || fcntl(listener->listen_fd, F_SETFL, flags | O_NONBLOCK))
        return -errno;
    listener->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (listener->epoll_fd < 0)
        return -errno;
    listener->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int r = listener->wake_fd < 0 ? -errno : watch_all(listener);
    if (!r)
        return 0;
    if (listener->wake_fd >= 0)
        close(listener->wake_fd);
    close(listener->epoll_fd);
    return r;
}

int listener_start(struct listener *listener, uv_loop_t *loop, struct service *service, int listen_fd)
{
    *listener =
        (struct listener){.service = service, .loop = loop, .listen_fd = listen_fd, .spare_fd = -1, .due = true};
    int r = watch_begin(listener);
    if (r)
        return r;
    open_spare(listener);
    close_now_init();
    uv_timer_init(loop, &listener->resting); /* never fails */
    listener->resting.data = listener;
    return 0;
}

/*
 * The end.
 */

/* Gives each client a turn. Returns true when some have more. */
static bool last_turns(struct listener *listener)
{
    bool some = false;
    for (struct peer *peer = listener->peers; peer; peer = peer->next)
        some |= peer_last_turn(peer, listener_now_us(listener) + LIMIT_TURN_US);
    return some;
}

void listener_end_input(struct listener *listener, unsigned timeout_ms)
{
    const int64_t end_ms = clock_ms() + timeout_ms;
    for (struct peer *peer = listener->peers; peer; peer = peer->next)
        peer_shut(peer);
    while (last_turns(listener) && clock_ms() < end_ms)
        ;
}

/* Fills waits with the sockets that do not take all that is left for them, and returns how many. *later: some clients'
 * descriptors cannot be sent yet, and no socket tells when they can. */
static nfds_t flush_clients(struct listener *listener, struct pollfd *waits, bool *later)
{
    nfds_t count = 0;
    *later = false;
    for (struct peer *peer = listener->peers; peer; peer = peer->next) {
        struct connection *connection = peer->client->connection;
        int r = connection_flush(connection);
        *later |= r == -ETOOMANYREFS;
        if (r == -EAGAIN)
            waits[count++] = (struct pollfd){.fd = connection_fd(connection), .events = POLLOUT};
    }
    return count;
}

void listener_flush(struct listener *listener, unsigned timeout_ms)
{
    struct pollfd waits[LIMIT_CLIENTS];
    int64_t end_ms = clock_ms() + timeout_ms, now_ms;
    bool later;
    nfds_t count;
    while (((count = flush_clients(listener, waits, &later)) > 0 || later) && (now_ms = clock_ms()) < end_ms)
        poll(waits, count, later && end_ms - now_ms > RESEND_MS ? RESEND_MS : (int)(end_ms - now_ms));
}

void listener_stop(struct listener *listener)
{
    while (listener->peers)
        peer_end(listener->peers);
    uv_close((uv_handle_t *)&listener->resting, NULL);
    close(listener->wake_fd);
    close(listener->epoll_fd);
    if (listener->spare_fd >= 0)
        close(listener->spare_fd);
}
