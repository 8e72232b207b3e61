#include "group.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "daemon/core/loop.h"
#include "daemon/core/operations/operation.h"
#include "daemon/core/service.h"

int group_begin(struct client *client, const struct msg_group_begin_params *params, struct error *error)
{
    struct service *service = client->service;
    struct group *group = &client->groups[params->group];
    if (service->draining)
        return error_set(error, -ESHUTDOWN,
                         "group.begin: the daemon takes no more jobs, it is about to stop; begin it with the next one");
    if (group->number > 0)
        return error_set(error, -EINVAL,
                         "group.begin: \"group\" is %" PRIu64 ", which is open already, as job %" PRIu64
                         "; end it first, or use another of 0 to %d",
                         params->group, group->number, LIMIT_CLIENT_GROUPS - 1);
    *group = (struct group){.number = ++service->stats.jobs_numbered,
                            .rows = params->rows,
                            .begun_us = service->ops->now_us(service->context)};
    memcpy(group->name, params->name, sizeof group->name);
    return 0;
}

static int error_closed(const char *method, uint64_t label, struct error *error)
{
    return error_set(error, -EINVAL,
                     "%s\"group\" is %" PRIu64 "; this connection has no such group open; begin it with group.begin",
                     method, label);
}

int group_end(struct client *client, uint64_t label, struct error *error)
{
    struct group *group = &client->groups[label];
    if (group->number == 0)
        return error_closed("group.end: ", label, error);
    if (group->jobs > 0)
        return error_set(error, -EINVAL,
                         "group.end: \"group\" is %" PRIu64 ", of which %u jobs wait or run; end it after them", label,
                         group->jobs);
    group->number = 0;
    service_check_drained(client->service);
    return 0;
}

int group_of_field(struct client *client, uint64_t field, struct group **out, struct error *error)
{
    struct group *group = field ? &client->groups[field - 1] : NULL;
    if (group && group->number == 0)
        return error_closed("", field - 1, error);
    if (group && group->cancelled)
        return error_set(error, -ECANCELED,
                         "cancelled as job %" PRIu64 " by server.cancel; \"group\" %" PRIu64
                         " takes no more jobs: end it",
                         group->number, field - 1);
    *out = group;
    return 0;
}

uint64_t job_extent_bytes(const struct job *job)
{
    const struct extent *input = &job->operands[OPERAND_INPUT].extent, *output = &job->operands[OPERAND_OUTPUT].extent;
    return input->end - input->begin + output->end - output->begin;
}

void job_describe(const struct job *job, char *out, size_t size)
{
    const struct step *first = &job->steps[0];
    char words[32], more[24] = "";
    operations[first->operation]->describe(first, words, sizeof words);
    if (job->step_count > 1)
        snprintf(more, sizeof more, ", then %u more", (unsigned)job->step_count - 1);
    snprintf(out, size, "%s %s %s%s", step_words.words[first->operation], words,
             dtype_words.words[job->operands[OPERAND_INPUT].dtype], more);
}

void group_add(struct group *group, const struct job *job)
{
    group->jobs++;
    group->priority = job->priority;
    group->bytes += job_extent_bytes(job);
    job_describe(job, group->operation, sizeof group->operation);
}

void group_remove(struct group *group, const struct job *job)
{
    group->jobs--;
    if (job->outcome.code == 0)
        group->rows_done += job->rows_done;
    if (group->started_us == 0)
        group->started_us = job->started_us;
}
