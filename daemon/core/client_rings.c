#include "client_rings.h"

#include <stdlib.h>

#include "loop.h"
#include "protocol/rings.h"

/* Memory that goes back to the system, and counts for as long as it is there. */
struct wiping {
    struct work work; /* first */
    struct service *service;
    struct user *user; /* held */
    struct rings *rings;
};

static void count(struct service *service, struct user *user, int more)
{
    user->rings += more;
    service->rings.used += more;
    service->stats.rings_open += more;
}

void client_use_rings(struct client *client, struct rings *rings)
{
    connection_use_rings(client->connection, rings);
    count(client->service, client->user, 1);
}

void client_leave_rings(struct client *client)
{
    if (connection_has_rings(client->connection))
        count(client->service, client->user, -1);
}

static bool wiping_run(struct work *work)
{
    struct wiping *self = (struct wiping *)work;
    rings_wipe(self->rings);
    rings_destroy(self->rings);
    return false;
}

static void wiping_done(struct work *work)
{
    struct wiping *self = (struct wiping *)work;
    count(self->service, self->user, -1);
    user_unhold(self->user);
    free(self);
}

/* Wiping waits until nobody writes to the file of the memory. Whoever has its descriptor may write bytes that never
 * come, from a file system of its own, so a reader does this. Without memory for that nothing is wiped. */
void service_wipe_rings(struct client *client)
{
    if (!connection_has_rings(client->connection))
        return;
    struct wiping *self = malloc(sizeof *self);
    if (!self)
        return;
    *self = (struct wiping){.work = {.run = wiping_run, .done = wiping_done},
                            .service = client->service,
                            .user = client->user,
                            .rings = connection_take_rings(client->connection)};
    user_hold(self->user);
    service_read(self->service, self->user, &self->work);
}
