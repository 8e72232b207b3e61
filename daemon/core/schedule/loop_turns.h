/*
 * Turns of the loop: whose messages are handled next. Users come in the order of the loop's time that they have had,
 * who had least first; inside a user its clients come one after the other. So a user with 256 connections that flood
 * gets no more of the loop than a user with one, and whoever asks for little is next.
 *
 * Who comes counts as having had what the others had by then: nothing is saved up while there is nothing to do. One
 * thread at a time.
 */
#ifndef DAEMON_LOOP_TURNS_H
#define DAEMON_LOOP_TURNS_H

#include <stdbool.h>
#include <stdint.h>

#include "fair_queue.h"

struct turn_user {
    struct ring ring;     /* first; among the users with a client that is ready */
    struct ring *clients; /* that are ready; NULL: it stands in no ring itself */
    uint64_t had_us;      /* of the loop's time */
};

struct turn_client {
    struct ring ring; /* first; among the ready clients of its user */
    struct turn_user *user;
    bool ready; /* it stands in that ring */
};

struct turns {
    struct ring *users;
    uint64_t floor_us; /* what the user had whose turn was the latest */
};

/* The client has something to be handled. Nothing changes for one that is ready already. */
void turns_join(struct turns *turns, struct turn_client *client);
/* It has nothing any more, or is gone. Nothing changes for one that is not ready. */
void turns_leave(struct turns *turns, struct turn_client *client);
/* Whose turn it is, which is then behind its user's other clients; NULL: nobody is ready. */
struct turn_client *turns_next(struct turns *turns);
/* The loop has worked for the user for so long. */
void turns_charge(struct turn_user *user, uint64_t us);

#endif
