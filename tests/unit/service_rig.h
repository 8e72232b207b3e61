/*
 * The rig of tests of the service: a service on the manual device, with deferred work and a clock that a test moves,
 * and users who talk to it over socketpairs. Include after nothing else: it brings tests/check.h.
 *
 * A test begins with rig_begin and ends with rig_end, which closes every user still there and checks that nothing is
 * left: no descriptor, no attached or allocated memory, no buffer, no job.
 */
#ifndef TESTS_UNIT_SERVICE_RIG_H
#define TESTS_UNIT_SERVICE_RIG_H

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/core/service.h"
#include "protocol/encoding.h"
#include "tests/check.h"
#include "tests/unit/device_manual.h"
#include "tests/unit/open_descriptors.h"

#define RIG_USERS     8
#define RIG_WORK      512
#define RIG_OWNER     ((uid_t)900) /* who the daemon runs as */
#define RIG_READY     8            /* small segments made beforehand; the others are made when they are needed */
#define RIG_ROW_BYTES 400          /* bytes of a row of 100 samples */

/* A program of a user. */
struct caller {
    struct rig *rig;
    struct client *client;         /* the daemon's end; NULL once closed */
    struct connection *connection; /* the user's end */
    uint32_t last_msgid;
    bool over; /* service_input said to close */
};

struct rig {
    struct manual manual, second; /* devices; most tests have the first alone */
    struct device_set devices;
    struct pool pool;
    struct service service;
    uint64_t now_us;
    uint64_t tick_us;            /* microseconds that pass with each look at the clock */
    uint64_t wake_us;            /* time at which the service wants to be called */
    uint64_t sleeps;             /* how often the loop has slept since it was asked */
    struct work *work[RIG_WORK]; /* deferred, oldest first */
    size_t work_count;
    struct helpers readers;     /* as a service begins with them */
    unsigned starts;            /* calls of ops->start */
    unsigned draining, drained; /* calls of ops->draining, ops->drained */
    struct caller users[RIG_USERS];
    size_t user_count;
    size_t fds_before;
};

static struct rig rig;

/*
 * The service's side.
 */

static inline void rig_start_one(struct rig *self, struct chunk *chunk)
{
    struct manual *manual = (struct manual *)chunk->device;
    int r = manual->device.ops->start(&manual->device, chunk);
    CHECK(manual == &self->manual || manual == &self->second);
    if (r) { /* the chunk comes back with its error, as from the device's thread */
        struct chunk **end = &manual->completed;
        while (*end)
            end = &(*end)->next;
        chunk->status = r;
        chunk->next = NULL;
        *end = chunk;
    }
}

static inline void rig_start(void *context, struct chunk *chunks)
{
    ((struct rig *)context)->starts++;
    for (struct chunk *chunk = chunks, *next; chunk; chunk = next) {
        next = chunk->next;
        rig_start_one(context, chunk);
    }
}

static inline void rig_defer(void *context, struct work *work)
{
    struct rig *self = context;
    CHECK(self->work_count < RIG_WORK);
    self->work[self->work_count++] = work;
}

static inline void rig_output(void *context, struct client *client)
{
    (void)context, (void)client;
}

static inline void rig_draining(void *context)
{
    ((struct rig *)context)->draining++;
}

static inline void rig_drained(void *context)
{
    ((struct rig *)context)->drained++;
}

static inline uint64_t rig_now_us(void *context)
{
    struct rig *self = context;
    return self->now_us += self->tick_us;
}

static inline void rig_wake(void *context, uint64_t at_us)
{
    ((struct rig *)context)->wake_us = at_us;
}

static inline bool rig_slept(void *context)
{
    struct rig *self = context;
    const bool slept = self->sleeps > 0;
    self->sleeps = 0;
    return slept;
}

