/* Handles a connection's bytes, from bytes to handlers: service_input of service.h. */
#include <errno.h>
#include <inttypes.h>

#include "clients.h"
#include "daemon/core/handlers/handlers.h"
#include "daemon/core/memory/client_descriptors.h"
#include "daemon/core/schedule/pump.h"
#include "replies.h"

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

/* Takes the descriptors that a message announces. What it did not announce ends the connection. */
static int accept_descriptors(struct call *call, uint64_t announced)
{
    struct client *client = call->client;
    size_t arrived = connection_fd_count(client->connection);
    if (arrived > announced && !connection_has_more(client->connection)) {
        client->failed = true;
        return error_set(&call->error, -EBADF,
                         "%zu descriptors came with a message that announces %zu; the connection ends", arrived,
                         (size_t)announced);
    }
    call->fd_count = arrived < announced ? arrived : announced;
    if (connection_pop_fds(client->connection, call->fds, call->fd_count))
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
    if (arrived > LIMIT_MESSAGE_FDS || (arrived > 0 && connection_has_more(connection)))
        call->client->failed = true;
    else if (connection_pop_fds(connection, call->fds, arrived) == 0)
        call->fd_count = arrived;
}

/* Admits a client that was not admitted, at its first message: perhaps there is room by now. */
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

/* The member that says how many descriptors a request brings; NULL: requests of that method bring none. */
static const uint64_t *announced_fds(enum method method, const union params *params)
{
    switch (method) {
    case METHOD_buffer_import:
        return &params->buffer_import.fds;
    case METHOD_buffer_import_file:
        return &params->buffer_import_file.fds;
    case METHOD_buffer_import_device:
        return &params->buffer_import_device.fds;
    default:
        return NULL;
    }
}

static int dispatch(struct call *call, const struct message *message, union params *params)
{
    int r = call->client->admitted ? 0 : admit_late(call);
    if (r)
        return r;
    r = read_params(message, params, &call->error);
    connection_consume(call->client->connection);
    const uint64_t *announced = announced_fds(message->method, params);
    if (r && (announced || message->method == METHOD_COUNT)) { /* a method that is not known may bring any */
        drop_descriptors(call);
        return r;
    }
    int fds = accept_descriptors(call, announced ? *announced : 0);
    if (r || fds)
        return r ? r : fds;
    if (!call->client->greeted && message->method != METHOD_hello)
        return error_set(&call->error, -EINVAL, "%s came before hello; a connection begins with hello",
                         message->method_text);
    return run_handler(message->method, call, params);
}

/* Sets no more than what a request without errors and descriptors has. */
static void call_begin(struct call *call, struct client *client, uint32_t msgid)
{
    call->service = client->service;
    call->client = client;
    call->msgid = msgid;
    call->position = connection_position(client->connection);
    call->fd_count = 0;
    error_clear(&call->error);
}

static void handle_request(struct client *client, const struct message *message)
{
    struct call call;
    union params params;
    call_begin(&call, client, message->msgid);
    if (dispatch(&call, message, &params))
        reply_failure(client, message->msgid, &call.error);
    client_descriptors_drop(client->service, client->user, call.fds, call.fd_count);
}

/* Handles one message that walk() accepted. */
static void handle_message(struct client *client, const uint8_t *bytes, size_t size)
{
    struct message message;
    struct error error;
    error_clear(&error);
    int r = message_open_in(&message, &client->service->arena, bytes, size, &error);
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

/* Returns how many descriptors of waiting messages a user may have. */
static uint64_t user_most_fds(const struct service *service, const struct user *user)
{
    const uint64_t half = stock_allowed_half(&service->waiting_fds, user->waiting_fds);
    return half < LIMIT_USER_WAITING_FDS ? half : LIMIT_USER_WAITING_FDS;
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
    const uint64_t most = user_most_fds(service, user);
    client_count_fds(client, connection_fd_count(client->connection));
    if (client->failed || client->waiting_fds == 0 || user->waiting_fds <= most)
        return;
    error_set(&error, -EDQUOT,
              "descriptors: user %u has %" PRIu64
              " of them waiting in messages that are not complete; allowed: %" PRIu64
              "; complete each message before the next one is begun; the connection ends",
              (unsigned)user->uid, user->waiting_fds, most);
    connection_peek(client->connection, &bytes, &size);
    if (message_find_msgid(bytes, size, &msgid))
        reply_failure(client, msgid, &error);
    client->failed = true;
}

/* True, before a message, when a turn in which so many were handled ends. */
static bool turn_is_over(struct service *service, unsigned handled, uint64_t end_us)
{
    service->now_us = service->ops->now_us(service->context);
    return handled == LIMIT_TURN_MESSAGES || (handled > 0 && service->now_us >= end_us);
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

bool service_submit(struct client *client, uint32_t msgid, const struct msg_job_submit_params *params)
{
    struct service *service = client->service;
    struct call call;
    client->paused = service_is_clogged(client);
    if (client->failed || client->paused || !client->admitted || !client->greeted ||
        connection_fd_count(client->connection) > 0)
        return false;
    service->now_us = service->ops->now_us(service->context);
    call_begin(&call, client, msgid);
    if (handle_job_submit(&call, params))
        reply_failure(client, msgid, &call.error);
    service_pump(service);
    return true;
}
