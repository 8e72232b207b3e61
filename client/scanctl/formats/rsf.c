/*
 * RSF, the form of Madagascar: a text of key=value, of which the last one of a key counts, and samples in a file that
 * `in` names, or, in a pipe and where both are one file, after the bytes 014 014 004. The text is passed on, with what
 * has changed after it.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/scanctl/formats/forms.h"
#include "client/scanctl/formats/input.h"
#include "client/scanctl/formats/output.h"
#include "client/scanctl/ui/text.h"

#define MARK        "\014\014\004" /* stands after the text, where samples follow */
#define MARK_BYTES  3
#define LOOK_BYTES  4096                /* bytes that are read at first; texts are mostly shorter */
#define TEXT_MAX    (UINT64_C(1) << 20) /* the longest text with its history */
#define AXES        9                   /* axes of Madagascar's files */
#define ADDED_BYTES (PATH_MAX + 1024)

/* The names of samples after "native_" or "xdr_", which is big-endian. */
static const struct type {
    const char *name;
    enum scand_dtype dtype;
} types[] = {
    {"float", SCAND_DTYPE_F32}, {"double", SCAND_DTYPE_F64}, {"int", SCAND_DTYPE_I32}, {"long", SCAND_DTYPE_I64}};
#define TYPE_COUNT    (sizeof(types) / sizeof(types[0]))
#define TYPES_ALLOWED "native_float, native_double, native_int or native_long, or xdr_ and one of these"

/* A value, as it stands in the text: nothing ends it but its length. */
struct value {
    const char *at;
    size_t length;
};

struct rsf {
    struct value n[AXES], d[AXES], label[AXES], data_format, esize, in;
};

/* Returns the member for a key, or NULL. */
static struct value *rsf_member(struct rsf *rsf, const char *key, size_t length)
{
    static const struct {
        const char *key;
        size_t offset;
    } keys[] = {{"data_format", offsetof(struct rsf, data_format)},
                {"esize", offsetof(struct rsf, esize)},
                {"in", offsetof(struct rsf, in)}};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (strlen(keys[i].key) == length && !memcmp(key, keys[i].key, length))
            return (struct value *)((char *)rsf + keys[i].offset);
    if (length < 2 || key[length - 1] < '1' || key[length - 1] > '9')
        return NULL;
    if (length == 2 && *key == 'n')
        return &rsf->n[key[1] - '1'];
    if (length == 2 && *key == 'd')
        return &rsf->d[key[1] - '1'];
    return length == 6 && !memcmp(key, "label", 5) ? &rsf->label[key[5] - '1'] : NULL;
}

/* The word at `at`: up to a space, or, after "=" and a quotation mark, up to the next such mark. */
static const char *word_end(const char *at, const char *end)
{
    while (at < end && !isspace((unsigned char)*at)) {
        bool quoted = *at == '=' && at + 1 < end && (at[1] == '"' || at[1] == '\'');
        const char *close = quoted ? memchr(at + 2, at[1], (size_t)(end - at - 2)) : NULL;
        at = close ? close + 1 : at + 1;
    }
    return at;
}

static void rsf_parse(struct rsf *rsf, const char *at, const char *end)
{
    while (at < end) {
        const char *word = at, *past = word_end(at, end);
        const char *equals = memchr(word, '=', (size_t)(past - word));
        struct value *value = equals ? rsf_member(rsf, word, (size_t)(equals - word)) : NULL;
        if (value) {
            const char *from = equals + 1;
            bool quoted = past - from >= 2 && (*from == '"' || *from == '\'') && past[-1] == *from;
            *value = (struct value){from + quoted, (size_t)(past - from) - 2 * quoted};
        }
        at = past + 1;
    }
}

/* Returns a value for messages, as in "n2=0", cut to size; fail() removes what no terminal should get. */
static const char *value_text(struct value value, char *out, size_t size)
{
    snprintf(out, size, "%.*s", (int)(value.length < size ? value.length : size - 1), value.at);
    return out;
}

static bool value_number(struct value value, uint64_t *out)
{
    char text[24];
    return value.length < sizeof(text) && number_parse(value_text(value, text, sizeof(text)), 0, UINT64_MAX, out);
}

/* Returns a spacing of samples; 0 where the value is no number that can be one. */
static double value_spacing(struct value value)
{
    char text[64], *end;
    if (!value.at)
        return 0;
    const double number = strtod(value_text(value, text, sizeof(text)), &end);
    return end > text && !*end && isfinite(number) ? number : 0;
}

