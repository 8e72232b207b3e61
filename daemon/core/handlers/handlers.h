/*
 * Handlers of messages. A handler gets a call and its decoded params. It returns 0 when it has answered or will answer
 * later, or -errno with call->error set, which becomes the answer.
 */
#ifndef DAEMON_HANDLERS_H
#define DAEMON_HANDLERS_H

#include "daemon/core/call.h"

#define X(HANDLER, METHOD, PARAMS, RESULT) int handle_##HANDLER(struct call *call, const struct msg_##PARAMS *params);
METHODS(X)
#undef X

#endif
