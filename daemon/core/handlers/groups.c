/* group.begin and group.end. */
#include "daemon/core/replies.h"
#include "handlers.h"

int handle_group_begin(struct call *call, const struct msg_group_begin_params *params)
{
    const int r = group_begin(call->client, params, &call->error);
    if (r)
        return r;
    const struct msg_job_number result = {.job = call->client->groups[params->group].number};
    reply_result(call->client, call->msgid, &msg_job_number_type, &result);
    return 0;
}

int handle_group_end(struct call *call, const struct msg_group_label *params)
{
    const int r = group_end(call->client, params->group, &call->error);
    if (r == 0)
        reply_nothing(call->client, call->msgid);
    return r;
}
