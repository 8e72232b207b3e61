#include "service.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "call.h"

/* For want of a measure of how long connections last. */
#define CONNECT_RETRY_MS 1000

void service_init(struct service *service, const struct service_ops *ops, void *context,
                  const struct device_set *devices, struct pool *pool, uid_t owner)
{
    *service = (struct service){
        .ops = ops, .context = context, .devices = devices, .pool = pool, .owner = owner, .wake_us = UINT64_MAX};
    scheduler_init(&service->scheduler, devices);
    service->helpers.most = LIMIT_HELPERS;
    service_limit_maps(service, LIMIT_MAPS_STANDARD);
    users_init(&service->users);
    service->users.owner = owner;
    service->stats.pool_bytes = pool_size_bytes(pool);
    service->began_us = ops->now_us(context);
    histograms_init(&service->histograms);
}

void service_limit_maps(struct service *service, uint64_t most)
{
    uint64_t taken = LIMIT_MAPS_RESERVE + pool_segments_most(service->pool);
    service->maps.most = taken < most ? most - taken : 0;
}

void service_totals(const struct service *service, struct service_totals *totals)
{
    enum { NOW, TOTAL };
#define TAKE(X, S, NAME, PRESENCE, TYPE, TEXT) .NAME = TYPE == TOTAL ? service->stats.NAME : 0,
    *totals = (struct service_totals){.stats = {COUNTERS(TAKE, , )}, .histograms = service->histograms};
#undef TAKE
    totals->stats.jobs_failed += service->stats.jobs_open;
    for (unsigned i = 0; i < LIMIT_DEVICES; i++) {
        const struct device_tally *tally = &service->tallies[i];
        totals->devices[i].busy_us = tally->meter.busy_us;
        totals->devices[i].upload_bytes = tally->upload_bytes;
        totals->devices[i].download_bytes = tally->download_bytes;
    }
}

void service_resume(struct service *service, const struct service_totals *totals, uint64_t restarts)
{
    uint64_t pool_bytes = service->stats.pool_bytes;
    service->stats = totals->stats;
    service->stats.pool_bytes = pool_bytes;
    service->stats.restarts = restarts;
    if (totals->histograms.bounds_us_count == service->histograms.bounds_us_count)
        service->histograms = totals->histograms;
    for (unsigned i = 0; i < LIMIT_DEVICES; i++) {
        struct device_tally *tally = &service->tallies[i];
        tally->meter.busy_us = totals->devices[i].busy_us;
        tally->upload_bytes = totals->devices[i].upload_bytes;
        tally->download_bytes = totals->devices[i].download_bytes;
    }
}

void service_configure(struct service *service, const struct grants *grants)
{
    users_configure(&service->users, grants);
}

void service_finish(struct service *service)
{
    while (service->clients)
        service_close(service->clients);
}

static void pump_helpers(struct service *service)
{
    struct work *work;
    while ((work = helpers_next(&service->helpers)))
        service->ops->defer(service->context, work);
}

void service_defer(struct service *service, struct user *user, struct work *work)
{
    helpers_add(&service->helpers, &user->work, work);
    pump_helpers(service);
}

void service_work_done(struct service *service, struct work *work)
{
    helpers_take_back(&service->helpers, work);
    if (work->more && (!work->is_wanted || work->is_wanted(work)))
        helpers_add(&service->helpers, work->queue, work);
    else
        work->done(work);
    pump_helpers(service);
}

void client_hold(struct client *client)
{
    client->holds++;
}

void client_unhold(struct client *client)
{
    if (--client->holds > 0)
        return;
    user_unhold(client->user);
    free(client);
}

/* Connections that a user could still open while so many are open. */
static uint64_t free_connections(const struct service *service, const struct user *user, uint64_t open)
{
    uint64_t most = LIMIT_CLIENTS - (user_manages(&service->users, user->uid) ? 0 : LIMIT_CLIENTS_KEPT);
    return open < most ? most - open : 0;
}

/* A user may have as many as are free; who manages, all of them. */
static bool is_in_share(const struct service *service, const struct user *user, uint64_t others, uint64_t left)
{
    return left > 0 && (others < left || user_manages(&service->users, user->uid));
}

