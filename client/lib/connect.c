/* Connecting, disconnecting, and what a connection tells about itself. */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/lib/internal.h"

static void session_free(struct scand *daemon)
{
    monitor_finish(daemon);
    free(daemon->hello);
    arena_destroy(daemon->arena);
    free(daemon);
}

static int processor_count(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

static struct scand *session_create(const struct scand_options *options, const char *name, struct error *error)
{
    struct scand *daemon = calloc(1, sizeof *daemon);
    if (!daemon) {
        error_set(error, -ENOMEM, "out of memory");
        return NULL;
    }
    int code = monitor_init(daemon);
    if (code) {
        error_set(error, code, "cannot make the descriptors of a connection: %s%s", strerror(errno),
                  errno_advice(errno));
        session_free(daemon);
        return NULL;
    }
    daemon->socket = -1;
    daemon->jobs_end = &daemon->jobs;
    daemon->options = *options;
    if (processor_count() < SPIN_PROCESSORS)
        daemon->options.spin_us = 0;
    snprintf(daemon->name, sizeof daemon->name, "%s", name ? name : program_invocation_short_name);
    code = process_add(daemon);
    if (code == 0)
        return daemon;
    error_set(error, code, "out of memory");
    session_free(daemon);
    return NULL;
}

/* Adds to the error all places where the daemon was not found. */
static void places_add(struct error *error, const char *looked)
{
    size_t length = strlen(error->message);
    if (error->code == -ECONNREFUSED && *looked)
        snprintf(error->message + length, sizeof error->message - length, " (before that: %s)", looked);
}

static int pause_briefly(struct scand *daemon)
{
    const int64_t end_ms = clock_ms() + RECONNECT_PAUSE_MS;
    int code = 0;
    while (code == 0)
        code = session_rest(daemon, &daemon->is_up, end_ms);
    return code == -ETIMEDOUT ? 0 : code;
}

/* Opens a session with the daemon, or worker, that follows the one which ended before it answered hello. One that ends
 * again and again has its reasons. */
static int next_open(struct scand *daemon)
{
    const int64_t until_ms = clock_ms() + daemon->options.reconnect_ms;
    int code = -EPIPE;
    for (int ended = 1; code == -ECONNREFUSED || (code == -EPIPE && ended < ATTEMPTS_MAX);) {
        if (clock_ms() >= until_ms)
            return code;
        const int paused = pause_briefly(daemon);
        if (paused)
            return paused;
        code = session_open(daemon);
        ended += code == -EPIPE;
    }
    return code;
}

static int daemon_open(struct scand *daemon, const char *path)
{
    char looked[SOCKET_LOOKED_BYTES];
    int code = socket_find(path, daemon->path, looked, session_error(daemon));
    if (code == 0)
        code = session_open(daemon);
    if (code == -EPIPE)
        code = next_open(daemon);
    if (code)
        places_add(session_error(daemon), looked);
    return code;
}

static int local_open(struct scand *daemon)
{
    int code = local_prepare(daemon);
    return code ? code : session_open(daemon);
}

/* Opens the service in this process where no daemon answered, as the session's error says. */
static int local_open_instead(struct scand *daemon)
{
    const struct error why = *session_error(daemon);
    int code = local_open(daemon);
    if (code)
        error_prefix(session_error(daemon), why.message);
    return code;
}

static int session_begin(struct scand *daemon, const char *path)
{
    enum scand_local local;
    bool small_here = false;
    SESSION_GUARD(daemon);
    int code = local_choose(daemon, &local);
    if (code == 0)
        code = near_choose(daemon, &small_here);
    if (code)
        return code;
    code = local == SCAND_LOCAL_ALWAYS ? local_open(daemon) : daemon_open(daemon, path);
    if (code == -ECONNREFUSED && local == SCAND_LOCAL_FALLBACK)
        code = local_open_instead(daemon);
    return code == 0 && small_here && !daemon->local ? near_prepare(daemon) : code;
}

int scand_connect_with(const struct scand_options *options, const char *path, const char *name, struct scand **out)
{
    struct error error = {.code = 0};
    struct scand *daemon = session_create(options ? options : &options_default, name, &error);
    if (!daemon)
        return connect_failed(error.code, &error);
    int code = session_begin(daemon, path);
    if (code == 0) {
        *out = daemon;
        return SCAND_OK;
    }
    int status = connect_failed(code, session_error(daemon));
    scand_disconnect(daemon);
    return status;
}

int scand_connect(const char *path, const char *name, struct scand **out)
{
    return scand_connect_with(NULL, path, name, out);
}

/* Ends the session; no other thread is in it from then on. */
static void session_finish(struct scand *daemon)
{
    session_end(daemon);
    session_drop(daemon);
}

void scand_disconnect(struct scand *daemon)
{
    if (!daemon)
        return;
    /* A child's copy of its parent's socket is no socket any more, and the epoll set is the parent's, too. */
    if (process_is_child(daemon))
        process_close(daemon);
    else
        session_finish(daemon);
    jobs_free(daemon);
    near_finish(daemon);
    buffers_end(daemon);
    process_remove(daemon);
    session_free(daemon);
}

void scand_forget(void)
{
    for (struct scand *daemon; (daemon = process_inherited());)
        scand_disconnect(daemon);
}

const char *scand_message(const struct scand *daemon)
{
    return daemon ? session_error(daemon)->message : scand_connect_message();
}

int scand_is_local(const struct scand *daemon)
{
    return daemon->local != NULL;
}

const char *scand_server_name(const struct scand *daemon)
{
    return daemon->server;
}

const char *scand_status_word(int status)
{
    return status_word((enum scand_status)status);
}

const char *scand_status_text(int status)
{
    return status_text((enum scand_status)status);
}

int scand_status_exit_code(int status)
{
    return status_exit_code((enum scand_status)status);
}

int scand_fd(const struct scand *daemon)
{
    struct scand *watched = (struct scand *)daemon; /* a session is never constant memory */
    SESSION_GUARD(watched);
    watched->is_watched = true;
    return daemon->epoll;
}

/* Handles what has arrived. A daemon that did not come back is looked for once, and only if somebody waits for it. */
static int dispatch(struct scand *daemon)
{
    int code = 0;
    if (session_is_given_up(daemon))
        return session_try(daemon);
    for (int i = 0; i < 64 && code == 0 && (daemon->connection || daemon->jobs_open); i++)
        code = session_advance(daemon, &daemon->is_empty, 0);
    return code == -ETIMEDOUT && !session_is_given_up(daemon) ? 0 : code; /* the wait has ended, without an error */
}

/* Handles what has arrived, a limited amount at a time: the descriptor stays readable while there is more. */
int scand_dispatch(struct scand *daemon)
{
    SESSION_GUARD(daemon);
    int code = session_check(daemon);
    if (code == 0)
        code = dispatch(daemon);
    daemon->has_news = false;
    return (int)status_from_errno(code);
}
