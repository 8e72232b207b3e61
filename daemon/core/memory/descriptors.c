#include "descriptors.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/core/loop.h"

#define LOOP_BYTES MIB(1) /* that may be freed in the loop, some 0.1 ms */

/* They are closed one at a time: the last descriptor of a file takes all its pages along, a second for 10 GiB. */
struct closing {
    struct work work;  /* first */
    struct user *user; /* held */
    size_t count;
    int fds[LIMIT_MESSAGE_FDS];
};

static bool closing_run(struct work *work)
{
    struct closing *self = (struct closing *)work;
    close(self->fds[--self->count]);
    return self->count > 0;
}

static void closing_done(struct work *work)
{
    struct closing *self = (struct closing *)work;
    user_unhold(self->user);
    free(self);
}

static uint64_t pages_bytes(int fd)
{
    struct stat status;
    return fstat(fd, &status) ? 0 : (uint64_t)status.st_blocks * 512;
}

void descriptors_drop(struct service *service, struct user *user, const int *fds, size_t count)
{
    struct closing *slow = NULL;
    uint64_t fast_bytes = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t bytes = pages_bytes(fds[i]);
        bool fast = bytes <= LOOP_BYTES - fast_bytes;
        if (!fast && !slow && (slow = malloc(sizeof *slow)))
            *slow = (struct closing){.work = {.run = closing_run, .done = closing_done, .lasts = true}, .user = user};
        if (fast)
            fast_bytes += bytes;
        if (fast || !slow)
            close(fds[i]);
        else
            slow->fds[slow->count++] = fds[i];
    }
    if (!slow)
        return;
    user_hold(user);
    service_defer(service, user, &slow->work);
}
