/* Scans and reductions as the program describes them: checked, and turned into params of the wire. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "client/lib/internal.h"

_Static_assert(SCAND_RAGGED_ROWS_MAX == LIMIT_RAGGED_ROWS && SCAND_DEADLINE_MS_MAX == LIMIT_DEADLINE_MS &&
                   SCAND_WAIT_MS_MAX == LIMIT_WAIT_MS,
               "programs are told the wire's limits");

/* Tells what a check has found. */
static int refused(struct scand *daemon, const struct error *error)
{
    return session_fail(daemon, error->code, "%s", error->message);
}

/* Checks a member; messages write `at` before its name. */
static int member_check_at(struct scand *daemon, const char *at, const char *name, unsigned value,
                           const struct words *words)
{
    char member[40];
    struct error error;
    if (value < words->count)
        return 0;
    snprintf(member, sizeof member, "%s%s", at, name);
    word_check(member, value, words, &error);
    return refused(daemon, &error);
}

static int member_check(struct scand *daemon, const char *name, unsigned value, const struct words *words)
{
    return member_check_at(daemon, "", name, value, words);
}

static int side_check(struct scand *daemon, const char *name, const struct scand_tensor *tensor)
{
    struct error error;
    return tensor_check(name, tensor, &error) ? refused(daemon, &error) : tensor_check_buffer(daemon, name, tensor);
}

static int optional_check(struct scand *daemon, const char *name, const struct scand_tensor *tensor, bool given)
{
    return given ? side_check(daemon, name, tensor) : 0;
}

/* True when coefficients are given; a buffer alone means a rank that was forgotten. */
static bool has_coefficients(const struct scand_scan *scan)
{
    return scan->coefficients.rank > 0 || scan->coefficients.buffer;
}

static int sides_check(struct scand *daemon, const struct scand_tensor *input, const struct scand_tensor *output,
                       uint32_t axis)
{
    int code = side_check(daemon, "input", input);
    if (code)
        return code;
    code = side_check(daemon, "output", output);
    if (code)
        return code;
    if (axis >= input->rank)
        return session_fail(daemon, -EINVAL, "axis is %u: an input of rank %u has axes 0 to %u", (unsigned)axis,
                            (unsigned)input->rank, (unsigned)input->rank - 1);
    return 0;
}

static int algorithm_check(struct scand *daemon, const char *algorithm)
{
    if (!algorithm || strlen(algorithm) < LIMIT_NAME_BYTES)
        return 0;
    return session_fail(daemon, -EINVAL, "algorithm has %zu bytes: give a name of scand_kernels, or NULL",
                        strlen(algorithm));
}

static int priority_check(struct scand *daemon, enum scand_priority priority)
{
    return member_check(daemon, "priority", priority, &priority_words);
}

/* Checks what a scan and its further steps have in common; messages write `at` before the members' names. */
static int step_check(struct scand *daemon, const char *at, const struct scand_step *step)
{
    int code = 0;
    if (step->pass_count == 0 || step->pass_count > SCAND_PASSES_MAX)
        code = session_fail(daemon, -EINVAL, "%spass_count is %u: a scan has 1 to %d passes", at,
                            (unsigned)step->pass_count, SCAND_PASSES_MAX);
    for (uint32_t i = 0; code == 0 && i < step->pass_count; i++)
        code = member_check_at(daemon, at, i ? "passes[1]" : "passes[0]", step->passes[i], &pass_words);
    if (code == 0)
        code = member_check_at(daemon, at, "kind", step->kind, &kind_words);
    if (code == 0)
        code = member_check_at(daemon, at, "op", step->op, &operator_words);
    if (code == 0)
        code = member_check_at(daemon, at, "accumulator", step->accumulator, &accumulator_words);
    if (code == 0)
        code = member_check_at(daemon, at, "intermediate", step->intermediate, &intermediate_words);
    return code;
}

static int steps_check(struct scand *daemon, const struct scand_scan *scan)
{
    char at[20];
    int code = 0;
    if (scan->then_count > SCAND_STEPS_MAX)
        return session_fail(daemon, -EINVAL, "then_count is %u: at most %d further steps are allowed",
                            (unsigned)scan->then_count, SCAND_STEPS_MAX);
    if (scan->then_count > 0 && !scan->then)
        return session_fail(daemon, -EINVAL, "then is NULL, but then_count is %u: give as many steps, or 0",
                            (unsigned)scan->then_count);
    for (uint32_t i = 0; code == 0 && i < scan->then_count; i++) {
        snprintf(at, sizeof at, "then[%u].", (unsigned)i);
        code = step_check(daemon, at, &scan->then[i]);
    }
    return code;
}

/* Returns the first step, which is the scan itself. */
static struct scand_step first_step(const struct scand_scan *scan)
{
    struct scand_step step = {.pass_count = scan->pass_count,
                              .kind = scan->kind,
                              .op = scan->op,
                              .accumulator = scan->accumulator,
                              .intermediate = scan->intermediate,
                              .demean = scan->demean,
                              .coefficient = scan->coefficient};
    memcpy(step.passes, scan->passes, sizeof step.passes);
    return step;
}

