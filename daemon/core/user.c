#include "user.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

void users_init(struct user_table *table)
{
    *table = (struct user_table){.grants.standard.weight = 1};
    for (size_t quota = 0; quota < QUOTA_COUNT; quota++)
        table->grants.standard.most[quota] = UINT64_MAX;
}

static const struct grant *find_grant(const struct grants *grants, uid_t uid)
{
    for (size_t i = 0; i < grants->own_count; i++)
        if (grants->own[i].uid == uid)
            return &grants->own[i].grant;
    return &grants->standard;
}

static void user_grant(struct user *user, const struct grants *grants)
{
    const struct grant *grant = find_grant(grants, user->uid);
    user->fair.weight = grant->weight;
    memcpy(user->most, grant->most, sizeof user->most);
}

void users_configure(struct user_table *table, const struct grants *grants)
{
    table->grants = *grants;
    for (size_t i = 0; i < LIMIT_USERS; i++)
        if (table->slots[i].holds > 0)
            user_grant(&table->slots[i], grants);
}

bool user_manages(const struct user_table *table, uid_t uid)
{
    return uid == 0 || uid == table->owner;
}

/* The slot for a user who is not there: perhaps the one it had. NULL: none is left for it. */
static struct user *find_free(struct user_table *table, uid_t uid)
{
    struct user *found = NULL;
    size_t free_count = 0;
    for (size_t i = 0; i < LIMIT_USERS; i++) {
        struct user *user = &table->slots[i];
        if (user->holds > 0)
            continue;
        free_count++;
        if (!found || (user->uid == uid && found->uid != uid))
            found = user;
    }
    return free_count > LIMIT_USERS_KEPT || user_manages(table, uid) ? found : NULL;
}

struct user *user_find(struct user_table *table, uid_t uid)
{
    for (size_t i = 0; i < LIMIT_USERS; i++)
        if (table->slots[i].holds > 0 && table->slots[i].uid == uid)
            return &table->slots[i];
    return NULL;
}

struct user *user_acquire(struct user_table *table, uid_t uid)
{
    struct user *user = user_find(table, uid);
    if (user) {
        user_hold(user);
        return user;
    }
    user = find_free(table, uid);
    if (user) {
        uint64_t account_ns[LIMIT_DEVICES] = {0};
        if (user->uid == uid)
            memcpy(account_ns, user->fair.account_ns, sizeof account_ns);
        *user = (struct user){.uid = uid, .holds = 1};
        memcpy(user->fair.account_ns, account_ns, sizeof account_ns);
        user_grant(user, &table->grants);
    }
    return user;
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

int user_check(const struct user *user, enum quota quota, uint64_t more, const char *request, struct error *error)
{
    static const struct {
        const char *word, *counted, *remedy;
    } texts[] = {
#define X(NAME, WORD, COUNTED, REMEDY) {WORD, COUNTED, REMEDY},
        QUOTAS(X)
#undef X
    };
    uint64_t used = user->used[quota], most = user->most[quota];
    if (used <= most && more <= most - used)
        return 0;
    return error_set(error, -EDQUOT,
                     "%s: user %u has %" PRIu64 " %s and asks for %" PRIu64 " more; its quota \"%s\" is %" PRIu64
                     "; %s, or ask whoever runs the daemon to raise that setting",
                     request, (unsigned)user->uid, used, texts[quota].counted, more, texts[quota].word, most,
                     texts[quota].remedy);
}

void user_add(struct user *user, enum quota quota, uint64_t amount)
{
    assert(amount <= UINT64_MAX - user->used[quota]);
    user->used[quota] += amount;
}

void user_subtract(struct user *user, enum quota quota, uint64_t amount)
{
    assert(amount <= user->used[quota]);
    user->used[quota] -= amount;
}