/* Finds the text; *packed: samples follow it. */
static int text_find(struct input *input, uint64_t *length, bool *packed, struct error *error)
{
    const unsigned char *bytes;
    uint64_t available;
    for (uint64_t wanted = LOOK_BYTES; wanted <= TEXT_MAX; wanted *= 16) {
        int result = input_look(input, wanted, &bytes, &available, error);
        if (result)
            return result;
        const unsigned char *mark = available ? memmem(bytes, available, MARK, MARK_BYTES) : NULL;
        *packed = mark;
        *length = mark ? (uint64_t)(mark - bytes) : available;
        if (mark || available < wanted)
            return 0;
    }
    return fail(error, EX_DATAERR,
                "%s: is no RSF file that can be read: its text does not end within %" PRIu64
                " bytes; give the file with the text, not that with the samples",
                input->name, TEXT_MAX);
}

static int type_find(const struct rsf *rsf, struct array *array, const char *name, struct error *error)
{
    char format[32] = "native_float", size[32];
    if (rsf->data_format.at)
        value_text(rsf->data_format, format, sizeof(format));
    bool native = !strncmp(format, "native_", 7), xdr = !strncmp(format, "xdr_", 4);
    const struct type *type = NULL;
    for (size_t i = 0; i < TYPE_COUNT && (native || xdr); i++)
        if (!strcmp(strchr(format, '_') + 1, types[i].name))
            type = &types[i];
    if (!type)
        return fail(error, EX_DATAERR, "%s: has data_format=\"%s\"; it may be " TYPES_ALLOWED ": convert it with sfdd",
                    name, format);
    uint64_t bytes = scand_dtype_bytes(type->dtype), esize;
    if (rsf->esize.at && (!value_number(rsf->esize, &esize) || esize != bytes))
        return fail(error, EX_DATAERR,
                    "%s: has esize=%s and data_format=\"%s\", whose samples have %" PRIu64 " bytes; make them agree",
                    name, value_text(rsf->esize, size, sizeof(size)), format, bytes);
    array->byte_order = xdr ? BYTE_ORDER_BIG : byte_order_of(type->dtype);
    array->dtype = type->dtype;
    return 0;
}

/* Finds the shape. RSF counts axes from the fastest one, and scanctl from the slowest. Where a file has more axes than
 * a tensor, the slowest ones are joined. */
static int shape_find(const struct rsf *rsf, struct array *array, const char *name, struct error *error)
{
    uint64_t shape[SCAND_RANK_MAX] = {1, 1, 1, 1};
    uint32_t rank = 0;
    char text[32];
    for (uint32_t i = 0; i < AXES; i++) {
        uint64_t n;
        if (!rsf->n[i].at)
            break;
        if (!value_number(rsf->n[i], &n) || !n)
            return fail(error, EX_DATAERR, "%s: has n%" PRIu32 "=%s; it may be a whole number from 1 on", name, i + 1,
                        value_text(rsf->n[i], text, sizeof(text)));
        rank = i < SCAND_RANK_MAX ? i + 1 : rank;
        uint64_t *dimension = &shape[SCAND_RANK_MAX - rank];
        if (__builtin_mul_overflow(*dimension, n, dimension))
            return fail(error, EX_DATAERR, "%s: its axes from n4 on make more samples than this machine can address",
                        name);
    }
    if (!rank)
        return fail(error, EX_DATAERR,
                    "%s: is no RSF file that can be read: it has no n1=; give the file with the text", name);
    for (uint32_t i = 0; i < rank; i++) {
        const struct value *label = &rsf->label[rank - 1 - i];
        value_text(label->at ? *label : (struct value){"", 0}, array->labels[i], sizeof(array->labels[i]));
        array->spacing[i] = value_spacing(rsf->d[rank - 1 - i]);
    }
    return array_set_shape(array, rank, shape + SCAND_RANK_MAX - rank, name, error);
}

/* Goes over to the file with the samples: as it is named, or beside the text. */
static int samples_open(const struct rsf *rsf, struct input *input, struct error *error)
{
    char path[PATH_MAX], beside[2 * PATH_MAX];
    if (!rsf->in.at)
        return fail(error, EX_DATAERR,
                    "%s: has no in=\"FILE\" that names its samples, and none follow; give a whole RSF file",
                    input->name);
    if (rsf->in.length >= sizeof(path))
        return fail(error, EX_DATAERR, "%s: has in= with a name of %zu bytes; it may have up to %zu", input->name,
                    rsf->in.length, sizeof(path) - 1);
    value_text(rsf->in, path, sizeof(path));
    if (!strcmp(path, "stdin"))
        return fail(error, EX_DATAERR,
                    "%s: says in=\"stdin\", but no samples follow its text (after the bytes 014 014 004); the file is "
                    "cut short",
                    input->name);
    const char *slash = strrchr(input->name, '/');
    if (slash && *path != '/' && access(path, F_OK))
        snprintf(beside, sizeof(beside), "%.*s%s", (int)(slash + 1 - input->name), input->name, path);
    else
        snprintf(beside, sizeof(beside), "%s", path);
    if (access(beside, F_OK))
        return fail(error, EX_NOINPUT,
                    "%s: says that its samples are in \"%s\": %s; bring that file, or correct in=", input->name, beside,
                    strerror(errno));
    return input_replace(input, beside, error);
}

