#include "client/scanctl/formats/array.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/scanctl/formats/input.h"
#include "client/scanctl/ui/text.h"

int array_set_shape(struct array *array, uint32_t rank, const uint64_t *shape, const char *name, struct error *error)
{
    /* Each dimension counts as one at least here, so that the strides of an empty array can be computed as well. */
    uint64_t bytes = SAMPLE_BYTES_MAX + array->trace_header_bytes;
    bool overflow = false;
    for (uint32_t i = 0; i < rank; i++)
        overflow = overflow || __builtin_mul_overflow(bytes, shape[i] ? shape[i] : 1, &bytes);
    if (overflow || bytes > INT64_MAX / 2) {
        char text[128];
        return fail(error, EX_DATAERR, "%s: its shape, %s, is more than this machine can address; give the true shape",
                    name, shape_text(rank, shape, text, sizeof(text)));
    }
    array->rank = rank;
    memcpy(array->shape, shape, rank * sizeof(*shape));
    return 0;
}

/* True when an axis has more than one place, so that its order matters. */
static bool is_long(const struct array *array, uint32_t axis)
{
    return array->shape[axis] != 1;
}

static int merge_check(const struct array *array, uint32_t axes, const char *name, struct error *error)
{
    const uint32_t first = (uint32_t)__builtin_ctz(axes), last = 31 - (uint32_t)__builtin_clz(axes);
    uint32_t between = array->rank, merged = 0;
    for (uint32_t i = first; i <= last; i++) {
        if (axes >> i & 1)
            merged += is_long(array, i);
        else if (is_long(array, i))
            between = i;
    }
    if (array->trace_header_bytes)
        return fail(error, EX_USAGE,
                    "--axis names several axes, but the rows of %s have headers between them; give one axis, or save "
                    "its samples without headers, such as an .npy file",
                    name);
    if (array->fortran && merged > 1)
        return fail(
            error, EX_USAGE,
            "--axis names several axes, whose samples are taken in C order, but %s is in Fortran order; save it "
            "in C order",
            name);
    if (between < array->rank)
        return fail(error, EX_USAGE,
                    "--axis names axes of %s that axis %" PRIu32
                    " lies between; save it with the axis before or behind "
                    "them, or reduce along one after the other",
                    name, between);
    return 0;
}

int array_merge_axes(struct array *array, uint32_t axes, const char *name, struct error *error)
{
    const uint32_t first = (uint32_t)__builtin_ctz(axes);
    uint32_t kept = 0;
    int result = (axes & (axes - 1)) ? merge_check(array, axes, name, error) : 0;
    if (result)
        return result;
    for (uint32_t i = 0; i < array->rank; i++) {
        if (axes >> i & 1 && i != first) {
            array->shape[first] *= array->shape[i];
            continue;
        }
        array->shape[kept] = array->shape[i];
        memmove(array->labels[kept++], array->labels[i], sizeof(array->labels[i]));
    }
    array->rank = kept;
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
    return scand_dtype_bytes(array->dtype);
}

static enum scand_order order_of(enum scand_dtype dtype)
{
#define X(NAME, WORD, BYTES, CLASS, ORDER) SCAND_ORDER_##ORDER,
    static const enum scand_order orders[] = {SCAND_DTYPES(X)};
#undef X
    return orders[dtype];
}

bool has_byte_order(enum scand_dtype dtype)
{
    return order_of(dtype) != SCAND_ORDER_NATIVE;
}

enum byte_order byte_order_of(enum scand_dtype dtype)
{
    const bool native = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
    return order_of(dtype) == SCAND_ORDER_BIG || (native && !has_byte_order(dtype)) ? BYTE_ORDER_BIG
                                                                                    : BYTE_ORDER_LITTLE;
}

