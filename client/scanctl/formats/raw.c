/*
 * Raw samples, of which the command line says everything: shape, type, byte order, and what to skip or to pass on
 * before the first row and before each.
 */
#include <inttypes.h>
#include <stdio.h>

#include "client/scanctl/formats/forms.h"
#include "client/scanctl/formats/input.h"

/* Suggests shapes, "--shape 4,250 or --shape 1000": the given last dimension where it divides the samples, and one row
 * of all. */
static void raw_suggest(const struct array_hints *hints, uint64_t samples, char *out, size_t size)
{
    uint64_t row = hints->rank ? hints->shape[hints->rank - 1] : 0;
    if (row > 1 && samples % row == 0 && samples != row)
        snprintf(out, size, "--shape %" PRIu64 ",%" PRIu64 " or --shape %" PRIu64, samples / row, row, samples);
    else
        snprintf(out, size, "--shape %" PRIu64 " for one row, or rows and samples that multiply to it", samples);
}

/* Writes what a number of bytes is counted from. Returns `out`. */
static const char *after_header(const struct array *array, char *out, size_t size)
{
    out[0] = '\0';
    if (array->header_bytes)
        snprintf(out, size, " after the %" PRIu64 " of its header", array->header_bytes);
    return out;
}

/* Says why a file without headers before rows is not as the command line says. */
static int error_shape(const struct array *array, const struct array_hints *hints, const struct input *input,
                       struct error *error)
{
    char shape[128], suggestion[128], header[64];
    uint64_t bytes = input->size_bytes - array->header_bytes;
    uint64_t sample_bytes = array_sample_bytes(array), samples = bytes / sample_bytes;
    if (!bytes)
        return fail(error, EX_DATAERR, "%s: is empty%s; give a file with samples", input->name,
                    array->header_bytes ? " but for its header" : "");
    if (bytes % sample_bytes)
        return fail(error, EX_DATAERR,
                    "%s: is %" PRIu64 " bytes%s, which is no whole number of %s samples of %" PRIu64
                    " bytes; give its --dtype or --format, or a whole file",
                    input->name, bytes, after_header(array, header, sizeof(header)),
                    scand_word(SCAND_LIST_DTYPE, array->dtype), sample_bytes);
    raw_suggest(hints, samples, suggestion, sizeof(suggestion));
    if (!hints->rank)
        return fail(error, EX_USAGE, "%s: is %" PRIu64 " bytes%s, %" PRIu64 " samples, of unknown shape; give %s",
                    input->name, bytes, after_header(array, header, sizeof(header)), samples, suggestion);
    return fail(error, EX_USAGE,
                "%s: is %" PRIu64 " bytes%s, %" PRIu64 " samples, not the %s of --shape; what would fit: %s",
                input->name, bytes, after_header(array, header, sizeof(header)), samples,
                shape_text(hints->rank, hints->shape, shape, sizeof(shape)), suggestion);
}

/* Bytes from one position of the first axis to the next. */
static uint64_t row_bytes(const struct array *array)
{
    uint64_t bytes = array_sample_bytes(array);
    for (uint32_t i = 1; i < array->rank; i++)
        bytes *= array->shape[i];
    return bytes + array->trace_header_bytes;
}

/* Sets the first dimension of a shape that leaves it open: to 0 for a file without samples, as for an empty stream. */
static int rows_count(struct array *array, const struct input *input, struct error *error)
{
    uint64_t bytes = input->size_bytes - array->header_bytes, row = row_bytes(array);
    array->open_ended = !input->sized;
    array->shape[0] = input->sized ? bytes / row : 0;
    if (!input->sized || bytes % row == 0)
        return 0;
    char header[64];
    return fail(error, EX_DATAERR,
                "%s: has %" PRIu64 " bytes%s, which is no whole number of rows of %" PRIu64
                " bytes; give the right --shape, --dtype and header bytes, or a whole file",
                input->name, bytes, after_header(array, header, sizeof(header)), row);
}

static int raw_set_shape(struct array *array, const struct array_hints *hints, const struct input *input,
                         struct error *error)
{
    if (!hints->rank && !input->sized)
        return fail(
            error, EX_USAGE,
            "%s: is raw samples of unknown shape, or of a form that neither name nor first bytes show; give --shape "
            "ROWS,SAMPLES, or -1,SAMPLES for as many rows as there are, or --format",
            input->name);
    if (!hints->rank)
        return error_shape(array, hints, input, error);
    if (array->trace_header_bytes && hints->rank != 2)
        return fail(error, EX_USAGE,
                    "%s: --trace-header-bytes is %" PRIu64 " and --shape has %" PRIu32
                    " dimensions; headers of traces need two, as in --shape -1,1000",
                    input->name, array->trace_header_bytes, hints->rank);
    uint64_t shape[SCAND_RANK_MAX];
    for (uint32_t i = 0; i < hints->rank; i++)
        shape[i] = hints->open_ended && i == 0 ? 1 : hints->shape[i];
    int result = array_set_shape(array, hints->rank, shape, input->name, error);
    if (!result && hints->open_ended)
        return rows_count(array, input, error);
    if (result || !input->sized)
        return result;
    if (input->size_bytes == array->header_bytes + array->shape[0] * row_bytes(array))
        return 0;
    return array->trace_header_bytes ? array_check_size(array, input, error) : error_shape(array, hints, input, error);
}

/* Goes to the first row, and takes along what is to be passed on. */
static int raw_read_places(struct array *array, struct input *input, const struct array_hints *hints,
                           struct error *error)
{
    array->header_bytes = hints->skip_bytes + hints->header_bytes;
    array->trace_header_bytes = hints->trace_header_bytes;
    if (input->sized && input->size_bytes < array->header_bytes)
        return fail(error, EX_DATAERR,
                    "%s: is %" PRIu64 " bytes, less than the %" PRIu64
                    " that --offset and --header-bytes put before its samples; give a whole file",
                    input->name, input->size_bytes, array->header_bytes);
    int result = input_skip(input, hints->skip_bytes, error);
    return result ? result : array_pass(array, input, hints->header_bytes, error);
}

static int raw_read_header(struct array *array, struct input *input, const struct array_hints *hints,
                           struct error *error)
{
    array->dtype = hints->dtype;
    array->rank = 1;
    if (has_byte_order(hints->dtype) && hints->byte_order != BYTE_ORDER_UNKNOWN)
        return fail(error, EX_USAGE, "%s: --dtype %s says the byte order by itself; leave out --byte-order",
                    input->name, scand_word(SCAND_LIST_DTYPE, hints->dtype));
    array->byte_order = hints->byte_order;
    int result = raw_read_places(array, input, hints, error);
    return result ? result : raw_set_shape(array, hints, input, error);
}

const struct form raw_form = {.read_header = raw_read_header};
