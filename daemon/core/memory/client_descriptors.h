/* Descriptors that users sent: how many threads have, and the end of each that nobody needs. */
#ifndef DAEMON_CLIENT_DESCRIPTORS_H
#define DAEMON_CLIENT_DESCRIPTORS_H

#include "daemon/core/service.h"

/* Count descriptors of a user that a thread has, and no more: to close them, or for as long as it prepares a buffer.
 * Nothing more is read from a user of whom threads have many (service_is_clogged) until they have given some back. */
void client_descriptors_lend(struct service *service, struct user *user, size_t count);
void client_descriptors_return(struct service *service, struct user *user, size_t count);
/* Closes descriptors that a user sent: of large memory, whose pages may all go with them, on a helper thread, and of
 * whatever is no memory on a reader's. */
void client_descriptors_drop(struct service *service, struct user *user, const int *fds, size_t count);
/* Closes a connection that is not served: on a reader's thread where something waits in it, which may be descriptors.
 * Returns false where it is left to the caller, as threads have many of the user's, or there is no room for the user.
 */
bool client_descriptors_turn_away(struct service *service, uid_t uid, int fd);

#endif
