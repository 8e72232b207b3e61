#include "connection.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rings.h"
#include "walk.h"

/* A message's own descriptors and those of the next, whose beginning can arrive together with its end. */
#define INBOX_FDS         (2 * LIMIT_MESSAGE_FDS)
#define OUTBOX_STEP_BYTES KIB(4)
#define OUTBOX_KEEP_BYTES KIB(64)

/* Positions count bytes since the connection began, in here and in the outbox. */
struct inbox {
    size_t start, end;     /* range of bytes that have arrived and were not consumed */
    uint64_t arrived;      /* position of bytes[end] */
    size_t message_bytes;  /* bytes of the complete message at start; 0: not known to be complete */
    size_t required_bytes; /* least bytes of the message at start */
    bool filled;           /* by the latest recvmsg, or descriptors ended it: more may have arrived */
    size_t fd_count;
    size_t lost_count;
    uint8_t bytes[LIMIT_MESSAGE_BYTES];
    int fds[INBOX_FDS];
    int lost[LOST_FDS]; /* descriptors that no message can have, of the first read that brought some */
};

struct outbox {
    uint8_t *bytes;
    size_t start, end, capacity;
    uint64_t sent;    /* position of bytes[start] */
    uint64_t barrier; /* position from which on bytes wait for rings, or have them */
    size_t announced; /* bytes of which the ring has told that the socket brings them next */
    size_t parcel_count;
    struct parcel *parcels;
};

struct parcel {
    uint64_t position; /* position of its message's first byte, with which it travels */
    int fd;
};

/* The members that every connection needs come first, so that one which sends a hello, or something else, and ends
 * takes one page. */
struct connection {
    int fd; /* -1: there is a carrier */
    const struct carrier *carrier;
    void *context;       /* the carrier's */
    struct rings *rings; /* NULL: all bytes go through the socket */
    struct outbox out;
    struct inbox in;
    struct parcel parcels[LIMIT_OUTBOX_FDS];
};

static_assert(offsetof(struct connection, in.bytes) + LIMIT_FIRST_READ_BYTES <= 4096, "the first read is in that page");

/* Pages of its own: most of an inbox is never touched, and all of it goes back when the connection ends. On the heap,
 * what many connections at once have taken would stay the daemon's, and be filled with zeros for each later one. */
static struct connection *connection_allocate(void)
{
    void *memory = mmap(NULL, sizeof(struct connection), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    struct connection *connection = memory;
    connection->fd = -1;
    connection->out.parcels = connection->parcels;
    connection->out.barrier = UINT64_MAX;
    return connection;
}

struct connection *connection_create(int fd)
{
    const int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || (!(flags & O_NONBLOCK) && fcntl(fd, F_SETFL, flags | O_NONBLOCK)))
        return NULL;
    struct connection *connection = connection_allocate();
    if (connection)
        connection->fd = fd;
    return connection;
}

struct connection *connection_create_on(const struct carrier *carrier, void *context)
{
    struct connection *connection = connection_allocate();
    if (!connection)
        return NULL;
    connection->carrier = carrier;
    connection->context = context;
    return connection;
}

static void fds_close(const int *fds, size_t count)
{
    for (size_t i = 0; i < count; i++)
        close(fds[i]);
}

static void parcels_close(const struct parcel *parcels, size_t count)
{
    for (size_t i = 0; i < count; i++)
        close(parcels[i].fd);
}

void connection_destroy(struct connection *connection)
{
    if (!connection)
        return;
    fds_close(connection->in.fds, connection->in.fd_count);
    fds_close(connection->in.lost, connection->in.lost_count);
    parcels_close(connection->out.parcels, connection->out.parcel_count);
    free(connection->out.bytes);
    rings_destroy(connection->rings);
    if (connection->carrier)
        connection->carrier->close(connection->context);
    else if (connection->fd >= 0)
        close(connection->fd);
    munmap(connection, sizeof *connection);
}

int connection_end(struct connection *connection)
{
    const int fd = connection->fd;
    int unread = 0;
    if (fd < 0)
        return -1;
    shutdown(fd, SHUT_RDWR); /* nothing more comes in, so that it is known what has */
    if (ioctl(fd, FIONREAD, &unread) || unread == 0)
        return -1;
    connection->fd = -1;
    return fd;
}

int connection_fd(const struct connection *connection)
{
    return connection->fd;
}

