#include "loop_turns.h"

#include <stddef.h>

void turns_join(struct turns *turns, struct turn_client *client)
{
    struct turn_user *user = client->user;
    if (client->ready)
        return;
    if (!user->clients) {
        if (user->had_us < turns->floor_us)
            user->had_us = turns->floor_us;
        round_robin_join(&turns->users, &user->node);
        turns->users = &user->node; /* before users who have had as much */
    }
    round_robin_join(&user->clients, &client->node);
    client->ready = true;
}

void turns_leave(struct turns *turns, struct turn_client *client)
{
    struct turn_user *user = client->user;
    if (!client->ready)
        return;
    round_robin_leave(&user->clients, &client->node);
    if (!user->clients)
        round_robin_leave(&turns->users, &user->node);
    client->ready = false;
}

static struct turn_user *least_served(const struct turns *turns)
{
    struct turn_user *least = (struct turn_user *)turns->users;
    for (struct round_robin *at = turns->users->next; at != turns->users; at = at->next)
        if (((struct turn_user *)at)->had_us < least->had_us)
            least = (struct turn_user *)at;
    return least;
}

struct turn_client *turns_next(struct turns *turns)
{
    if (!turns->users)
        return NULL;
    struct turn_user *user = least_served(turns);
    struct turn_client *client = (struct turn_client *)user->clients;
    user->clients = client->node.next;
    turns->floor_us = user->had_us;
    return client;
}

/* A turn counts, also one that the clock does not show. */
void turns_charge(struct turn_user *user, uint64_t us)
{
    user->had_us += us > 0 ? us : 1;
}
