#include "replies.h"

#include <assert.h>

void client_count_unread(struct client *client, uint64_t bytes, uint64_t fds)
{
    client->user->unread_bytes += bytes - client->unread_bytes;
    client->service->unread_bytes += bytes - client->unread_bytes;
    client->unread_bytes = bytes;
    client->user->unread_fds += fds - client->unread_fds;
    client->service->unread_fds.used += fds - client->unread_fds;
    client->unread_fds = fds;
}

void service_sent(struct client *client)
{
    client_count_unread(client, connection_output_bytes(client->connection), connection_output_fds(client->connection));
}

static bool has_many_unread_fds(const struct client *client)
{
    const uint64_t own = client->user->unread_fds;
    return client->unread_fds > 0 && own > stock_allowed_half(&client->service->unread_fds, own);
}

/* True when no more is to be read from a client. A client whose answers are read goes on while other connections of its
 * user hold up theirs. One that has brought many descriptors that threads still have brings no more until they have
 * closed them. */
bool service_is_clogged(const struct client *client)
{
    if (service_lends_many(client->service, client->user))
        return true;
    const uint64_t own = client->user->unread_bytes, others = client->service->unread_bytes - own,
                   half = others < LIMIT_ALL_UNREAD_BYTES ? (LIMIT_ALL_UNREAD_BYTES - others) / 2 : 0;
    return connection_is_clogged(client->connection) || has_many_unread_fds(client) ||
           (client->unread_bytes > 0 && own > (half < LIMIT_USER_UNREAD_BYTES ? half : LIMIT_USER_UNREAD_BYTES));
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

/* Ends the connection of a client that would wait for ever for a lost answer. */
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

void count_refusal(struct msg_stats_result *stats, int code)
{
    switch (status_from_errno(code)) {
#define COUNT(STATUS, Y, X, S, NAME, WORD) \
    case SCAND_##STATUS:                   \
        stats->NAME++;                     \
        break;
        REFUSALS(COUNT, , , )
#undef COUNT
    default:
        break;
    }
}

void reply_failure(struct client *client, uint32_t msgid, const struct error *error)
{
    uint8_t bytes[FAILURE_BYTES];
    struct encoded message = {bytes, 0, sizeof bytes};
    if (!client->connection)
        return;
    client->service->stats.messages_refused++;
    count_refusal(&client->service->stats, error->code);
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