/* Keeps descriptors that no message can have: the connection's owner is to end with the first of them. */
static void inbox_lose_fds(struct inbox *in, const int *fds, size_t count)
{
    if (in->lost_count > 0) {
        fds_close(fds, count);
        return;
    }
    memcpy(in->lost, fds, count * sizeof fds[0]);
    in->lost_count = count;
}

/* Takes over the descriptors that came at once, for messages: all of them, or none. */
static int inbox_add_fds(struct inbox *in, const int *fds, size_t count)
{
    if (count > LIMIT_MESSAGE_FDS || count > INBOX_FDS - in->fd_count) {
        inbox_lose_fds(in, fds, count);
        return -EBADF;
    }
    memcpy(in->fds + in->fd_count, fds, count * sizeof fds[0]);
    in->fd_count += count;
    return 0;
}

/* Takes over the descriptors of one recvmsg: all of them, or none. */
static int inbox_add_parts(struct inbox *in, struct msghdr *header)
{
    int fds[LOST_FDS];
    size_t count = 0;
    for (struct cmsghdr *part = CMSG_FIRSTHDR(header); part; part = CMSG_NXTHDR(header, part)) {
        if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
            continue;
        size_t size = part->cmsg_len - CMSG_LEN(0);
        memcpy(fds + count, CMSG_DATA(part), size);
        count += size / sizeof fds[0];
    }
    if (header->msg_flags & MSG_CTRUNC) {
        inbox_lose_fds(in, fds, count);
        return -EMFILE;
    }
    return inbox_add_fds(in, fds, count);
}

static void inbox_compact(struct inbox *in)
{
    if (in->start == 0)
        return;
    memmove(in->bytes, in->bytes + in->start, in->end - in->start);
    in->end -= in->start;
    in->start = 0;
}

/* Returns the room for the next read. The first read is small, and the only one of a peer that sends no hello, so that
 * such a peer touches few pages of the inbox. */
static size_t inbox_space(const struct inbox *in)
{
    return in->arrived == 0 ? LIMIT_FIRST_READ_BYTES : sizeof in->bytes - in->end;
}

static int receive_carried(struct connection *connection)
{
    struct inbox *in = &connection->in;
    const size_t space = inbox_space(in);
    int fds[LIMIT_MESSAGE_FDS];
    size_t fd_count = 0;
    int n = connection->carrier->read(connection->context, in->bytes + in->end, space, fds, &fd_count);
    if (n < 0)
        return n;
    in->end += (size_t)n;
    in->arrived += (uint64_t)n;
    in->filled = (size_t)n == space || fd_count > 0;
    int code = inbox_add_fds(in, fds, fd_count);
    return code ? code : n;
}

