#include "trust.h"

#include <string.h>

/* To look whether a thread has slept takes as long as a small job, so it is done for users alone for whom something has
 * taken long before: they may be innocent. */
void trust_begin(struct service *service, struct user *user)
{
    service->touches = true;
    service->touching = user->uid;
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
    struct ended_unit *units = service->units;
    unsigned place = 0;
    while (place < ENDED_UNITS - 1 && units[place].queue != queue)
        place++;
    memmove(&units[1], &units[0], place * sizeof units[0]);
    units[0] = (struct ended_unit){queue, now_us};
}

static bool is_anothers(const struct user *user, const struct work_queue *queue)
{
    return queue && queue != &user->work && queue != &user->reads;
}

bool trust_excuses(const struct service *service, const struct user *user, uint64_t since_us)
{
    bool excused = service->helpers.out > user->work.out || service->readers.out > user->reads.out;
    for (int i = 0; i < ENDED_UNITS; i++)
        excused |= is_anothers(user, service->units[i].queue) && service->units[i].ended_us >= since_us;
    return excused;
}

bool trust_end(struct service *service, struct user *user, uint64_t took_us)
{
    service->touches = false;
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
    if (service->touches)
        user_distrust(&service->users, service->touching);
}
