/* dot: a number for each row, of two operands. */
#include <stdio.h>

#include "daemon/core/operations/operation.h"
#include "kernels/steps/dot/dot.h"

static int dot_check(const struct asked *asked, struct step *step, struct error *error)
{
    step_set_parameters(step, "", 0);
    return check_output_dtype(asked->in.dtype, asked->output, error);
}

/* A sample of each row is read, multiplied and added. */
static uint64_t dot_work(const struct step *step)
{
    (void)step;
    return 2;
}

static void dot_describe(const struct step *step, char *out, size_t size)
{
    (void)step;
    snprintf(out, size, "with another tensor");
}

const struct operation operation_dot = {
    .kernel = &dot_kernel,
    .most_samples = LIMIT_JOINED_SAMPLES,
    .divides = true,
    .check = dot_check,
    .work = dot_work,
    .describe = dot_describe,
};
