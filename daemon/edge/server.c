#include "server.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "log.h"

/* Reads of one connection, and new connections, before the others get their turn. */
#define READS_AT_ONCE   16
#define ACCEPTS_AT_ONCE 64

/* Between two tries to send descriptors while too many are on their way: nothing tells when they have arrived. */
#define RESEND_MS 20

/* A connection's handles. Lives until libuv has closed them. */
struct peer {
    struct server *server;
    struct client *client; /* NULL once closed */
    uv_poll_t poll;
    int events;          /* that poll waits for */
    uv_timer_t patience; /* runs while a message is incomplete */
    bool completed;      /* a message has ended since patience was last looked at */
    uv_timer_t unread;   /* runs while output waits */
    uint64_t taken_ms;   /* when the client last took some, or its output began to wait */
    unsigned open_handles;
    bool flush_queued;
    struct peer *next_flush;
    struct peer *next, **link; /* among the server's peers */
};

static void peer_ready(uv_poll_t *poll, int status, int events);

static void handle_closed(uv_handle_t *handle)
{
    struct peer *peer = handle->data;
    if (--peer->open_handles == 0)
        free(peer);
}

static void flush_forget(struct peer *peer)
{
    struct peer **at = &peer->server->to_flush;
    while (*at && *at != peer)
        at = &(*at)->next_flush;
    if (*at)
        *at = peer->next_flush;
}

/* The client gets what it was answered so far, as far as its socket takes it. */
static void peer_close(struct peer *peer)
{
    if (!peer->client)
        return;
    struct client *client = peer->client;
    connection_flush(client->connection);
    flush_forget(peer);
    peer->client = NULL;
    *peer->link = peer->next;
    if (peer->next)
        peer->next->link = peer->link;
    uv_close((uv_handle_t *)&peer->poll, handle_closed);
    uv_close((uv_handle_t *)&peer->patience, handle_closed);
    uv_close((uv_handle_t *)&peer->unread, handle_closed);
    service_close(client);
}

static void patience_ended(uv_timer_t *timer)
{
    struct peer *peer = timer->data;
    log_info("a client did not complete a message for %d ms: disconnected", LIMIT_MESSAGE_MS);
    peer_close(peer);
}

/* A client that is not admitted has this time for its first message as well. What is incomplete now may be another
 * message than before: each has its own time, which does not run while nothing is read. */
static void watch_patience(struct peer *peer)
{
    const struct client *client = peer->client;
    bool partial = !client->admitted || connection_is_partial(client->connection);
    bool awaited = partial && !client->paused && !client->failed;
    if (peer->completed || !awaited)
        uv_timer_stop(&peer->patience);
    peer->completed = false;
    if (awaited && !uv_is_active((uv_handle_t *)&peer->patience))
        uv_timer_start(&peer->patience, patience_ended, LIMIT_MESSAGE_MS, 0);
}

static void unread_ended(uv_timer_t *timer)
{
    struct peer *peer = timer->data;
    server_output(peer->server, peer->client);
}

