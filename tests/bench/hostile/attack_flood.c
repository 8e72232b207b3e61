/* Floods by one process: much of what costs little. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "protocol/socket.h"
#include "tests/bench/bench.h"
#include "tests/bench/hostile/attack.h"

#define HOSES        4
#define POLL_MS      5
#define SAMPLES      1000
#define SAMPLE_BYTES (SAMPLES * sizeof(float))

/*
 * Requests as fast as sockets take them, made before; what comes back is thrown away. Beside them one connection asks
 * the same now and then, for its answers.
 */

/* Appends the n-th request; false where there is no room. */
typedef bool encode_next(struct encoded *out, uint32_t n);

struct requests {
    uint8_t bytes[MIB(1)];
    size_t size;
    uint32_t count;
};

struct hose {
    int fd;
    size_t at; /* place in the requests' bytes: what goes next */
};

static void hose_open(struct attacker *self, struct hose *hose)
{
    const struct msg_hello_params hello = {.version_min = 1, .version_max = PROTOCOL_VERSION, .client = "attack"};
    uint8_t bytes[256];
    struct encoded out = {bytes, 0, sizeof bytes};
    struct error error;
    *hose = (struct hose){.fd = socket_connect(self->socket, &error)};
    if (hose->fd < 0)
        self->tally->refused++;
    else if (encode_request(&out, 0, METHOD_hello, &msg_hello_params_type, &hello) == 0)
        send(hose->fd, bytes, out.size, MSG_NOSIGNAL);
}

static void hose_push(struct attacker *self, struct hose *hose, const struct requests *requests)
{
    uint8_t answers[LIMIT_MESSAGE_BYTES];
    while (recv(hose->fd, answers, sizeof answers, MSG_DONTWAIT) > 0)
        ;
    ssize_t sent = send(hose->fd, requests->bytes + hose->at, requests->size - hose->at, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno != EAGAIN) {
        self->tally->closed++;
        close(hose->fd);
        hose->fd = -1;
        return;
    }
    if (sent <= 0)
        return;
    self->tally->sent += (uint64_t)sent * requests->count / requests->size;
    hose->at = (hose->at + (size_t)sent) % requests->size;
}

static void hoses_push(struct attacker *self, struct hose *hoses, const struct requests *requests)
{
    struct pollfd pollers[HOSES];
    for (int i = 0; i < HOSES; i++) {
        if (hoses[i].fd < 0)
            hose_open(self, &hoses[i]);
        if (hoses[i].fd >= 0)
            hose_push(self, &hoses[i], requests);
        pollers[i] = (struct pollfd){hoses[i].fd, POLLIN | POLLOUT, 0};
    }
    poll(pollers, HOSES, POLL_MS);
}

/* Asks when the answer to what it asked before has come. */
static void ask_beside(struct attacker *self, struct line *line, const struct requests *requests, encode_next *encode)
{
    uint8_t bytes[4096];
    struct encoded out = {bytes, 0, sizeof bytes};
    if (!line->connection && !line_open(self, line))
        return;
    if (line->waiting == 0 && encode(&out, line->msgid++ % requests->count) &&
        connection_send(line->connection, bytes, out.size, NULL, 0) == 0)
        line->waiting++;
    if (!line_turn(self, line))
        line_close(line);
}

static void flood_with(struct attacker *self, encode_next *encode)
{
    static struct requests requests;
    struct encoded out = {requests.bytes, 0, sizeof requests.bytes};
    struct hose hoses[HOSES] = {{-1, 0}, {-1, 0}, {-1, 0}, {-1, 0}};
    struct line line = {0};
    while (encode(&out, requests.count))
        requests.count++;
    requests.size = out.size;
    while (bench_now_ms() < self->until_ms) {
        hoses_push(self, hoses, &requests);
        ask_beside(self, &line, &requests, encode);
    }
}

static bool encode_ping(struct encoded *out, uint32_t n)
{
    return encode_request(out, n, METHOD_server_ping, &msg_nothing_type, NULL) == 0;
}

void attack_flood_pings(struct attacker *self)
{
    flood_with(self, encode_ping);
}

