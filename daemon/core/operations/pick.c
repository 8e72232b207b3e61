/* pick: its positions and half-widths, two vectors of one length. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "daemon/core/operations/operation.h"
#include "kernels/steps/pick/pick.h"
#include "protocol/lengths.h"

static int check_half_width(const struct asked *asked, uint64_t widths, uint64_t picks, struct error *error)
{
    char field[FIELD_NAME_BYTES];
    if (widths == picks)
        return 0;
    return error_set(error, -EINVAL,
                     "\"%s\" has %" PRIu64 " elements along the axis; it must have %" PRIu64
                     ", one for each element of \"position\"",
                     request_field(asked->request, asked->step, "half_width", field), widths, picks);
}

static int pick_check(const struct asked *asked, struct step *step, struct error *error)
{
    const struct msg_pick *message = &asked->request->params->steps[asked->step].pick;
    const uint64_t axis = asked->request->params->axis, picks = vector_length(&message->position, axis);
    const struct pick parameters = {.picks = picks};
    int r;
    if ((r = check_floats(asked, error)) ||
        (r = check_half_width(asked, vector_length(&message->half_width, axis), picks, error)))
        return r;
    step_set_parameters(step, &parameters, sizeof parameters);
    return check_output_dtype(asked->in.dtype, asked->output, error);
}

/* Six samples are read, anywhere in a row, and two numbers are divided. */
static uint64_t pick_work(const struct step *step)
{
    (void)step;
    return 8;
}

static void pick_describe(const struct step *step, char *out, size_t size)
{
    const struct pick *pick = (const void *)step->parameters;
    snprintf(out, size, "%" PRIu64 " of each row", pick->picks);
}

const struct operation operation_pick = {
    .kernel = &pick_kernel,
    .check = pick_check,
    .work = pick_work,
    .describe = pick_describe,
};
