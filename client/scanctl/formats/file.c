#include "client/scanctl/formats/file.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "client/scanctl/formats/forms.h"
#include "client/scanctl/formats/input.h"

#define X(NAME, WORD, OTHER) {#WORD, OTHER, &WORD##_form},
static const struct row {
    const char *word, *other;
    const struct form *form;
} rows[] = {FORMATS(X)};
#undef X

const struct form *form_of(enum format format)
{
    return rows[format].form;
}

int format_of_word(const char *word)
{
    for (int i = 0; i < FORMAT_COUNT; i++)
        if (!strcasecmp(word, rows[i].word))
            return i;
    return -1;
}

static const char *extension_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *dot = strrchr(slash ? slash : path, '.');
    return dot ? dot + 1 : "";
}

int format_of_extension(const char *path)
{
    const char *extension = extension_of(path);
    for (int i = 0; i < FORMAT_COUNT; i++)
        if (!strcasecmp(extension, rows[i].word) || !strcasecmp(extension, rows[i].other))
            return i;
    return -1;
}

const char *format_word(enum format format)
{
    return rows[format].word;
}

const char *formats_text(char *out)
{
    size_t used = 0;
    for (int i = 0; i < FORMAT_COUNT && used < FORMATS_TEXT_BYTES; i++)
        used += (size_t)snprintf(out + used, FORMATS_TEXT_BYTES - used, "%s%s", i ? ", " : "", rows[i].word);
    return out;
}

static enum format format_of_bytes(const unsigned char *bytes, uint64_t size_bytes)
{
    for (int i = 0; i < FORMAT_COUNT; i++)
        if (rows[i].form->is_likely && rows[i].form->is_likely(bytes, size_bytes))
            return (enum format)i;
    return FORMAT_RAW;
}

int format_find(struct input *input, const struct array_hints *hints, enum format *format, struct error *error)
{
    const unsigned char *bytes;
    uint64_t size_bytes;
    int named = hints->format != FORMAT_COUNT ? (int)hints->format : format_of_extension(input->name);
    if (named < 0 && !strcasecmp(extension_of(input->name), "npz"))
        return fail(error, EX_USAGE,
                    "%s: .npz files hold several arrays; save the one to be scanned with numpy.save, as .npy",
                    input->name);
    if (named < 0 && (hints->rank || hints->has_dtype || hints->has_places)) /* these options describe raw samples */
        named = FORMAT_RAW;
    *format = (enum format)named;
    if (named >= 0)
        return 0;
    int result = input_look(input, LIKELY_BYTES, &bytes, &size_bytes, error);
    if (!result && !size_bytes)
        result = fail(error, EX_DATAERR, "%s: is empty; give a file with samples", input->name);
    if (!result)
        *format = format_of_bytes(bytes, size_bytes);
    return result;
}

/* Refuses options that describe raw samples, for forms that say their own shape. */
static int hints_check(const struct array_hints *hints, const char *name, struct error *error)
{
    const char *option = hints->has_places  ? "--offset, --header-bytes and --trace-header-bytes"
                         : hints->rank      ? "--shape"
                         : hints->has_dtype ? "--dtype"
                                            : NULL;
    if (!option || hints->format == FORMAT_RAW)
        return 0;
    return fail(error, EX_USAGE,
                "%s: a file of the form %s says its own shape and type; leave out %s, or give --format raw", name,
                format_word(hints->format), option);
}

int array_read_header(struct array *array, struct input *input, const struct array_hints *hints, struct error *error)
{
    *array = (struct array){.format = hints->format};
    int result = hints_check(hints, input->name, error);
    if (!result)
        result = form_of(hints->format)->read_header(array, input, hints, error);
    if (!result && !hints->native)
        array->dtype = dtype_in_order(array->dtype, array->byte_order);
    if (result)
        array_free(array);
    return result;
}

enum scand_dtype array_usual_result(const struct array *array)
{
    return form_of(array->format)->keeps_dtype ? array->dtype : plain_dtype(array->dtype);
}

int array_check_result(enum format format, enum scand_dtype dtype, struct error *error)
{
    const struct form *form = form_of(format);
    return form->check_result ? form->check_result(dtype, error) : 0;
}
