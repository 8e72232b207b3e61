/* Functions that all attacks use. */
#include "tests/bench/hostile/attack.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "protocol/socket.h"
#include "protocol/walk.h"
#include "tests/bench/bench.h"

#define POLL_MS         5
#define PAUSE_US        2000 /* after a connection that was not made */
#define CONNECTIONS_MAX 1200

void tally_failure(struct tally *tally, uint64_t status, const char *message)
{
    uint64_t place = status < STATUSES_MAX ? status : STATUSES_MAX - 1;
    if (tally->answers[place]++ == 0)
        snprintf(tally->messages[place], sizeof tally->messages[place], "%s", message);
}

int attack_memfd(uint64_t size_bytes)
{
    int fd = memfd_create("attack", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0 || ftruncate(fd, (off_t)size_bytes) == 0)
        return fd;
    close(fd);
    return -1;
}

uint64_t attack_import(struct attacker *self, struct line *line, const int *fds, uint64_t count, uint64_t segment_bytes)
{
    const struct msg_buffer_import_params import = {
        .size = count * segment_bytes, .segment = segment_bytes, .fds = count};
    struct msg_buffer_id made;
    bool done = line_ask(line, METHOD_buffer_import, &msg_buffer_import_params_type, &import, fds, count) &&
                line_answer(self, line, &msg_buffer_id_type, &made);
    return done ? made.buffer : 0;
}

uint64_t attack_import_new(struct attacker *self, struct line *line, uint64_t size_bytes, void **memory)
{
    int fd = attack_memfd(size_bytes);
    if (fd < 0)
        return 0;
    if (memory) {
        void *mapped = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        *memory = mapped == MAP_FAILED ? NULL : mapped;
    }
    uint64_t buffer = memory && !*memory ? 0 : attack_import(self, line, &fd, 1, size_bytes);
    close(fd);
    return buffer;
}

struct msg_tensor attack_row(uint64_t buffer, uint64_t offset, uint64_t count, int64_t stride)
{
    return (struct msg_tensor){.buffer = buffer,
                               .offset = offset,
                               .dtype = SCAND_DTYPE_F32,
                               .shape = {1, count},
                               .shape_count = 2,
                               .strides = {4, stride},
                               .strides_count = 2};
}

void attack_control(struct attacker *self)
{
    while (bench_now_ms() < self->until_ms)
        ;
}

/* The kernel tells the daemon who this process was when it connected. */
bool attack_as(unsigned users, unsigned index)
{
    return users == 0 || seteuid(ATTACK_FIRST_USER + index % users) == 0;
}

void attack_as_self(unsigned users)
{
    if (users > 0 && seteuid(0))
        abort();
}

/*
 * Requests without end.
 */

static bool open_as(struct attacker *self, const struct flood *flood, unsigned index, struct line *line)
{
    const bool opened = attack_as(flood->users, index) && line_open(self, line);
    attack_as_self(flood->users);
    return opened;
}

static void flood_open(struct attacker *self, const struct flood *flood, unsigned index, struct line *line)
{
    if (open_as(self, flood, index, line) && (!flood->set_up || flood->set_up(self, line))) {
        line->answered = flood->answered;
        return;
    }
    line_close(line);
    usleep(PAUSE_US);
}

static void flood_line(struct attacker *self, const struct flood *flood, struct line *line)
{
    while (line->waiting < flood->window && flood->ask(self, line))
        ;
    if (!line_turn(self, line))
        line_close(line);
}

static void flood_poll(const struct line *lines, unsigned count)
{
    struct pollfd pollers[FLOOD_LINES_MAX];
    nfds_t open = 0;
    for (unsigned i = 0; i < count; i++)
        if (lines[i].connection)
            pollers[open++] =
                (struct pollfd){.fd = connection_fd(lines[i].connection),
                                .events = (short)(POLLIN | (connection_has_output(lines[i].connection) ? POLLOUT : 0))};
    poll(pollers, open, POLL_MS);
}

void flood_run(struct attacker *self, const struct flood *flood)
{
    static struct line lines[FLOOD_LINES_MAX];
    while (bench_now_ms() < self->until_ms) {
        for (unsigned i = 0; i < flood->lines && bench_now_ms() < self->until_ms; i++) {
            if (!lines[i].connection)
                flood_open(self, flood, i, &lines[i]);
        }
        for (unsigned i = 0; i < flood->lines; i++)
            if (lines[i].connection)
                flood_line(self, flood, &lines[i]);
        flood_poll(lines, flood->lines);
    }
    for (unsigned i = 0; i < flood->lines; i++)
        line_close(&lines[i]);
}

/*
 * Connections that are held.
 */

static int hold_connect(struct attacker *self, const struct hold *hold, unsigned index)
{
    struct error error;
    if (!attack_as(hold->users, index))
        return -1;
    int fd = socket_connect(self->socket, &error);
    attack_as_self(hold->users);
    if (fd < 0)
        self->tally->refused++;
    else
        self->tally->connected++;
    if (fd >= 0 && hold->begin)
        hold->begin(fd, hold->with);
    return fd;
}

/* Reads what the daemon says on a held connection. Returns false when the daemon has ended the connection. */
static bool hold_is_open(struct attacker *self, int fd)
{
    uint8_t bytes[4096];
    ssize_t n = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
    size_t length;
    struct message message;
    struct msg_failure failure;
    struct error error;
    if (n > 0 && walk(bytes, (size_t)n, &length) == 0) {
        if (message_open(&message, bytes, length, &error) == 0 && message.failed &&
            message_read(&message, &msg_failure_type, &failure, &error) == 0)
            tally_failure(self->tally, failure.code, failure.message);
        message_close(&message);
    }
    if (n > 0 || (n < 0 && errno == EAGAIN))
        return true;
    self->tally->closed++;
    close(fd);
    return false;
}

void hold_run(struct attacker *self, const struct hold *hold)
{
    static struct pollfd held[CONNECTIONS_MAX];
    for (unsigned i = 0; i < hold->connections; i++)
        held[i] = (struct pollfd){.fd = -1, .events = hold->deaf ? 0 : POLLIN};
    while (bench_now_ms() < self->until_ms) {
        unsigned failed = 0;
        for (unsigned i = 0; i < hold->connections && bench_now_ms() < self->until_ms; i++) {
            if (held[i].fd < 0)
                held[i].fd = hold_connect(self, hold, i);
            failed += held[i].fd < 0;
        }
        if (failed > 0)
            usleep(PAUSE_US);
        poll(held, hold->connections, POLL_MS);
        for (unsigned i = 0; i < hold->connections; i++)
            if (held[i].fd >= 0 && held[i].revents && !hold_is_open(self, held[i].fd))
                held[i].fd = -1;
    }
}