/* A pool with `large` large segments; on each device slots chunks at a time, of rows_per_chunk rows of 100 samples. */
static inline void rig_begin_devices(unsigned devices, uint64_t large, unsigned slots, uint64_t rows_per_chunk)
{
    static const struct service_ops ops = {rig_start,   rig_defer,  rig_defer, rig_output, rig_draining,
                                           rig_drained, rig_now_us, rig_wake,  rig_slept};
    memset(&rig, 0, sizeof rig);
    rig.fds_before = descriptors_open();
    rig.now_us = 1000;
    rig.wake_us = UINT64_MAX;
    manual_init(&rig.manual, slots, rows_per_chunk * RIG_ROW_BYTES);
    manual_init(&rig.second, slots, rows_per_chunk * RIG_ROW_BYTES);
    rig.second.device.number = 1;
    rig.devices = (struct device_set){{&rig.manual.device, &rig.second.device}, devices};
    CHECK_EQ(pool_init(&rig.pool, &rig.devices, large * LIMIT_LARGE_SEGMENT_BYTES), 0);
    for (size_t i = 0; i < RIG_READY && i < pool_ready_count(&rig.pool); i++)
        CHECK_EQ(pool_make(&rig.pool, i), 0);
    service_init(&rig.service, &ops, &rig, &rig.devices, &rig.pool, RIG_OWNER);
    rig.readers = rig.service.readers;
    rig.service.helpers.most = rig.service.readers.most = RIG_WORK;
    rig.service.readers.each = RIG_WORK; /* all that is deferred is seen at once, unless a test wants turns */
}

static inline void rig_begin_with(uint64_t large, unsigned slots, uint64_t rows_per_chunk)
{
    rig_begin_devices(1, large, slots, rows_per_chunk);
}

static inline void rig_begin(void)
{
    rig_begin_with(1, 2, 4);
}

/* Takes the work that is `index`-th among the deferred out of the list. */
static inline struct work *rig_pop_work(size_t index)
{
    struct work *work = rig.work[index];
    rig.work_count--;
    memmove(&rig.work[index], &rig.work[index + 1], (rig.work_count - index) * sizeof rig.work[0]);
    return work;
}

/* A helper does a unit of it, and it comes back. */
static inline void rig_help(struct work *work)
{
    work_run(work);
    service_work_done(&rig.service, work);
}

static inline void rig_run_work(void)
{
    while (rig.work_count > 0)
        rig_help(rig_pop_work(0));
}

/* Gives the service the chunks that have come back. */
static inline void rig_collect(void)
{
    struct chunk *chunk;
    for (unsigned i = 0; i < rig.devices.count; i++) {
        struct device *device = rig.devices.devices[i];
        while ((chunk = device->ops->finish(device, 0))) {
            chunk->next = NULL;
            service_collect(&rig.service, &chunk, UINT64_MAX);
        }
    }
}

/* Lets time pass; the service is called when it wants to be, though not more than once. */
static inline void rig_pass(uint64_t us)
{
    rig.now_us += us;
    if (rig.now_us >= rig.wake_us)
        service_tick(&rig.service);
}

/* The chunk that is `index`-th among those out on a device comes back. */
static inline void rig_complete_on(struct manual *manual, size_t index, int status)
{
    manual_complete(manual, index, status);
    rig_collect();
}

static inline void rig_complete(size_t index, int status)
{
    rig_complete_on(&rig.manual, index, status);
}

static inline void rig_complete_all(void)
{
    while (rig.manual.out_count + rig.second.out_count > 0)
        rig_complete_on(rig.manual.out_count > 0 ? &rig.manual : &rig.second, 0, 0);
}

static inline struct client *rig_owner(size_t index)
{
    return index < rig.manual.out_count ? ((struct job *)rig.manual.out[index]->owner)->client : NULL;
}

/*
 * The users' side.
 */

static inline struct caller *user_open(uid_t uid)
{
    int ends[2];
    struct caller *user = &rig.users[rig.user_count++];
    CHECK(rig.user_count <= RIG_USERS);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    *user = (struct caller){.rig = &rig, .connection = connection_create(ends[0])};
    user->client = service_open(&rig.service, connection_create(ends[1]), uid);
    CHECK(user->connection && user->client);
    return user;
}

static inline void user_close(struct caller *user)
{
    if (user->client)
        service_close(user->client);
    connection_destroy(user->connection);
    user->client = NULL;
    user->connection = NULL;
}