static int scan_check(struct scand *daemon, const struct scand_scan *scan)
{
    const struct scand_step first = first_step(scan);
    int code = sides_check(daemon, &scan->input, &scan->output, scan->axis);
    if (code)
        return code;
    code = optional_check(daemon, "offsets", &scan->offsets, scan->offsets.rank > 0);
    if (code)
        return code;
    code = optional_check(daemon, "coefficients", &scan->coefficients, has_coefficients(scan));
    if (code)
        return code;
    code = step_check(daemon, "", &first);
    if (code)
        return code;
    code = steps_check(daemon, scan);
    if (code)
        return code;
    code = priority_check(daemon, scan->priority);
    if (code)
        return code;
    code = group_check(daemon, scan->group);
    return code ? code : algorithm_check(daemon, scan->algorithm);
}

/* Fills in what every job has. */
static void job_prepare(struct scand_job *job, const struct scand_tensor *input, const struct scand_tensor *output,
                        uint32_t axis, const char *algorithm)
{
    struct msg_job_submit_params *params = &job->params.submit;
    job->method = METHOD_job_submit;
    memset(params, 0, sizeof *params);
    operand_add(job, "input", input, false, &params->input);
    operand_add(job, "output", output, true, &params->output);
    params->axis = axis;
    if (algorithm)
        strcpy(params->algorithm, algorithm);
}

static void offsets_prepare(struct scand_job *job, const struct scand_tensor *offsets)
{
    if (offsets->rank > 0)
        operand_add(job, "offsets", offsets, false, &job->params.submit.offsets);
}

static void step_params(struct msg_then_step *params, const struct scand_step *step)
{
    *params = (struct msg_then_step){.passes_count = step->pass_count,
                                     .kind = step->kind,
                                     .op = step->op,
                                     .accumulator = step->accumulator,
                                     .intermediate = step->intermediate,
                                     .demean = step->demean != 0,
                                     .coefficient = step->coefficient};
    for (uint32_t i = 0; i < step->pass_count; i++)
        params->passes[i] = step->passes[i];
}

int scan_prepare(struct scand *daemon, const struct scand_scan *scan, struct scand_job *job)
{
    int code = scan_check(daemon, scan);
    if (code)
        return code;
    struct msg_job_submit_params *params = &job->params.submit;
    job_prepare(job, &scan->input, &scan->output, scan->axis, scan->algorithm);
    params->passes_count = scan->pass_count;
    for (uint32_t i = 0; i < scan->pass_count; i++)
        params->passes[i] = scan->passes[i];
    params->kind = scan->kind;
    params->op = scan->op;
    params->accumulator = scan->accumulator;
    params->intermediate = scan->intermediate;
    params->demean = scan->demean != 0;
    params->priority = scan->priority;
    params->deadline_ms = scan->deadline_ms;
    params->after_failure = scan->after_failure != 0;
    params->group = scan->group;
    params->coefficient = scan->coefficient;
    params->then_count = scan->then_count;
    for (uint32_t i = 0; i < scan->then_count; i++)
        step_params(&params->then[i], &scan->then[i]);
    offsets_prepare(job, &scan->offsets);
    if (has_coefficients(scan))
        operand_add(job, "coefficients", &scan->coefficients, false, &params->coefficients);
    return 0;
}

static int reduce_check(struct scand *daemon, const struct scand_reduce *reduce)
{
    int code = sides_check(daemon, &reduce->input, &reduce->output, reduce->axis);
    if (code)
        return code;
    code = optional_check(daemon, "offsets", &reduce->offsets, reduce->offsets.rank > 0);
    if (code)
        return code;
    code = member_check(daemon, "reduction", reduce->reduction, &reduction_words);
    if (code)
        return code;
    if (reduce->reduction == SCAND_REDUCTION_NONE)
        return session_fail(daemon, -EINVAL,
                            "reduction is SCAND_REDUCTION_NONE: give SCAND_REDUCTION_SUM, _MIN, _MAX, "
                            "_MEAN, _RMS or _NORM");
    code = priority_check(daemon, reduce->priority);
    if (code)
        return code;
    code = group_check(daemon, reduce->group);
    return code ? code : algorithm_check(daemon, reduce->algorithm);
}

int reduce_prepare(struct scand *daemon, const struct scand_reduce *reduce, struct scand_job *job)
{
    int code = reduce_check(daemon, reduce);
    if (code)
        return code;
    struct msg_job_submit_params *params = &job->params.submit;
    job_prepare(job, &reduce->input, &reduce->output, reduce->axis, reduce->algorithm);
    offsets_prepare(job, &reduce->offsets);
    params->operation = SCAND_OPERATION_REDUCE;
    params->reduction = reduce->reduction;
    params->priority = reduce->priority;
    params->deadline_ms = reduce->deadline_ms;
    params->after_failure = reduce->after_failure != 0;
    params->group = reduce->group;
    return 0;
}
