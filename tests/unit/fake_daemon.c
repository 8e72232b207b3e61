#include "tests/unit/fake_daemon.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "protocol/describe.h"
#include "protocol/memory.h"
#include "protocol/rings.h"
#include "tests/check.h"
#include "tests/unit/fake_answers.h"

#define SEGMENT_BYTES 8192

static const struct socket_access mine = {.mode = 0600, .group = SOCKET_GROUP_OWN};

static void pause_ms(int ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000L}, NULL);
}

void fake_must(bool condition, const char *what)
{
    if (!condition) {
        perror(what);
        abort();
    }
}

/* The memory of rings, as PROTOCOL.md tells it. */
#define RINGS_BYTES (4096 + 2 * LIMIT_RING_BYTES)

static void client_close(struct fake_client *client)
{
    for (size_t i = 0; i < FAKE_BUFFERS; i++)
        memory_unmap(client->buffers[i].base, client->buffers[i].size_bytes);
    connection_destroy(client->connection);
    memory_unmap(client->ring_memory, RINGS_BYTES);
    memset(client, 0, sizeof *client);
}

static struct fake_buffer *buffer_find(struct fake_client *client, uint64_t id)
{
    for (size_t i = 0; i < FAKE_BUFFERS; i++)
        if (client->buffers[i].id == id)
            return &client->buffers[i];
    return NULL;
}

static void send_bytes(struct fake_client *client, const struct encoded *out, const int *fds, size_t fd_count)
{
    fake_must(connection_send(client->connection, out->bytes, out->size, fds, fd_count) == 0, "connection_send");
    connection_flush(client->connection);
}

void fake_send_result(struct fake_client *client, uint32_t msgid, const struct map_type *type, const void *result,
                      const int *fds, size_t fd_count)
{
    uint8_t bytes[LIMIT_MESSAGE_BYTES];
    struct encoded out = {.bytes = bytes, .capacity = sizeof bytes};
    fake_must(encode_result(&out, msgid, type, result) == 0, "encode_result");
    send_bytes(client, &out, fds, fd_count);
}

static void send_nothing(struct fake_client *client, uint32_t msgid)
{
    fake_send_result(client, msgid, &msg_nothing_type, &(struct msg_nothing){}, NULL, 0);
}

const char *fake_ending(const struct fake *fake)
{
    return fake->rude ? RUDE : "";
}

static void send_failure(struct fake *fake, struct fake_client *client, uint32_t msgid, int code)
{
    uint8_t bytes[LIMIT_MESSAGE_BYTES];
    struct encoded out = {.bytes = bytes, .capacity = sizeof bytes};
    struct error error;
    error_set(&error, code, "planned failure%s", fake_ending(fake));
    error.retry_ms = code == -EAGAIN ? 70 : 0;
    fake_must(encode_failure(&out, msgid, &error) == 0, "encode_failure");
    send_bytes(client, &out, NULL, 0);
}

static void answer_hello(struct fake *fake, struct fake_client *client, const struct message *message)
{
    static struct msg_operation operations[OPERATION_COUNT];
    struct msg_hello_result result = {.version = (uint64_t)fake->version, .operations = operations};
    for (int i = 0; i < OPERATION_COUNT; i++)
        operation_describe((enum operation_id)i, &operations[i]);
    result.operations_count = fake->older ? 0 : OPERATION_COUNT;
    result.limits.client_jobs = (uint64_t)fake->client_jobs;
    result.limits.job_steps = (uint64_t)fake->job_steps;
    result.limits.batch_jobs = (uint64_t)fake->batch_jobs;
    result.limits.batch_steps = (uint64_t)fake->batch_steps;
    result.limits.ring_bytes = fake->rings ? LIMIT_RING_BYTES : 0;
    snprintf(result.server, sizeof result.server, "fake 1%s", fake_ending(fake));
    fake_send_result(client, message->msgid, &msg_hello_result_type, &result, NULL, 0);
}