static bool encode_list(struct encoded *out, uint32_t n)
{
    static const enum method methods[] = {METHOD_server_jobs, METHOD_server_clients, METHOD_server_users,
                                          METHOD_server_trace};
    static const struct msg_page_params page = {.from = 0};
    if (n % 5 == 4)
        return encode_request(out, n, METHOD_server_histograms, &msg_nothing_type, NULL) == 0;
    return encode_request(out, n, methods[n % 5], &msg_page_params_type, &page) == 0;
}

void attack_flood_lists(struct attacker *self)
{
    flood_with(self, encode_list);
}

/* Opens all groups that a connection may have, and one of them again and again. */
static bool encode_group(struct encoded *out, uint32_t n)
{
    const struct msg_group_begin_params begin = {
        .group = n % LIMIT_CLIENT_GROUPS, .name = "attack", .rows = UINT64_MAX};
    const struct msg_group_label end = {0};
    if (n % (LIMIT_CLIENT_GROUPS + 1) == LIMIT_CLIENT_GROUPS)
        return encode_request(out, n, METHOD_group_end, &msg_group_label_type, &end) == 0;
    return encode_request(out, n, METHOD_group_begin, &msg_group_begin_params_type, &begin) == 0;
}

void attack_flood_groups(struct attacker *self)
{
    flood_with(self, encode_group);
}

/* A scan forward, in place, of one row of a buffer. */
static struct msg_job_submit_params small_job(uint64_t buffer)
{
    const struct msg_tensor row = {.buffer = buffer,
                                   .dtype = SCAND_DTYPE_F32,
                                   .shape = {1, SAMPLES},
                                   .shape_count = 2,
                                   .strides = {SAMPLE_BYTES, sizeof(float)},
                                   .strides_count = 2};
    return (struct msg_job_submit_params){
        .input = row, .output = row, .axis = 1, .passes = {SCAND_PASS_FORWARD}, .passes_count = 1};
}

/* Encodes requests for buffers that do not exist. */
static bool encode_wrong(struct encoded *out, uint32_t n)
{
    const struct msg_buffer_id release = {.buffer = UINT32_MAX};
    if (n % 2)
        return encode_request(out, n, METHOD_buffer_release, &msg_buffer_id_type, &release) == 0;
    const struct msg_job_submit_params job = small_job(UINT32_MAX);
    return encode_request(out, n, METHOD_job_submit, &msg_job_submit_params_type, &job) == 0;
}

void attack_flood_wrong(struct attacker *self)
{
    flood_with(self, encode_wrong);
}

/*
 * Jobs, as many as may wait.
 */

static bool set_up_jobs(struct attacker *self, struct line *line)
{
    line->buffers[0] = attack_import_new(self, line, SAMPLE_BYTES, NULL);
    return line->buffers[0] > 0;
}

static bool ask_job(struct attacker *self, struct line *line)
{
    const struct msg_job_submit_params job = small_job(line->buffers[0]);
    (void)self;
    return line_ask(line, METHOD_job_submit, &msg_job_submit_params_type, &job, NULL, 0);
}

void attack_flood_jobs(struct attacker *self)
{
    flood_run(self,
              &(struct flood){.lines = HOSES, .window = LIMIT_CLIENT_JOBS, .set_up = set_up_jobs, .ask = ask_job});
}

/*
 * Attacks without messages.
 */

static void connect_again(struct attacker *self, const uint8_t *bytes, size_t size)
{
    struct error error;
    int fd = socket_connect(self->socket, &error);
    if (fd < 0) {
        self->tally->refused++;
        return;
    }
    self->tally->connected++;
    if (size > 0)
        send(fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    close(fd);
}

/* Sends garbage of three kinds: bytes that begin no message, bytes that are no array of four, and noise. */
void attack_flood_garbage(struct attacker *self)
{
    static uint8_t bytes[3][LIMIT_MESSAGE_BYTES];
    uint32_t state = 1;
    memset(bytes[0], 0xc1, sizeof bytes[0]);
    memset(bytes[1], 0x91, sizeof bytes[1]);
    for (size_t i = 0; i < sizeof bytes[2]; i++) {
        state = state * 1664525u + 1013904223u;
        bytes[2][i] = (uint8_t)(state >> 24);
    }
    for (unsigned i = 0; bench_now_ms() < self->until_ms; i++)
        connect_again(self, bytes[i % 3], sizeof bytes[0]);
}

void attack_flood_connections(struct attacker *self)
{
    while (bench_now_ms() < self->until_ms)
        connect_again(self, NULL, 0);
}
