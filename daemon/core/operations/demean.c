/* demean: rows of floats less their means. */
#include <stdio.h>

#include "daemon/core/operations/operation.h"
#include "kernels/steps/demean/demean.h"

static int demean_check(const struct asked *asked, struct step *step, struct error *error)
{
    int r = check_floats(asked, error);
    step_set_parameters(step, "", 0);
    return r ? r : check_output_dtype(asked->in.dtype, asked->output, error);
}

/* A sample is read twice, added and subtracted. */
static uint64_t demean_work(const struct step *step)
{
    (void)step;
    return 2;
}

static void demean_describe(const struct step *step, char *out, size_t size)
{
    (void)step;
    snprintf(out, size, "of each row");
}

const struct operation operation_demean = {
    .kernel = &demean_kernel,
    .most_samples = LIMIT_JOINED_SAMPLES,
    .check = demean_check,
    .work = demean_work,
    .describe = demean_describe,
};