static int segment_create(const struct fake *fake, uint64_t size_bytes)
{
    if (fake->lie == 2)
        return memory_create(size_bytes / 2);
    if (fake->lie == 5)
        return memory_create_sparse(GIB(64));
    if (fake->lie != 3)
        return memory_create(size_bytes);
    int fd = memfd_create("unsealed", MFD_CLOEXEC);
    fake_must(ftruncate(fd, (off_t)size_bytes) == 0, "ftruncate");
    return fd;
}

static void answer_create(struct fake *fake, struct fake_client *client, const struct message *message)
{
    int fds[LIMIT_MESSAGE_FDS];
    struct error error;
    struct msg_buffer_create_params params;
    struct fake_buffer *buffer = buffer_find(client, 0);
    fake_must(buffer && message_read(message, &msg_buffer_create_params_type, &params, &error) == 0, "buffer.create");
    fake->wait_ms = params.wait_ms;
    struct msg_buffer_create_result result = {.buffer = ++fake->next_buffer, .segment = SEGMENT_BYTES};
    if (params.place == SCAND_PLACE_HOST)
        result.fds = (params.size + SEGMENT_BYTES - 1) / SEGMENT_BYTES + (fake->lie == 6);
    for (size_t i = 0; i < result.fds; i++)
        fds[i] = segment_create(fake, SEGMENT_BYTES);
    *buffer = (struct fake_buffer){
        .id = result.buffer, .size_bytes = params.size, .sharing = (enum scand_sharing)params.sharing};
    if (result.fds && !fake->lie)
        fake_must(memory_map(fds, result.fds, SEGMENT_BYTES, params.size, (void **)&buffer->base) == 0, "memory_map");
    uint64_t sent = result.fds;
    result.fds += fake->lie == 1;
    result.segment = fake->lie == 4 ? 16 : fake->lie == 5 ? GIB(64) : SEGMENT_BYTES;
    fake_send_result(client, message->msgid, &msg_buffer_create_result_type, &result, fds, sent);
    for (size_t i = 0; i < sent; i++)
        close(fds[i]);
}

static void answer_import(struct fake *fake, struct fake_client *client, const struct message *message)
{
    int fds[LIMIT_MESSAGE_FDS];
    struct error error;
    struct msg_buffer_import_params params;
    struct fake_buffer *buffer = buffer_find(client, 0);
    fake_must(buffer && message_read(message, &msg_buffer_import_params_type, &params, &error) == 0, "buffer.import");
    fake_must(connection_pop_fds(client->connection, fds, params.fds) == 0, "its descriptors");
    *buffer = (struct fake_buffer){.id = ++fake->next_buffer, .size_bytes = params.size};
    uint64_t segment = params.segment ? params.segment : params.size;
    for (size_t i = 0; i < params.fds; i++)
        fake_must(memory_accept(fds[i], segment, &error) == 0, "memory_accept");
    fake_must(memory_map(fds, params.fds, segment, params.size, (void **)&buffer->base) == 0, "memory_map");
    for (size_t i = 0; i < params.fds; i++)
        close(fds[i]);
    fake_send_result(client, message->msgid, &msg_buffer_id_type, &(struct msg_buffer_id){buffer->id}, NULL, 0);
}

static void answer_import_file(struct fake *fake, struct fake_client *client, const struct message *message)
{
    int fd;
    struct error error;
    struct msg_buffer_import_file_params params;
    struct fake_buffer *buffer = buffer_find(client, 0);
    fake_must(buffer && message_read(message, &msg_buffer_import_file_params_type, &params, &error) == 0,
              "buffer.import_file");
    fake_must(params.fds == 1 && connection_pop_fds(client->connection, &fd, 1) == 0, "its descriptor");
    *buffer = (struct fake_buffer){.id = ++fake->next_buffer, .size_bytes = params.size};
    buffer->base = mmap(NULL, params.size, PROT_READ, MAP_SHARED, fd, 0);
    fake_must(buffer->base != MAP_FAILED, "mmap");
    close(fd);
    fake_send_result(client, message->msgid, &msg_buffer_id_type, &(struct msg_buffer_id){buffer->id}, NULL, 0);
}

