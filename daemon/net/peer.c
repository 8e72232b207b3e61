#include "peer.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "daemon/core/trust.h"
#include "daemon/process/log.h"

#define WATCHED (EPOLLIN | EPOLLRDHUP | EPOLLET)
#define ENDED   (EPOLLRDHUP | EPOLLHUP | EPOLLERR)

/* The time until the next look at a client whose time is over while it waits for its turn. */
#define LOOK_AGAIN_MS 100

static void handle_closed(uv_handle_t *handle)
{
    struct peer *peer = handle->data;
    if (--peer->open_handles == 0)
        free(peer);
}

static void flush_forget(struct peer *peer)
{
    struct peer **at = &peer->listener->to_flush;
    while (*at && *at != peer)
        at = &(*at)->next_flush;
    if (*at)
        *at = peer->next_flush;
}

static void awake_forget(struct peer *peer)
{
    struct peer **at = &peer->listener->awake;
    while (*at && *at != peer)
        at = &(*at)->next_awake;
    if (*at)
        *at = peer->next_awake;
}

/* Closes the peer after sending its client as many answers as the socket takes. A thread may close the socket later, so
 * it leaves the epoll set here. */
static void close_client(struct peer *peer, bool wipes)
{
    if (!peer->client)
        return;
    struct client *client = peer->client;
    if (trust_is_lost(client))
        service_wipe_rings(client);
    else
        connection_flush(client->connection);
    if (wipes)
        service_wipe_rings(client);
    flush_forget(peer);
    awake_forget(peer);
    epoll_ctl(peer->listener->epoll_fd, EPOLL_CTL_DEL, connection_fd(client->connection), NULL);
    peer->client = NULL;
    *peer->link = peer->next;
    if (peer->next)
        peer->next->link = peer->link;
    uv_close((uv_handle_t *)&peer->patience, handle_closed);
    uv_close((uv_handle_t *)&peer->unread, handle_closed);
    service_close(client);
}

/* Sends what its socket takes at once, and closes the client. Only one that is gone, or has broken the protocol, is
 * closed before the end of the process, so nobody is to read what its rings have; and their memory is given back, even
 * if it keeps the descriptor. */
static void peer_close(struct peer *peer)
{
    close_client(peer, true);
}

void peer_end(struct peer *peer)
{
    close_client(peer, false);
}

void peer_log_slept(const struct user *user)
{
    log_cause(LOG_CAUSE_SLEPT, user->uid,
              "the loop has slept at memory of user %u for more than %d ms in all, as whoever touches memory does that "
              "its owner gives back: from now on threads touch it alone, and the user's connections have no rings",
              (unsigned)user->uid, LIMIT_SLEPT_MS);
}

/* Closes a peer between turns. Its last answers may go to a ring. */
static void close_late(struct peer *peer)
{
    struct service *service = peer->client->service;
    struct user *user = peer->client->user;
    const uint64_t since_us = service->ops->now_us(service->context);
    trust_begin(service, user);
    peer_close(peer);
    if (trust_end(service, user, service->ops->now_us(service->context) - since_us))
        peer_log_slept(user);
}

static void patience_ended(uv_timer_t *timer)
{
    struct peer *peer = timer->data;
    const struct client *client = peer->client;
    const unsigned uid = client->user->uid;
    if (client->greeted && client->turn.ready) { /* the rest may be there: the daemon is late, not the client */
        uv_timer_start(timer, patience_ended, LOOK_AGAIN_MS, 0);
        return;
    }
    if (client->greeted)
        log_cause(LOG_CAUSE_LATE, uid, "a client of user %u did not complete a message for %d ms: disconnected", uid,
                  LIMIT_MESSAGE_MS);
    else
        log_cause(LOG_CAUSE_LATE, uid, "a client of user %u did not say hello within %d ms: disconnected", uid,
                  LIMIT_HELLO_MS);
    close_late(peer);
}

/* Starts or stops the timer of an incomplete message. Each message has its own time, so a completed one stops the
 * timer; the time does not run while nothing is read. Until hello there is one time, whatever comes. */
static void watch_patience(struct peer *peer)
{
    const struct client *client = peer->client;
    bool greeted = client->greeted;
    bool awaited = !greeted || (connection_is_partial(client->connection) && !client->paused && !client->failed);
    if ((greeted && peer->completed) || !awaited)
        uv_timer_stop(&peer->patience);
    peer->completed = false;
    if (awaited && !uv_is_active((uv_handle_t *)&peer->patience))
        uv_timer_start(&peer->patience, patience_ended, greeted ? LIMIT_MESSAGE_MS : LIMIT_HELLO_MS, 0);
}

