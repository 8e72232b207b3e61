/*
 * NumPy's .npy, versions 1.0 to 3.0: a magic string, the version, the length of a text, and the text: a Python dict
 * with exactly the keys descr, fortran_order and shape. Only that dict is understood, nothing is evaluated.
 */
#include "client/scanctl/formats/forms.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "client/scanctl/formats/input.h"
#include "client/scanctl/formats/output.h"

#define NPY_MAGIC        "\x93NUMPY"
#define NPY_MAGIC_BYTES  6
#define NPY_PREFIX_BYTES 8   /* magic and version */
#define NPY_ALIGN        64  /* alignment of the samples in files that are written */
#define NPY_WRITTEN_MAX  256 /* longest header that is written */
#define NPY_RANK_PARSED  32  /* NumPy's own limit, so that too high a rank can be told from nonsense */

/* The parser's place in the text. */
struct cursor {
    const char *start, *at, *end;
};

struct npy_header {
    char descr[16];
    bool fortran;
    uint32_t rank;
    uint64_t shape[NPY_RANK_PARSED];
    bool has_descr, has_fortran, has_shape;
    bool structured; /* descr is a list of fields, which is not read */
};

static void skip_spaces(struct cursor *cursor)
{
    while (cursor->at < cursor->end && (*cursor->at == ' ' || (*cursor->at >= '\t' && *cursor->at <= '\r')))
        cursor->at++;
}

/* Goes past a character, with the spaces before it, if it comes next. */
static bool accept_char(struct cursor *cursor, char character)
{
    skip_spaces(cursor);
    if (cursor->at == cursor->end || *cursor->at != character)
        return false;
    cursor->at++;
    return true;
}

static bool accept_word(struct cursor *cursor, const char *word)
{
    size_t length = strlen(word);
    skip_spaces(cursor);
    if ((size_t)(cursor->end - cursor->at) < length || memcmp(cursor->at, word, length))
        return false;
    cursor->at += length;
    return true;
}

/* A quoted string without escapes, cut nowhere: one that does not fit is refused. */
static bool parse_string(struct cursor *cursor, char *out, size_t size)
{
    skip_spaces(cursor);
    char quote = cursor->at < cursor->end ? *cursor->at : 0;
    if (quote != '\'' && quote != '"')
        return false;
    const char *from = cursor->at + 1;
    const char *to = memchr(from, quote, (size_t)(cursor->end - from));
    if (!to || (size_t)(to - from) >= size || memchr(from, '\\', (size_t)(to - from)))
        return false;
    memcpy(out, from, (size_t)(to - from));
    out[to - from] = '\0';
    cursor->at = to + 1;
    return true;
}

static bool number_next(struct cursor *cursor, uint64_t *out)
{
    skip_spaces(cursor);
    const char *from = cursor->at;
    uint64_t number = 0;
    for (; cursor->at < cursor->end && *cursor->at >= '0' && *cursor->at <= '9'; cursor->at++)
        if (__builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, (uint64_t)(*cursor->at - '0'), &number))
            return false;
    if (cursor->at == from)
        return false;
    if (cursor->at < cursor->end && *cursor->at == 'L') /* Python 2 wrote its long integers so */
        cursor->at++;
    *out = number;
    return true;
}

/* Parses (), (3,), (3, 4) or (3, 4,): a single number needs its comma, else Python would not see a tuple. */
static bool parse_tuple(struct cursor *cursor, struct npy_header *header)
{
    bool comma = true;
    if (!accept_char(cursor, '('))
        return false;
    header->rank = 0;
    while (!accept_char(cursor, ')')) {
        if (!comma || header->rank == NPY_RANK_PARSED || !number_next(cursor, &header->shape[header->rank]))
            return false;
        header->rank++;
        comma = accept_char(cursor, ',');
    }
    return header->rank != 1 || comma;
}

static bool parse_boolean(struct cursor *cursor, bool *out)
{
    *out = accept_word(cursor, "True");
    return *out || accept_word(cursor, "False");
}

/* One key and its value; each key is allowed once. */
static bool parse_member(struct cursor *cursor, struct npy_header *header)
{
    char key[16];
    if (!parse_string(cursor, key, sizeof(key)) || !accept_char(cursor, ':'))
        return false;
    if (!strcmp(key, "descr") && !header->has_descr) {
        header->structured = accept_char(cursor, '[');
        return header->has_descr = parse_string(cursor, header->descr, sizeof(header->descr));
    }
    if (!strcmp(key, "fortran_order") && !header->has_fortran)
        return header->has_fortran = parse_boolean(cursor, &header->fortran);
    if (!strcmp(key, "shape") && !header->has_shape)
        return header->has_shape = parse_tuple(cursor, header);
    return false;
}

