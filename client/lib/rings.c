/* Rings: a connection's bytes in memory that it shares with the daemon, once it has sent many small jobs. */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/lib/internal.h"
#include "protocol/rings.h"

/* Uses the memory that the daemon has sent. The daemon uses it already, so a connection that cannot ends: the next one
 * goes on without. */
static void rings_use(struct scand *daemon, int fd)
{
    struct rings *rings;
    if (connection_may_have_rings(daemon->connection) && rings_attach(fd, &rings) == 0) {
        connection_use_rings(daemon->connection, rings);
        return;
    }
    daemon->options.rings = 0;
    shutdown(daemon->socket, SHUT_RDWR);
}

/* A daemon that refuses has its reasons; the socket does. */
static int rings_done(struct scand *daemon, struct pending *pending, const struct message *message, struct error *error)
{
    struct msg_rings_result result;
    int fd;
    (void)pending;
    if (!message->failed) {
        if (answer_read(message, &msg_rings_result_type, &result, error) || result.fds != 1 ||
            answer_pop_descriptors(daemon, 1, &fd, error))
            return -EBADMSG;
        rings_use(daemon, fd);
        close(fd);
    }
    if (!connection_has_rings(daemon->connection))
        connection_release(daemon->connection);
    (void)session_flush(daemon);
    return 0;
}

void rings_consider(struct scand *daemon, unsigned jobs)
{
    static const struct msg_nothing nothing;
    if (!daemon->offers_rings || !daemon->options.rings)
        return;
    daemon->small_jobs += jobs;
    if (daemon->small_jobs < RINGS_AFTER_JOBS)
        return;
    daemon->offers_rings = false; /* asked once on each connection */
    daemon->rings = (struct pending){.msgid = session_next_msgid(daemon, 0), .done = rings_done};
    const struct error before = *session_error(daemon);
    const int code =
        session_send(daemon, daemon->rings.msgid, &(struct call){.method = METHOD_rings_open, .params = &nothing});
    *session_error(daemon) = before;
    if (code && code != -EPIPE)
        return;
    connection_hold(daemon->connection);
    pending_add(daemon, &daemon->rings);
}