/* Of a connection that is counted already. */
static int check_share(const struct service *service, const struct user *user, struct error *error)
{
    uint64_t left = free_connections(service, user, service->stats.clients_open - 1), others = user->connections - 1;
    if (is_in_share(service, user, others, left))
        return 0;
    error_set(error, -EAGAIN,
              "connect: user %u has %" PRIu64 " connections and asks for 1 more; %" PRIu64
              " are left, and a user may have as many as are left for others; close one of them, or try again in %d ms",
              (unsigned)user->uid, others, left, CONNECT_RETRY_MS);
    error->retry_ms = CONNECT_RETRY_MS;
    return -EAGAIN;
}

static int client_admit(struct client *client, struct error *error)
{
    int r = user_check(client->user, QUOTA_CONNECTIONS, 1, "connect", error);
    if (!r)
        r = check_share(client->service, client->user, error);
    if (!r)
        user_add(client->user, QUOTA_CONNECTIONS, 1);
    client->admitted = !r;
    return r;
}

/* Beyond quota and share a few more may come, to be told so, while so many are free. */
static bool may_be_told(const struct user *user, uint64_t left)
{
    return user->unadmitted < LIMIT_UNADMITTED && left >= LIMIT_CLIENTS / 8;
}

static bool client_enter(struct client *client)
{
    const struct service *service = client->service;
    struct error error;
    if (client_admit(client, &error) == 0)
        return true;
    if (!may_be_told(client->user, free_connections(service, client->user, service->stats.clients_open - 1)))
        return false;
    client->user->unadmitted++;
    return true;
}

bool service_is_full(struct service *service, uid_t uid)
{
    const struct user *user = user_find(&service->users, uid);
    if (!user)
        return false;
    uint64_t left = free_connections(service, user, service->stats.clients_open);
    return !may_be_told(user, left) && (user->used[QUOTA_CONNECTIONS] >= user->most[QUOTA_CONNECTIONS] ||
                                        !is_in_share(service, user, user->connections, left));
}

static void client_leave(struct client *client)
{
    if (client->admitted)
        user_subtract(client->user, QUOTA_CONNECTIONS, 1);
    else
        client->user->unadmitted--;
}

/* Counts a connection of a user, or no more. */
static void count_client(struct client *client, int more)
{
    client->service->stats.clients_open += more;
    client->user->connections += more;
}

struct client *service_open(struct service *service, struct connection *connection, uid_t uid)
{
    struct client *client = calloc(1, sizeof *client);
    struct user *user = client ? user_acquire(&service->users, uid) : NULL;
    if (!user) {
        free(client);
        return NULL;
    }
    client->service = service;
    client->connection = connection;
    client->user = user;
    client->lane.share = &user->share;
    client->turn.user = &user->turn;
    client->holds = 1;
    count_client(client, 1);
    if (!client_enter(client)) {
        count_client(client, -1);
        client_unhold(client);
        return NULL;
    }
    client->next = service->clients;
    service->clients = client;
    client->number = ++service->stats.clients_accepted;
    client->opened_us = service->ops->now_us(service->context);
    return client;
}

/* Descriptors that have come and were not taken. */
static void count_fds(struct client *client, size_t count)
{
    const unsigned now = (unsigned)count;
    client->user->waiting_fds += now - client->waiting_fds;
    client->service->waiting_fds += now - client->waiting_fds;
    client->waiting_fds = now;
}

static void count_unread(struct client *client, uint64_t bytes)
{
    client->user->unread_bytes += bytes - client->unread_bytes;
    client->service->unread_bytes += bytes - client->unread_bytes;
    client->unread_bytes = bytes;
}

void service_sent(struct client *client)
{
    count_unread(client, connection_output_bytes(client->connection));
}

/* Whose answers are read goes on while other connections of its user hold up theirs. */
bool service_is_clogged(const struct client *client)
{
    const uint64_t own = client->user->unread_bytes, others = client->service->unread_bytes - own,
                   half = others < LIMIT_ALL_UNREAD_BYTES ? (LIMIT_ALL_UNREAD_BYTES - others) / 2 : 0;
    return connection_is_clogged(client->connection) ||
           (client->unread_bytes > 0 && own > (half < LIMIT_USER_UNREAD_BYTES ? half : LIMIT_USER_UNREAD_BYTES));
}

