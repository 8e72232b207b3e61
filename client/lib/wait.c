/* Waiting for messages: one thread reads for all others. */
#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>

#include "client/lib/internal.h"

/* Returns for how long poll may block: until the deadline, or not at all while an answer was announced. */
static int block_ms(const struct scand *daemon, int64_t deadline_ms)
{
    const int64_t local_ms = local_due_ms(daemon);
    const int64_t due_ms = local_ms < daemon->resend_ms ? local_ms : daemon->resend_ms;
    deadline_ms = due_ms < deadline_ms ? due_ms : deadline_ms;
    int64_t left_ms = deadline_ms - clock_ms();
    if (left_ms <= 0 || clock_us() < daemon->spin_end_us)
        return 0;
    if (deadline_ms == INT64_MAX)
        return -1;
    return left_ms > INT32_MAX ? INT32_MAX : (int)left_ms;
}

/* True while an answer is awaited without blocking, and the ring will have it. A program with a loop has all by the
 * socket. */
static bool looks_at_ring(const struct scand *daemon)
{
    return clock_us() < daemon->spin_end_us && daemon->connection && connection_has_rings(daemon->connection) &&
           !daemon->is_watched && !daemon->watches_output;
}

static int reader_finds(bool *readable)
{
    *readable = true;
    return 0;
}

/* Polls as the thread that reads, which others may ask to check again. Returns 0 then, and when there is input, of
 * which *readable tells. */
static int reader_poll(struct scand *daemon, int64_t deadline_ms, bool *readable)
{
    if (daemon->connection && connection_is_ready(daemon->connection))
        return reader_finds(readable);
    struct pollfd pollers[] = {{.fd = daemon->connection ? connection_fd(daemon->connection) : -1, .events = POLLIN},
                               {.fd = daemon->wake, .events = POLLIN}};
    if (daemon->watches_output)
        pollers[0].events |= POLLOUT;
    const int ms = block_ms(daemon, deadline_ms);
    if (looks_at_ring(daemon) && clock_ms() < deadline_ms) {
        session_unlock(daemon);
        session_lock(daemon);
        return 0;
    }
    if (ms != 0 && daemon->connection && !connection_sleep(daemon->connection))
        return reader_finds(readable);
    const uint64_t generation = daemon->generation;
    daemon->is_reading = true;
    session_unlock(daemon);
    const int count = poll(pollers, 2, ms), failure = errno;
    session_lock(daemon);
    daemon->is_reading = false;
    if (ms != 0 && daemon->connection && daemon->generation == generation && !daemon->is_watched)
        connection_rise(daemon->connection);
    if (count < 0)
        return failure == EINTR ? session_interrupted(daemon) : -EPIPE;
    if (pollers[1].revents)
        eventfd_read(daemon->wake, &(eventfd_t){0});
    *readable = pollers[0].revents != 0;
    return count == 0 && clock_ms() >= deadline_ms ? -ETIMEDOUT : 0;
}

int session_rest(struct scand *daemon, const bool *done, int64_t deadline_ms)
{
    bool readable;
    return daemon->is_reading ? session_sleep(daemon, done, true, deadline_ms)
                              : reader_poll(daemon, deadline_ms, &readable);
}

/* Handles what connection_receive returned, `code`. */
static int input_handle(struct scand *daemon, int code)
{
    if (code == -EMFILE || code == -EBADF) {
        session_fail(daemon, -EBADF, "descriptors from the daemon were lost: %s",
                     code == -EMFILE ? "this process has too many files open; raise ulimit -n, or close some"
                                     : "it sent more than it may");
        return session_give_up(daemon);
    }
    if (code > 0) {
        session_hears(daemon);
        daemon->probe_end_ms = 0;
        return session_receive(daemon);
    }
    if (code == -EAGAIN)
        return 0;
    session_drop(daemon);
    return -EPIPE;
}

/* Receives from a service in this process. Any caller receives what the service has, also while another thread waits:
 * that thread checks again. Returns -EAGAIN when there was nothing. */
static int local_receive(struct scand *daemon)
{
    (void)session_flush(daemon);
    int code = connection_receive(daemon->connection);
    const bool some = job_results_receive(daemon);
    if (code == -EAGAIN && !some)
        return code;
    session_wake_reader(daemon);
    return input_handle(daemon, code);
}

int session_step(struct scand *daemon, const bool *done, int64_t deadline_ms)
{
    const uint8_t *bytes;
    size_t size;
    bool readable = false;
    int code = session_check(daemon); /* a callback may have forked this process */
    if (code)
        return code;
    if (daemon->local && daemon->connection && !connection_peek(daemon->connection, &bytes, &size)) {
        code = local_receive(daemon);
        if (code != -EAGAIN)
            return code;
    }
    if (daemon->is_reading)
        return session_sleep(daemon, done, true, deadline_ms);
    if (!daemon->connection)
        return -EPIPE;
    /* A call from a callback finds the rest of what came with the callback's message. */
    if (connection_peek(daemon->connection, &bytes, &size))
        return session_receive(daemon);
    (void)session_flush(daemon); /* Answers may be readable though nothing can be written any more. */
    uint64_t generation = daemon->generation;
    code = reader_poll(daemon, deadline_ms, &readable);
    if (daemon->generation != generation)
        return -EPIPE;
    if (code == -EPIPE)
        session_drop(daemon);
    return code || !readable ? code : input_handle(daemon, connection_receive(daemon->connection));
}

int session_run(struct scand *daemon, const bool *done, int64_t deadline_ms)
{
    uint64_t generation = daemon->generation;
    for (;;) {
        int code = session_step(daemon, done, deadline_ms);
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