/* Reads at most `size` bytes of the socket. */
static int receive_socket(struct connection *connection, size_t size)
{
    struct inbox *in = &connection->in;
    union {
        char bytes[CMSG_SPACE(LOST_FDS * sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec space = {in->bytes + in->end, size};
    struct msghdr header = {
        .msg_iov = &space, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    ssize_t n;
    do
        n = recvmsg(connection->fd, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;
    in->end += (size_t)n;
    in->arrived += (uint64_t)n;
    in->filled = (size_t)n == space.iov_len || header.msg_controllen > 0;
    int code = inbox_add_parts(in, &header);
    return code ? code : (int)n;
}

/* Reads bytes that the ring has told of. */
static int receive_announced(struct connection *connection, size_t size)
{
    struct inbox *in = &connection->in;
    const size_t due = rings_due_bytes(connection->rings);
    const uint64_t before = in->arrived;
    int n = receive_socket(connection, due < size ? due : size);
    rings_took(connection->rings, (size_t)(in->arrived - before));
    in->filled |= rings_is_ready(connection->rings);
    return n;
}

/* Reads of the ring. Returns 0 for now. */
static int receive_ring(struct connection *connection, size_t size)
{
    struct inbox *in = &connection->in;
    int n = rings_read(connection->rings, in->bytes + in->end, size);
    if (n <= 0)
        return n;
    in->end += (size_t)n;
    in->arrived += (uint64_t)n;
    in->filled = rings_is_ready(connection->rings) || rings_due_bytes(connection->rings) > 0;
    return n;
}

/* Tells whether the socket is at its end, while the ring has nothing: returns 0 then, or -EAGAIN. Bytes that the ring
 * has not told of break the rules. */
static int receive_end(const struct connection *connection)
{
    char byte;
    const ssize_t n = recv(connection->fd, &byte, sizeof byte, MSG_PEEK | MSG_DONTWAIT);
    if (n < 0)
        return errno == EINTR ? -EAGAIN : -errno;
    return n == 0 ? 0 : -EPROTO;
}

/* Reads by rings. What the other end wrote to the ring before it closed the socket, or sent by the socket, is there
 * when that shows: so the ring is looked at once more. */
static int receive_framed(struct connection *connection)
{
    const size_t size = inbox_space(&connection->in);
    int end = -EAGAIN;
    for (int look = 0; look < 2; look++) {
        int n = receive_ring(connection, size);
        if (n != 0)
            return n;
        if (rings_due_bytes(connection->rings) > 0)
            return receive_announced(connection, size);
        if (look == 0)
            end = receive_end(connection);
        if (end == -EAGAIN)
            break;
    }
    return end;
}

int connection_receive(struct connection *connection)
{
    struct inbox *in = &connection->in;
    inbox_compact(in);
    if (in->end == sizeof in->bytes)
        return -ENOBUFS; /* and never 0, which would read as the end of the stream */
    if (connection->rings)
        return receive_framed(connection);
    return connection->carrier ? receive_carried(connection) : receive_socket(connection, inbox_space(in));
}

bool connection_is_drained(const struct connection *connection)
{
    return !connection->in.filled;
}

int connection_peek(struct connection *connection, const uint8_t **bytes, size_t *size)
{
    struct inbox *in = &connection->in;
    *bytes = in->bytes + in->start;
    *size = in->end - in->start;
    if (in->message_bytes == 0) {
        if (in->end - in->start < in->required_bytes || in->end == in->start)
            return 0;
        size_t length;
        int code = walk(in->bytes + in->start, in->end - in->start, &length);
        if (code == -EAGAIN) {
            in->required_bytes = length;
            return 0;
        }
        if (code)
            return code;
        in->message_bytes = length;
    }
    *size = in->message_bytes;
    return 1;
}

void connection_consume(struct connection *connection)
{
    struct inbox *in = &connection->in;
    assert(in->message_bytes > 0);
    in->start += in->message_bytes;
    in->message_bytes = in->required_bytes = 0;
}

bool connection_is_partial(const struct connection *connection)
{
    const struct inbox *in = &connection->in;
    size_t size = in->end - in->start, length;
    if (size == 0 || in->message_bytes > 0)
        return false;
    return size < in->required_bytes || walk(in->bytes + in->start, size, &length) == -EAGAIN;
}

bool connection_has_more(struct connection *connection)
{
    const uint8_t *bytes;
    size_t size;
    return connection_peek(connection, &bytes, &size) != 0 || connection_is_partial(connection);
}

uint64_t connection_position(const struct connection *connection)
{
    const struct inbox *in = &connection->in;
    return in->arrived - (in->end - in->start);
}

uint64_t connection_arrived_bytes(const struct connection *connection)
{
    int unread = 0;
    if (ioctl(connection->fd, FIONREAD, &unread) || unread < 0)
        unread = 0;
    const uint64_t in_ring = connection->rings ? rings_unread_bytes(connection->rings) : 0;
    return connection->in.arrived + (uint64_t)unread + in_ring;
}

int connection_pop_fds(struct connection *connection, int *fds, size_t count)
{
    struct inbox *in = &connection->in;
    if (count > in->fd_count)
        return -EBADF;
    if (count == 0)
        return 0;
    memcpy(fds, in->fds, count * sizeof fds[0]);
    in->fd_count -= count;
    memmove(in->fds, in->fds + count, in->fd_count * sizeof fds[0]);
    return 0;
}

size_t connection_fd_count(const struct connection *connection)
{
    return connection->in.fd_count;
}

size_t connection_take_lost(struct connection *connection, int *fds)
{
    struct inbox *in = &connection->in;
    const size_t count = in->lost_count;
    memcpy(fds, in->lost, count * sizeof fds[0]);
    in->lost_count = 0;
    return count;
}

/* The position behind all that is queued. */
static uint64_t outbox_end(const struct outbox *out)
{
    return out->sent + (out->end - out->start);
}

/* Makes room for `size` more bytes at the end. */
static int outbox_reserve(struct outbox *out, size_t size)
{
    size_t waiting = out->end - out->start, capacity = out->capacity;
    if (out->end + size <= capacity)
        return 0;
    if (waiting > 0 && out->start > 0)
        memmove(out->bytes, out->bytes + out->start, waiting);
    out->start = 0;
    out->end = waiting;
    while (capacity < waiting + size)
        capacity = capacity ? 2 * capacity : OUTBOX_STEP_BYTES;
    if (capacity == out->capacity)
        return 0;
    uint8_t *bytes = realloc(out->bytes, capacity);
    if (!bytes)
        return -ENOMEM;
    out->bytes = bytes;
    out->capacity = capacity;
    return 0;
}

/* Duplicates the descriptors, behind the ones that wait already: all of them, or none. */
static int outbox_add_fds(struct outbox *out, const int *fds, size_t count)
{
    const uint64_t position = outbox_end(out);
    for (size_t i = 0; i < count; i++) {
        int fd = fcntl(fds[i], F_DUPFD_CLOEXEC, 0);
        if (fd < 0) {
            int code = -errno;
            while (i-- > 0)
                close(out->parcels[--out->parcel_count].fd);
            return code;
        }
        out->parcels[out->parcel_count++] = (struct parcel){position, fd};
    }
    return 0;
}

int connection_send(struct connection *connection, const uint8_t *bytes, size_t size, const int *fds, size_t fd_count)
{
    struct outbox *out = &connection->out;
    if (size == 0 || size > LIMIT_MESSAGE_BYTES || fd_count > LIMIT_MESSAGE_FDS)
        return -EMSGSIZE;
    if (size > LIMIT_OUTBOX_BYTES - (out->end - out->start) || fd_count > LIMIT_OUTBOX_FDS - out->parcel_count)
        return -ENOBUFS;
    int code = outbox_reserve(out, size);
    if (!code)
        code = outbox_add_fds(out, fds, fd_count);
    if (code)
        return code;
    memcpy(out->bytes + out->end, bytes, size);
    out->end += size;
    return 0;
}

/* Parcels that travel with the next byte. */
static size_t outbox_due(const struct outbox *out)
{
    size_t due = 0;
    while (due < out->parcel_count && out->parcels[due].position == out->sent)
        due++;
    return due;
}

/* Bytes that may be written at once: up to the barrier, and to the next message with descriptors, which the receiver
 * must get with its own first byte, not with an earlier one's. */
static size_t outbox_span(const struct outbox *out, size_t due)
{
    uint64_t end = outbox_end(out);
    if (due < out->parcel_count)
        end = out->parcels[due].position;
    if (out->sent < out->barrier && out->barrier < end)
        end = out->barrier;
    return (size_t)(end - out->sent);
}

/* Drops bytes and descriptors that were sent; the descriptors are the receiver's, or closed. */
static void outbox_drop(struct outbox *out, size_t size, size_t due)
{
    out->parcel_count -= due;
    memmove(out->parcels, out->parcels + due, out->parcel_count * sizeof out->parcels[0]);
    out->sent += size;
    out->start += size;
    if (out->start < out->end)
        return;
    out->start = out->end = 0;
    if (out->capacity > OUTBOX_KEEP_BYTES) {
        free(out->bytes);
        out->bytes = NULL;
        out->capacity = 0;
    }
}

static void parcels_attach(struct msghdr *header, const struct parcel *parcels, size_t count)
{
    int fds[LIMIT_MESSAGE_FDS];
    for (size_t i = 0; i < count; i++)
        fds[i] = parcels[i].fd;
    header->msg_controllen = CMSG_SPACE(count * sizeof fds[0]);
    struct cmsghdr *part = CMSG_FIRSTHDR(header);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(count * sizeof fds[0]);
    memcpy(CMSG_DATA(part), fds, count * sizeof fds[0]);
}

/* Writes once. Returns 0 or -errno. */
static int write_carried(struct connection *connection)
{
    struct outbox *out = &connection->out;
    const size_t due = outbox_due(out);
    int fds[LIMIT_MESSAGE_FDS];
    for (size_t i = 0; i < due; i++)
        fds[i] = out->parcels[i].fd;
    int n = connection->carrier->write(connection->context, out->bytes + out->start, outbox_span(out, due), fds, due);
    if (n < 0)
        return n;
    outbox_drop(out, (size_t)n, due);
    return 0;
}

/* Writes at most `most` bytes to the socket. Returns how many, or -errno. */
static int write_socket(struct connection *connection, size_t most)
{
    struct outbox *out = &connection->out;
    union {
        char bytes[CMSG_SPACE(LIMIT_MESSAGE_FDS * sizeof(int))];
        struct cmsghdr align;
    } control;
    memset(&control, 0, sizeof control);
    size_t due = outbox_due(out);
    const size_t size = outbox_span(out, due);
    struct iovec span = {out->bytes + out->start, size < most ? size : most};
    struct msghdr header = {.msg_iov = &span, .msg_iovlen = 1, .msg_control = control.bytes};
    if (due > 0)
        parcels_attach(&header, out->parcels, due);
    else
        header.msg_control = NULL;
    ssize_t n = sendmsg(connection->fd, &header, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0)
        return errno == EINTR ? 0 : -errno;
    /* However few bytes went, the descriptors went with the first. */
    parcels_close(out->parcels, due);
    outbox_drop(out, (size_t)n, due);
    return (int)n;
}

/* Writes once: to the ring, or to the socket, of which the ring tells before. Descriptors need the socket. Returns a
 * number of bytes, or -errno. */
static int write_framed(struct connection *connection)
{
    struct outbox *out = &connection->out;
    const size_t due = outbox_due(out), size = outbox_span(out, due);
    if (out->announced == 0) {
        int n = due > 0 ? 0 : rings_write(connection->rings, out->bytes + out->start, size);
        if (n > 0)
            outbox_drop(out, (size_t)n, 0);
        if (n != 0)
            return n;
        n = rings_announce(connection->rings, size);
        if (n)
            return n == -EAGAIN ? -ETOOMANYREFS : n;
        out->announced = size;
    }
    int n = write_socket(connection, out->announced);
    out->announced -= n > 0 ? (size_t)n : 0;
    return n;
}

/* True when something waits that may be written now. */
static bool may_write(const struct connection *connection)
{
    return connection_has_output(connection) && (connection->rings || connection->out.sent < connection->out.barrier);
}

int connection_flush(struct connection *connection)
{
    int code = 0;
    while (code >= 0 && may_write(connection)) {
        const bool framed = connection->out.sent >= connection->out.barrier;
        code = connection->carrier ? write_carried(connection)
               : framed            ? write_framed(connection)
                                   : write_socket(connection, SIZE_MAX);
    }
    return code < 0 ? code : 0;
}

/*
 * Rings.
 */

void connection_hold(struct connection *connection)
{
    connection->out.barrier = outbox_end(&connection->out);
}

void connection_release(struct connection *connection)
{
    connection->out.barrier = UINT64_MAX;
}

bool connection_may_have_rings(const struct connection *connection)
{
    const struct inbox *in = &connection->in;
    return !connection->carrier && !connection->rings && in->end - in->start == in->message_bytes;
}

void connection_use_rings(struct connection *connection, struct rings *rings)
{
    connection->rings = rings;
    if (connection->out.barrier == UINT64_MAX)
        connection_hold(connection);
}

bool connection_has_rings(const struct connection *connection)
{
    return connection->rings != NULL;
}

bool connection_is_ready(const struct connection *connection)
{
    return connection->rings && rings_is_ready(connection->rings);
}

bool connection_peer_sleeps(const struct connection *connection)
{
    return connection->rings && rings_reader_sleeps(connection->rings);
}

bool connection_sleep(struct connection *connection)
{
    return !connection->rings || rings_sleep(connection->rings);
}

void connection_rise(struct connection *connection)
{
    if (connection->rings)
        rings_rise(connection->rings);
}

struct rings *connection_take_rings(struct connection *connection)
{
    struct rings *rings = connection->rings;
    connection->rings = NULL;
    return rings;
}

bool connection_has_output(const struct connection *connection)
{
    return connection->out.end > connection->out.start;
}

size_t connection_output_bytes(const struct connection *connection)
{
    return connection->out.end - connection->out.start;
}

size_t connection_output_fds(const struct connection *connection)
{
    return connection->out.parcel_count;
}

bool connection_is_clogged(const struct connection *connection)
{
    const struct outbox *out = &connection->out;
    return out->end - out->start > LIMIT_UNREAD_BYTES || out->parcel_count > LIMIT_OUTBOX_FDS - LIMIT_MESSAGE_FDS;
}

uint64_t connection_sent_bytes(const struct connection *connection)
{
    return connection->out.sent;
}
