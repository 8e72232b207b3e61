#include "client/scanctl/formats/array.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "client/scanctl/formats/input.h"
#include "client/scanctl/formats/output.h"
#include "client/scanctl/ui/text.h"
#include "protocol/status.h"

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

int array_read_header(struct array *array, struct input *input, const struct array_hints *hints, struct fault *fault)
{
    static int (*const readers[])(struct array *, struct input *, const struct array_hints *, struct fault *) = {
        [FORMAT_RAW] = raw_read_header,
        [FORMAT_NPY] = npy_read_header,
        [FORMAT_SU] = su_read_header,
    };
    return readers[hints->format](array, input, hints, fault);
}

int array_write_header(const struct array *array, enum scand_dtype dtype, struct output *output, struct fault *fault)
{
    char header[NPY_WRITTEN_MAX];
    if (array->format != FORMAT_NPY)
        return 0;
    return output_write(output, header, npy_format_header(array, dtype, header), fault);
}

int array_set_shape(struct array *array, uint32_t rank, const uint64_t *shape, const char *name, struct fault *fault)
{
    /* No dimension counts as less than one here, so that the strides of an empty array can be computed as well. */
    uint64_t bytes = SAMPLE_BYTES_MAX;
    bool overflow = false;
    for (uint32_t i = 0; i < rank; i++)
        overflow = overflow || __builtin_mul_overflow(bytes, shape[i] ? shape[i] : 1, &bytes);
    if (overflow || bytes > INT64_MAX / 2) {
        char text[128];
        return fault_set(fault, EX_DATAERR,
                         "%s: its shape, %s, is more than this machine can address; give the true shape", name,
                         shape_text(rank, shape, text, sizeof(text)));
    }
    array->rank = rank;
    memcpy(array->shape, shape, rank * sizeof(*shape));
    return 0;
}

uint64_t array_sample_count(const struct array *array)
{
    uint64_t count = 1;
    for (uint32_t i = 0; i < array->rank; i++)
        count *= array->shape[i];
    return count;
}

uint64_t array_sample_bytes(const struct array *array)
{
    return dtype_size_bytes(array->dtype);
}

bool is_big_endian(enum scand_dtype dtype)
{
    return dtype == SCAND_DTYPE_F32BE || dtype == SCAND_DTYPE_I16BE || dtype == SCAND_DTYPE_I32BE ||
           dtype == SCAND_DTYPE_IBM32;
}

int array_check_result(const struct array *array, enum scand_dtype dtype, struct fault *fault)
{
    if (array->format == FORMAT_SU && dtype != SCAND_DTYPE_F32)
        return fault_set(fault, EX_USAGE,
                         "--output-dtype is %s, but SU files hold f32; leave it out, or convert to .npy first",
                         dtype_words.words[dtype]);
    if (array->format == FORMAT_NPY && !npy_type(dtype))
        return fault_set(fault, EX_USAGE,
                         "--output-dtype is %s, which .npy files cannot hold; it may be f16, f32, f64, i32, i64, u32, "
                         "u64, f32be, i16be or i32be",
                         dtype_words.words[dtype]);
    return 0;
}

uint64_t array_unit_bytes(const struct array *array, uint64_t sample_bytes)
{
    if (!array->trace_header_bytes)
        return sample_bytes;
    return array->trace_header_bytes + array->shape[array->rank - 1] * sample_bytes;
}

int array_check_size(const struct array *array, const struct input *input, struct fault *fault)
{
    uint64_t expected = array->header_bytes + array_sample_count(array) * array_sample_bytes(array);
    char shape[128];
    if (!input->sized || input->size_bytes == expected)
        return 0;
    shape_text(array->rank, array->shape, shape, sizeof(shape));
    return fault_set(fault, EX_DATAERR,
                     "%s: is %" PRIu64 " bytes, but a header of %" PRIu64 " and %s samples of %" PRIu64
                     " bytes make %" PRIu64 "; the file is %s: make it again",
                     input->name, input->size_bytes, array->header_bytes, shape, array_sample_bytes(array), expected,
                     input->size_bytes < expected ? "cut short" : "too long");
}

static void swap_samples(void *samples, uint64_t size_bytes, uint64_t sample_bytes)
{
    char *bytes = samples;
    uint16_t half;
    uint32_t single;
    uint64_t twice;
    for (uint64_t i = 0; sample_bytes == sizeof(half) && i < size_bytes; i += sizeof(half)) {
        memcpy(&half, bytes + i, sizeof(half));
        half = __builtin_bswap16(half);
        memcpy(bytes + i, &half, sizeof(half));
    }
    for (uint64_t i = 0; sample_bytes == sizeof(single) && i < size_bytes; i += sizeof(single)) {
        memcpy(&single, bytes + i, sizeof(single));
        single = __builtin_bswap32(single);
        memcpy(bytes + i, &single, sizeof(single));
    }
    for (uint64_t i = 0; sample_bytes == sizeof(twice) && i < size_bytes; i += sizeof(twice)) {
        memcpy(&twice, bytes + i, sizeof(twice));
        twice = __builtin_bswap64(twice);
        memcpy(bytes + i, &twice, sizeof(twice));
    }
}

void array_swap(const struct array *array, void *units, uint64_t size_bytes, enum scand_dtype dtype)
{
    uint64_t sample_bytes = dtype_size_bytes(dtype);
    if (!array->swapped || is_big_endian(dtype))
        return;
    if (!array->trace_header_bytes) {
        swap_samples(units, size_bytes, sample_bytes);
        return;
    }
    uint64_t unit_bytes = array_unit_bytes(array, sample_bytes);
    for (uint64_t i = 0; i < size_bytes; i += unit_bytes)
        swap_samples((char *)units + i + array->trace_header_bytes, unit_bytes - array->trace_header_bytes,
                     sample_bytes);
}

const char *shape_text(uint32_t rank, const uint64_t *shape, char *out, size_t size)
{
    char number[GROUPED_BYTES];
    size_t length = 0;
    out[0] = '\0';
    for (uint32_t i = 0; i < rank && length < size; i++)
        length += (size_t)snprintf(out + length, size - length, "%s%s", i ? " x " : "", grouped(shape[i], number));
    return out;
}
