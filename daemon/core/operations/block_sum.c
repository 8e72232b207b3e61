/* block-sum: the adjoint of upsample. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "daemon/core/operations/operation.h"
#include "kernels/steps/block_sum/block_sum.h"

/* The row ends with a whole block. */
static int check_multiple(const struct asked *asked, uint64_t factor, struct error *error)
{
    char field[FIELD_NAME_BYTES];
    if (asked->in.length % factor == 0)
        return 0;
    return error_set(error, -EINVAL,
                     "\"%s\" is %" PRIu64 ", but the step takes rows of %" PRIu64
                     " samples; allowed: a factor of which the length is a multiple",
                     request_field(asked->request, asked->step, "factor", field), factor, asked->in.length);
}

static int block_sum_check(const struct asked *asked, struct step *step, struct error *error)
{
    const uint64_t factor = asked->request->params->steps[asked->step].block_sum.factor;
    char field[FIELD_NAME_BYTES];
    int r;
    if (factor == 0)
        return error_set(error, -EINVAL, "\"%s\" is 0; allowed: 1 to %" PRIu64,
                         request_field(asked->request, asked->step, "factor", field), LIMIT_FACTOR);
    if ((r = check_multiple(asked, factor, error)))
        return r;
    const struct block_sum parameters = {.factor = factor};
    step_set_parameters(step, &parameters, sizeof parameters);
    return check_output_dtype(asked->in.dtype, asked->output, error);
}

/* A sample is added. */
static uint64_t block_sum_work(const struct step *step)
{
    (void)step;
    return 1;
}

static void block_sum_describe(const struct step *step, char *out, size_t size)
{
    const struct block_sum *block_sum = (const void *)step->parameters;
    snprintf(out, size, "of %" PRIu64 " samples", block_sum->factor);
}

const struct operation operation_block_sum = {
    .kernel = &block_sum_kernel,
    .check = block_sum_check,
    .work = block_sum_work,
    .describe = block_sum_describe,
};