static void answer_import_device(struct fake *fake, struct fake_client *client, const struct message *message)
{
    int fd;
    struct error error;
    struct msg_buffer_import_device_params params;
    struct fake_buffer *buffer = buffer_find(client, 0);
    fake_must(buffer && message_read(message, &msg_buffer_import_device_params_type, &params, &error) == 0,
              "buffer.import_device");
    fake_must(connection_pop_fds(client->connection, &fd, params.fds) == 0, "its descriptor");
    if (params.fds)
        close(fd);
    fake->imported_handle = params.handle_count == SCAND_IPC_BYTES ? params.handle[0] : -1;
    fake->imported_offset = params.offset;
    fake->imported_allocation = params.allocation;
    *buffer = (struct fake_buffer){.id = ++fake->next_buffer, .size_bytes = params.size};
    struct msg_buffer_import_device_result result = {buffer->id, fake->imported_device + 1};
    fake_send_result(client, message->msgid, &msg_buffer_import_device_result_type, &result, NULL, 0);
}

static void answer_export(struct fake *fake, struct fake_client *client, const struct message *message)
{
    struct error error;
    struct msg_buffer_id params;
    fake_must(message_read(message, &msg_buffer_id_type, &params, &error) == 0, "buffer.export");
    const struct fake_buffer *buffer = buffer_find(client, params.buffer);
    if (!buffer || buffer->sharing == SCAND_SHARING_NONE) {
        send_failure(fake, client, message->msgid, -EINVAL);
        return;
    }
    bool by_handle = buffer->sharing == SCAND_SHARING_HANDLE;
    struct msg_buffer_export_result result = {.size = buffer->size_bytes, .allocation = 2 * buffer->size_bytes};
    int fd = by_handle ? -1 : segment_create(fake, SEGMENT_BYTES);
    memset(result.handle, 'h', sizeof result.handle);
    result.handle_count = by_handle ? sizeof result.handle : 0;
    result.fds = !by_handle;
    if (fake->lie == 2)
        result.allocation = buffer->size_bytes - 1;
    if (fake->lie == 3)
        result.handle_count = 0;
    fake_send_result(client, message->msgid, &msg_buffer_export_result_type, &result, &fd,
                     fake->lie == 1 ? 0 : result.fds);
    if (fd >= 0)
        close(fd);
}

static void answer_rings(struct fake *fake, struct fake_client *client, const struct message *message)
{
    const struct msg_rings_result result = {.fds = 1};
    struct rings *rings;
    int fd;
    fake_must(rings_create(&rings, &fd) == 0, "rings_create");
    if (fake->lie == 2 || fake->lie == 3) {
        close(fd);
        fd = segment_create(fake, KIB(256));
    }
    fake_send_result(client, message->msgid, &msg_rings_result_type, &result, &fd, fake->lie != 1);
    if (fake->rings == 2)
        fake_must(memory_map(&fd, 1, RINGS_BYTES, RINGS_BYTES, (void **)&client->ring_memory) == 0, "memory_map");
    close(fd);
    if (fake->lie)
        rings_destroy(rings);
    else
        connection_use_rings(client->connection, rings);
}

static void answer_release(struct fake *fake, struct fake_client *client, const struct message *message)
{
    struct msg_buffer_id params;
    struct error error;
    fake_must(message_read(message, &msg_buffer_id_type, &params, &error) == 0, "buffer.release");
    struct fake_buffer *buffer = buffer_find(client, params.buffer);
    if (!buffer) {
        send_failure(fake, client, message->msgid, -ENOENT);
        return;
    }
    memory_unmap(buffer->base, buffer->size_bytes);
    *buffer = (struct fake_buffer){0};
    send_nothing(client, message->msgid);
}

static void send_progress(struct fake *fake, struct fake_client *client, uint32_t msgid)
{
    for (int i = 1; i <= fake->progress; i++) {
        uint8_t bytes[256];
        struct encoded out = {.bytes = bytes, .capacity = sizeof bytes};
        struct msg_job_progress progress = {.job = msgid, .rows_done = (uint64_t)i, .rows = (uint64_t)fake->progress};
        fake_must(encode_notification(&out, METHOD_job_progress, &msg_job_progress_type, &progress) == 0,
                  "encode_notification");
        send_bytes(client, &out, NULL, 0);
    }
}

