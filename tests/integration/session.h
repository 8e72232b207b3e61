/* A session of libscand with a daemon of the test's own, which $SCAND names, or without $SCAND in this process. */
#ifndef TESTS_INTEGRATION_SESSION_H
#define TESTS_INTEGRATION_SESSION_H

#include <scand/scand.h>

#include "tests/check.h"
#include "tests/server.h"

static inline const char *session_daemon(void)
{
    const char *scand = getenv("SCAND");
    return scand && *scand ? scand : NULL;
}

/* A session with this option `local`, or NULL; at `path`, or NULL. */
static inline struct scand *session_open(const char *path, enum scand_local local)
{
    struct scand_options *options = NULL;
    struct scand *session = NULL;
    CHECK_EQ(scand_options_create(&options), SCAND_OK);
    CHECK_EQ(scand_options_set(options, "local", local), SCAND_OK);
    (void)scand_connect_with(options, path, "test", &session);
    scand_options_destroy(options);
    return session;
}

static inline struct scand *session_begin(struct server *server, const char *const *arguments)
{
    struct scand *session = NULL;
    if (!session_daemon())
        session = session_open(NULL, SCAND_LOCAL_ALWAYS);
    else if (server_start(server, session_daemon(), arguments) == 0)
        session = session_open(server->socket, SCAND_LOCAL_NEVER);
    if (session)
        return session;
    fprintf(stderr, "%s\n", scand_connect_message());
    abort();
}

/* A buffer of the pool, also where that is still being made. */
static inline struct scand_buffer *session_buffer(struct scand *session, uint64_t size_bytes)
{
    struct scand_buffer *buffer = NULL;
    if (scand_buffer_create_wait(session, size_bytes, SCAND_WAIT_MS_MAX, &buffer) == SCAND_OK)
        return buffer;
    fprintf(stderr, "%s\n", scand_message(session));
    abort();
}

static inline void session_end(struct scand *session, struct server *server)
{
    scand_disconnect(session);
    if (session_daemon())
        server_stop(server);
}

#endif