static int rsf_read_header(struct array *array, struct input *input, const struct array_hints *hints,
                           struct error *error)
{
    struct rsf rsf = {.in = {NULL, 0}};
    uint64_t length = 0;
    bool packed = false;
    if (hints->byte_order != BYTE_ORDER_UNKNOWN)
        return fail(error, EX_USAGE, "%s: an RSF file says its own byte order; leave out --byte-order", input->name);
    int result = text_find(input, &length, &packed, error);
    if (!result)
        result = array_pass(array, input, length, error);
    if (!result && packed)
        result = input_skip(input, MARK_BYTES, error);
    if (result)
        return result;
    const char *text = length ? (const char *)array->passed.bytes : "";
    rsf_parse(&rsf, text, text + length);
    result = shape_find(&rsf, array, input->name, error);
    if (!result)
        result = type_find(&rsf, array, input->name, error);
    if (!result && !packed)
        result = samples_open(&rsf, input, error);
    if (result)
        return result;
    array->apart = !packed;
    array->header_bytes = input->position;
    return array_check_size(array, input, error);
}

/* Returns RSF's name of a type, like "native_float"; NULL where RSF has no such samples. */
static const char *type_name(enum scand_dtype dtype)
{
    dtype = dtype_in_order(dtype, byte_order_of(SCAND_DTYPE_F32));
    for (size_t i = 0; i < TYPE_COUNT; i++)
        if (types[i].dtype == dtype)
            return types[i].name;
    return NULL;
}

/* A line of the file's history, as programs of Madagascar write it: who, where, when. Nothing in it has an "=". */
static size_t history_format(char *out, size_t size)
{
    char folder[PATH_MAX] = "", host[256] = "", date[64] = "";
    const char *user = getenv("LOGNAME") ? getenv("LOGNAME") : getenv("USER");
    time_t now = time(NULL);
    struct tm local;
    if (!getcwd(folder, sizeof(folder)))
        *folder = '\0';
    gethostname(host, sizeof(host) - 1);
    if (localtime_r(&now, &local))
        strftime(date, sizeof(date), "%a %b %e %H:%M:%S %Y", &local);
    const char *slash = strrchr(folder, '/');
    int length = snprintf(out, size, "\nscanctl\t%.*s:\t%.32s@%.64s\t%s\n\n", 128, slash ? slash + 1 : folder,
                          user ? user : "", host, date);
    for (char *at = out; *at; at++)
        if (*at == '=')
            *at = '-';
    return (size_t)length;
}

static int rsf_write_header(const struct array *result, struct output *output, struct error *error)
{
    char added[ADDED_BYTES];
    const char *samples = result->samples_path ? result->samples_path : "stdin";
    enum byte_order order =
        result->byte_order == BYTE_ORDER_UNKNOWN ? byte_order_of(result->dtype) : result->byte_order;
    bool native = order == byte_order_of(SCAND_DTYPE_F32);
    char quote = strchr(samples, '"') ? '\'' : '"';
    size_t length = history_format(added, sizeof(added));
    length += (size_t)snprintf(added + length, sizeof(added) - length,
                               "\tdata_format=\"%s_%s\"\n\tesize=%" PRIu64 "\n\tin=%c%s%c\n", native ? "native" : "xdr",
                               type_name(result->dtype), scand_dtype_bytes(result->dtype), quote, samples, quote);
    int status = output_write(output, result->passed.bytes, result->passed.size_bytes, error);
    if (!status)
        status = output_write(output, added, length, error);
    return status || result->samples_path ? status : output_write(output, MARK, MARK_BYTES, error);
}

static int rsf_check_result(enum scand_dtype dtype, struct error *error)
{
    if (type_name(dtype))
        return 0;
    return fail(
        error, EX_USAGE,
        "--output-dtype is %s, which RSF files cannot hold; it may be f32, f64, i32, i64, f32be, f64be or i64be",
        scand_word(SCAND_LIST_DTYPE, dtype));
}

static bool rsf_is_likely(const unsigned char *bytes, uint64_t size_bytes)
{
    uint64_t length = size_bytes < LOOK_BYTES ? size_bytes : LOOK_BYTES;
    const unsigned char *mark = length ? memmem(bytes, length, MARK, MARK_BYTES) : NULL;
    if (mark)
        length = (uint64_t)(mark - bytes);
    for (uint64_t i = 0; i < length; i++)
        if (bytes[i] < ' ' && !isspace(bytes[i]))
            return false;
    return length && memmem(bytes, length, "n1=", 3);
}

const struct form rsf_form = {.read_header = rsf_read_header,
                              .write_header = rsf_write_header,
                              .check_result = rsf_check_result,
                              .is_likely = rsf_is_likely,
                              .keeps_dtype = true};
