/* Descriptors that users sent and no handler took. */
#ifndef DAEMON_DESCRIPTORS_H
#define DAEMON_DESCRIPTORS_H

#include "daemon/core/service.h"

/* Closes descriptors that a user sent: those of large memory, whose pages may all go with them, on a helper thread, and
 * whatever is no memory on a reader's. */
void descriptors_drop(struct service *service, struct user *user, const int *fds, size_t count);

#endif
