/* convolve, and its adjoint correlate: their steps have the same fields. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "daemon/core/operations/operation.h"
#include "kernels/steps/convolve/convolve.h"
#include "protocol/lengths.h"

#define TAPS_PER_PASS 8 /* of which a vector unit adds as many as a pass takes to read and write its samples */

static const union msg_step *step_of(const struct asked *asked)
{
    return &asked->request->params->steps[asked->step];
}

static int check_taps(const struct asked *asked, const struct msg_tensor *filter, uint64_t taps, struct error *error)
{
    char field[FIELD_NAME_BYTES];
    if ((taps > 0 && taps <= LIMIT_TAPS) || filter->shape_count > asked->request->params->input.shape_count)
        return 0;
    return error_set(error, -EINVAL, "\"%s\" has %" PRIu64 " taps; allowed: 1 to %d",
                     request_field(asked->request, asked->step, "filter", field), taps, LIMIT_TAPS);
}

/* A row that is empty has no results with any filter. */
static int check_mode(const struct asked *asked, enum convolve_mode mode, uint64_t taps, struct error *error)
{
    char field[FIELD_NAME_BYTES];
    if (mode != CONVOLVE_VALID || taps <= asked->in.length || asked->in.length == 0)
        return 0;
    return error_set(error, -EINVAL,
                     "\"%s\" has %" PRIu64 " taps, and the rows %" PRIu64
                     " samples; allowed with \"mode\" \"valid\": as many taps as samples at most; or take \"same\" or "
                     "\"full\"",
                     request_field(asked->request, asked->step, "filter", field), taps, asked->in.length);
}

static int check_accumulator(const struct asked *asked, enum scand_accumulator accumulator, struct error *error)
{
    char field[FIELD_NAME_BYTES];
    if (accumulator != SCAND_ACCUMULATOR_F32 || dtype_class(asked->in.dtype) != SCAND_CLASS_F64)
        return 0;
    return error_set(error, -EINVAL, "\"%s\" is \"f32\"; allowed with \"%s\" \"%s\": auto, f64",
                     request_field(asked->request, asked->step, "accumulator", field), asked_samples(asked),
                     dtype_word(asked->in.dtype));
}

static int check(const struct asked *asked, bool correlate, const struct msg_tensor *filter, enum convolve_mode mode,
                 enum scand_accumulator accumulator, struct step *step, struct error *error)
{
    const uint64_t taps = vector_length(filter, asked->request->params->axis);
    int r;
    if ((r = check_floats(asked, error)) || (r = check_output_dtype(asked->in.dtype, asked->output, error)) ||
        (r = check_taps(asked, filter, taps, error)) || (r = check_mode(asked, mode, taps, error)) ||
        (r = check_accumulator(asked, accumulator, error)))
        return r;
    const struct convolve parameters = convolve_params(correlate, mode, taps, accumulator != SCAND_ACCUMULATOR_F32);
    step_set_parameters(step, &parameters, sizeof parameters);
    return 0;
}

static int convolve_check(const struct asked *asked, struct step *step, struct error *error)
{
    const struct msg_convolve *asks = &step_of(asked)->convolve;
    return check(asked, false, &asks->filter, asks->mode, asks->accumulator, step, error);
}

static int correlate_check(const struct asked *asked, struct step *step, struct error *error)
{
    const struct msg_correlate *asks = &step_of(asked)->correlate;
    return check(asked, true, &asks->filter, asks->mode, asks->accumulator, step, error);
}

static uint64_t convolve_work(const struct step *step)
{
    const struct convolve *convolve = (const void *)step->parameters;
    return 1 + convolve->taps / TAPS_PER_PASS;
}

static void convolve_describe(const struct step *step, char *out, size_t size)
{
    const struct convolve *convolve = (const void *)step->parameters;
    snprintf(out, size, "%" PRIu64 " taps, in %s", convolve->taps, convolve->wide ? "f64" : "f32");
}

const struct operation operation_convolve = {
    .kernel = &convolve_kernel,
    .check = convolve_check,
    .work = convolve_work,
    .describe = convolve_describe,
};

const struct operation operation_correlate = {
    .kernel = &convolve_kernel,
    .check = correlate_check,
    .work = convolve_work,
    .describe = convolve_describe,
};
