/*
 * Turns of the loop: whose messages are handled next. The next turn goes to the user who has had the least of the
 * loop's time; a user's clients take its turns one after the other. So a user with 256 connections that flood gets no
 * more of the loop than a user with one connection, and a user who asks for little is next.
 *
 * A user who was idle is counted as having had as much as the others: idle time is not saved up. One thread at a
 * time.
 */
#ifndef DAEMON_LOOP_TURNS_H
#define DAEMON_LOOP_TURNS_H

#include <stdbool.h>
#include <stdint.h>

#include "round_robin.h"

struct turn_user {
    struct round_robin node;     /* first; among the users with a client that is ready */
    struct round_robin *clients; /* clients that are ready; NULL: the user stands in no round itself */
    uint64_t had_us;             /* time of the loop that the user has had */
};

struct turn_client {
    struct round_robin node; /* first; among the ready clients of its user */
    struct turn_user *user;
    bool ready; /* true while it stands in that round */
};

struct turns {
    struct round_robin *users;
    uint64_t floor_us; /* had_us of the user of the latest turn */
};

/* The client has something to be handled. Nothing changes for one that is ready already. */
void turns_join(struct turns *turns, struct turn_client *client);
/* Removes a client that has nothing any more, or is gone. Nothing changes for one that is not ready. */
void turns_leave(struct turns *turns, struct turn_client *client);
/* Returns the client whose turn it is, which is then behind its user's other clients; NULL: nobody is ready. */
struct turn_client *turns_next(struct turns *turns);
/* Charges the user for so long a time of the loop. */
void turns_charge(struct turn_user *user, uint64_t us);

#endif