static bool parse_dict(struct cursor *cursor, struct npy_header *header)
{
    bool comma = true;
    if (!accept_char(cursor, '{'))
        return false;
    while (!accept_char(cursor, '}')) {
        if (!comma || !parse_member(cursor, header))
            return false;
        comma = accept_char(cursor, ',');
    }
    skip_spaces(cursor);
    return cursor->at == cursor->end;
}

/* Names of types in .npy and in the daemon. Of two dtypes of one type, the first is read. */
static const struct {
    char type[3];
    enum scand_dtype dtype;
} npy_types[] = {
    {"f2", SCAND_DTYPE_F16}, {"f4", SCAND_DTYPE_F32}, {"f8", SCAND_DTYPE_F64}, {"i4", SCAND_DTYPE_I32},
    {"i8", SCAND_DTYPE_I64}, {"u4", SCAND_DTYPE_U32}, {"u8", SCAND_DTYPE_U64}, {"i2", SCAND_DTYPE_I16},
    {"u2", SCAND_DTYPE_U16}, {"i1", SCAND_DTYPE_I8},  {"u1", SCAND_DTYPE_U8},  {"i4", SCAND_DTYPE_I32LE},
};

const char *npy_type(enum scand_dtype dtype)
{
    for (size_t i = 0; i < sizeof(npy_types) / sizeof(npy_types[0]); i++)
        if (npy_types[i].dtype == dtype || dtype_in_order(npy_types[i].dtype, byte_order_of(dtype)) == dtype)
            return npy_types[i].type;
    return NULL;
}

static bool npy_dtype(const char *descr, enum scand_dtype *dtype)
{
    for (size_t i = 0; i < sizeof(npy_types) / sizeof(npy_types[0]); i++) {
        *dtype = npy_types[i].dtype;
        const char *orders = scand_dtype_bytes(*dtype) == 1 ? "|" : "<>";
        if (*descr && !strcmp(descr + 1, npy_types[i].type) && strchr(orders, *descr))
            return true;
    }
    return false;
}

/* Returns advice for a dtype of NumPy's, by the letter of its kind: a call that makes samples which can be scanned. */
static const char *npy_advice(char kind)
{
    switch (kind) {
    case 'c':
        return "these are complex numbers: save their .real and .imag, each as an array of its own";
    case 'V':
        return "these are structures: save one of their fields, a[\"NAME\"]";
    case 'b':
    case 'f':
    case 'i':
    case 'u':
        return "convert it with NumPy's astype(\"float64\"), or for integers astype(\"int64\")";
    default:
        return "these are no numbers; give an array of numbers";
    }
}

/* Sets *array from what the header says, or refuses what cannot be scanned. */
static int npy_accept(struct array *array, const struct npy_header *header, const char *name, struct error *error)
{
    if (!npy_dtype(header->descr, &array->dtype))
        return fail(
            error, EX_DATAERR,
            "%s: has dtype '%s'; f2, f4, f8, i2, i4, i8, u2, u4, u8 ('<' or '>'), |i1 and |u1 can be scanned: %s", name,
            header->descr, npy_advice(header->descr[0] ? header->descr[1] : 0));
    if (!header->rank)
        return fail(error, EX_DATAERR, "%s: has rank 0, a single number; arrays of rank 1 to %d can be scanned", name,
                    SCAND_RANK_MAX);
    if (header->rank > SCAND_RANK_MAX)
        return fail(error, EX_DATAERR,
                    "%s: has rank %" PRIu32 "; arrays of rank 1 to %d can be scanned: join axes with NumPy's reshape",
                    name, header->rank, SCAND_RANK_MAX);
    array->fortran = header->fortran;
    array->byte_order = *header->descr == '>' ? BYTE_ORDER_BIG : BYTE_ORDER_LITTLE;
    return array_set_shape(array, header->rank, header->shape, name, error);
}

static int npy_parse(struct array *array, const char *text, size_t length, const char *name, struct error *error)
{
    struct cursor cursor = {.start = text, .at = text, .end = text + length};
    struct npy_header header = {.rank = 0};
    const bool whole = parse_dict(&cursor, &header);
    if (header.structured)
        return fail(error, EX_DATAERR, "%s: has a dtype of several fields; %s", name, npy_advice('V'));
    if (!whole)
        return fail(
            error, EX_DATAERR,
            "%s: its .npy header makes no sense at its character %td; it has to be a dict of descr (a simple dtype), "
            "fortran_order and shape: save it again with numpy.save",
            name, cursor.at - cursor.start);
    if (!header.has_descr || !header.has_fortran || !header.has_shape)
        return fail(error, EX_DATAERR, "%s: its .npy header has no '%s'; save it again with numpy.save", name,
                    !header.has_descr     ? "descr"
                    : !header.has_fortran ? "fortran_order"
                                          : "shape");
    return npy_accept(array, &header, name, error);
}