/* Output waits, of which the client may have taken some. False when it has taken none for too long. */
static bool watch_unread(struct peer *peer, int flushed, bool taken)
{
    uint64_t now_ms = uv_now(peer->server->loop);
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

/* Each change is a call of the kernel. */
static void peer_wait(struct peer *peer, int events)
{
    if (events == peer->events)
        return;
    peer->events = events;
    uv_poll_start(&peer->poll, events, peer_ready);
}

/* Sends what the socket takes. Returns what connection_flush does, with the connection's end as another -errno. */
static int peer_send(struct peer *peer)
{
    struct connection *connection = peer->client->connection;
    uint64_t before = connection_sent_bytes(connection);
    int r = connection_flush(connection);
    if (r == 0) {
        forget_unread(peer);
        return peer->client->failed ? -EBADMSG : 0;
    }
    if (r != -EAGAIN && r != -ETOOMANYREFS)
        return r;
    if (watch_unread(peer, r, connection_sent_bytes(connection) > before))
        return r;
    log_info("a client took none of its answers for %d ms: disconnected", LIMIT_UNREAD_MS);
    return -ETIMEDOUT;
}

/* Sends what the socket takes, goes on with what waited for that, and waits for the rest. */
static void peer_flush(struct peer *peer)
{
    struct client *client = peer->client;
    int r = peer_send(peer);
    if (r && r != -EAGAIN && r != -ETOOMANYREFS) {
        peer_close(peer);
        return;
    }
    if (client->paused && !client->failed) {
        if (service_input(client))
            server_output(peer->server, client);
        watch_patience(peer);
    }
    if (!peer->flush_queued)
        peer_wait(peer, (client->paused || client->failed ? 0 : UV_READABLE) | (r == -EAGAIN ? UV_WRITABLE : 0));
}

void server_output(struct server *server, struct client *client)
{
    struct peer *peer = client->edge;
    if (!peer || peer->flush_queued)
        return;
    peer->flush_queued = true;
    peer->next_flush = server->to_flush;
    server->to_flush = peer;
}

static void flush_all(uv_prepare_t *prepare)
{
    struct server *server = prepare->data;
    while (server->to_flush) {
        struct peer *peer = server->to_flush;
        server->to_flush = peer->next_flush;
        peer->flush_queued = false;
        if (peer->client)
            peer_flush(peer);
    }
}

/* Reads and handles what has arrived, or `all` up to the end. False when the connection is over. A read that has taken
 * all there was is not followed by one that would find nothing: should there be more, libuv says so. */
static bool peer_read(struct peer *peer, bool all)
{
    struct client *client = peer->client;
    const uint8_t *bytes;
    size_t size;
    int r = 1;
    for (int i = 0; i < READS_AT_ONCE && r > 0 && !client->paused && !client->failed; i++) {
        r = connection_receive(client->connection);
        /* Descriptors were lost, but the message has arrived and can be answered. */
        bool lost = r == -EMFILE || r == -EBADF, arrived = r > 0 || lost;
        peer->completed |= arrived && connection_peek(client->connection, &bytes, &size) == 1;
        if (arrived)
            service_input(client);
        client->failed |= lost;
        if (arrived && !all && connection_is_drained(client->connection))
            break;
    }
    if (r == -EMFILE)
        log_error("descriptors that a client sent were lost: the limit of open files is reached; raise it (ulimit -n)");
    return r > 0 || r == -EAGAIN || client->failed;
}

static void peer_ready(uv_poll_t *poll, int status, int events)
{
    struct peer *peer = poll->data;
    bool open = true;
    /* On an error too: what the client sent before it died is still there, and counts. */
    if (status < 0 || (events & UV_READABLE))
        open = peer_read(peer, status < 0);
    if (open && status == 0) {
        watch_patience(peer);
        server_output(peer->server, peer->client);
        return;
    }
    peer_close(peer);
}

static bool peer_begin(struct peer *peer, int fd)
{
    struct server *server = peer->server;
    if (uv_poll_init(server->loop, &peer->poll, fd))
        return false;
    uv_timer_init(server->loop, &peer->patience);
    uv_timer_init(server->loop, &peer->unread);
    peer->poll.data = peer->patience.data = peer->unread.data = peer;
    peer->open_handles = 3;
    peer->client->edge = peer;
    peer->next = server->peers;
    peer->link = &server->peers;
    if (peer->next)
        peer->next->link = &peer->next;
    server->peers = peer;
    peer_wait(peer, UV_READABLE);
    watch_patience(peer);
    return true;
}

static void server_welcome(struct server *server, int fd)
{
    struct ucred who;
    socklen_t size = sizeof who;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size)) {
        close(fd);
        return;
    }
    struct connection *connection = connection_create(fd);
    if (!connection)
        return;
    struct peer *peer = calloc(1, sizeof *peer);
    struct client *client = peer ? service_open(server->service, connection, who.uid) : NULL;
    if (!client) {
        log_error(
            "a connection of user %u was turned away: %d are open in all, or %d users are there, or %d more than its "
            "quota, or memory is short",
            (unsigned)who.uid, LIMIT_CLIENTS, LIMIT_USERS, LIMIT_UNADMITTED);
        connection_destroy(connection);
        free(peer);
        return;
    }
    client->pid = who.pid;
    peer->server = server;
    peer->client = client;
    if (!peer_begin(peer, fd)) {
        service_close(client);
        free(peer);
    }
}

static int open_spare(void)
{
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* With no descriptor left the connection would stay pending and wake the loop for ever. False when none is pending:
 * accept4 looks for a descriptor first. */
static bool turn_away(struct server *server)
{
    close(server->spare_fd);
    int fd = accept4(server->listen_fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd >= 0)
        close(fd);
    server->spare_fd = open_spare();
    if (fd >= 0)
        log_error("a connection was turned away: the limit of open files is reached; raise it (ulimit -n)");
    return fd >= 0;
}

static void server_accept(uv_poll_t *poll, int status, int events)
{
    struct server *server = poll->data;
    (void)status, (void)events;
    for (int i = 0; i < ACCEPTS_AT_ONCE; i++) {
        int fd = accept4(server->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0)
            server_welcome(server, fd);
        else if ((errno == EMFILE || errno == ENFILE) ? !turn_away(server) : errno != EINTR && errno != ECONNABORTED)
            return;
    }
}

int server_start(struct server *server, uv_loop_t *loop, struct service *service, int listen_fd)
{
    *server = (struct server){.service = service, .loop = loop, .listen_fd = listen_fd, .spare_fd = open_spare()};
    int flags = fcntl(listen_fd, F_GETFL);
    if (flags < 0 || fcntl(listen_fd, F_SETFL, flags | O_NONBLOCK))
        return -errno;
    int r = uv_poll_init(loop, &server->listening, listen_fd);
    if (r)
        return r;
    uv_prepare_init(loop, &server->flushing);
    server->listening.data = server->flushing.data = server;
    uv_prepare_start(&server->flushing, flush_all);
    return uv_poll_start(&server->listening, UV_READABLE, server_accept);
}

/* Fills waits with the sockets that do not take all that is left for them. Returns how many. */
static nfds_t flush_clients(struct server *server, struct pollfd *waits)
{
    nfds_t count = 0;
    for (struct peer *peer = server->peers; peer; peer = peer->next) {
        struct connection *connection = peer->client->connection;
        if (connection_flush(connection) == -EAGAIN)
            waits[count++] = (struct pollfd){.fd = connection_fd(connection), .events = POLLOUT};
    }
    return count;
}

void server_flush(struct server *server, unsigned timeout_ms)
{
    struct pollfd waits[LIMIT_CLIENTS];
    uint64_t end_ms = uv_hrtime() / 1000000 + timeout_ms, now_ms;
    nfds_t count;
    while ((count = flush_clients(server, waits)) > 0 && (now_ms = uv_hrtime() / 1000000) < end_ms)
        poll(waits, count, (int)(end_ms - now_ms));
}

void server_stop(struct server *server)
{
    while (server->peers)
        peer_close(server->peers);
    uv_close((uv_handle_t *)&server->listening, NULL);
    uv_close((uv_handle_t *)&server->flushing, NULL);
    close(server->spare_fd);
}
