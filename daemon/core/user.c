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
    for (size_t i = 0; i < table->slot_count; i++) /* also of users who have left: lists show what they may have */
        user_grant(&table->slots[i], grants);
}

bool user_manages(const struct user_table *table, uid_t uid)
{
    return uid == 0 || uid == table->owner;
}

/* The slot that a user has, or had until it left. NULL: none, or another user has it. */
static struct user *find_slot(struct user_table *table, uid_t uid)
{
    for (size_t i = 0; i < table->slot_count; i++)
        if (table->slots[i].uid == uid)
            return &table->slots[i];
    return NULL;
}

/* The first slot that its user has left; *free_count: how many are free, also if nobody has had them. */
static struct user *find_left(struct user_table *table, size_t *free_count)
{
    struct user *found = NULL;
    *free_count = LIMIT_USERS - table->slot_count;
    for (size_t i = table->slot_count; i-- > 0;)
        if (table->slots[i].holds == 0) {
            found = &table->slots[i];
            ++*free_count;
        }
    return found;
}

/* The slot for a user who is not there: the one that it had, or one that nobody has had, so that users who come back
 * find what they were charged for as long as possible. NULL: none is left for it. */
static struct user *find_free(struct user_table *table, uid_t uid)
{
    size_t free_count;
    struct user *own = find_slot(table, uid), *left = find_left(table, &free_count);
    if (free_count <= LIMIT_USERS_KEPT && !user_manages(table, uid))
        return NULL;
    if (own)
        return own;
    return table->slot_count < LIMIT_USERS ? &table->slots[table->slot_count++] : left;
}

struct user *user_find(struct user_table *table, uid_t uid)
{
    struct user *user = find_slot(table, uid);
    return user && user->holds > 0 ? user : NULL;
}

static bool is_distrusted(const struct distrusted *distrusted, uid_t uid)
{
    for (unsigned i = 0; i < LIMIT_DISTRUSTED && i < distrusted->count; i++)
        if (distrusted->uids[i] == uid)
            return true;
    return false;
}

void user_distrust(struct user_table *table, uid_t uid)
{
    struct distrusted *distrusted = &table->distrusted;
    struct user *user = user_find(table, uid);
    if (!is_distrusted(distrusted, uid))
        distrusted->uids[distrusted->count++ % LIMIT_DISTRUSTED] = uid;
    if (user)
        user->distrusted = true;
}

/* Takes a slot for a user, who goes on with what it was charged in that slot before. */
static void user_begin(struct user *user, uid_t uid, const struct user_table *table)
{
    struct user begun = {.uid = uid, .holds = 1, .distrusted = is_distrusted(&table->distrusted, uid)};
    if (user->uid == uid) {
        memcpy(begun.fair.account_ns, user->fair.account_ns, sizeof begun.fair.account_ns);
        begun.fair.rests_until_us = user->fair.rests_until_us;
        begun.connects_us = user->connects_us;
        begun.suspected = user->suspected;
        begun.slept_until_us = user->slept_until_us;
        begun.counters = user->counters;
    }
    *user = begun;
    user_grant(user, &table->grants);
}

struct user *user_acquire(struct user_table *table, uid_t uid)
{
    struct user *user = user_find(table, uid);
    if (user) {
        user_hold(user);
        return user;
    }
    user = find_free(table, uid);
    if (user)
        user_begin(user, uid, table);
    return user;
}

/* Each connection is paid for with time, of which LIMIT_CONNECTS_AT_ONCE may be owed for. */
#define CONNECT_US (1000000 / LIMIT_CONNECTS)

unsigned user_connects_left(struct user_table *table, uid_t uid, uint64_t now_us)
{
    const struct user *user = find_slot(table, uid);
    const uint64_t owed_us = user && user->connects_us > now_us ? user->connects_us - now_us : 0;
    const uint64_t owed = (owed_us + CONNECT_US - 1) / CONNECT_US;
    return owed < LIMIT_CONNECTS_AT_ONCE ? (unsigned)(LIMIT_CONNECTS_AT_ONCE - owed) : 0;
}

void user_count_connect(struct user *user, uint64_t now_us)
{
    user->connects_us = (user->connects_us > now_us ? user->connects_us : now_us) + CONNECT_US;
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

/* The user itself, or another program of the user's, may have given something back by then. */
#define QUOTA_RETRY_MS 100

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
    const char *remedy = most == 0     ? "wait until more is allowed"
                         : more > most ? "that is never granted: ask for less at a time"
                                       : texts[quota].remedy;
    error_set(error, -EDQUOT,
              "%s: user %u has %" PRIu64 " %s and asks for %" PRIu64 " more; its quota \"%s\" is %" PRIu64
              "; %s, or ask whoever runs the daemon to raise that setting",
              request, (unsigned)user->uid, used, texts[quota].counted, more, texts[quota].word, most, remedy);
    error->retry_ms = more <= most ? QUOTA_RETRY_MS : 0;
    return -EDQUOT;
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
