#include "client_descriptors.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/core/loop.h"

#define LOOP_BYTES MIB(1) /* memory that may be freed in the loop, some 0.1 ms */

/* Descriptors are closed one at a time: the last descriptor of a file frees all its pages, which takes a second for 10
 * GiB. */
struct closing {
    struct work work; /* first */
    struct service *service;
    struct user *user; /* held */
    size_t counted;    /* descriptors of the user that threads have */
    size_t count;
    int fds[LIMIT_MESSAGE_FDS];
};

static bool closing_run(struct work *work)
{
    struct closing *self = (struct closing *)work;
    close(self->fds[--self->count]);
    return self->count > 0;
}

/* Reads on from paused clients, which wait for descriptors to be returned (service_is_clogged). */
static void wake_paused(struct service *service, const struct user *user)
{
    for (struct client *client = service->clients; client; client = client->next)
        if (client->user == user && client->paused)
            service->ops->output(service->context, client);
}

void client_descriptors_lend(struct service *service, struct user *user, size_t count)
{
    user->lent_fds += count;
    service->lent_fds.used += count;
}

void client_descriptors_return(struct service *service, struct user *user, size_t count)
{
    if (count == 0)
        return;
    user->lent_fds -= count;
    service->lent_fds.used -= count;
    if (!service_lends_many(service, user))
        wake_paused(service, user);
}

static void closing_done(struct work *work)
{
    struct closing *self = (struct closing *)work;
    client_descriptors_return(self->service, self->user, self->counted);
    user_unhold(self->user);
    free(self);
}

/* The closer of a descriptor: the loop closes what is soon closed, helpers what takes its time. A descriptor that is no
 * memory may be a file of some program's own file system, which answers when it likes: not even its size is asked for
 * here. */
enum closer { CLOSER_LOOP, CLOSER_HELPER, CLOSER_READER };

static enum closer closer_of(int fd, uint64_t *left_bytes)
{
    struct stat status;
    if (fcntl(fd, F_GET_SEALS) < 0)
        return CLOSER_READER;
    const uint64_t bytes = fstat(fd, &status) ? 0 : (uint64_t)status.st_blocks * 512;
    if (bytes > *left_bytes)
        return CLOSER_HELPER;
    *left_bytes -= bytes;
    return CLOSER_LOOP;
}

/* Creates a closing; without memory for one the loop closes all descriptors. */
static struct closing *closing_create(struct service *service, struct user *user, bool lasts)
{
    struct closing *self = malloc(sizeof *self);
    if (!self)
        return NULL;
    *self = (struct closing){
        .work = {.run = closing_run, .done = closing_done, .lasts = lasts}, .service = service, .user = user};
    user_hold(user);
    return self;
}

static void closing_count(struct closing *closing)
{
    if (!closing)
        return;
    closing->counted = closing->count;
    client_descriptors_lend(closing->service, closing->user, closing->count);
}

void client_descriptors_drop(struct service *service, struct user *user, const int *fds, size_t count)
{
    struct closing *slow = NULL, *unknown = NULL;
    uint64_t left_bytes = LOOP_BYTES;
    for (size_t i = 0; i < count; i++) {
        const enum closer closer = closer_of(fds[i], &left_bytes);
        struct closing **list = closer == CLOSER_READER ? &unknown : &slow;
        if (closer != CLOSER_LOOP && !*list)
            *list = closing_create(service, user, closer == CLOSER_HELPER);
        if (closer == CLOSER_LOOP || !*list)
            close(fds[i]);
        else
            (*list)->fds[(*list)->count++] = fds[i];
    }
    closing_count(slow);
    closing_count(unknown);
    if (slow)
        service_defer(service, user, &slow->work);
    if (unknown)
        service_read(service, user, &unknown->work);
}

/* True when threads may have one more of a user: no more than half of what others leave, as with what messages bring.
 */
static bool has_room(const struct service *service, const struct user *user)
{
    return user->lent_fds < stock_allowed_half(&service->lent_fds, user->lent_fds);
}

bool client_descriptors_turn_away(struct service *service, uid_t uid, int fd)
{
    int unread = 0;
    shutdown(fd, SHUT_RDWR);
    if (ioctl(fd, FIONREAD, &unread) == 0 && unread == 0) {
        close(fd);
        return true;
    }
    struct user *user = user_acquire(&service->users, uid);
    const bool taken = user && has_room(service, user);
    if (taken)
        client_descriptors_drop(service, user, &fd, 1);
    if (user)
        user_unhold(user);
    return taken;
}