static void service_unlink(struct service *service, struct client *client)
{
    struct client **at = &service->clients;
    while (*at != client)
        at = &(*at)->next;
    *at = client->next;
    count_client(client, -1);
}

/* Descriptors that no message has taken. */
static void drop_arrived(struct client *client)
{
    int fds[LIMIT_MESSAGE_FDS];
    size_t count;
    while ((count = connection_fd_count(client->connection)) > 0) {
        count = count < LIMIT_MESSAGE_FDS ? count : LIMIT_MESSAGE_FDS;
        connection_take_fds(client->connection, fds, count);
        descriptors_drop(client->service, client->user, fds, count);
    }
}

void service_close(struct client *client)
{
    struct service *service = client->service;
    service_unlink(service, client);
    service_rest(client);
    client_leave(client);
    count_fds(client, 0);
    count_unread(client, 0);
    waiting_drop(client);
    drop_arrived(client);
    connection_destroy(client->connection);
    client->connection = NULL;
    client->edge = NULL;
    for (struct job *job = client->jobs, *peer; job; job = peer) {
        peer = job->peer;
        job_abandon(service, job, -ECANCELED, "the client is gone");
    }
    while (client->buffers) {
        struct buffer *buffer = client->buffers;
        client->buffers = buffer->next;
        buffer_unhold(service, buffer);
    }
    client_unhold(client);
    service_pump(service);
}

static int client_send(struct client *client, const struct encoded *message, const int *fds, size_t fd_count)
{
    int r = connection_send(client->connection, message->bytes, message->size, fds, fd_count);
    service_sent(client);
    client->service->ops->output(client->service->context, client);
    return r;
}

int reply_descriptors(struct client *client, uint32_t msgid, const struct map_type *type, const void *result,
                      const int *fds, size_t fd_count)
{
    uint8_t bytes[LIMIT_MESSAGE_BYTES];
    struct encoded message = {bytes, 0, sizeof bytes};
    if (!client->connection)
        return 0;
    int r = encode_result(&message, msgid, type, result);
    return r ? r : client_send(client, &message, fds, fd_count);
}

/* Without its answer a client would wait for ever: its connection ends. */
static void client_fail(struct client *client)
{
    client->failed = true;
    client->service->ops->output(client->service->context, client);
}

void reply_result(struct client *client, uint32_t msgid, const struct map_type *type, const void *result)
{
    if (reply_descriptors(client, msgid, type, result, NULL, 0))
        client_fail(client);
}

void reply_nothing(struct client *client, uint32_t msgid)
{
    reply_result(client, msgid, &msg_nothing_type, NULL);
}

/* The longest failure, and no result of a job or a buffer is longer. */
#define FAILURE_BYTES (LIMIT_ERROR_BYTES + 256)

static_assert((LIMIT_CLIENT_JOBS + LIMIT_CLIENT_BUFFERS) * FAILURE_BYTES + LIMIT_MESSAGE_BYTES <=
                  LIMIT_OUTBOX_BYTES - LIMIT_UNREAD_BYTES,
              "what is under way when a client is paused can still be answered");

void reply_failure(struct client *client, uint32_t msgid, const struct error *error)
{
    uint8_t bytes[FAILURE_BYTES];
    struct encoded message = {bytes, 0, sizeof bytes};
    if (!client->connection)
        return;
    client->service->stats.messages_refused++;
    if (encode_failure(&message, msgid, error) || client_send(client, &message, NULL, 0))
        client_fail(client);
}

void notify(struct client *client, enum method method, const struct map_type *type, const void *params)
{
    uint8_t bytes[256];
    struct encoded message = {bytes, 0, sizeof bytes};
    /* Left out while output waits: a client that is slow to read is not ended by what it can do without. */
    if (!client->connection || connection_has_output(client->connection))
        return;
    if (encode_notification(&message, method, type, params) == 0)
        client_send(client, &message, NULL, 0);
}