static void send_ending(struct fake_client *client, uint32_t msgid)
{
    uint8_t bytes[64];
    struct encoded out = {.bytes = bytes, .capacity = sizeof bytes};
    fake_must(encode_notification(&out, METHOD_job_ending, &msg_job_id_type, &(struct msg_job_id){.job = msgid}) == 0,
              "encode_notification");
    send_bytes(client, &out, NULL, 0);
}

static void job_run(struct fake_client *client, const struct msg_job_submit_params *params)
{
    struct fake_buffer *in = buffer_find(client, params->input.buffer),
                       *out = buffer_find(client, params->output.buffer);
    if (!in || !out || !in->base || !out->base)
        return;
    const float *x = (const float *)(in->base + params->input.offset);
    float *y = (float *)(out->base + params->output.offset);
    for (uint64_t i = 0; i < params->input.shape[0]; i++)
        y[i] = x[i] + 1;
}

static void answer_job(struct fake_client *client, uint32_t msgid, const struct msg_job_submit_params *params)
{
    job_run(client, params);
    struct msg_job_submit_result result = {1, 2, 3, 4, 5};
    fake_send_result(client, msgid, &msg_job_submit_result_type, &result, NULL, 0);
}

/* Turns a task into a scan, which this daemon makes of all tasks. */
static struct msg_job_submit_params submit_of(const struct msg_job_run_params *run)
{
    return (struct msg_job_submit_params){.input = run->input,
                                          .output = run->output,
                                          .priority = run->priority,
                                          .deadline_ms = run->deadline_ms,
                                          .progress = run->progress,
                                          .ending = run->ending,
                                          .group = run->group};
}

/* Reads either method as a scan. Returns false for what is neither. */
static bool job_read(struct fake *fake, const struct message *message, struct msg_job_submit_params *params)
{
    struct error error;
    if (message->method == METHOD_job_submit)
        return message_read(message, &msg_job_submit_params_type, params, &error) == 0;
    if (message->method != METHOD_job_run || message_read(message, &msg_job_run_params_type, &fake->run, &error))
        return false;
    *params = submit_of(&fake->run);
    return true;
}

static void answer_submit(struct fake *fake, struct fake_client *client, const struct message *message)
{
    struct msg_job_submit_params params;
    if (!job_read(fake, message, &params)) {
        send_failure(fake, client, message->msgid, -EINVAL);
        return;
    }
    fake->priority = (int)params.priority;
    fake->deadline_ms = (int)params.deadline_ms;
    fake->ending = (int)params.ending;
    fake->group = (int)params.group;
    fake->then_count = (int)params.then_count;
    fake->then_op = params.then_count ? (int)params.then[params.then_count - 1].op : -1;
    if (params.progress)
        send_progress(fake, client, message->msgid);
    if (params.ending)
        send_ending(client, message->msgid);
    if (!fake->hold) {
        answer_job(client, message->msgid, &params);
        return;
    }
    fake_must(client->job_count < FAKE_JOBS, "held jobs");
    client->jobs[client->job_count].msgid = message->msgid;
    client->jobs[client->job_count++].params = params;
}

static void answer_batch(struct fake *fake, struct fake_client *client, const struct message *message)
{
    static struct msg_job_batch_params params;
    struct msg_job_batch_result result = {.jobs_count = 0};
    struct error error;
    fake_must(message_read(message, &msg_job_batch_params_type, &params, &error) == 0, "job.batch");
    for (uint32_t i = 0; i < params.jobs_count; i++) {
        struct msg_job_outcome *outcome = &result.jobs[i];
        if (fake->refuse == (int)i + 1) {
            outcome->error = (struct msg_failure){.code = SCAND_INVALID};
            snprintf(outcome->error.message, sizeof outcome->error.message, "refused%s", fake_ending(fake));
            continue;
        }
        const struct msg_job_submit_params job =
            params.jobs[i].runs ? submit_of(&params.jobs[i].run) : params.jobs[i].submit;
        fake->batched_runs += params.jobs[i].runs;
        job_run(client, &job);
        outcome->times = (struct msg_job_submit_result){i + 1, 2, 3, 4, 5};
    }
    result.jobs_count = params.jobs_count - (uint32_t)fake->forget;
    fake_send_result(client, message->msgid, &msg_job_batch_result_type, &result, NULL, 0);
}

