#include "user.h"

#include <assert.h>
#include <stddef.h>

struct user *user_acquire(struct user_table *table, uid_t uid)
{
    struct user *free_slot = NULL;
    for (size_t i = 0; i < LIMIT_USERS; i++) {
        struct user *user = &table->slots[i];
        if (user->holds > 0 && user->uid == uid) {
            user_hold(user);
            return user;
        }
        if (user->holds == 0 && !free_slot)
            free_slot = user;
    }
    if (free_slot)
        *free_slot = (struct user){.uid = uid, .holds = 1};
    return free_slot;
}

void user_hold(struct user *user)
{
    assert(user->holds > 0);
    user->holds++;
}

void user_unhold(struct user *user)
{
    assert(user->holds > 0);
    user->holds--;
}
