#include "tests/bench/visits.h"

#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "protocol/connection.h"
#include "protocol/encoding.h"
#include "protocol/socket.h"

#define SAMPLES   1000
#define ROWS      250
#define BYTES     (ROWS * SAMPLES * sizeof(float))
#define ANSWER_MS 30000

int visit_fail(const char *what, const char *message)
{
    fprintf(stderr, "scand-bench endurance: %s: %s\n", what, message);
    return 1;
}

struct scand_scan visit_scan(struct scand_buffer *buffer, uint64_t offset, uint64_t rows, uint64_t samples)
{
    struct scand_tensor tensor = {
        .buffer = buffer, .offset = offset, .dtype = SCAND_DTYPE_F32, .rank = 2, .shape = {rows, samples}};
    scand_tensor_pack(&tensor);
    return (struct scand_scan){.input = tensor,
                               .output = tensor,
                               .axis = 1,
                               .pass_count = 1,
                               .passes = {SCAND_PASS_FORWARD},
                               .accumulator = SCAND_ACCUMULATOR_F32};
}

/*
 * Visits through the library. Each leaves its buffers and jobs to scand_disconnect.
 */

static int wait_for(struct scand_job *job)
{
    int status = scand_wait(job, -1, NULL);
    scand_job_release(job);
    return status;
}

static int submit_many(struct scand *daemon, const struct scand_scan *scan, int count)
{
    struct scand_job *job;
    int status = SCAND_OK;
    for (int i = 0; i < count && !status; i++)
        status = scand_submit(daemon, scan, &job);
    return status;
}

static int finish_a_job(struct scand *daemon)
{
    struct scand_buffer *buffer;
    struct scand_job *job;
    int status = scand_buffer_create(daemon, SCAND_PLACE_HOST, SAMPLES * sizeof(float), &buffer);
    if (status)
        return status;
    struct scand_scan scan = visit_scan(buffer, 0, 1, SAMPLES);
    status = scand_submit(daemon, &scan, &job);
    if (!status)
        status = wait_for(job);
    return status ? status : scand_buffer_release(buffer);
}

static int leave_jobs(struct scand *daemon)
{
    struct scand_buffer *buffer;
    int status = scand_buffer_create(daemon, SCAND_PLACE_HOST, BYTES, &buffer);
    if (status)
        return status;
    struct scand_scan scan = visit_scan(buffer, 0, ROWS, SAMPLES);
    return submit_many(daemon, &scan, 8);
}

/* Submits more jobs than may wait, unless they are done sooner: the first one too many is "busy". */
static int submit_without_pause(struct scand *daemon)
{
    struct scand_buffer *buffer;
    int status = scand_buffer_create(daemon, SCAND_PLACE_HOST, SAMPLES * sizeof(float), &buffer);
    if (status)
        return status;
    struct scand_scan scan = visit_scan(buffer, 0, 1, SAMPLES);
    status = submit_many(daemon, &scan, LIMIT_CLIENT_JOBS + 32);
    return status == SCAND_BUSY ? SCAND_OK : status;
}