/* Answers a ping; held jobs are answered before it, in reverse order. */
static void answer_ping(struct fake *fake, struct fake_client *client, const struct message *message)
{
    while (!fake->hold && client->job_count > 0) {
        client->job_count--;
        answer_job(client, client->jobs[client->job_count].msgid, &client->jobs[client->job_count].params);
    }
    send_nothing(client, message->msgid);
}

static void answer_cancel(struct fake *fake, struct fake_client *client, const struct message *message)
{
    struct msg_job_id params;
    struct error error;
    fake_must(message_read(message, &msg_job_id_type, &params, &error) == 0, "job.cancel");
    for (size_t i = 0; i < client->job_count; i++)
        if (client->jobs[i].msgid == params.job) {
            send_failure(fake, client, client->jobs[i].msgid, -ECANCELED);
            client->jobs[i] = client->jobs[--client->job_count];
            send_nothing(client, message->msgid);
            return;
        }
    send_failure(fake, client, message->msgid, -ENOENT);
}

static void answer_group(struct fake *fake, struct fake_client *client, const struct message *message)
{
    fake_send_result(client, message->msgid, &msg_job_number_type,
                     &(struct msg_job_number){100 + (uint64_t)fake->numbered++}, NULL, 0);
}

/* Methods without one are answered with nothing. */
static void (*const answers[METHOD_COUNT])(struct fake *, struct fake_client *, const struct message *) = {
    [METHOD_hello] = answer_hello,
    [METHOD_buffer_create] = answer_create,
    [METHOD_rings_open] = answer_rings,
    [METHOD_buffer_import] = answer_import,
    [METHOD_buffer_import_file] = answer_import_file,
    [METHOD_buffer_import_device] = answer_import_device,
    [METHOD_buffer_export] = answer_export,
    [METHOD_buffer_release] = answer_release,
    [METHOD_job_submit] = answer_submit,
    [METHOD_job_run] = answer_submit,
    [METHOD_job_batch] = answer_batch,
    [METHOD_job_cancel] = answer_cancel,
    [METHOD_server_ping] = answer_ping,
    [METHOD_server_devices] = answer_devices,
    [METHOD_server_kernels] = answer_kernels,
    [METHOD_server_jobs] = answer_jobs,
    [METHOD_server_clients] = answer_clients,
    [METHOD_server_users] = answer_users,
    [METHOD_server_trace] = answer_trace,
    [METHOD_server_histograms] = answer_histograms,
    [METHOD_server_stats] = answer_stats,
    [METHOD_group_begin] = answer_group,
};

static void answer(struct fake *fake, struct fake_client *client, const struct message *message)
{
    if (message->method < METHOD_COUNT && answers[message->method])
        answers[message->method](fake, client, message);
    else
        send_nothing(client, message->msgid);
}

/* Returns true when the answer is to follow. */
static bool send_garbage(struct fake *fake, struct fake_client *client, const struct message *message)
{
    uint8_t bytes[512];
    struct encoded out = {.bytes = bytes, .capacity = sizeof bytes};
    uint64_t random = fake->random;
    switch ((enum fake_garbage)fake->garbage) {
    case FAKE_GARBAGE_BYTES:
        memset(bytes, 0xc1, out.size = 5);
        break;
    case FAKE_GARBAGE_ENVELOPE:
        bytes[out.size++] = 0x07;
        break;
    case FAKE_GARBAGE_REQUEST:
        encode_request(&out, 1, METHOD_server_ping, &msg_nothing_type, &(struct msg_nothing){});
        break;
    case FAKE_GARBAGE_RESULT:
        encode_result(&out, message->msgid, &msg_job_id_type, &(struct msg_job_id){.job = 1});
        break;
    case FAKE_GARBAGE_PROGRESS:
        encode_notification(&out, METHOD_job_progress, &msg_nothing_type, &(struct msg_nothing){});
        break;
    case FAKE_GARBAGE_FILES:
        encode_result(&out, message->msgid, &msg_nothing_type, &(struct msg_nothing){});
        send_bytes(client, &out, (int[]){STDERR_FILENO, STDERR_FILENO}, 2);
        return false;
    case FAKE_GARBAGE_MESSAGES:
        encode_notification(&out, METHOD_server_ping, &msg_nothing_type, &(struct msg_nothing){});
        encode_notification(&out, METHOD_job_progress, &msg_job_progress_type,
                            &(struct msg_job_progress){.job = 777, .rows_done = 1, .rows = 2});
        encode_result(&out, 7777, &msg_nothing_type, &(struct msg_nothing){});
        encode_failure(&out, 0, &(struct error){.code = -EINVAL});
        break;
    default:
        for (out.size = 0; out.size < 64; out.size++)
            bytes[out.size] = (uint8_t)(random_next(&random) >> 56);
        /* Half of the random bytes look like an answer at first. */
        if (random & 1)
            memcpy(bytes, (uint8_t[]){0x94, 0x01}, 2);
        fake->random = random;
    }
    send_bytes(client, &out, NULL, 0);
    return fake->garbage == FAKE_GARBAGE_MESSAGES;
}

