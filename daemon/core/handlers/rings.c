/* rings.open: a connection's bytes in shared memory. */
#include "protocol/rings.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "daemon/core/client_rings.h"
#include "daemon/core/replies.h"
#include "handlers.h"

static int check_connection(struct call *call)
{
    struct connection *connection = call->client->connection;
    if (connection_has_rings(connection))
        return error_set(&call->error, -EINVAL, "rings.open: this connection has rings; open them once");
    if (!connection_may_have_rings(connection))
        return error_set(&call->error, -EINVAL,
                         "rings.open: only a connection by a socket can have rings, and nothing may follow rings.open "
                         "before its answer; wait for that before the next request");
    return 0;
}

static int check_room(struct call *call)
{
    const struct user *user = call->client->user;
    const uint64_t most = stock_allowed_half(&call->service->rings, user->rings);
    if (user->distrusted)
        return error_set(&call->error, -EDQUOT,
                         "rings.open: user %u has no rings any more, since the daemon has slept at memory that a "
                         "program of the user's gave back; go on by the socket, or start scand anew",
                         (unsigned)user->uid);
    if (user->rings < most)
        return 0;
    return error_set(&call->error, -EDQUOT,
                     "rings.open: user %u has rings on %" PRIu64 " connections; allowed: %" PRIu64
                     "; go on by the socket, or close one of those connections",
                     (unsigned)user->uid, user->rings, most);
}

/* Answers with the memory; the answer is the last message that the socket brings alone. */
static int use_rings(struct call *call, struct rings *rings, int fd)
{
    const struct msg_rings_result result = {.fds = 1};
    int r = reply_descriptors(call->client, call->msgid, &msg_rings_result_type, &result, &fd, 1);
    if (r)
        return error_set(&call->error, r, "rings.open: the memory cannot be sent now: %s; go on by the socket",
                         strerror(-r));
    client_use_rings(call->client, rings);
    return 0;
}

int handle_rings_open(struct call *call, const struct msg_nothing *params)
{
    struct rings *rings;
    int fd, r;
    (void)params;
    if ((r = check_connection(call)) || (r = check_room(call)))
        return r;
    r = rings_create(&rings, &fd);
    if (r)
        return error_set(&call->error, r, "rings.open: no memory for rings: %s; go on by the socket", strerror(-r));
    r = use_rings(call, rings, fd);
    close(fd);
    if (r)
        rings_destroy(rings);
    return r;
}
