/*
 * Users: whose the clients are, by the uid at the other end of their sockets. What is granted and shared out is so per
 * user, however many connections and programs one has. A user takes a slot of the table for as long as something of
 * its is there. The loop's thread only.
 */
#ifndef DAEMON_USER_H
#define DAEMON_USER_H

#include <sys/types.h>

#include "protocol/limits.h"

struct user {
    uid_t uid;
    unsigned holds; /* of its clients and buffers; 0: the slot is free */
};

struct user_table {
    struct user slots[LIMIT_USERS];
};

/* The user with that uid, held once more; NULL when there are LIMIT_USERS others. */
struct user *user_acquire(struct user_table *table, uid_t uid);
void user_hold(struct user *user);
void user_unhold(struct user *user);

#endif
