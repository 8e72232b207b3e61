#include "punches.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "detached.h"

#define STACK_BYTES (64 << 10)

struct punch {
    struct punches *punches;
    int fd; /* a duplicate */
    uint64_t size_bytes;
    bool ended, left; /* whichever comes second frees this */
};

void punches_init(struct punches *punches)
{
    *punches = (struct punches){.left = 0};
    pthread_mutex_init(&punches->lock, NULL);
    detached_condition_init(&punches->ended);
}

static void *punch_main(void *argument)
{
    struct punch *punch = argument;
    struct punches *punches = punch->punches;
    fallocate(punch->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)punch->size_bytes);
    close(punch->fd);
    pthread_mutex_lock(&punches->lock);
    const bool left = punch->left;
    punch->ended = true;
    punches->left -= left;
    pthread_cond_broadcast(&punches->ended);
    pthread_mutex_unlock(&punches->lock);
    if (left)
        free(punch);
    return NULL;
}

/* Waits for a punch, and frees it or leaves it behind. */
static void punch_await(struct punches *punches, struct punch *punch)
{
    const struct timespec end = detached_deadline(PUNCH_MS);
    int r = 0;
    pthread_mutex_lock(&punches->lock);
    while (!punch->ended && !r)
        r = pthread_cond_timedwait(&punches->ended, &punches->lock, &end);
    const bool ended = punch->ended;
    punch->left = !ended;
    punches->left += !ended;
    pthread_mutex_unlock(&punches->lock);
    if (ended)
        free(punch);
}

static bool may_punch(struct punches *punches)
{
    pthread_mutex_lock(&punches->lock);
    const bool may = punches->left < PUNCHES_LEFT;
    pthread_mutex_unlock(&punches->lock);
    return may;
}

void punches_free(struct punches *punches, int fd, uint64_t size_bytes)
{
    struct punch *punch = may_punch(punches) ? malloc(sizeof *punch) : NULL;
    if (!punch)
        return;
    *punch = (struct punch){.punches = punches, .fd = fcntl(fd, F_DUPFD_CLOEXEC, 0), .size_bytes = size_bytes};
    if (punch->fd >= 0 && detached_start(punch_main, punch, STACK_BYTES) == 0) {
        punch_await(punches, punch);
        return;
    }
    if (punch->fd >= 0)
        close(punch->fd);
    free(punch);
}
