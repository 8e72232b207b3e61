/* Connecting, disconnecting, and what a connection tells about itself. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "client/lib/internal.h"

static _Thread_local char connect_message[LIMIT_ERROR_BYTES];

static int connect_failed(const struct error *error)
{
    memcpy(connect_message, error->message, sizeof connect_message);
    return (int)status_from_errno(error->code == -EPIPE ? -ECONNREFUSED : error->code);
}

static void session_free(struct scand *daemon)
{
    close(daemon->epoll);
    free(daemon);
}

static struct scand *session_create(const char *name, struct error *error)
{
    struct scand *daemon = calloc(1, sizeof *daemon);
    if (!daemon) {
        error_set(error, -ENOMEM, "out of memory");
        return NULL;
    }
    daemon->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (daemon->epoll < 0) {
        int code = errno == EMFILE || errno == ENFILE ? -EBADF : -ENOMEM;
        error_set(error, code, "cannot make an epoll descriptor: %s", strerror(errno));
        free(daemon);
        return NULL;
    }
    daemon->socket = -1;
    daemon->jobs_end = &daemon->jobs;
    snprintf(daemon->name, sizeof daemon->name, "%s", name ? name : program_invocation_short_name);
    int code = process_add(daemon);
    if (code == 0)
        return daemon;
    error_set(error, code, "out of memory");
    session_free(daemon);
    return NULL;
}

/* Where the daemon was not found, all places are named. */
static void places_add(struct error *error, const char *looked)
{
    size_t length = strlen(error->message);
    if (error->code == -ECONNREFUSED && *looked)
        snprintf(error->message + length, sizeof error->message - length, " (before that: %s)", looked);
}

int scand_connect(const char *path, const char *name, struct scand **out)
{
    struct error error = {.code = 0};
    struct scand *daemon = session_create(name, &error);
    if (!daemon)
        return connect_failed(&error);
    char looked[SOCKET_LOOKED_BYTES];
    int code = socket_find(path, daemon->path, looked, &daemon->error);
    if (code == 0)
        code = session_open(daemon);
    if (code)
        places_add(&daemon->error, looked);
    if (code == 0) {
        *out = daemon;
        return SCAND_OK;
    }
    int status = connect_failed(&daemon->error);
    scand_disconnect(daemon);
    return status;
}

const char *scand_connect_message(void)
{
    return connect_message;
}

void scand_disconnect(struct scand *daemon)
{
    if (!daemon)
        return;
    /* What a child has of its parent's socket is no socket any more, and the epoll set is the parent's, too. */
    if (process_is_child(daemon))
        process_close(daemon);
    else
        session_drop(daemon);
    jobs_free(daemon);
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
    return daemon->error.message;
}

uint32_t scand_retry_ms(const struct scand *daemon)
{
    return daemon->error.retry_ms;
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
    return daemon->epoll;
}

/* What has arrived, a limited amount at a time: the descriptor stays readable while there is more. */
int scand_dispatch(struct scand *daemon)
{
    int code = session_check_owner(daemon);
    if (code)
        return (int)status_from_errno(code);
    if (!daemon->connection && daemon->gone)
        return (int)status_from_errno(session_ready(daemon));
    for (int i = 0; i < 64 && code == 0; i++)
        code = session_step(daemon, 0);
    if (code == -ETIMEDOUT)
        return SCAND_OK; /* that was all */
    /* An idle program learns with its next call whether the daemon came back. */
    if (code == -EPIPE)
        code = jobs_wait(daemon) ? session_ready(daemon) : 0;
    return (int)status_from_errno(code);
}
