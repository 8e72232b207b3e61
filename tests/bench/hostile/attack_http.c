/* The page of metrics, which any program of the machine may ask for, whoever's it is. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/bench/bench.h"
#include "tests/bench/hostile/attack.h"

#define VISITS  64 /* more than the daemon has at a time */
#define POLL_MS 5

/* A connection that the daemon may take its time to accept, or -1. */
static int visit_open(struct attacker *self)
{
    const struct sockaddr_in place = {
        .sin_family = AF_INET, .sin_port = htons(self->http_port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct linger at_once = {.l_onoff = 1}; /* no port of this machine waits for its end */
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    if (connect(fd, (const struct sockaddr *)&place, sizeof place) == 0 || errno == EINPROGRESS) {
        self->tally->connected++;
        return fd;
    }
    self->tally->refused++;
    close(fd);
    return -1;
}

/* Reads what has come. Returns false at the connection's end. */
static bool visit_read(struct attacker *self, int fd)
{
    char bytes[4096];
    ssize_t n;
    while ((n = recv(fd, bytes, sizeof bytes, 0)) > 0)
        self->tally->answers[0] += n >= 12 && memcmp(bytes, "HTTP/1.1 200", 12) == 0;
    if (n < 0 && errno == EAGAIN)
        return true;
    self->tally->closed++;
    return false;
}

/* Takes a connection's turn: it says `words` once it can, and reads. */
static void visit_turn(struct attacker *self, struct pollfd *visit, const char *words)
{
    bool open = (visit->revents & POLLERR) == 0;
    if (open && visit->revents & POLLOUT) {
        open = send(visit->fd, words, strlen(words), MSG_NOSIGNAL) >= 0;
        self->tally->sent += open;
        visit->events = POLLIN;
    }
    if (open && visit->revents & (POLLIN | POLLHUP))
        open = visit_read(self, visit->fd);
    if (open)
        return;
    close(visit->fd);
    visit->fd = -1;
}

static void visit_with(struct attacker *self, const char *words)
{
    struct pollfd visits[VISITS];
    for (int i = 0; i < VISITS; i++)
        visits[i].fd = -1;
    while (bench_now_ms() < self->until_ms) {
        for (int i = 0; i < VISITS; i++)
            if (visits[i].fd < 0)
                visits[i] = (struct pollfd){visit_open(self), *words ? POLLIN | POLLOUT : POLLIN, 0};
        poll(visits, VISITS, POLL_MS);
        for (int i = 0; i < VISITS; i++)
            if (visits[i].fd >= 0)
                visit_turn(self, &visits[i], words);
    }
}

void attack_http_pages(struct attacker *self)
{
    visit_with(self, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
}

void attack_http_silent(struct attacker *self)
{
    visit_with(self, "");
}

void attack_http_crumbs(struct attacker *self)
{
    visit_with(self, "GET /metrics HTTP/1.1\r\nX: ");
}
