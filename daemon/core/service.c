#include "service.h"

#include <errno.h>
#include <stddef.h>

#include "client_rings.h"
#include "clients.h"
#include "daemon/core/jobs/ending.h"
#include "daemon/core/memory/client_buffers.h"
#include "daemon/core/memory/client_descriptors.h"
#include "daemon/core/memory/waiting.h"
#include "daemon/core/schedule/pump.h"
#include "daemon/core/stats/histogram.h"
#include "loop.h"
#include "protocol/describe.h"
#include "replies.h"
#include "trust.h"

void service_init(struct service *service, const struct service_ops *ops, void *context,
                  const struct device_set *devices, struct pool *pool, uid_t owner)
{
    *service = (struct service){.ops = ops, .context = context, .devices = devices, .pool = pool, .owner = owner};
    service->wake_us = service->load_due_us = UINT64_MAX;
    scheduler_init(&service->scheduler, devices);
    service->helpers.most = LIMIT_HELPERS;
    service->readers = (struct helpers){.most = LIMIT_READERS, .each = LIMIT_USER_READERS};
    service->files.most = LIMIT_FILES;
    service->lent_fds.most = LIMIT_LENT_FDS;
    service->clients_most = LIMIT_CLIENTS;
    service->waiting_fds.most = LIMIT_WAITING_FDS;
    service->unread_fds.most = LIMIT_UNREAD_FDS;
    service->loads.most = LIMIT_LOADS;
    service->load_bytes.most = LIMIT_ALL_LOAD_BYTES;
    service->rings.most = LIMIT_RINGS;
    service_limit_maps(service, LIMIT_MAPS_STANDARD);
    users_init(&service->users);
    service->users.owner = owner;
    service->stats.pool_bytes = pool_size_bytes(pool);
    service->began_us = ops->now_us(context);
    histograms_init(&service->histograms);
    for (int i = 0; i < OPERATION_COUNT; i++)
        operation_describe(i, &service->operations[i]);
}

void service_limit_maps(struct service *service, uint64_t most)
{
    uint64_t taken = LIMIT_MAPS_RESERVE + pool_segments_most(service->pool);
    service->maps.most = taken < most ? most - taken : 0;
}

static uint64_t lesser(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

void service_limit_files(struct service *service, uint64_t connections, uint64_t others)
{
    service->clients_most = (unsigned)lesser(connections, LIMIT_CLIENTS);
    service->files.most = lesser(others / 4, LIMIT_FILES);
    service->waiting_fds.most = lesser(others / 4, LIMIT_WAITING_FDS);
    service->lent_fds.most = lesser(others / 4, LIMIT_LENT_FDS);
    service->unread_fds.most = lesser(others / 4, LIMIT_UNREAD_FDS);
}

void service_configure(struct service *service, const struct grants *grants)
{
    users_configure(&service->users, grants);
}

void service_finish(struct service *service)
{
    while (service->clients)
        service_close(service->clients);
    spare_jobs_free(&service->spare_jobs);
    arena_destroy(service->arena);
}

void service_work_done(struct service *service, struct work *work)
{
    service->now_us = service->ops->now_us(service->context);
    helpers_return(work);
    trust_note_unit(service, work->queue, service->now_us);
    const bool more = work->more && (!work->is_wanted || work->is_wanted(work));
    if (more)
        helpers_add(work->helpers, work->queue, work);
    else
        work->done(work);
    scheduler_look_again(&service->scheduler);
    service_pump_helpers(service);
    if (!more)
        service_pump(service); /* jobs may have waited for it: for memory to be pinned, or their offsets to be read */
}

static void service_unlink(struct service *service, struct client *client)
{
    struct client **at = &service->clients;
    while (*at != client)
        at = &(*at)->next;
    *at = client->next;
    client_settle(client);
    clients_count(client, -1);
}

static void drop_fds(struct client *client, const int *fds, size_t count)
{
    for (size_t at = 0; at < count; at += LIMIT_MESSAGE_FDS) {
        const size_t left = count - at;
        client_descriptors_drop(client->service, client->user, fds + at,
                                left < LIMIT_MESSAGE_FDS ? left : LIMIT_MESSAGE_FDS);
    }
}

/* Drops descriptors that no message has taken, and those that wait in the socket, with the socket: the end of a
 * descriptor may last for as long as its sender likes. */
static void drop_arrived(struct client *client)
{
    int fds[LOST_FDS];
    size_t count;
    drop_fds(client, fds, connection_take_lost(client->connection, fds));
    const int socket = connection_end(client->connection);
    if (socket >= 0)
        drop_fds(client, &socket, 1);
    while ((count = connection_fd_count(client->connection)) > 0) {
        count = count < LIMIT_MESSAGE_FDS ? count : LIMIT_MESSAGE_FDS;
        connection_pop_fds(client->connection, fds, count);
        drop_fds(client, fds, count);
    }
}

void service_close(struct client *client)
{
    struct service *service = client->service;
    service->now_us = service->ops->now_us(service->context);
    service_unlink(service, client);
    service_rest(client);
    client_leave(client);
    client_count_fds(client, 0);
    client_count_unread(client, 0, 0);
    client_leave_rings(client);
    waiting_drop(client);
    drop_arrived(client);
    connection_destroy(client->connection);
    client->connection = NULL;
    client->peer = NULL;
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
    service_check_drained(service);
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

void service_collect(struct service *service, struct chunk **returned, uint64_t end_us)
{
    struct user *user = NULL;
    uint64_t now_us = service->ops->now_us(service->context);
    for (unsigned handled = 0; *returned && handled < LIMIT_TURN_CHUNKS && (handled == 0 || now_us < end_us);
         handled++) {
        struct chunk *chunk = *returned;
        user = ((struct job *)chunk->owner)->client->user;
        *returned = chunk->next;
        pump_return(service, chunk, now_us);
        now_us = service_charge(service, user, now_us);
    }
    if (pump_start(service))
        service_charge(service, user, now_us);
}
