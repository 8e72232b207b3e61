#include "trust.h"

#include <stddef.h>

/* To look whether a thread has slept takes as long as a small job, so it is done for users alone for whom something has
 * taken long before: they may be innocent. */
void trust_begin(struct service *service, struct user *user)
{
    service->touching = user;
    if (user->suspected)
        (void)service->ops->slept(service->context);
}

/* Each time slept is paid for with LIMIT_SLEPT_PARTS times as much. True when more is owed than may be. */
static bool owes_too_much(struct user *user, uint64_t now_us, uint64_t slept_us)
{
    const uint64_t from_us = user->slept_until_us > now_us ? user->slept_until_us : now_us;
    user->slept_until_us = from_us + slept_us * LIMIT_SLEPT_PARTS;
    return user->slept_until_us - now_us > LIMIT_SLEPT_MS * UINT64_C(1000) * LIMIT_SLEPT_PARTS;
}

static void end_rings(struct service *service, const struct user *user)
{
    for (struct client *client = service->clients; client; client = client->next)
        if (client->user == user && trust_is_lost(client))
            service->ops->output(service->context, client);
}

void trust_note_unit(struct service *service, const struct work_queue *queue, uint64_t now_us)
{
    const struct user *slots = service->users.slots;
    const struct user *user = slots + (size_t)((const char *)queue - (const char *)slots) / sizeof *slots;
    if (service->units[0].user != user)
        service->units[1] = service->units[0];
    service->units[0].user = user;
    service->units[0].ended_us = now_us;
}

bool trust_excuses(const struct service *service, const struct user *user, uint64_t since_us)
{
    bool excused = service->helpers.out > user->work.out || service->readers.out > user->reads.out;
    for (int i = 0; i < 2; i++)
        excused |= service->units[i].user && service->units[i].user != user && service->units[i].ended_us >= since_us;
    return excused;
}

bool trust_end(struct service *service, struct user *user, uint64_t took_us)
{
    service->touching = NULL;
    if (took_us < LIMIT_SLEEP_US || user->distrusted)
        return false;
    const uint64_t now_us = service->ops->now_us(service->context);
    const bool was_suspected = user->suspected;
    user->suspected = true;
    /* Else it waited for a processor, or a lock. */
    if (!was_suspected || !service->ops->slept(service->context) || trust_excuses(service, user, now_us - took_us) ||
        !owes_too_much(user, now_us, took_us))
        return false;
    user_distrust(&service->users, user->uid);
    end_rings(service, user);
    return true;
}

bool trust_is_lost(const struct client *client)
{
    return client->user->distrusted && connection_has_rings(client->connection);
}

void trust_accuse(struct service *service)
{
    if (service->touching)
        user_distrust(&service->users, service->touching->uid);
}