/* Sends the answer and garbage at once. */
static void answer_with_garbage(struct fake *fake, struct fake_client *client, const struct message *message)
{
    uint8_t garbage[] = {0xc1};
    connection_hold(client->connection);
    answer(fake, client, message);
    connection_release(client->connection);
    send_bytes(client, &(struct encoded){.bytes = garbage, .size = sizeof garbage}, NULL, 0);
}

/* Leaves a job's output half done. */
static void job_spoil(struct fake_client *client, const struct msg_job_submit_params *params)
{
    struct fake_buffer *out = buffer_find(client, params->output.buffer);
    if (out && out->base)
        memset(out->base + params->output.offset, 0xff, params->output.shape[0] * sizeof(float));
}

/* Ends as a worker does: all its connections with it, its jobs half done. */
static void die(struct fake *fake, struct fake_client *client, const struct message *message)
{
    struct msg_job_submit_params params;
    struct error error;
    fake->die_count--;
    if (job_read(fake, message, &params))
        job_spoil(client, &params);
    for (size_t i = 0; i < client->job_count; i++)
        job_spoil(client, &client->jobs[i].params);
    for (size_t i = 0; i < FAKE_CLIENTS; i++)
        client_close(&fake->clients[i]);
    if (fake->away_ms) {
        socket_remove(fake->path, &fake->file);
        close(fake->listener);
        pause_ms(fake->away_ms);
        fake->listener = socket_listen(fake->path, &mine, &fake->file, &error);
        fake_must(fake->listener >= 0, error.message);
    }
}

/* Any number at any place of the ring to the client, most of them where it begins or the positions are. */
static void scribble(struct fake *fake, const struct fake_client *client)
{
    static const size_t places[] = {64, 128, 192, 4096 + LIMIT_RING_BYTES};
    uint64_t random = fake->random;
    const uint64_t dice = random_next(&random), value = random_next(&random) >> dice % 64;
    const size_t at = (dice >> 8) % 8 < 4 ? places[(dice >> 8) % 4]
                                          : 4096 + LIMIT_RING_BYTES + (dice >> 16) % (LIMIT_RING_BYTES / 8) * 8;
    fake->random = random;
    if (client->ring_memory && (dice >> 40) % 4 == 0)
        *(volatile uint64_t *)(client->ring_memory + at) = value;
}

static void handle(struct fake *fake, struct fake_client *client, const struct message *message)
{
    enum method method = message->method;
    if (method == METHOD_COUNT)
        return;
    fake->seen[method]++;
    if (fake->die_on == (int)method && fake->die_count > 0) {
        die(fake, client, message);
        return;
    }
    if (fake->late_on == (int)method)
        pause_ms(fake->late_ms);
    if (fake->silent_on == (int)method || fake->deaf)
        return;
    if (fake->garbage_on == (int)method && fake->garbage == FAKE_GARBAGE_BEHIND) {
        answer_with_garbage(fake, client, message);
        return;
    }
    if (fake->garbage_on == (int)method && !send_garbage(fake, client, message))
        return;
    if (fake->fail_on == (int)method)
        send_failure(fake, client, message->msgid, fake->fail_code);
    else
        answer(fake, client, message);
}

