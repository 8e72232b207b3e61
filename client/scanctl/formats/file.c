#include "client/scanctl/formats/file.h"

#include <string.h>
#include <strings.h>

#include "client/scanctl/formats/forms.h"
#include "client/scanctl/formats/output.h"

#define X(NAME, WORD) WORD,
static const char *const format_words[] = {FORMATS(X)};
#undef X

int format_of_word(const char *word)
{
    for (int i = 0; i < FORMAT_COUNT; i++)
        if (!strcasecmp(word, format_words[i]))
            return i;
    return -1;
}

int format_of_extension(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *dot = strrchr(slash ? slash : path, '.');
    return dot ? format_of_word(dot + 1) : -1;
}

const char *format_word(enum format format)
{
    return format_words[format];
}

int array_read_header(struct array *array, struct input *input, const struct array_hints *hints, struct error *error)
{
    static int (*const readers[])(struct array *, struct input *, const struct array_hints *, struct error *) = {
        [FORMAT_RAW] = raw_read_header,
        [FORMAT_NPY] = npy_read_header,
        [FORMAT_SU] = su_read_header,
    };
    return readers[hints->format](array, input, hints, error);
}

int array_write_header(const struct array *array, enum scand_dtype dtype, struct output *output, struct error *error)
{
    char header[NPY_WRITTEN_MAX];
    if (array->format != FORMAT_NPY)
        return 0;
    return output_write(output, header, npy_format_header(array, dtype, header), error);
}

int array_check_result(const struct array *array, enum scand_dtype dtype, struct error *error)
{
    if (array->format == FORMAT_SU && dtype != SCAND_DTYPE_F32)
        return fail(error, EX_USAGE,
                    "--output-dtype is %s, but SU files hold f32; leave it out, or convert to .npy first",
                    scand_word(SCAND_LIST_DTYPE, dtype));
    if (array->format == FORMAT_NPY && !npy_type(dtype))
        return fail(error, EX_USAGE,
                    "--output-dtype is %s, which .npy files cannot hold; it may be f16, f32, f64, i32, i64, u32, "
                    "u64, f32be, i16be or i32be",
                    scand_word(SCAND_LIST_DTYPE, dtype));
    return 0;
}
