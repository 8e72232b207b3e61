/*
 * Trust in users' memory. The loop touches memory that clients have, too: rings, small jobs, few offsets. Clients may
 * give back pages of it at any time; whoever touches one meanwhile sleeps until all of them are free, uninterruptibly,
 * and that takes the longer the more often the client has mapped them, without a bound. So the loop notices for how
 * long it sleeps at a user's memory. For a user for whom it has slept too long (LIMIT_SLEPT_MS) it touches none any
 * more: threads do, and connections with rings end. That holds for later workers, too.
 */
#ifndef DAEMON_TRUST_H
#define DAEMON_TRUST_H

#include "service.h"

/* The loop begins something in which it may touch memory of the user's. */
void trust_begin(struct service *service, struct user *user);
/* It ends, and has taken so long. Returns true when the user's memory is not to be touched from now on: then output is
 * noted for its connections with rings, which are to end. */
bool trust_end(struct service *service, struct user *user, uint64_t took_us);
/* True for a connection with rings whose memory is not to be touched. */
bool trust_is_lost(const struct client *client);

/* Helpers or readers have done a unit of this queue, a user's or the pool's. */
void trust_note_unit(struct service *service, const struct work_queue *queue, uint64_t now_us);
/* True where a thread that has slept since then may have slept for another user: while one thread maps or unmaps memory
 * that its client gives back, others that meet a page which is not there sleep as well, whoever's it is. */
bool trust_excuses(const struct service *service, const struct user *user, uint64_t since_us);

/* For the supervisor, where it ends a worker whose loop hangs: no later worker trusts the user at whose memory that
 * loop sleeps, if it does. */
void trust_accuse(struct service *service);

#endif
