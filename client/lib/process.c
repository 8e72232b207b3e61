/*
 * The sessions of a process. A fork copies them into the child, whose copies of the sockets are closed there at once: a
 * socket that lived on in the child would keep the daemon from seeing its owner's end, and what the child wrote to it
 * would count as the owner's. One lock guards all of this; a fork takes it, so that no other thread is in the middle of
 * a change then.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client/lib/internal.h"
#include "protocol/socket.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool forks_are_seen;
static uint64_t session_count; /* sessions since the process began */
static struct scand *sessions; /* in a child also its parent's sessions, until they are forgotten */

/* Buffers of sessions that have ended, whose handles the program still has: first in, first out. */
static struct scand_buffer *ended, **ended_end = &ended;
static size_t ended_count;

/* The id of this process, in a page that a fork wipes: 0 in a child. Every call asks for the id several times, and
 * asking the system takes a tenth of a microsecond. NULL: there is no such page. */
static _Atomic pid_t *known_id;

static void known_id_make(void)
{
    const size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    void *page = mmap(NULL, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return;
    if (madvise(page, page_bytes, MADV_WIPEONFORK) == 0)
        known_id = page;
    else
        munmap(page, page_bytes);
}

static pid_t process_id(void)
{
    pid_t id = known_id ? *known_id : 0;
    if (id)
        return id;
    id = getpid();
    if (known_id)
        *known_id = id;
    return id;
}

static void before_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&lock);
}

/* Disowns the parent's sessions in a child. The epoll set is not changed, since the parent has the same one. A copy of
 * the set's descriptor replaces the socket's: so the socket's number is used for nothing else before the session, which
 * believes that it owns the number, is forgotten. */
static void after_fork_in_child(void)
{
    for (struct scand *daemon = sessions; daemon; daemon = daemon->next) {
        daemon->owner = 0;
        if (daemon->socket >= 0)
            dup3(daemon->epoll, daemon->socket, O_CLOEXEC);
    }
    after_fork();
}

int process_add(struct scand *daemon)
{
    pthread_mutex_lock(&lock);
    if (!forks_are_seen)
        forks_are_seen = pthread_atfork(before_fork, after_fork, after_fork_in_child) == 0;
    if (!known_id)
        known_id_make();
    const bool seen = forks_are_seen;
    if (seen) {
        daemon->owner = process_id();
        daemon->number = ++session_count;
        daemon->next = sessions;
        sessions = daemon;
    }
    pthread_mutex_unlock(&lock);
    return seen ? 0 : -ENOMEM;
}

void process_remove(struct scand *daemon)
{
    pthread_mutex_lock(&lock);
    struct scand **link = &sessions;
    while (*link && *link != daemon)
        link = &(*link)->next;
    if (*link)
        *link = daemon->next;
    pthread_mutex_unlock(&lock);
}

bool process_has_forked(const struct scand *daemon)
{
    return daemon->owner == 0;
}

/* True in a child. A child that was made without fork's handlers finds the parent's id in the page, and not its own. */
bool process_is_child(const struct scand *daemon)
{
    return daemon->owner != process_id();
}

struct scand *process_inherited(void)
{
    pthread_mutex_lock(&lock);
    struct scand *daemon = sessions;
    while (daemon && !process_is_child(daemon))
        daemon = daemon->next;
    pthread_mutex_unlock(&lock);
    return daemon;
}

int process_open(struct scand *daemon, bool blocks)
{
    pthread_mutex_lock(&lock);
    int fd = socket_make(blocks);
    daemon->socket = fd < 0 ? -1 : fd;
    pthread_mutex_unlock(&lock);
    return fd;
}

bool process_connect(struct scand *daemon)
{
    pthread_mutex_lock(&lock);
    daemon->connection = connection_create(daemon->socket);
    if (!daemon->connection) {
        close(daemon->socket);
        daemon->socket = -1;
    }
    pthread_mutex_unlock(&lock);
    return daemon->connection != NULL;
}

bool process_carry(struct scand *daemon, const struct carrier *carrier, void *context)
{
    pthread_mutex_lock(&lock);
    daemon->connection = connection_create_on(carrier, context);
    pthread_mutex_unlock(&lock);
    if (!daemon->connection)
        carrier->close(context);
    return daemon->connection != NULL;
}

void process_close(struct scand *daemon)
{
    pthread_mutex_lock(&lock);
    if (daemon->connection)
        connection_destroy(daemon->connection);
    else if (daemon->socket >= 0)
        close(daemon->socket);
    daemon->connection = NULL;
    daemon->socket = -1;
    pthread_mutex_unlock(&lock);
}

void process_bury(struct scand_buffer *buffer)
{
    struct scand_buffer *oldest = NULL;
    pthread_mutex_lock(&lock);
    buffer->next = NULL;
    *ended_end = buffer;
    ended_end = &buffer->next;
    if (++ended_count > BUFFERS_ENDED_MAX) {
        oldest = ended;
        ended = oldest->next;
        ended_count--;
    }
    pthread_mutex_unlock(&lock);
    free(oldest);
}

void process_unbury(struct scand_buffer *buffer)
{
    pthread_mutex_lock(&lock);
    struct scand_buffer **link = &ended;
    while (*link && *link != buffer)
        link = &(*link)->next;
    const bool found = *link != NULL;
    if (found) {
        *link = buffer->next;
        if (!*link)
            ended_end = link;
        ended_count--;
    }
    pthread_mutex_unlock(&lock);
    if (found)
        free(buffer);
}