/*
 * Sending.
 */

void peer_output(struct listener *listener, struct client *client)
{
    struct peer *peer = client->peer;
    if (!peer || peer->flush_queued)
        return;
    peer->flush_queued = true;
    peer->next_flush = listener->to_flush;
    listener->to_flush = peer;
}

static void unread_ended(uv_timer_t *timer)
{
    struct peer *peer = timer->data;
    peer_output(peer->listener, peer->client);
}

/* Starts the timer of output that waits; `taken`: the client has taken some. Returns false when it has taken none for
 * too long. */
static bool watch_unread(struct peer *peer, int flushed, bool taken)
{
    uint64_t now_ms = uv_now(peer->listener->loop);
    if (taken || peer->taken_ms == 0)
        peer->taken_ms = now_ms;
    uint64_t waited_ms = now_ms - peer->taken_ms;
    if (waited_ms >= LIMIT_UNREAD_MS)
        return false;
    uint64_t next_ms = flushed == -ETOOMANYREFS ? RESEND_MS : LIMIT_UNREAD_MS - waited_ms;
    uv_timer_start(&peer->unread, unread_ended, next_ms, 0);
    return true;
}

static void forget_unread(struct peer *peer)
{
    if (peer->taken_ms == 0)
        return;
    peer->taken_ms = 0;
    uv_timer_stop(&peer->unread);
}

/* Watches for room to write, or stops watching; only a change costs a call of the kernel. Returns 0 or -errno. */
static int watch_room(struct peer *peer, bool wanted)
{
    struct epoll_event event = {.events = wanted ? WATCHED | EPOLLOUT : WATCHED, .data.ptr = peer};
    if (wanted == peer->wants_room)
        return 0;
    if (epoll_ctl(peer->listener->epoll_fd, EPOLL_CTL_MOD, connection_fd(peer->client->connection), &event))
        return -errno;
    peer->wants_room = wanted;
    return 0;
}

static void log_broken(const struct client *client)
{
    log_cause(LOG_CAUSE_BROKEN, client->user->uid,
              "a client of user %u sent bytes or descriptors that are no message of the protocol: disconnected",
              (unsigned)client->user->uid);
}

/* Sends what the socket takes. Returns 0, also when the rest has to wait, or -errno: the connection is over. */
static int peer_send(struct peer *peer)
{
    struct connection *connection = peer->client->connection;
    uint64_t before = connection_sent_bytes(connection);
    service_sends(peer->client);
    int r = connection_flush(connection);
    service_sent(peer->client);
    if (r == 0) {
        forget_unread(peer);
        r = watch_room(peer, false);
        return peer->client->failed ? -EBADMSG : r;
    }
    if (r == -EPROTO)
        log_broken(peer->client);
    if (r != -EAGAIN && r != -ETOOMANYREFS)
        return r;
    if (watch_unread(peer, r, connection_sent_bytes(connection) > before))
        return watch_room(peer, r == -EAGAIN);
    const unsigned uid = peer->client->user->uid;
    log_cause(LOG_CAUSE_UNREAD, uid, "a client of user %u took none of its answers for %d ms: disconnected", uid,
              LIMIT_UNREAD_MS);
    return -ETIMEDOUT;
}

void peer_flush(struct peer *peer)
{
    struct client *client = peer->client;
    if (trust_is_lost(client)) {
        peer_close(peer);
        return;
    }
    int r = peer->deaf ? -EPIPE : peer_send(peer);
    if ((r == -EPIPE || r == -ECONNRESET) && client->turn.ready) {
        peer->deaf = true;
        return;
    }
    if (r) {
        peer_close(peer);
        return;
    }
    if (client->paused && !client->failed && !service_is_clogged(client))
        service_ready(client);
}

/*
 * Reading.
 */

void peer_notice(struct peer *peer, uint32_t events)
{
    struct client *client = peer->client;
    peer->ending |= (events & ENDED) != 0;
    if (events & (EPOLLIN | ENDED)) {
        peer->readable = true;
        if (!client->paused && !client->failed)
            service_ready(client);
    }
    if (events & (EPOLLOUT | ENDED))
        peer_output(peer->listener, client);
}

