#include "client/scanctl/formats/forms.h"

#include <inttypes.h>
#include <stdio.h>

#include "client/scanctl/formats/input.h"
#include "client/scanctl/ui/text.h"

/* "--shape 4,250 or --shape 1000": the given last dimension where it divides the samples, and one row of all. */
static void raw_suggest(const struct array_hints *hints, uint64_t samples, char *out, size_t size)
{
    uint64_t row = hints->rank ? hints->shape[hints->rank - 1] : 0;
    if (row > 1 && samples % row == 0 && samples != row)
        snprintf(out, size, "--shape %" PRIu64 ",%" PRIu64 " or --shape %" PRIu64, samples / row, row, samples);
    else
        snprintf(out, size, "--shape %" PRIu64 " for one row, or rows and samples that multiply to it", samples);
}

static int raw_check_size(const struct array_hints *hints, const struct input *input, struct error *error)
{
    char shape[128], suggestion[128];
    uint64_t sample_bytes = scand_dtype_bytes(hints->dtype), samples = input->size_bytes / sample_bytes;
    if (!input->size_bytes)
        return fail(error, EX_DATAERR, "%s: is empty; give a file with samples", input->name);
    if (input->size_bytes % sample_bytes)
        return fail(error, EX_DATAERR,
                    "%s: is %" PRIu64 " bytes, which is no whole number of %s samples of %" PRIu64
                    " bytes; give its --dtype or --format, or a whole file",
                    input->name, input->size_bytes, scand_word(SCAND_LIST_DTYPE, hints->dtype), sample_bytes);
    raw_suggest(hints, samples, suggestion, sizeof(suggestion));
    if (!hints->rank)
        return fail(error, EX_USAGE, "%s: is %" PRIu64 " bytes, %" PRIu64 " samples, of unknown shape; give %s",
                    input->name, input->size_bytes, samples, suggestion);
    return fail(error, EX_USAGE,
                "%s: is %" PRIu64 " bytes, %" PRIu64 " samples, not the %s of --shape; what would fit: %s", input->name,
                input->size_bytes, samples, shape_text(hints->rank, hints->shape, shape, sizeof(shape)), suggestion);
}

int raw_read_header(struct array *array, struct input *input, const struct array_hints *hints, struct error *error)
{
    enum byte_order native = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? BYTE_ORDER_LITTLE : BYTE_ORDER_BIG;
    *array = (struct array){.format = FORMAT_RAW, .dtype = hints->dtype, .rank = 1};
    if (is_big_endian(hints->dtype) && hints->byte_order != BYTE_ORDER_UNKNOWN)
        return fail(error, EX_USAGE, "%s: --dtype %s is big-endian by itself; leave out --byte-order", input->name,
                    scand_word(SCAND_LIST_DTYPE, hints->dtype));
    array->swapped = hints->byte_order != BYTE_ORDER_UNKNOWN && hints->byte_order != native;
    if (!hints->rank && !input->sized)
        return fail(error, EX_USAGE, "%s: is raw samples of unknown shape; give --shape ROWS,SAMPLES", input->name);
    if (hints->rank) {
        int result = array_set_shape(array, hints->rank, hints->shape, input->name, error);
        if (result)
            return result;
    }
    bool fits = hints->rank && input->size_bytes == array_sample_count(array) * array_sample_bytes(array);
    return !input->sized || fits ? 0 : raw_check_size(hints, input, error);
}
