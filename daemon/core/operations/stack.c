/* stack, and index-add, which does the same onto what there is already. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "daemon/core/operations/operation.h"
#include "kernels/steps/stack/stack.h"
#include "protocol/lengths.h"

static int check_bins(const struct asked *asked, const struct msg_stack *message, struct error *error)
{
    char field[FIELD_NAME_BYTES];
    if (message->bins > 0)
        return 0;
    return error_set(error, -EINVAL, "\"%s\" is 0; allowed: 1 to %" PRIu64,
                     request_field(asked->request, asked->step, "bins", field), LIMIT_BINS);
}

static int check_index(const struct asked *asked, const struct msg_tensor *index, struct error *error)
{
    const uint64_t length = vector_length(index, asked->request->params->axis);
    char field[FIELD_NAME_BYTES];
    if (length == asked->in.length)
        return 0;
    return error_set(error, -EINVAL,
                     "\"%s\" has %" PRIu64 " elements along the axis; it must have %" PRIu64
                     ", one for each sample of a row that the step takes",
                     request_field(asked->request, asked->step, "index", field), length, asked->in.length);
}

static int check_norm(const struct asked *asked, const struct msg_stack *message, struct error *error)
{
    char field[FIELD_NAME_BYTES];
    if (message->norm == STACK_NORM_NONE || !dtype_is_integer(asked->in.dtype))
        return 0;
    return error_set(error, -EINVAL,
                     "\"%s\" is \"%s\", but \"%s\" \"%s\" is of integers; allowed: none; or give f32 or f64 as "
                     "\"output.dtype\", and " STEP_THAT_CASTS,
                     request_field(asked->request, asked->step, "norm", field), stack_norm_words.words[message->norm],
                     asked_samples(asked), dtype_word(asked->in.dtype));
}

static int check_power(const struct asked *asked, const struct msg_stack *message, struct error *error)
{
    char field[FIELD_NAME_BYTES];
    const char *name = request_field(asked->request, asked->step, "power", field);
    if (!STEP_GIVES(message, stack, power))
        return 0;
    if (message->norm == STACK_NORM_NONE)
        return error_set(error, -EINVAL,
                         "\"%s\" is %g, which is for \"norm\" \"fold\", but \"norm\" is \"none\"; leave it out", name,
                         message->power);
    if (message->power >= LIMIT_POWER_MIN && message->power <= LIMIT_POWER_MAX)
        return 0;
    return error_set(error, -EINVAL, "\"%s\" is %g; allowed: %.10g to %g, or left out for 1", name, message->power,
                     LIMIT_POWER_MIN, LIMIT_POWER_MAX);
}

static int stack_check(const struct asked *asked, struct step *step, struct error *error)
{
    const struct msg_stack *message = &asked->request->params->steps[asked->step].stack;
    int r;
    if ((r = check_bins(asked, message, error)) || (r = check_index(asked, &message->index, error)) ||
        (r = check_norm(asked, message, error)) || (r = check_power(asked, message, error)))
        return r;
    const struct stack parameters = {
        .bins = message->bins,
        .norm = message->norm,
        .power = STEP_GIVES(message, stack, power) ? message->power : 1,
        .alpha = 1,
    };
    step_set_parameters(step, &parameters, sizeof parameters);
    return check_output_dtype(asked->in.dtype, asked->output, error);
}

/* A bin's sum is made and rounded, and a sample is read and added to a sum in the cache: for each tile of bins, as only
 * that tile's sums are there. A power of the fold is some roots and products. */
static uint64_t stack_work(const struct step *step)
{
    const struct stack *stack = (const void *)step->parameters;
    const uint64_t tiles = (stack->bins + STACK_CELLS - 1) / STACK_CELLS;
    const bool raises = stack->norm == STACK_NORM_FOLD && stack->power != 1;
    return 8 + 4 * tiles + (raises ? 24 : 0);
}

static void stack_describe(const struct step *step, char *out, size_t size)
{
    const struct stack *stack = (const void *)step->parameters;
    snprintf(out, size, "into %" PRIu64 " bins", stack->bins);
}

/* Checks the number of bins, which is that of the operand that is added onto. */
static int check_onto(const struct asked *asked, uint64_t bins, struct error *error)
{
    char field[FIELD_NAME_BYTES];
    if (bins > 0 && bins <= LIMIT_BINS)
        return 0;
    return error_set(error, -EINVAL, "\"%s\" has %" PRIu64 " elements along the axis; allowed: 1 to %" PRIu64,
                     request_field(asked->request, asked->step, "onto", field), bins, LIMIT_BINS);
}

static int check_alpha(const struct asked *asked, double alpha, struct error *error)
{
    const bool whole = dtype_is_integer(asked->in.dtype);
    char field[FIELD_NAME_BYTES];
    if (isfinite(alpha) && (!whole || (fabs(alpha) <= 0x1p53 && alpha == trunc(alpha))))
        return 0;
    return error_set(error, -EINVAL, "\"%s\" is %g; allowed with \"%s\" \"%s\": %s",
                     request_field(asked->request, asked->step, "alpha", field), alpha, asked_samples(asked),
                     dtype_word(asked->in.dtype), whole ? "whole numbers from -2^53 to 2^53" : "finite numbers");
}

static int index_add_check(const struct asked *asked, struct step *step, struct error *error)
{
    const struct msg_index_add *message = &asked->request->params->steps[asked->step].index_add;
    const struct stack parameters = {
        .bins = vector_length(&message->onto, asked->request->params->axis),
        .norm = STACK_NORM_NONE,
        .power = 1,
        .alpha = STEP_GIVES(message, index_add, alpha) ? message->alpha : 1,
    };
    int r;
    if ((r = check_index(asked, &message->index, error)) || (r = check_onto(asked, parameters.bins, error)) ||
        (r = check_alpha(asked, parameters.alpha, error)))
        return r;
    step_set_parameters(step, &parameters, sizeof parameters);
    return check_output_dtype(asked->in.dtype, asked->output, error);
}

static void index_add_describe(const struct step *step, char *out, size_t size)
{
    const struct stack *stack = (const void *)step->parameters;
    snprintf(out, size, "onto %" PRIu64 " bins", stack->bins);
}

const struct operation operation_stack = {
    .kernel = &stack_kernel,
    .most_samples = LIMIT_JOINED_SAMPLES,
    .check = stack_check,
    .work = stack_work,
    .describe = stack_describe,
};

const struct operation operation_index_add = {
    .kernel = &stack_kernel,
    .most_samples = LIMIT_JOINED_SAMPLES,
    .check = index_add_check,
    .work = stack_work,
    .describe = index_add_describe,
};