static int leave_imported_memory(struct scand *daemon)
{
    struct scand_buffer *buffer;
    int fd = memfd_create("endurance", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int status = fd < 0 || ftruncate(fd, BYTES) ? SCAND_NO_MEMORY : scand_buffer_import(daemon, fd, BYTES, &buffer);
    if (fd >= 0)
        close(fd);
    if (status)
        return status;
    struct scand_scan scan = visit_scan(buffer, 0, ROWS, SAMPLES);
    return submit_many(daemon, &scan, 2);
}

static int leave_device_memory(struct scand *daemon)
{
    struct scand_buffer *host, *device;
    int status = scand_buffer_create(daemon, SCAND_PLACE_HOST, BYTES, &host);
    if (!status)
        status = scand_buffer_create(daemon, SCAND_PLACE_DEVICE, BYTES, &device);
    if (status)
        return status;
    struct scand_scan scan = visit_scan(host, 0, ROWS, SAMPLES);
    scan.output.buffer = device;
    return submit_many(daemon, &scan, 2);
}

/*
 * Visits message by message.
 */

/* Sends a request without its last `missing` bytes, and a descriptor unless it is -1. */
static bool say(struct connection *connection, enum method method, const struct map_type *type, const void *params,
                int fd, size_t missing)
{
    uint8_t bytes[4096];
    struct encoded out = {bytes, 0, sizeof bytes};
    return encode_request(&out, 1, method, type, params) == 0 &&
           connection_send(connection, bytes, out.size - missing, &fd, fd >= 0) == 0 &&
           connection_flush(connection) == 0;
}

static bool greet(struct connection *connection, size_t missing)
{
    struct msg_hello_params hello = {.version_min = 1, .version_max = PROTOCOL_VERSION, .client = "endurance"};
    return say(connection, METHOD_hello, &msg_hello_params_type, &hello, -1, missing);
}

/* Waits until the daemon has hung up. */
static bool is_ended(struct connection *connection)
{
    struct pollfd poller = {.fd = connection_fd(connection), .events = POLLRDHUP};
    return poll(&poller, 1, ANSWER_MS) == 1;
}

static bool leave_at_once(struct connection *connection)
{
    return connection != NULL;
}

static bool leave_in_hello(struct connection *connection)
{
    return greet(connection, 5);
}

static bool leave_in_import(struct connection *connection)
{
    struct msg_buffer_import_params import = {.size = 4096, .segment = 4096, .fds = 1};
    int fd = memfd_create("endurance", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    bool said =
        greet(connection, 0) && say(connection, METHOD_buffer_import, &msg_buffer_import_params_type, &import, fd, 3);
    close(fd);
    return said;
}

static bool bring_what_is_not_announced(struct connection *connection)
{
    return greet(connection, 0) &&
           say(connection, METHOD_server_ping, &msg_nothing_type, NULL, connection_fd(connection), 0) &&
           is_ended(connection);
}

static bool break_the_protocol(struct connection *connection)
{
    return greet(connection, 0) && connection_send(connection, (const uint8_t *)"\xc1", 1, NULL, 0) == 0 &&
           connection_flush(connection) == 0 && is_ended(connection);
}

/* Asks for 200 answers of some 2 KB each, and reads none. */
static bool read_nothing(struct connection *connection)
{
    bool said = greet(connection, 0);
    for (int i = 0; i < 200 && said; i++)
        said = say(connection, METHOD_server_stats, &msg_nothing_type, NULL, -1, 0);
    return said;
}

static const struct kind {
    const char *name;
    int (*with_library)(struct scand *daemon); /* one of these two */
    bool (*with_messages)(struct connection *connection);
} kinds[] = {
    {"a finished job", finish_a_job, NULL},
    {"jobs under way", leave_jobs, NULL},
    {"submits without pause", submit_without_pause, NULL},
    {"imported memory", leave_imported_memory, NULL},
    {"device memory", leave_device_memory, NULL},
    {"leaves at once", NULL, leave_at_once},
    {"leaves in its hello", NULL, leave_in_hello},
    {"leaves in an import", NULL, leave_in_import},
    {"descriptors that were not announced", NULL, bring_what_is_not_announced},
    {"breaks the protocol", NULL, break_the_protocol},
    {"reads nothing", NULL, read_nothing},
};
#define KIND_COUNT (sizeof(kinds) / sizeof(kinds[0]))

static int visit_with_library(const char *socket, const struct kind *kind)
{
    struct scand *daemon;
    if (scand_connect(socket, "endurance", &daemon))
        return visit_fail(kind->name, scand_connect_message());
    int status = kind->with_library(daemon);
    if (status)
        visit_fail(kind->name, scand_message(daemon));
    scand_disconnect(daemon);
    return status != 0;
}

static int visit_with_messages(const char *socket, const struct kind *kind)
{
    struct error error;
    int fd = socket_connect(socket, &error);
    if (fd < 0)
        return visit_fail(kind->name, error.message);
    struct connection *connection = connection_create(fd);
    bool done = connection && kind->with_messages(connection);
    if (!connection)
        close(fd);
    connection_destroy(connection);
    return done ? 0 : visit_fail(kind->name, "the daemon did not take part as it should");
}

int visit(const char *socket, uint64_t n)
{
    const struct kind *kind = &kinds[n % KIND_COUNT];
    return kind->with_library ? visit_with_library(socket, kind) : visit_with_messages(socket, kind);
}
