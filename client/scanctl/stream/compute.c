#include "client/scanctl/stream/compute.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int scan_submit(const void *context, const struct operands *operands, struct scand *daemon,
                       scand_progress *progress, void *progress_context, struct scand_job **out)
{
    struct scand_scan scan = *(const struct scand_scan *)context;
    scan.input = operands->input;
    scan.output = operands->output;
    if (operands->further_count)
        scan.coefficients = operands->further[0];
    scan.offsets = operands->offsets;
    scan.axis = operands->axis;
    scan.group = operands->group;
    return scand_submit_progress(daemon, &scan, progress, progress_context, out);
}

static int reduce_submit(const void *context, const struct operands *operands, struct scand *daemon,
                         scand_progress *progress, void *progress_context, struct scand_job **out)
{
    struct scand_reduce reduce = *(const struct scand_reduce *)context;
    reduce.input = operands->input;
    reduce.output = operands->output;
    reduce.offsets = operands->offsets;
    reduce.axis = operands->axis;
    reduce.group = operands->group;
    return scand_submit_reduce(daemon, &reduce, progress, progress_context, out);
}

/* A scan as a step of a task. What a setter refuses, the submission tells. */
static void step_add(struct scand_task *task, const struct scand_step *step)
{
    char passes[64] = "";
    for (uint32_t i = 0; i < step->pass_count; i++)
        snprintf(passes + strlen(passes), sizeof(passes) - strlen(passes), "%s%s", i ? "," : "",
                 scand_word(SCAND_LIST_PASS, step->passes[i]));
    scand_task_step(task, "scan");
    scand_task_set(task, "passes", passes);
    scand_task_set(task, "kind", scand_word(SCAND_LIST_KIND, step->kind));
    scand_task_set(task, "op", scand_word(SCAND_LIST_OPERATOR, step->op));
    scand_task_set(task, "accumulator", scand_word(SCAND_LIST_ACCUMULATOR, step->accumulator));
    scand_task_set(task, "intermediate", scand_word(SCAND_LIST_INTERMEDIATE, step->intermediate));
    if (step->demean)
        scand_task_set(task, "demean", "1");
    if (step->coefficient)
        scand_task_set_number(task, "coefficient", step->coefficient);
}

static void steps_add(struct scand_task *task, const struct scand_scan *scan, const struct operands *operands)
{
    struct scand_step first = {.pass_count = scan->pass_count,
                               .kind = scan->kind,
                               .op = scan->op,
                               .accumulator = scan->accumulator,
                               .intermediate = scan->intermediate,
                               .demean = scan->demean,
                               .coefficient = scan->coefficient};
    memcpy(first.passes, scan->passes, sizeof(first.passes));
    step_add(task, &first);
    if (operands->further_count)
        scand_task_operand(task, "coefficients", &operands->further[0]);
    for (uint32_t i = 0; i < scan->then_count; i++)
        step_add(task, &scan->then[i]);
}

static void options_set(struct scand_task *task, const struct scand_scan *scan, uint32_t group)
{
    char number[24];
    if (scan->algorithm)
        scand_task_option(task, "algorithm", scan->algorithm);
    scand_task_option(task, "priority", scand_word(SCAND_LIST_PRIORITY, scan->priority));
    snprintf(number, sizeof(number), "%" PRIu32, scan->deadline_ms);
    scand_task_option(task, "deadline_ms", number);
    snprintf(number, sizeof(number), "%" PRIu32, group);
    scand_task_option(task, "group", number);
}

/* Scans that are submitted as such have no scale; the last step of a task has. */
static int scaled_submit(const void *context, const struct operands *operands, struct scand *daemon,
                         scand_progress *progress, void *progress_context, struct scand_job **out)
{
    const struct scaled_scan *scaled = context;
    struct scand_task *task;
    if (scand_task_create(&task))
        return SCAND_NO_MEMORY;
    steps_add(task, &scaled->scan, operands);
    scand_task_set_number(task, "scale", scaled->scale);
    scand_task_input(task, &operands->input);
    scand_task_output(task, &operands->output);
    scand_task_axis(task, operands->axis);
    if (operands->offsets.buffer)
        scand_task_offsets(task, &operands->offsets);
    options_set(task, &scaled->scan, operands->group);
    int status = scand_task_submit(daemon, task, progress, progress_context, out);
    scand_task_destroy(task);
    return status;
}

struct compute compute_scaled_scan(const struct scaled_scan *scaled)
{
    return (struct compute){.word = "the scan", .submit = scaled_submit, .context = scaled};
}

struct compute compute_scan(const struct scand_scan *scan)
{
    return (struct compute){.word = "the scan", .submit = scan_submit, .context = scan};
}

struct compute compute_reduce(const struct scand_reduce *reduce)
{
    return (struct compute){.word = "the reduction", .reduces = true, .submit = reduce_submit, .context = reduce};
}