/* Params of any method. */
union params {
#define X(HANDLER, METHOD, PARAMS, RESULT) struct msg_##PARAMS HANDLER;
    METHODS(X)
#undef X
};

static int read_params(const struct message *message, union params *params, struct error *error)
{
    switch (message->method) {
#define X(HANDLER, METHOD, PARAMS, RESULT) \
    case METHOD_##HANDLER:                 \
        return message_read(message, &msg_##PARAMS##_type, &params->HANDLER, error);
        METHODS(X)
#undef X
    default:
        return error_set(error, -ENOSYS, "no method \"%s\"; this daemon speaks version %d of the protocol",
                         message->method_text, PROTOCOL_VERSION);
    }
}

static int run_handler(enum method method, struct call *call, const union params *params)
{
    switch (method) {
#define X(HANDLER, METHOD, PARAMS, RESULT) \
    case METHOD_##HANDLER:                 \
        return handle_##HANDLER(call, &params->HANDLER);
        METHODS(X)
#undef X
    default:
        return -ENOSYS;
    }
}

/* True when bytes after the current message have arrived, to which later descriptors may belong. */
static bool more_follows(struct connection *connection)
{
    const uint8_t *bytes;
    size_t size;
    return connection_peek(connection, &bytes, &size) != 0 || connection_is_partial(connection);
}

/* Takes the descriptors that a message announces. What it did not announce ends the connection. */
static int take_descriptors(struct call *call, uint64_t announced)
{
    struct client *client = call->client;
    size_t arrived = connection_fd_count(client->connection);
    if (arrived > announced && !more_follows(client->connection)) {
        client->failed = true;
        return error_set(&call->error, -EBADF,
                         "%zu descriptors came with a message that announces %zu; the connection ends", arrived,
                         (size_t)announced);
    }
    call->fd_count = arrived < announced ? arrived : announced;
    if (connection_take_fds(client->connection, call->fds, call->fd_count))
        call->fd_count = 0;
    if (arrived < announced)
        return error_set(&call->error, -EBADF, "the message announces %zu descriptors, but %zu came with it",
                         (size_t)announced, arrived);
    return 0;
}

/* Drops the descriptors of a message that can have some, but whose params could not be read. When they may be a later
 * message's, the connection ends. */
static void drop_descriptors(struct call *call)
{
    struct connection *connection = call->client->connection;
    size_t arrived = connection_fd_count(connection);
    if (arrived > LIMIT_MESSAGE_FDS || (arrived > 0 && more_follows(connection)))
        call->client->failed = true;
    else if (connection_take_fds(connection, call->fds, arrived) == 0)
        call->fd_count = arrived;
}

/* For the first message of a client that was not admitted: perhaps there is room by now. */
static int admit_late(struct call *call)
{
    struct client *client = call->client;
    int r = client_admit(client, &call->error);
    if (r)
        client->failed = true;
    else
        client->user->unadmitted--;
    return r;
}

/* Descriptors that a request says to bring. */
static uint64_t announced_fds(enum method method, const union params *params)
{
    switch (method) {
    case METHOD_buffer_import:
        return params->buffer_import.fds;
    case METHOD_buffer_import_device:
        return params->buffer_import_device.fds;
    default:
        return 0;
    }
}

static bool may_bring_fds(enum method method)
{
    return method == METHOD_buffer_import || method == METHOD_buffer_import_device || method == METHOD_COUNT;
}

static int dispatch(struct call *call, const struct message *message, union params *params)
{
    int r = call->client->admitted ? 0 : admit_late(call);
    if (r)
        return r;
    r = read_params(message, params, &call->error);
    connection_consume(call->client->connection);
    if (r && may_bring_fds(message->method)) {
        drop_descriptors(call);
        return r;
    }
    int fds = take_descriptors(call, r ? 0 : announced_fds(message->method, params));
    if (r || fds)
        return r ? r : fds;
    if (!call->client->greeted && message->method != METHOD_hello)
        return error_set(&call->error, -EINVAL, "%s came before hello; a connection begins with hello",
                         message->method_text);
    return run_handler(message->method, call, params);
}

static void handle_request(struct client *client, const struct message *message)
{
    struct call call = {.service = client->service, .client = client, .msgid = message->msgid};
    call.position = connection_position(client->connection);
    union params params;
    if (dispatch(&call, message, &params))
        reply_failure(client, message->msgid, &call.error);
    descriptors_drop(client->service, client->user, call.fds, call.fd_count);
}

/* One message that walk() accepted. */
static void handle_message(struct client *client, const uint8_t *bytes, size_t size)
{
    struct message message;
    struct error error = {0};
    int r = message_open(&message, bytes, size, &error);
    message.strict = client->strict;
    if (!r && message.kind != MESSAGE_REQUEST)
        r = error_set(&error, -EBADMSG, "a client sends requests only");
    if (!r) {
        handle_request(client, &message);
    } else {
        if (message.has_msgid)
            reply_failure(client, message.msgid, &error);
        client->failed = true;
    }
    message_close(&message);
}

/* Bytes that walk() refused: nothing after them can be found. */
static void refuse_bytes(struct client *client, int code, const uint8_t *bytes, size_t size)
{
    uint32_t msgid;
    struct error error;
    error_set(&error, code, "%s; the connection ends", status_text(status_from_errno(code)));
    if (message_find_msgid(bytes, size, &msgid))
        reply_failure(client, msgid, &error);
    client->failed = true;
}

void service_ready(struct client *client)
{
    turns_join(&client->service->turns, &client->turn);
}

void service_rest(struct client *client)
{
    turns_leave(&client->service->turns, &client->turn);
}

struct client *service_next(struct service *service)
{
    struct turn_client *turn = turns_next(&service->turns);
    return turn ? (struct client *)((char *)turn - offsetof(struct client, turn)) : NULL;
}

uint64_t service_charge(struct service *service, struct user *user, uint64_t since_us)
{
    uint64_t now_us = service->ops->now_us(service->context);
    turns_charge(&user->turn, now_us - since_us);
    return now_us;
}

/* Descriptors of messages that are not complete, or wait for another turn, are bounded for each user, and so that
 * others have room. */
static void watch_fds(struct client *client)
{
    const struct service *service = client->service;
    const struct user *user = client->user;
    const uint8_t *bytes;
    size_t size;
    uint32_t msgid;
    struct error error;
    count_fds(client, connection_fd_count(client->connection));
    unsigned left = LIMIT_WAITING_FDS - (service->waiting_fds - user->waiting_fds);
    unsigned most = left / 2 < LIMIT_USER_WAITING_FDS ? left / 2 : LIMIT_USER_WAITING_FDS;
    if (client->failed || client->waiting_fds == 0 || user->waiting_fds <= most)
        return;
    error_set(
        &error, -EDQUOT,
        "descriptors: user %u has %u of them waiting in messages that are not complete; allowed: %u; complete each "
        "message before the next one is begun; the connection ends",
        (unsigned)user->uid, user->waiting_fds, most);
    connection_peek(client->connection, &bytes, &size);
    if (message_find_msgid(bytes, size, &msgid))
        reply_failure(client, msgid, &error);
    client->failed = true;
}

/* True when a turn in which so many messages were handled ends. */
static bool turn_is_over(const struct service *service, unsigned handled, uint64_t end_us)
{
    return handled == LIMIT_TURN_MESSAGES || (handled > 0 && service->ops->now_us(service->context) >= end_us);
}

int service_input(struct client *client, uint64_t end_us)
{
    struct service *service = client->service;
    const uint8_t *bytes;
    size_t size;
    int r = 0;
    for (unsigned handled = 0;; handled++) {
        client->paused = service_is_clogged(client);
        if (client->failed || client->paused || (r = connection_peek(client->connection, &bytes, &size)) != 1 ||
            turn_is_over(service, handled, end_us))
            break;
        handle_message(client, bytes, size);
    }
    if (r < 0 && !client->failed)
        refuse_bytes(client, r, bytes, size);
    watch_fds(client);
    service_pump(service);
    if (client->failed)
        return -EBADMSG;
    return r == 1 && !client->paused;
}