bool peer_look(struct peer *peer, bool sleeps)
{
    struct client *client = peer->client;
    if (client->paused || client->failed || trust_is_lost(client))
        return false;
    const bool is_ready = connection_is_ready(client->connection);
    if (!is_ready && !sleeps && ++peer->looks < LIMIT_RING_LOOKS)
        return true;
    if (!is_ready && connection_sleep(client->connection))
        return false;
    peer->looks = 0;
    peer->readable = true;
    service_ready(client);
    return true;
}

/* Has the client's ring looked at, if it has one. */
static void peer_rise(struct peer *peer)
{
    const struct client *client = peer->client;
    if (peer->awake || client->paused || client->failed || !connection_has_rings(client->connection))
        return;
    connection_rise(client->connection);
    peer->awake = true;
    peer->looks = 0;
    peer->next_awake = peer->listener->awake;
    peer->listener->awake = peer;
}

static bool has_message(const struct client *client)
{
    const uint8_t *bytes;
    size_t size;
    return connection_peek(client->connection, &bytes, &size) != 0;
}

/* Reads once. *lost: descriptors were lost, but the message has arrived and can be answered. Returns false when the
 * connection is over. After a read that has taken all there was, readable is false: another read would find nothing,
 * and epoll tells of more. Only when the end is due is there another read. */
static bool peer_read(struct peer *peer, bool *lost)
{
    struct connection *connection = peer->client->connection;
    int r = connection_receive(connection);
    *lost = r == -EMFILE || r == -EBADF;
    if (r == -EMFILE)
        log_cause(LOG_CAUSE_DESCRIPTORS, peer->client->user->uid,
                  "descriptors that a client sent were lost: the limit of open files is reached; raise it (ulimit -n)");
    if (r > 0 || *lost) {
        peer->completed |= has_message(peer->client);
        peer->readable = peer->ending || !connection_is_drained(connection);
        return true;
    }
    peer->readable = false;
    if (r == -EPROTO)
        log_broken(peer->client);
    return r == -EAGAIN && !peer->ending;
}

void peer_turn(struct peer *peer, uint64_t end_us)
{
    struct client *client = peer->client;
    bool lost = false;
    if (trust_is_lost(client)) {
        peer_close(peer);
        return;
    }
    if (!has_message(client) && !client->failed && !peer->ending && service_is_clogged(client)) {
        client->paused = true;
        service_rest(client);
        watch_patience(peer);
        return;
    }
    if (!has_message(client) && !peer_read(peer, &lost)) {
        peer_close(peer);
        return;
    }
    const bool was_right = client->admitted && !client->failed;
    int r = service_input(client, end_us);
    if (client->failed && was_right)
        log_broken(client);
    client->failed |= lost;
    if (client->failed)
        peer_output(peer->listener, client);
    if (client->failed || client->paused || (r == 0 && !peer->readable))
        service_rest(client);
    peer_rise(peer);
    if (peer->deaf && !client->turn.ready)
        peer_close(peer);
    else
        watch_patience(peer);
}

/* A client that would write to its ring finds that its reader sleeps, and its socket shut. */
void peer_shut(struct peer *peer)
{
    struct connection *connection = peer->client->connection;
    shutdown(connection_fd(connection), SHUT_RD);
    peer->ending = true;
    (void)connection_sleep(connection);
}

bool peer_last_turn(struct peer *peer, uint64_t end_us)
{
    struct client *client = peer->client;
    bool lost = false;
    if (client->failed || peer->deaf || service_is_clogged(client))
        return false;
    if (!has_message(client) && !peer_read(peer, &lost))
        return !connection_sleep(client->connection); /* something came before the ring was looked at */
    (void)service_input(client, end_us);
    client->failed |= lost;
    (void)connection_flush(client->connection);
    return true;
}

/*
 * The beginning.
 */

int peer_open(struct listener *listener, struct client *client)
{
    struct peer *peer = calloc(1, sizeof *peer);
    struct epoll_event event = {.events = WATCHED, .data.ptr = peer};
    if (!peer)
        return -ENOMEM;
    if (epoll_ctl(listener->epoll_fd, EPOLL_CTL_ADD, connection_fd(client->connection), &event)) {
        int code = -errno;
        free(peer);
        return code;
    }
    peer->listener = listener;
    peer->client = client;
    uv_timer_init(listener->loop, &peer->patience); /* never fails */
    uv_timer_init(listener->loop, &peer->unread);
    peer->patience.data = peer->unread.data = peer;
    peer->open_handles = 2;
    client->peer = peer;
    peer->next = listener->peers;
    peer->link = &listener->peers;
    if (peer->next)
        peer->next->link = &peer->next;
    listener->peers = peer;
    watch_patience(peer);
    return 0;
}
