#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "daemon/core/operations/operation.h"
#include "kernels/steps/triangle/triangle.h"

_Static_assert(LIMIT_HALF_WIDTH <= TRIANGLE_HALF_WIDTH_MAX, "the kernel has sums for that many samples");

static int check_floats(const struct asked *asked, struct error *error)
{
    struct word_list allowed = {.length = 0};
    if (!dtype_is_integer(asked->in.dtype))
        return 0;
    for (uint32_t dtype = 0; dtype < SCAND_DTYPE_COUNT; dtype++)
        if (!dtype_is_integer(dtype))
            word_list_add(&allowed, dtype_word(dtype));
    return error_set(error, -EINVAL, "\"%s\" is \"%s\"; allowed with \"steps[%u].operation\" \"%s\": %s",
                     asked_samples(asked), dtype_word(asked->in.dtype), (unsigned)asked->step,
                     step_words.words[asked->request->params->steps[asked->step].operation], allowed.text);
}

static double scale_of(enum window_norm norm, double half_width)
{
    switch (norm) {
    case WINDOW_NORM_AREA:
        return 1 / (half_width * half_width);
    case WINDOW_NORM_HEIGHT:
        return 1 / half_width;
    case WINDOW_NORM_NONE:
        break;
    }
    return 1;
}

static int triangle_check(const struct asked *asked, struct step *step, struct error *error)
{
    const struct msg_triangle *message = &asked->request->params->steps[asked->step].triangle;
    char field[FIELD_NAME_BYTES];
    int r;
    if (message->half_width == 0)
        return error_set(error, -EINVAL, "\"%s\" is 0; allowed: 1 to %d",
                         request_field(asked->request, asked->step, "half_width", field), LIMIT_HALF_WIDTH);
    if ((r = check_floats(asked, error)))
        return r;
    const struct triangle parameters = {.half_width = (uint32_t)message->half_width,
                                        .shape = TRIANGLE_TRIANGLE,
                                        .boundary = (enum boundary)message->boundary,
                                        .scale =
                                            scale_of((enum window_norm)message->norm, (double)message->half_width)};
    step_set_parameters(step, &parameters, sizeof parameters);
    return check_output_dtype(asked->in.dtype, asked->output, error);
}

/* Two sums, and a difference of three of them. */
static uint64_t triangle_work(const struct step *step)
{
    (void)step;
    return 3;
}

static void triangle_describe(const struct step *step, char *out, size_t size)
{
    const struct triangle *triangle = (const void *)step->parameters;
    snprintf(out, size, "of half-width %" PRIu32, triangle->half_width);
}

const struct operation operation_triangle = {
    .kernel = &triangle_kernel,
    .check = triangle_check,
    .work = triangle_work,
    .describe = triangle_describe,
};
