/* triangle and box, whose steps have nearly the same fields. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "daemon/core/operations/operation.h"
#include "kernels/steps/triangle/triangle.h"

_Static_assert(LIMIT_HALF_WIDTH <= TRIANGLE_HALF_WIDTH_MAX, "the kernel has sums for that many samples");

static int check(const struct asked *asked, enum triangle_shape shape, uint64_t half_width, enum window_norm norm,
                 enum boundary boundary, struct step *step, struct error *error)
{
    const struct triangle parameters = {.half_width = (uint32_t)half_width,
                                        .shape = shape,
                                        .boundary = boundary,
                                        .scale = triangle_scale(shape, norm, (double)half_width),
                                        .norm = norm};
    char field[FIELD_NAME_BYTES];
    int r;
    if (half_width == 0)
        return error_set(error, -EINVAL, "\"%s\" is 0; allowed: 1 to %d",
                         request_field(asked->request, asked->step, "half_width", field), LIMIT_HALF_WIDTH);
    if ((r = check_floats(asked, error)))
        return r;
    step_set_parameters(step, &parameters, sizeof parameters);
    return check_output_dtype(asked->in.dtype, asked->output, error);
}

static int triangle_check(const struct asked *asked, struct step *step, struct error *error)
{
    const struct msg_triangle *message = &asked->request->params->steps[asked->step].triangle;
    return check(asked, TRIANGLE_TRIANGLE, message->half_width, (enum window_norm)message->norm,
                 (enum boundary)message->boundary, step, error);
}

static int box_check(const struct asked *asked, struct step *step, struct error *error)
{
    const struct msg_box *message = &asked->request->params->steps[asked->step].box;
    return check(asked, TRIANGLE_BOX, message->half_width, (enum window_norm)message->norm,
                 (enum boundary)message->boundary, step, error);
}

static bool has_half_widths(const struct step *step)
{
    return step->further[TRIANGLE_HALF_WIDTHS] > 0;
}

/* Returns the work of a triangle: two sums, and a difference of two or three of them, of places and with a scale that
 * may be every output's own. */
static uint64_t triangle_work(const struct step *step)
{
    return has_half_widths(step) ? 8 : 3;
}

/* Of each row the segment before the first and the one behind the last are summed, too; samples beyond the row are
 * found one by one. However few the sums are, beginning with them takes as long as some hundred samples. */
static uint64_t triangle_row_work(const struct step *step)
{
    const struct triangle *triangle = (const void *)step->parameters;
    return UINT64_C(6) * triangle->half_width + (triangle->half_width > TRIANGLE_TAPS_MAX ? 256 : 0);
}

static void triangle_describe(const struct step *step, char *out, size_t size)
{
    const struct triangle *triangle = (const void *)step->parameters;
    snprintf(out, size, has_half_widths(step) ? "of half-widths up to %" PRIu32 : "of half-width %" PRIu32,
             triangle->half_width);
}

const struct operation operation_triangle = {
    .kernel = &triangle_kernel,
    .check = triangle_check,
    .work = triangle_work,
    .row_work = triangle_row_work,
    .describe = triangle_describe,
};

const struct operation operation_box = {
    .kernel = &triangle_kernel,
    .check = box_check,
    .work = triangle_work,
    .row_work = triangle_row_work,
    .describe = triangle_describe,
};
