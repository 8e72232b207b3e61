#include "client/scanctl/formats/coefficients.h"

#include <string.h>

#include "client/scanctl/formats/file.h"
#include "client/scanctl/formats/input.h"

static bool same_shape(const struct array *a, const struct array *b)
{
    return a->rank == b->rank && !memcmp(a->shape, b->shape, a->rank * sizeof(a->shape[0]));
}

static int check_fit(const struct array *array, const struct array *samples, const char *name, const char *samples_name,
                     struct error *error)
{
    char shape[128], expected[128];
    if (!same_shape(array, samples))
        return fail(error, EX_DATAERR, "%s: holds %s coefficients, but %s holds %s samples; give one for each", name,
                    shape_text(array->rank, array->shape, shape, sizeof(shape)), samples_name,
                    shape_text(samples->rank, samples->shape, expected, sizeof(expected)));
    if (array->rank > 1 && array->fortran != samples->fortran)
        return fail(error, EX_DATAERR, "%s: is in %s order, but %s is in %s order; save one like the other", name,
                    array->fortran ? "Fortran" : "C", samples_name, samples->fortran ? "Fortran" : "C");
    if (scand_dtype_class(array->dtype) != scand_dtype_class(samples->dtype))
        return fail(error, EX_DATAERR,
                    "%s: holds coefficients of type %s, but %s holds samples of type %s; convert them to %s", name,
                    scand_word(SCAND_LIST_DTYPE, array->dtype), samples_name,
                    scand_word(SCAND_LIST_DTYPE, samples->dtype), scand_word(SCAND_LIST_DTYPE, samples->dtype));
    return 0;
}

/* What samples are while they are scanned, in place of a form of files. */
static enum scand_dtype plain_dtype(enum scand_dtype dtype)
{
    switch (scand_dtype_class(dtype)) {
    case SCAND_CLASS_F32:
        return SCAND_DTYPE_F32;
    case SCAND_CLASS_F64:
        return SCAND_DTYPE_F64;
    default:
        return dtype;
    }
}

/* Raw coefficients lie as the samples do, without headers between them. */
static int raw_header(struct array *array, struct input *input, const struct array *samples, struct error *error)
{
    *array = (struct array){.format = FORMAT_RAW, .dtype = samples->dtype, .fortran = samples->fortran};
    memcpy(array->shape, samples->shape, sizeof(array->shape));
    array->rank = samples->rank;
    if (samples->format == FORMAT_RAW)
        array->byte_order = samples->byte_order;
    else if (samples->trace_header_bytes)
        array->dtype = plain_dtype(samples->dtype);
    return array_check_size(array, input, error);
}

int coefficients_read_header(struct array *array, struct input *input, const struct array *samples,
                             const struct array_hints *hints, const char *samples_name, struct error *error)
{
    int form = format_of_extension(input->name), result;
    struct array_hints own = {.format = form < 0 ? FORMAT_RAW : (enum format)form, .native = hints->native};
    if (samples->open_ended)
        return fail(
            error, EX_USAGE,
            "%s: does not say how many rows it brings, so --coefficients cannot be of its shape; give a file in place "
            "of a pipe",
            samples_name);
    if (own.format == FORMAT_SU)
        own.byte_order = hints->byte_order;
    if (own.format == FORMAT_RAW)
        result = raw_header(array, input, samples, error);
    else
        result = array_read_header(array, input, &own, error);
    return result ? result : check_fit(array, samples, input->name, samples_name, error);
}