/* dtypes that differ in the order of their bytes alone. */
static const enum scand_dtype pairs[][2] = {
    {SCAND_DTYPE_F32, SCAND_DTYPE_F32BE},     {SCAND_DTYPE_F64, SCAND_DTYPE_F64BE},
    {SCAND_DTYPE_I16, SCAND_DTYPE_I16BE},     {SCAND_DTYPE_U16, SCAND_DTYPE_U16BE},
    {SCAND_DTYPE_I64, SCAND_DTYPE_I64BE},     {SCAND_DTYPE_U32, SCAND_DTYPE_U32BE},
    {SCAND_DTYPE_U64, SCAND_DTYPE_U64BE},     {SCAND_DTYPE_I32LE, SCAND_DTYPE_I32BE},
    {SCAND_DTYPE_IBM32LE, SCAND_DTYPE_IBM32},
};

enum scand_dtype dtype_in_order(enum scand_dtype dtype, enum byte_order order)
{
    if (order == BYTE_ORDER_UNKNOWN || order == byte_order_of(dtype))
        return dtype;
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
        for (int k = 0; k < 2; k++)
            if (pairs[i][k] == dtype && byte_order_of(pairs[i][!k]) == order)
                return pairs[i][!k];
    return dtype;
}

enum scand_dtype array_stored(const struct array *array, enum scand_dtype dtype)
{
    /* A dtype that names its byte order is taken as it is, unless the file has one order for everything. */
    return has_byte_order(dtype) && !array->trace_header_bytes ? dtype : dtype_in_order(dtype, array->byte_order);
}

bool array_is_swapped(const struct array *array, enum scand_dtype dtype)
{
    return array->byte_order != BYTE_ORDER_UNKNOWN && array->byte_order != byte_order_of(dtype) &&
           scand_dtype_bytes(dtype) > 1;
}

enum scand_dtype plain_dtype(enum scand_dtype dtype)
{
    switch (scand_dtype_class(dtype)) {
    case SCAND_CLASS_F32:
        return SCAND_DTYPE_F32;
    case SCAND_CLASS_F64:
        return SCAND_DTYPE_F64;
    default:
        return dtype_in_order(dtype, byte_order_of(SCAND_DTYPE_F32));
    }
}

struct array array_result(const struct array *array, enum scand_dtype dtype)
{
    struct array result = *array;
    if (has_byte_order(dtype) && !array->trace_header_bytes)
        result.byte_order = BYTE_ORDER_UNKNOWN;
    result.dtype = dtype;
    return result;
}

void array_free(struct array *array)
{
    free(array->passed.bytes);
    array->passed = (struct passed){.bytes = NULL};
}

int array_pass(struct array *array, struct input *input, uint64_t size_bytes, struct error *error)
{
    struct passed *passed = &array->passed;
    if (!size_bytes)
        return 0;
    if (size_bytes > PASSED_BYTES_MAX - passed->size_bytes)
        return fail(error, EX_DATAERR,
                    "%s: has %" PRIu64 " bytes of headers before its samples, and at most %" PRIu64
                    " are passed on; cut some away",
                    input->name, passed->size_bytes + size_bytes, PASSED_BYTES_MAX);
    unsigned char *bytes = realloc(passed->bytes, passed->size_bytes + size_bytes + 1);
    if (!bytes)
        return fail(error, EX_TEMPFAIL, "%s: out of memory for %" PRIu64 " bytes of headers", input->name,
                    passed->size_bytes + size_bytes);
    passed->bytes = bytes;
    int result = input_read(input, bytes + passed->size_bytes, size_bytes, "headers", error);
    if (!result)
        passed->size_bytes += size_bytes;
    return result;
}

uint64_t array_unit_bytes(const struct array *array, uint64_t sample_bytes)
{
    if (!array->trace_header_bytes)
        return sample_bytes;
    return array->trace_header_bytes + array->shape[array->rank - 1] * sample_bytes;
}

int array_check_size(const struct array *array, const struct input *input, struct error *error)
{
    uint64_t samples = array_sample_count(array), rows = array->shape[0];
    uint64_t expected = array->header_bytes + samples * array_sample_bytes(array) +
                        (array->trace_header_bytes ? rows * array->trace_header_bytes : 0) + array->trailer_bytes;
    char shape[128];
    if (!input->sized || input->size_bytes == expected)
        return 0;
    shape_text(array->rank, array->shape, shape, sizeof(shape));
    return fail(error, EX_DATAERR,
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
    uint64_t sample_bytes = scand_dtype_bytes(dtype);
    if (!array_is_swapped(array, dtype))
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
