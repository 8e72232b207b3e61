#include "tests/bench/hostile/line.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "protocol/socket.h"
#include "tests/bench/bench.h"
#include "tests/bench/hostile/attack.h"

#define REQUEST_BYTES LIMIT_MESSAGE_BYTES
#define POLL_MS       20

bool line_open(struct attacker *self, struct line *line)
{
    const struct msg_hello_params hello = {.version_min = 1, .version_max = PROTOCOL_VERSION, .client = "attack"};
    struct error error;
    *line = (struct line){0};
    int fd = socket_connect(self->socket, &error);
    if (fd >= 0)
        line->connection = connection_create(fd);
    if (line->connection)
        return line_ask(line, METHOD_hello, &msg_hello_params_type, &hello, NULL, 0);
    if (fd >= 0)
        close(fd);
    self->tally->refused++;
    return false;
}

void line_close(struct line *line)
{
    connection_destroy(line->connection);
    line->connection = NULL;
}

bool line_ask(struct line *line, enum method method, const struct map_type *type, const void *params, const int *fds,
              size_t fd_count)
{
    static uint8_t bytes[REQUEST_BYTES];
    struct encoded out = {bytes, 0, sizeof bytes};
    if (encode_request(&out, line->msgid + 1, method, type, params) ||
        connection_send(line->connection, bytes, out.size, fds, fd_count))
        return false;
    line->msgid++;
    line->waiting++;
    return true;
}

static void tally_answer(struct tally *tally, const struct message *message)
{
    struct msg_failure failure;
    struct error error;
    if (!message->failed)
        tally->answers[0]++;
    else if (message_read(message, &msg_failure_type, &failure, &error) == 0)
        tally_failure(tally, failure.code, failure.message);
}

static void take_answer(struct attacker *self, struct line *line, const struct message *message)
{
    struct error error;
    line->waiting--;
    tally_answer(self->tally, message);
    if (line->called && message->msgid == line->called) {
        line->called = 0;
        line->has_result = !message->failed &&
                           (!line->result_type || message_read(message, line->result_type, line->result, &error) == 0);
    } else if (line->answered) {
        line->answered(self, line, message);
    }
}

static void take_answers(struct attacker *self, struct line *line)
{
    const uint8_t *bytes;
    size_t size;
    struct message message;
    struct error error;
    while (connection_peek(line->connection, &bytes, &size) == 1) {
        if (message_open(&message, bytes, size, &error) == 0 && message.kind == MESSAGE_RESPONSE)
            take_answer(self, line, &message);
        message_close(&message);
        connection_consume(line->connection);
    }
}

/* Descriptors of buffers, which an attacker does not map. */
static void drop_fds(struct connection *connection)
{
    int fd;
    while (connection_pop_fds(connection, &fd, 1) == 0)
        close(fd);
}

bool line_turn(struct attacker *self, struct line *line)
{
    int sent = connection_flush(line->connection), received;
    do {
        received = connection_receive(line->connection);
        take_answers(self, line);
        drop_fds(line->connection);
    } while (received > 0 && !connection_is_drained(line->connection) && bench_now_ms() < self->until_ms);
    bool ended =
        received == 0 || (received < 0 && received != -EAGAIN) || (sent && sent != -EAGAIN && sent != -ETOOMANYREFS);
    self->tally->closed += ended;
    return !ended;
}

bool line_await(struct attacker *self, struct line *line, uint32_t msgid)
{
    while (line->called == msgid && bench_now_ms() < self->until_ms) {
        if (!line_turn(self, line))
            return false;
        struct pollfd poller = {connection_fd(line->connection), POLLIN, 0};
        poller.events |= connection_has_output(line->connection) ? POLLOUT : 0;
        if (line->called == msgid)
            poll(&poller, 1, POLL_MS);
    }
    return line->called != msgid && line->has_result;
}

bool line_answer(struct attacker *self, struct line *line, const struct map_type *type, void *result)
{
    line->has_result = false;
    line->result_type = type;
    line->result = result;
    line->called = line->msgid;
    return line_await(self, line, line->called);
}
