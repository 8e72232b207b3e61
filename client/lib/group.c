/* Jobs that people see as one. */
#include <errno.h>
#include <stdio.h>

#include "client/lib/internal.h"

static struct group *group_find(struct scand *daemon, uint64_t group)
{
    return group > 0 && group <= LIMIT_CLIENT_GROUPS && daemon->groups[group - 1].is_open ? &daemon->groups[group - 1]
                                                                                          : NULL;
}

static int group_refuse(struct scand *daemon, uint64_t group, const char *more)
{
    return session_fail(daemon, -EINVAL, "group is %llu, which is not open: give what scand_group_begin has set%s",
                        (unsigned long long)group, more);
}

int group_check(struct scand *daemon, uint64_t group)
{
    return group == 0 || group_find(daemon, group) ? 0 : group_refuse(daemon, group, ", or 0 for none");
}

static int begin(struct scand *daemon, const char *name, uint64_t rows, uint32_t *out)
{
    uint32_t label = 0;
    while (label < LIMIT_CLIENT_GROUPS && daemon->groups[label].is_taken)
        label++;
    if (label == LIMIT_CLIENT_GROUPS)
        return session_fail(daemon, -EINVAL, "%d groups are open: end one of them with scand_group_end",
                            LIMIT_CLIENT_GROUPS);
    struct group *group = &daemon->groups[label];
    *group = (struct group){.is_taken = true, .params = {.group = label, .rows = rows}};
    snprintf(group->params.name, sizeof group->params.name, "%s", name ? name : "");
    struct msg_job_number number;
    struct call call = {.method = METHOD_group_begin, .params = &group->params, .result = &number};
    int code = call_run(daemon, &call);
    /* The next daemon is to have the group, as it is to have the jobs that this one refuses. */
    const bool is_later = code == -ESHUTDOWN && daemon->options.drain_ms > 0 && !daemon->local;
    group->is_taken = group->is_open = code == 0 || is_later;
    if (!group->is_open)
        return code;
    group->generation = is_later ? call.generation - 1 : call.generation;
    group->number = is_later ? 0 : number.job;
    *out = label + 1;
    return 0;
}

int scand_group_begin(struct scand *daemon, const char *name, uint64_t rows, uint32_t *out)
{
    SESSION_GUARD(daemon);
    return (int)status_from_errno(begin(daemon, name, rows, out));
}

int scand_group_number(struct scand *daemon, uint32_t group, uint64_t *out)
{
    SESSION_GUARD(daemon);
    const struct group *found = group_find(daemon, group);
    if (!found)
        return (int)status_from_errno(group_refuse(daemon, group, ""));
    *out = found->number;
    return SCAND_OK;
}

static bool has_jobs(const struct scand *daemon, uint64_t label)
{
    for (const struct scand_job *job = daemon->jobs; job; job = job->next)
        if (!job->done && job->group == label + 1)
            return true;
    return false;
}

static int group_has_jobs(struct scand *daemon, const struct group *group)
{
    return session_fail(daemon, -EINVAL, "group is %llu, of which jobs have not ended: end it after them",
                        (unsigned long long)group->params.group + 1);
}

/* Ends a group in the daemon, which knows whether jobs of it have not ended. With a broken connection its groups have
 * ended already, but their jobs are to be repeated. */
static int end(struct scand *daemon, struct group *group)
{
    if (!daemon->is_up || group->generation != daemon->generation)
        return has_jobs(daemon, group->params.group) ? group_has_jobs(daemon, group) : 0;
    struct msg_group_label params = {group->params.group};
    int code = call_try(daemon, &(struct call){.method = METHOD_group_end, .params = &params});
    if (code == -EINVAL) /* its message has the label, which is another number */
        return group_has_jobs(daemon, group);
    return code == -EPIPE ? 0 : code;
}

int scand_group_end(struct scand *daemon, uint32_t group)
{
    SESSION_GUARD(daemon);
    struct group *found = group_find(daemon, group);
    int code = session_check(daemon);
    if (code == 0)
        code = found ? end(daemon, found) : group_refuse(daemon, group, "");
    if (found && code == 0)
        found->is_taken = found->is_open = false;
    return (int)status_from_errno(code);
}
