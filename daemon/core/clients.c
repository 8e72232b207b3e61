#include "clients.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

/* The time after which to try a connection again, for want of a measure of how long connections last. */
#define CONNECT_RETRY_MS 1000

void client_hold(struct client *client)
{
    client->holds++;
}

void client_settle(struct client *client)
{
    client->user->counters.device_busy_ns += client->counters.device_busy_ns;
    client->counters.device_busy_ns = 0;
}

void client_unhold(struct client *client)
{
    if (--client->holds > 0)
        return;
    client_settle(client);
    user_unhold(client->user);
    free(client);
}

bool client_may_manage(const struct client *client)
{
    return user_manages(&client->service->users, client->user->uid);
}

struct buffer *client_find_buffer(const struct client *client, uint64_t id)
{
    struct buffer *buffer = client->buffers;
    while (buffer && buffer->id != id)
        buffer = buffer->next;
    return buffer;
}

/* Connections that are kept for others than a user who has `others`: of few, an eighth for each kind of them. */
static uint64_t kept_connections(const struct service *service, const struct user *user, uint64_t others)
{
    const uint64_t eighth = service->clients_most / 8;
    const uint64_t for_managers = eighth < LIMIT_CLIENTS_KEPT ? eighth : LIMIT_CLIENTS_KEPT;
    const uint64_t for_newcomers = eighth < LIMIT_CLIENTS_FIRST ? eighth : LIMIT_CLIENTS_FIRST;
    if (user_manages(&service->users, user->uid))
        return 0;
    return others == 0 ? for_managers : for_managers + for_newcomers;
}

/* Connections that a user who has `others` could still open while so many are open. */
static uint64_t free_connections(const struct service *service, const struct user *user, uint64_t open, uint64_t others)
{
    const uint64_t most = service->clients_most - kept_connections(service, user, others);
    return open < most ? most - open : 0;
}

/* A user may have at most as many connections as are left for others; who manages, all of them. */
static bool has_fair_share_left(const struct service *service, const struct user *user, uint64_t others, uint64_t left)
{
    return left > 0 && (others < left || user_manages(&service->users, user->uid));
}

/* Returns how many connections a user could open beside one that is counted already. */
static uint64_t left_for(const struct service *service, const struct user *user)
{
    return free_connections(service, user, service->stats.clients_open - 1, user->connections - 1);
}

static int check_fair_share(const struct service *service, const struct user *user, struct error *error)
{
    uint64_t left = left_for(service, user), others = user->connections - 1;
    if (has_fair_share_left(service, user, others, left))
        return 0;
    error_set(error, -EAGAIN,
              "connect: user %u has %" PRIu64 " connections and asks for 1 more; %" PRIu64
              " are left, and a user may have as many as are left for others; close one of them, or try again in %d ms",
              (unsigned)user->uid, others, left, CONNECT_RETRY_MS);
    error->retry_ms = CONNECT_RETRY_MS;
    return -EAGAIN;
}

static unsigned connects_left(struct service *service, const struct user *user)
{
    return user_connects_left(&service->users, user->uid, service->ops->now_us(service->context));
}

/* The last of a user's allowance are for connections that are told so. */
static int check_rate(struct service *service, const struct user *user, struct error *error)
{
    if (connects_left(service, user) >= LIMIT_UNADMITTED)
        return 0;
    error_set(error, -EAGAIN,
              "connect: user %u opens connections too fast; allowed: %d at once, and %d a second; keep one open for "
              "many requests, or try again in %d ms",
              (unsigned)user->uid, LIMIT_CONNECTS_AT_ONCE, LIMIT_CONNECTS, CONNECT_RETRY_MS);
    error->retry_ms = CONNECT_RETRY_MS;
    return -EAGAIN;
}

int client_admit(struct client *client, struct error *error)
{
    int r;
    client->admitted = false;
    if ((r = check_rate(client->service, client->user, error)) ||
        (r = user_check(client->user, QUOTA_CONNECTIONS, 1, "connect", error)) ||
        (r = check_fair_share(client->service, client->user, error)))
        return r;
    user_add(client->user, QUOTA_CONNECTIONS, 1);
    client->admitted = true;
    return 0;
}

/* A few connections beyond the quota or the fair share may come in, to be told so, while many are free. */
static bool may_be_told(const struct service *service, const struct user *user, uint64_t left)
{
    return user->unadmitted < LIMIT_UNADMITTED && left > 0 && left >= service->clients_most / 8;
}

static bool client_enter(struct client *client)
{
    struct service *service = client->service;
    struct error error;
    if (connects_left(service, client->user) == 0)
        return false;
    user_count_connect(client->user, service->ops->now_us(service->context));
    if (client_admit(client, &error) == 0)
        return true;
    if (!may_be_told(service, client->user, left_for(service, client->user)))
        return false;
    client->user->unadmitted++;
    return true;
}

bool service_is_full(struct service *service, uid_t uid)
{
    const struct user *user = user_find(&service->users, uid);
    if (user_connects_left(&service->users, uid, service->ops->now_us(service->context)) == 0)
        return true;
    if (!user)
        return false;
    if (service_lends_many(service, user))
        return true;
    uint64_t left = free_connections(service, user, service->stats.clients_open, user->connections);
    return !may_be_told(service, user, left) && (user->used[QUOTA_CONNECTIONS] >= user->most[QUOTA_CONNECTIONS] ||
                                                 !has_fair_share_left(service, user, user->connections, left));
}

void client_leave(struct client *client)
{
    if (client->admitted)
        user_subtract(client->user, QUOTA_CONNECTIONS, 1);
    else
        client->user->unadmitted--;
}

void clients_count(struct client *client, int more)
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
    client->lane.user = &user->fair;
    client->turn.user = &user->turn;
    client->holds = 1;
    clients_count(client, 1);
    if (!client_enter(client)) {
        clients_count(client, -1);
        client_unhold(client);
        return NULL;
    }
    client->next = service->clients;
    service->clients = client;
    client->number = ++service->stats.clients_accepted;
    client->opened_us = service->ops->now_us(service->context);
    return client;
}

void client_count_fds(struct client *client, uint64_t count)
{
    client->user->waiting_fds += count - client->waiting_fds;
    client->service->waiting_fds.used += count - client->waiting_fds;
    client->waiting_fds = count;
}
