/* Connections' rings: how many a user has, and the end of their memory. */
#ifndef DAEMON_CLIENT_RINGS_H
#define DAEMON_CLIENT_RINGS_H

#include "service.h"

struct rings;

/* Gives a connection its rings, and counts them. */
void client_use_rings(struct client *client, struct rings *rings);
/* Counts the rings of a connection no more: they end with the connection. */
void client_leave_rings(struct client *client);

#endif