static inline void rig_end(void)
{
    for (size_t i = 0; i < rig.user_count; i++)
        user_close(&rig.users[i]);
    rig_complete_all();
    rig_collect();
    rig_run_work();
    const struct msg_stats_result *stats = &rig.service.stats;
    CHECK(stats->clients_open == 0 && stats->jobs_open == 0 && stats->buffers_open == 0);
    CHECK(stats->host_bytes == 0 && stats->device_bytes == 0 && stats->imported_bytes == 0 && stats->staged_bytes == 0);
    CHECK(rig.service.draining || rig.drained == 0);
    for (size_t i = 0; i < LIMIT_USERS; i++) {
        const struct user *user = &rig.service.users.slots[i];
        CHECK(user->holds == 0 && user->unadmitted == 0 && user->maps == 0 && user->pool.bytes == 0);
        for (size_t quota = 0; quota < QUOTA_COUNT; quota++)
            CHECK_EQ(user->used[quota], 0);
    }
    CHECK(rig.service.maps.used == 0 && rig.service.helpers.out == 0 && rig.service.readers.out == 0);
    CHECK(rig.service.files.used == 0 && rig.service.loads.used == 0 && rig.service.load_bytes.used == 0);
    CHECK(!rig.service.feeding);
    CHECK_EQ(rig.service.draining, rig.draining > 0);
    CHECK_EQ(stats->jobs_submitted, stats->jobs_done + stats->jobs_failed + stats->jobs_cancelled);
    service_finish(&rig.service);
    service_trim(&rig.service);
    pool_finish(&rig.pool);
    CHECK_EQ(rig.manual.attached_bytes, 0);
    CHECK_EQ(rig.manual.allocated_bytes, 0);
    CHECK_EQ(rig.second.attached_bytes, 0); /* what the first knows is known to all */
    CHECK_EQ(rig.second.allocated_bytes, 0);
    CHECK_EQ(rig.manual.opened_count, 0);
    CHECK_EQ(rig.second.opened_count, 0);
    CHECK_EQ(descriptors_open(), rig.fds_before);
}

/* The daemon reads what the user has sent, in as many turns as it takes. */
static inline void user_deliver(struct caller *user)
{
    while (!user->over && connection_receive(user->client->connection) > 0) {
        int r;
        while ((r = service_input(user->client, UINT64_MAX)) > 0)
            continue;
        user->over = r < 0;
    }
}

static inline void user_send(struct caller *user, const void *bytes, size_t size, const int *fds, size_t fd_count)
{
    CHECK_EQ(connection_send(user->connection, bytes, size, fds, fd_count), 0);
    connection_flush(user->connection);
    user_deliver(user);
}

static const struct map_type *const params_types[] = {
#define X(HANDLER, METHOD, PARAMS, RESULT) &msg_##PARAMS##_type,
    METHODS(X)
#undef X
};

static const struct map_type *const result_types[] = {
#define X(HANDLER, METHOD, PARAMS, RESULT) &msg_##RESULT##_type,
    METHODS(X)
#undef X
};

/* Sends a request, with descriptors; returns its msgid. */
static inline uint32_t ask_with(struct caller *user, enum method method, const void *params, const int *fds,
                                size_t count)
{
    uint8_t bytes[LIMIT_MESSAGE_BYTES];
    struct encoded out = {bytes, 0, sizeof bytes};
    CHECK_EQ(encode_request(&out, ++user->last_msgid, method, params_types[method], params), 0);
    user_send(user, bytes, out.size, fds, count);
    return user->last_msgid;
}

static inline uint32_t ask(struct caller *user, enum method method, const void *params)
{
    return ask_with(user, method, params, NULL, 0);
}

/* A message from the daemon, and what it carried. */
struct answer {
    bool arrived;
    enum message_kind kind;
    enum method method; /* method of a notification */
    uint32_t msgid;
    bool failed;
    struct msg_failure failure;
    struct msg_job_progress progress;
    struct msg_job_id ending;
    int fds[LIMIT_MESSAGE_FDS];
    size_t fd_count;
};

static inline void answer_read(struct answer *answer, const struct message *message, const struct map_type *type,
                               void *result)
{
    struct error error;
    answer->kind = message->kind;
    answer->method = message->method;
    answer->msgid = message->msgid;
    answer->failed = message->failed;
    if (message->kind == MESSAGE_NOTIFICATION && message->method == METHOD_job_ending)
        CHECK_EQ(message_read(message, &msg_job_id_type, &answer->ending, &error), 0);
    else if (message->kind == MESSAGE_NOTIFICATION)
        CHECK_EQ(message_read(message, &msg_job_progress_type, &answer->progress, &error), 0);
    else if (message->failed)
        CHECK_EQ(message_read(message, &msg_failure_type, &answer->failure, &error), 0);
    else if (type)
        CHECK_EQ(message_read(message, type, result, &error), 0);
}

/* The next message, if there is one; its result, if it is one, goes to *result. Its descriptors are the caller's. */
static inline struct answer next_answer(struct caller *user, const struct map_type *type, void *result)
{
    struct answer answer = {0};
    const uint8_t *bytes;
    size_t size;
    if (user->client) {
        service_sends(user->client);
        connection_flush(user->client->connection);
        service_sent(user->client);
    }
    while (connection_peek(user->connection, &bytes, &size) == 0)
        if (connection_receive(user->connection) <= 0)
            return answer;
    struct message message;
    struct error error;
    answer.arrived = true;
    CHECK_EQ(message_open(&message, bytes, size, &error), 0);
    answer_read(&answer, &message, type, result);
    message_close(&message);
    connection_consume(user->connection);
    answer.fd_count = connection_fd_count(user->connection);
    CHECK_EQ(connection_pop_fds(user->connection, answer.fds, answer.fd_count), 0);
    return answer;
}