/* Reads once, and handles what is complete. */
static void client_read(struct fake *fake, struct fake_client *client)
{
    const uint8_t *bytes;
    size_t size;
    int code = connection_receive(client->connection);
    if (code <= 0 && code != -EAGAIN) {
        client_close(client);
        return;
    }
    while (client->connection && connection_peek(client->connection, &bytes, &size) == 1) {
        struct connection *connection = client->connection;
        struct message message;
        struct error error;
        fake_must(message_open(&message, bytes, size, &error) == 0, error.message);
        handle(fake, client, &message);
        scribble(fake, client);
        message_close(&message);
        if (client->connection == connection)
            connection_consume(connection);
    }
}

static void client_accept(struct fake *fake)
{
    int fd = accept4(fake->listener, NULL, NULL, SOCK_CLOEXEC);
    for (size_t i = 0; fd >= 0 && i < FAKE_CLIENTS; i++)
        if (!fake->clients[i].connection) {
            fake->accepted++;
            fake->clients[i].connection = connection_create(fd);
            return;
        }
    if (fd >= 0)
        close(fd);
}

static void *fake_thread(void *argument)
{
    struct fake *fake = argument;
    for (;;) {
        struct pollfd pollers[2 + FAKE_CLIENTS] = {{.fd = fake->wake, .events = POLLIN},
                                                   {.fd = fake->listener, .events = POLLIN}};
        bool sleeps = true;
        for (size_t i = 0; i < FAKE_CLIENTS; i++) {
            struct connection *connection = fake->clients[i].connection;
            sleeps = sleeps && (!connection || connection_sleep(connection));
            pollers[2 + i] = (struct pollfd){.fd = connection ? connection_fd(connection) : -1, .events = POLLIN};
        }
        if (poll(pollers, 2 + FAKE_CLIENTS, sleeps ? -1 : 0) < 0)
            continue;
        if (pollers[0].revents)
            return NULL;
        for (size_t i = 0; i < FAKE_CLIENTS; i++)
            if (fake->clients[i].connection &&
                (pollers[2 + i].revents || connection_is_ready(fake->clients[i].connection)))
                client_read(fake, &fake->clients[i]);
        if (pollers[1].revents && pollers[1].fd == fake->listener)
            client_accept(fake);
    }
}

void fake_init(struct fake *fake)
{
    memset(fake, 0, sizeof *fake);
    strcpy(fake->folder, "/tmp/scand-test-XXXXXX");
    fake_must(mkdtemp(fake->folder) != NULL, "mkdtemp");
    snprintf(fake->path, sizeof fake->path, "%s/scand.sock", fake->folder);
    fake->die_on = fake->silent_on = fake->late_on = fake->fail_on = fake->garbage_on = FAKE_NONE;
    fake->version = PROTOCOL_VERSION;
    fake->job_steps = SCAND_STEPS_MAX;
    fake->batch_jobs = LIMIT_BATCH_JOBS;
    fake->batch_steps = 1;
    fake->client_jobs = LIMIT_CLIENT_JOBS;
    fake->random = 1;
}

void fake_start(struct fake *fake)
{
    struct error error;
    fake->wake = eventfd(0, EFD_CLOEXEC);
    fake->listener = socket_listen(fake->path, &mine, &fake->file, &error);
    fake_must(fake->listener >= 0, error.message);
    fake_must(pthread_create(&fake->thread, NULL, fake_thread, fake) == 0, "pthread_create");
    fake->running = true;
}

void fake_stop(struct fake *fake)
{
    fake_must(write(fake->wake, &(uint64_t){1}, 8) == 8, "write");
    pthread_join(fake->thread, NULL);
    fake->running = false;
    for (size_t i = 0; i < FAKE_CLIENTS; i++)
        client_close(&fake->clients[i]);
    socket_remove(fake->path, &fake->file);
    close(fake->listener);
    close(fake->wake);
}

void fake_finish(struct fake *fake)
{
    if (fake->running)
        fake_stop(fake);
    rmdir(fake->folder);
}