/* Reads the magic string, the version and the length: *length is the length of the text that follows. */
static int npy_read_prefix(struct input *input, uint64_t *length, struct error *error)
{
    unsigned char prefix[NPY_PREFIX_BYTES], size[4] = {0};
    int result = input_read(input, prefix, sizeof(prefix), "the .npy header", error);
    if (result)
        return result;
    if (memcmp(prefix, NPY_MAGIC, NPY_MAGIC_BYTES))
        return fail(error, EX_DATAERR,
                    "%s: is no .npy file, as it does not begin with \\x93NUMPY; give --format raw or su if "
                    "it is one of those",
                    input->name);
    unsigned major = prefix[NPY_MAGIC_BYTES], minor = prefix[NPY_MAGIC_BYTES + 1];
    if (major < 1 || major > 3 || minor)
        return fail(error, EX_DATAERR, "%s: is .npy version %u.%u; 1.0, 2.0 and 3.0 can be read", input->name, major,
                    minor);
    result = input_read(input, size, major == 1 ? 2 : 4, "the .npy header", error);
    if (result)
        return result;
    *length = size[0] | (uint64_t)size[1] << 8 | (uint64_t)size[2] << 16 | (uint64_t)size[3] << 24;
    if (*length > NPY_HEADER_MAX)
        return fail(error, EX_DATAERR,
                    "%s: says that its .npy header has %" PRIu64 " bytes; at most %d are read: the file is "
                    "damaged",
                    input->name, *length, NPY_HEADER_MAX);
    return 0;
}

static int npy_read_header(struct array *array, struct input *input, const struct array_hints *hints,
                           struct error *error)
{
    char text[NPY_HEADER_MAX];
    uint64_t length = 0;
    if (hints->byte_order != BYTE_ORDER_UNKNOWN)
        return fail(error, EX_USAGE, "%s: an .npy file says its own byte order; leave out --byte-order", input->name);
    int result = npy_read_prefix(input, &length, error);
    if (!result)
        result = input_read(input, text, length, "the .npy header", error);
    if (!result)
        result = npy_parse(array, text, length, input->name, error);
    if (result)
        return result;
    array->header_bytes = input->position;
    return array_check_size(array, input, error);
}

static int npy_write_header(const struct array *result, struct output *output, struct error *error)
{
    char out[NPY_WRITTEN_MAX];
    enum byte_order order =
        result->byte_order == BYTE_ORDER_UNKNOWN ? byte_order_of(result->dtype) : result->byte_order;
    size_t length = NPY_PREFIX_BYTES + 2;
    length += (size_t)snprintf(out + length, sizeof(out) - length, "{'descr': '%c%s', 'fortran_order': %s, 'shape': (",
                               scand_dtype_bytes(result->dtype) == 1 ? '|'
                               : order == BYTE_ORDER_LITTLE          ? '<'
                                                                     : '>',
                               npy_type(result->dtype), result->fortran ? "True" : "False");
    for (uint32_t i = 0; i < result->rank; i++)
        length += (size_t)snprintf(out + length, sizeof(out) - length, "%s%" PRIu64 "%s", i ? ", " : "",
                                   result->shape[i], result->rank == 1 ? "," : "");
    length += (size_t)snprintf(out + length, sizeof(out) - length, "), }");
    while ((length + 1) % NPY_ALIGN)
        out[length++] = ' ';
    out[length++] = '\n';
    size_t text_length = length - NPY_PREFIX_BYTES - 2;
    memcpy(out, NPY_MAGIC "\x01", NPY_PREFIX_BYTES); /* and the string's end, the minor version */
    out[NPY_PREFIX_BYTES] = (char)(text_length & 0xff);
    out[NPY_PREFIX_BYTES + 1] = (char)(text_length >> 8);
    return output_write(output, out, length, error);
}

static int npy_check_result(enum scand_dtype dtype, struct error *error)
{
    if (npy_type(dtype))
        return 0;
    return fail(
        error, EX_USAGE,
        "--output-dtype is %s, which .npy files cannot hold; it may be f16, f32, f64, i8, i16, i32, i64, u8, u16, "
        "u32, u64, or f32be, f64be, i16be, i32be, i64be, u16be, u32be, u64be, i32le",
        scand_word(SCAND_LIST_DTYPE, dtype));
}

static bool npy_is_likely(const unsigned char *bytes, uint64_t size_bytes)
{
    return size_bytes >= NPY_MAGIC_BYTES && !memcmp(bytes, NPY_MAGIC, NPY_MAGIC_BYTES);
}

const struct form npy_form = {.read_header = npy_read_header,
                              .write_header = npy_write_header,
                              .check_result = npy_check_result,
                              .is_likely = npy_is_likely};