static inline bool is_silent(struct caller *user)
{
    return !next_answer(user, NULL, NULL).arrived;
}

/* True when the next message is a result of that request; it goes to *result (NULL: not looked at). */
static inline bool answered(struct caller *user, uint32_t msgid, enum method method, void *result)
{
    struct answer answer = next_answer(user, result ? result_types[method] : NULL, result);
    if (answer.failed)
        fprintf(stderr, "an answer, but a failure: %s\n", answer.failure.message);
    for (size_t i = 0; i < answer.fd_count; i++)
        close(answer.fds[i]);
    return answer.arrived && answer.kind == MESSAGE_RESPONSE && !answer.failed && answer.msgid == msgid;
}

/* The message of the failure that comes next; if something else comes, what it is. */
static inline const char *refusal(struct caller *user, uint32_t msgid, enum scand_status status)
{
    static char text[LIMIT_ERROR_BYTES + 64];
    struct answer answer = next_answer(user, NULL, NULL);
    if (!answer.arrived)
        return "(no answer)";
    if (answer.kind != MESSAGE_RESPONSE || !answer.failed)
        return "(an answer, but no failure)";
    if (answer.msgid != msgid)
        snprintf(text, sizeof text, "(of msgid %u)", answer.msgid);
    else if (answer.failure.code != status)
        snprintf(text, sizeof text, "(%s, not %s)", answer.failure.name, status_word(status));
    else
        snprintf(text, sizeof text, "%s", answer.failure.message);
    return text;
}

/* Asks and returns the refusal. */
static inline const char *refused(struct caller *user, enum method method, const void *params, enum scand_status status)
{
    return refusal(user, ask(user, method, params), status);
}

/* Asks and expects the result at once. */
static inline bool granted(struct caller *user, enum method method, const void *params, void *result)
{
    return answered(user, ask(user, method, params), method, result);
}

static inline struct caller *user_greet(uid_t uid)
{
    struct caller *user = user_open(uid);
    struct msg_hello_params params = {1, PROTOCOL_VERSION, "test", 0};
    CHECK(granted(user, METHOD_hello, &params, NULL));
    return user;
}

/* Returns `rows` rows of 100 samples of f32, one behind the other, from a first one of the buffer on. */
static inline struct msg_tensor rig_rows(uint64_t buffer, uint64_t first, uint64_t rows)
{
    return (struct msg_tensor){.buffer = buffer,
                               .offset = first * RIG_ROW_BYTES,
                               .shape = {rows, 100},
                               .shape_count = 2,
                               .strides = {RIG_ROW_BYTES, 4},
                               .strides_count = 2};
}

/* Returns a scan of one pass. */
static inline struct msg_job_submit_params rig_scan(struct msg_tensor input, struct msg_tensor output)
{
    return (struct msg_job_submit_params){.input = input, .output = output, .axis = 1, .passes_count = 1};
}

/* The same, in place. */
static inline struct msg_job_submit_params rig_scan_in_place(struct msg_tensor rows)
{
    return rig_scan(rows, rows);
}

/* A buffer, its descriptors closed; deferred work is run. 0 when there is none. */
static inline uint64_t user_create(struct caller *user, uint64_t size_bytes, enum scand_place place)
{
    struct msg_buffer_create_params params = {.size = size_bytes, .place = place};
    struct msg_buffer_create_result result = {0};
    uint32_t msgid = ask(user, METHOD_buffer_create, &params);
    rig_run_work();
    CHECK(answered(user, msgid, METHOD_buffer_create, &result));
    return result.buffer;
}

/* The moment at which a client goes: before its deferred work runs, between its run and its end, or after that. */
enum rig_moment { RIG_BEFORE, RIG_BETWEEN, RIG_AT_THE_END };

static inline void rig_go_meanwhile(struct caller *user, enum rig_moment moment)
{
    struct work *work = rig_pop_work(0);
    if (moment == RIG_BEFORE)
        user_close(user);
    work_run(work);
    if (moment == RIG_BETWEEN)
        user_close(user);
    service_work_done(&rig.service, work);
    user_close(user);
    rig_run_work();
}

#endif
