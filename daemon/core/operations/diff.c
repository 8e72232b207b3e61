/* diff: its kinds, of which derivatives have a time step. */
#include <errno.h>
#include <stdio.h>

#include "daemon/core/operations/operation.h"
#include "kernels/steps/diff/diff.h"

static int check_dt(const struct asked *asked, const struct msg_diff *message, struct error *error)
{
    const double dt = message->dt;
    char field[FIELD_NAME_BYTES];
    const char *name = request_field(asked->request, asked->step, "dt", field);
    if (message->kind == DIFF_DERIVATIVE && !STEP_GIVES(message, diff, dt))
        return error_set(error, -EINVAL, "\"%s\" is missing; allowed with \"kind\" \"derivative\": %g to %g", name,
                         LIMIT_DT_MIN, LIMIT_DT_MAX);
    if (message->kind == DIFF_DERIVATIVE && !(dt >= LIMIT_DT_MIN && dt <= LIMIT_DT_MAX))
        return error_set(error, -EINVAL, "\"%s\" is %g; allowed with \"kind\" \"derivative\": %g to %g", name, dt,
                         LIMIT_DT_MIN, LIMIT_DT_MAX);
    if (message->kind != DIFF_DERIVATIVE && dt != 0)
        return error_set(error, -EINVAL, "\"%s\" is %g, which \"kind\" \"%s\" has no use for; leave it out", name, dt,
                         diff_kind_words.words[message->kind]);
    return 0;
}

static int check_kind(const struct asked *asked, const struct msg_diff *message, struct error *error)
{
    char field[FIELD_NAME_BYTES];
    if (message->kind != DIFF_DERIVATIVE || !dtype_is_integer(asked->in.dtype))
        return 0;
    return error_set(error, -EINVAL, "\"%s\" is \"derivative\"; allowed with \"%s\" \"%s\": first, second",
                     request_field(asked->request, asked->step, "kind", field), asked_samples(asked),
                     dtype_word(asked->in.dtype));
}

static int diff_check(const struct asked *asked, struct step *step, struct error *error)
{
    const struct msg_diff *message = &asked->request->params->steps[asked->step].diff;
    const struct diff parameters = {.kind = (enum diff_kind)message->kind, .dt = message->dt};
    int r;
    if ((r = check_kind(asked, message, error)) || (r = check_dt(asked, message, error)))
        return r;
    step_set_parameters(step, &parameters, sizeof parameters);
    return check_output_dtype(asked->in.dtype, asked->output, error);
}

static uint64_t diff_work(const struct step *step)
{
    (void)step;
    return 1;
}

static void diff_describe(const struct step *step, char *out, size_t size)
{
    const struct diff *diff = (const void *)step->parameters;
    snprintf(out, size, "%s", diff_kind_words.words[diff->kind]);
}

const struct operation operation_diff = {
    .kernel = &diff_kernel,
    .check = diff_check,
    .work = diff_work,
    .describe = diff_describe,
};
