/* upsample: rows that become a whole number of times as long. The shortest of these files, as an example. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "daemon/core/operations/operation.h"
#include "kernels/steps/upsample/upsample.h"

static int upsample_check(const struct asked *asked, struct step *step, struct error *error)
{
    const uint64_t factor = asked->request->params->steps[asked->step].upsample.factor;
    char field[FIELD_NAME_BYTES];
    if (factor == 0)
        return error_set(error, -EINVAL, "\"%s\" is 0; allowed: 1 to %" PRIu64,
                         request_field(asked->request, asked->step, "factor", field), LIMIT_FACTOR);
    const struct upsample parameters = {.factor = factor};
    step_set_parameters(step, &parameters, sizeof parameters);
    return check_output_dtype(asked->in.dtype, asked->output, error);
}

/* An element is copied. */
static uint64_t upsample_work(const struct step *step)
{
    (void)step;
    return 1;
}

static void upsample_describe(const struct step *step, char *out, size_t size)
{
    const struct upsample *upsample = (const void *)step->parameters;
    snprintf(out, size, "%" PRIu64 " times", upsample->factor);
}

const struct operation operation_upsample = {
    .kernel = &upsample_kernel,
    .check = upsample_check,
    .work = upsample_work,
    .describe = upsample_describe,
};
