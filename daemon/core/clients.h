/*
 * Connections: admission by quota and fair share, and the lifetime of clients. clients.c also has service_open and
 * service_is_full of service.h.
 */
#ifndef DAEMON_CLIENTS_H
#define DAEMON_CLIENTS_H

#include "service.h"

void client_hold(struct client *client);
void client_unhold(struct client *client); /* frees it after the last */
/* Adds the device time of a client that is no longer listed to its user's. */
void client_settle(struct client *client);

/* True for root and the daemon's own user. */
bool client_may_manage(const struct client *client);
/* The buffer of this client with that id, or NULL. */
struct buffer *client_find_buffer(const struct client *client, uint64_t id);

/* Admits a client that is counted already: 0, or -EDQUOT or -EAGAIN and *error. */
int client_admit(struct client *client, struct error *error);
/* Gives up its place among clients that are admitted, or wait to be told that they are not. */
void client_leave(struct client *client);
/* Counts a connection of the client's user (more: 1), or its end (-1). */
void clients_count(struct client *client, int more);

/* Sets how many descriptors of the client have arrived and were not accepted by a handler. */
void client_count_fds(struct client *client, uint64_t count);

#endif
