/* Waiting for messages. */
#include <errno.h>
#include <poll.h>

#include "client/lib/internal.h"

static int session_poll(struct scand *daemon, int64_t deadline_ms)
{
    struct pollfd poller = {.fd = connection_fd(daemon->connection), .events = POLLIN};
    if (daemon->watches_output)
        poller.events |= POLLOUT;
    for (;;) {
        const bool soon = clock_us() < daemon->spin_end_us;
        int64_t left_ms = deadline_ms - clock_ms();
        left_ms = left_ms < 0 ? 0 : left_ms;
        int block_ms = deadline_ms == INT64_MAX ? -1 : left_ms > INT32_MAX ? INT32_MAX : (int)left_ms;
        int count = poll(&poller, 1, soon ? 0 : block_ms);
        if (count > 0)
            return 0;
        if (count == 0 && (soon ? left_ms == 0 : left_ms < INT32_MAX))
            return -ETIMEDOUT;
        if (count < 0 && errno != EINTR)
            return -EPIPE;
    }
}

int session_step(struct scand *daemon, int64_t deadline_ms)
{
    const uint8_t *bytes;
    size_t size;
    int code = session_check_owner(daemon); /* a callback may have forked */
    if (code)
        return code;
    if (!daemon->connection)
        return -EPIPE;
    /* A call from a callback finds the rest of what came with its message. */
    if (connection_peek(daemon->connection, &bytes, &size))
        return session_receive(daemon);
    (void)session_flush(daemon); /* Answers may be readable though nothing can be written any more. */
    code = session_poll(daemon, deadline_ms);
    if (code == -ETIMEDOUT)
        return code;
    code = code ? code : connection_receive(daemon->connection);
    if (code == -EMFILE || code == -EBADF) {
        session_fail(daemon, -EBADF, "descriptors from the daemon were lost: %s",
                     code == -EMFILE ? "this process has too many files open; raise ulimit -n, or close some"
                                     : "it sent more than it may");
        return session_give_up(daemon);
    }
    if (code > 0)
        return session_receive(daemon);
    if (code == -EAGAIN)
        return 0;
    session_drop(daemon);
    return -EPIPE;
}

int session_run(struct scand *daemon, const bool *done, int64_t deadline_ms)
{
    uint64_t generation = daemon->generation;
    for (;;) {
        int code = session_step(daemon, deadline_ms);
        if (*done)
            return 0;
        if (code)
            return code;
        if (daemon->generation != generation)
            return -EPIPE;
        if (clock_ms() >= deadline_ms)
            return -ETIMEDOUT;
    }
}
