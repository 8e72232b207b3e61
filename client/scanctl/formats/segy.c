/*
 * SEG-Y, revisions 0, 1 and 2: 3,200 bytes of text, 400 of binary header, further records of 3,200 bytes of text, then
 * traces of one or more headers of 240 bytes and ns samples, then further records again. Everything but the samples,
 * and the format code where the result has another, passes through untouched. Messages count bytes from
 * 1, as the standard does.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "client/scanctl/formats/forms.h"
#include "client/scanctl/formats/input.h"
#include "client/scanctl/formats/output.h"

#define TEXT_BYTES   3200 /* bytes of a textual header */
#define BINARY_BYTES 400
#define FIXED_BYTES  (TEXT_BYTES + BINARY_BYTES)
/* Offsets of numbers, counted from 0: in files of all revisions, */
#define DT_AT       3216
#define NS_AT       3220
#define CODE_AT     3224
#define REVISION_AT 3500
/* from revision 1 on, */
#define EXTENDED_AT 3504 /* further textual headers; -1: the last of them says so */
/* and from revision 2 on. */
#define LONG_NS_AT       3268
#define ORDER_AT         3296 /* ORDER_MARK */
#define TRACE_HEADERS_AT 3506 /* number of a trace's headers beside the first */
#define TRACES_AT        3510
#define FIRST_TRACE_AT   3518
#define TRAILERS_AT      3526 /* records after the traces */
#define TRACE_NS_END     116  /* end of ns in the header of a trace */

#define ORDER_MARK        0x01020304
#define REVISION_MAX      2
#define EXTENDED_MAX      4096 /* 13 MB */
#define TRACE_HEADERS_MAX 64
#define TRAILERS_MAX      65536

/* The last of an unknown number of further textual headers begins with this, in ASCII or EBCDIC. */
#define END_ASCII  "((SEG: EndText))"
#define END_EBCDIC "\x4d\x4d\xe2\xc5\xc7\x7a\x40\xc5\x95\x84\xe3\x85\xa7\xa3\x5d\x5d"
#define END_BYTES  16

/* Format codes whose samples the daemon can scan, by their numbers, as dtypes in one of two byte orders. */
static const struct code {
    unsigned number;
    enum scand_dtype dtype;
    const char *text;
} codes[] = {
    {1, SCAND_DTYPE_IBM32, "4-byte IBM float"}, {2, SCAND_DTYPE_I32BE, "4-byte integer"},
    {3, SCAND_DTYPE_I16BE, "2-byte integer"},   {5, SCAND_DTYPE_F32, "4-byte IEEE float"},
    {6, SCAND_DTYPE_F64, "8-byte IEEE float"},  {8, SCAND_DTYPE_I8, "1-byte integer"},
    {9, SCAND_DTYPE_I64, "8-byte integer"},     {10, SCAND_DTYPE_U32, "4-byte unsigned"},
    {11, SCAND_DTYPE_U16, "2-byte unsigned"},   {12, SCAND_DTYPE_U64, "8-byte unsigned"},
    {16, SCAND_DTYPE_U8, "1-byte unsigned"},
};
#define CODE_COUNT (sizeof(codes) / sizeof(codes[0]))
#define CODE_LAST  16 /* the standard's last code */

/* The headers' fields. */
struct segy {
    enum byte_order order;
    const struct code *code;
    unsigned revision;
    uint64_t ns;                                           /* 0: the first trace says ns */
    int32_t extended;                                      /* further textual headers, or -1 */
    uint64_t trace_headers, traces, first_trace, trailers; /* 0: not said */
};

static const struct code *code_find(unsigned number)
{
    for (size_t i = 0; i < CODE_COUNT; i++)
        if (codes[i].number == number)
            return &codes[i];
    return NULL;
}

#define CODES_BYTES 320
/* Lists format codes, "1 (4-byte IBM float), 2 (...". Returns out, of CODES_BYTES. */
static const char *codes_text(char *out)
{
    size_t used = 0;
    for (size_t i = 0; i < CODE_COUNT && used < CODES_BYTES; i++)
        used += (size_t)snprintf(out + used, CODES_BYTES - used, "%s%u (%s)", i ? ", " : "", codes[i].number,
                                 codes[i].text);
    return out;
}

/* A code is a small number in one byte order, and at least 256 in the other. */
static enum byte_order order_of_code(const unsigned char *bytes)
{
    unsigned big = number16(bytes, BYTE_ORDER_BIG), little = number16(bytes, BYTE_ORDER_LITTLE);
    if (big >= 1 && big <= CODE_LAST)
        return BYTE_ORDER_BIG;
    return little >= 1 && little <= CODE_LAST ? BYTE_ORDER_LITTLE : BYTE_ORDER_UNKNOWN;
}

static bool segy_is_likely(const unsigned char *bytes, uint64_t size_bytes)
{
    return size_bytes >= FIXED_BYTES && (bytes[0] == 'C' || bytes[0] == 0xc3) &&
           order_of_code(bytes + CODE_AT) != BYTE_ORDER_UNKNOWN;
}

static int order_find(struct segy *segy, const unsigned char *header, const struct array_hints *hints, const char *name,
                      struct error *error)
{
    unsigned big = number16(header + CODE_AT, BYTE_ORDER_BIG), little = number16(header + CODE_AT, BYTE_ORDER_LITTLE);
    char allowed[CODES_BYTES];
    segy->order = order_of_code(header + CODE_AT);
    if (segy->order == BYTE_ORDER_UNKNOWN)
        return fail(
            error, EX_DATAERR,
            "%s: is no SEG-Y file that can be read: its format code (bytes 3225-3226) is %u read as big-endian and "
            "%u as little-endian; it may be %s",
            name, big, little, codes_text(allowed));
    if (hints->byte_order != BYTE_ORDER_UNKNOWN && hints->byte_order != segy->order)
        return fail(
            error, EX_USAGE,
            "%s: its format code (bytes 3225-3226) is %u read as big-endian and %u as little-endian, so the file is "
            "%s-endian; leave out --byte-order",
            name, big, little, segy->order == BYTE_ORDER_BIG ? "big" : "little");
    unsigned number = segy->order == BYTE_ORDER_BIG ? big : little;
    segy->code = code_find(number);
    if (segy->code)
        return 0;
    return fail(error, EX_DATAERR,
                "%s: its samples have format code %u (bytes 3225-3226); it may be %s; convert them to one of these",
                name, number, codes_text(allowed));
}

/* Reads the fields that came with revision 2. */
static int revision2_read(struct segy *segy, const unsigned char *header, const char *name, struct error *error)
{
    uint32_t mark = number32(header + ORDER_AT, segy->order), long_ns = number32(header + LONG_NS_AT, segy->order);
    if (mark && mark != ORDER_MARK)
        return fail(
            error, EX_DATAERR,
            "%s: its byte-order mark (bytes 3297-3300) is 0x%08x, which does not go with its format code; it may be 0 "
            "or 0x%08x: swap its bytes to big-endian",
            name, mark, ORDER_MARK);
    if (long_ns)
        segy->ns = long_ns;
    int16_t trace_headers = (int16_t)number16(header + TRACE_HEADERS_AT, segy->order);
    int32_t trailers = (int32_t)number32(header + TRAILERS_AT, segy->order);
    if (trace_headers < 0 || trace_headers > TRACE_HEADERS_MAX)
        return fail(error, EX_DATAERR,
                    "%s: says that each trace has %d further headers (bytes 3507-3508); it may be 0 to %d", name,
                    trace_headers, TRACE_HEADERS_MAX);
    if (trailers < 0 || trailers > TRAILERS_MAX)
        return fail(error, EX_DATAERR,
                    "%s: says that %" PRId32 " records follow its traces (bytes 3527-3530); it may be 0 to %d: give "
                    "their true number",
                    name, trailers, TRAILERS_MAX);
    segy->trace_headers = (uint64_t)trace_headers;
    segy->trailers = (uint64_t)trailers;
    segy->traces = number64(header + TRACES_AT, segy->order);
    segy->first_trace = number64(header + FIRST_TRACE_AT, segy->order);
    return 0;
}

static int binary_read(struct segy *segy, const unsigned char *header, const char *name, struct error *error)
{
    /* The revision is one number of two bytes in revision 1, and two numbers in revision 2: in a little-endian file the
     * first number may be in either place. */
    segy->revision = header[REVISION_AT];
    if (!segy->revision && segy->order == BYTE_ORDER_LITTLE)
        segy->revision = header[REVISION_AT + 1];
    if (segy->revision > REVISION_MAX)
        return fail(error, EX_DATAERR, "%s: is SEG-Y of revision %u (byte 3501); 0, 1 and 2 can be read", name,
                    segy->revision);
    segy->ns = number16(header + NS_AT, segy->order);
    if (!segy->revision)
        return 0;
    segy->extended = (int16_t)number16(header + EXTENDED_AT, segy->order);
    if (segy->extended < -1 || segy->extended > EXTENDED_MAX)
        return fail(error, EX_DATAERR,
                    "%s: says that it has %" PRId32
                    " further textual headers (bytes 3505-3506); it may be -1 (unknown) to "
                    "%d: give their true number",
                    name, segy->extended, EXTENDED_MAX);
    return segy->revision == 2 ? revision2_read(segy, header, name, error) : 0;
}

static bool is_last_text(const unsigned char *text)
{
    return !memcmp(text, END_ASCII, END_BYTES) || !memcmp(text, END_EBCDIC, END_BYTES);
}

/* Reads the further textual headers, which are told from traces by their number or by the last of them. */
static int extended_read(const struct segy *segy, struct array *array, struct input *input, struct error *error)
{
    int result = 0;
    int32_t most = segy->extended < 0 ? EXTENDED_MAX : segy->extended;
    for (int32_t i = 0; i < most && !result; i++) {
        result = array_pass(array, input, TEXT_BYTES, error);
        if (!result && segy->extended < 0 && is_last_text(array->passed.bytes + array->passed.size_bytes - TEXT_BYTES))
            return 0;
    }
    if (result || segy->extended >= 0)
        return result;
    return fail(error, EX_DATAERR,
                "%s: says that it has further textual headers of unknown number (-1, bytes 3505-3506), but none of %d "
                "says " END_ASCII "; give their true number",
                input->name, EXTENDED_MAX);
}

/* Reads the gap before the traces: revision 2 may say where traces begin. */
static int gap_read(const struct segy *segy, struct array *array, struct input *input, struct error *error)
{
    uint64_t here = array->passed.size_bytes;
    if (!segy->first_trace || segy->first_trace == here)
        return 0;
    if (segy->first_trace < here || segy->first_trace > PASSED_BYTES_MAX)
        return fail(error, EX_DATAERR,
                    "%s: says that its first trace begins at %" PRIu64
                    " (bytes 3519-3526); it may be 0 (not said) or %" PRIu64 ", where its headers end, to %" PRIu64,
                    input->name, segy->first_trace, here, PASSED_BYTES_MAX);
    return array_pass(array, input, segy->first_trace - here, error);
}

/* Bytes of a trace of ns samples. */
static uint64_t trace_bytes_of(const struct array *array, uint64_t ns)
{
    return array->trace_header_bytes + ns * array_sample_bytes(array);
}

/* True when traces of ns samples make sense: of the file's size, or, in a pipe, of the next trace's ns, which is the
 * same then. */
static int ns_fits(const struct segy *segy, const struct array *array, struct input *input, uint64_t ns, bool *fits,
                   struct error *error)
{
    const unsigned char *bytes;
    uint64_t available, trace_bytes = trace_bytes_of(array, ns);
    uint64_t around = array->header_bytes + segy->trailers * TEXT_BYTES;
    *fits = input->size_bytes > around && (input->size_bytes - around) % trace_bytes == 0;
    if (input->sized)
        return 0;
    int result = input_look(input, trace_bytes + TRACE_HEADER_BYTES, &bytes, &available, error);
    if (!result)
        *fits =
            available == trace_bytes || (available > trace_bytes + TRACE_NS_END &&
                                         trace_ns(bytes + trace_bytes, segy->order) == trace_ns(bytes, segy->order));
    return result;
}

static int error_ns(const struct segy *segy, const struct input *input, uint64_t own, struct error *error)
{
    return fail(error, EX_DATAERR,
                "%s: says that its traces have %" PRIu64 " samples in its binary header (bytes 3221-3222), and %" PRIu64
                " in its first trace (115-116), and neither goes with what follows; give a whole file, or --format raw "
                "--header-bytes %" PRIu64 " --trace-header-bytes %" PRIu64 " --shape -1,SAMPLES --dtype TYPE",
                input->name, segy->ns, own, input->position, TRACE_HEADER_BYTES * (1 + segy->trace_headers));
}

/* Finds ns: the binary header's, or where that is 0, the first trace's. Where they differ, the ns that fits the file
 * counts: files that were cut or resampled often say the old one in one place. */
static int ns_find(struct segy *segy, struct array *array, struct input *input, struct error *error)
{
    const unsigned char *trace;
    uint64_t available;
    bool fits = true;
    int result = input_look(input, TRACE_HEADER_BYTES, &trace, &available, error);
    if (result)
        return result;
    if (available < TRACE_HEADER_BYTES)
        return fail(error, EX_DATAERR,
                    "%s: ends %" PRIu64
                    " bytes into the header of its first trace, which has %d; the file is cut short",
                    input->name, available, TRACE_HEADER_BYTES);
    uint64_t own = trace_ns(trace, segy->order);
    array->spacing[1] = trace_dt(trace + TRACE_DT_OFFSET, segy->order);
    if (!array->spacing[1])
        array->spacing[1] = trace_dt(array->passed.bytes + DT_AT, segy->order);
    if (!segy->ns && !own)
        return fail(
            error, EX_DATAERR,
            "%s: says that its traces have 0 samples, in its binary header (bytes 3221-3222) and in its first trace "
            "(115-116); it may be 1 to %d: give the true number",
            input->name, TRACE_NS_MAX);
    if (!segy->ns)
        segy->ns = own;
    array->told_ns = own ? own : segy->ns;
    if (!own || own == segy->ns || segy->ns > TRACE_NS_MAX)
        return 0;
    result = ns_fits(segy, array, input, segy->ns, &fits, error);
    if (result || fits)
        return result;
    result = ns_fits(segy, array, input, own, &fits, error);
    if (!result && !fits)
        return error_ns(segy, input, own, error);
    segy->ns = own;
    return result;
}

/* Finds the number of traces: from the file's size, or, in a pipe, from the header. */
static int traces_count(const struct segy *segy, struct array *array, const struct input *input, struct error *error)
{
    uint64_t trace_bytes = array_unit_bytes(array, array_sample_bytes(array));
    array->trailer_bytes = segy->trailers * TEXT_BYTES;
    array->shape[0] = segy->traces;
    if (!input->sized) {
        array->open_ended = !segy->traces;
        if (!array->open_ended || !segy->trailers)
            return array_set_shape(array, 2, array->shape, input->name, error);
        return fail(error, EX_USAGE,
                    "%s: says that %" PRIu64 " records follow its traces, but not how many traces it has (bytes "
                    "3511-3518); give a file in place of a pipe",
                    input->name, segy->trailers);
    }
    uint64_t before = array->header_bytes + array->trailer_bytes;
    uint64_t bytes = input->size_bytes > before ? input->size_bytes - before : 0;
    if (!bytes || bytes % trace_bytes)
        return fail(error, EX_DATAERR,
                    "%s: its %" PRIu64 " bytes of traces are no whole number of them: %" PRIu64 " samples of %" PRIu64
                    " bytes and %" PRIu64 " bytes of header make %" PRIu64 ", which leaves %" PRIu64
                    "; the file is cut short, or its traces differ in length",
                    input->name, bytes, array->shape[1], array_sample_bytes(array), array->trace_header_bytes,
                    trace_bytes, bytes % trace_bytes);
    array->shape[0] = bytes / trace_bytes;
    if (segy->traces && segy->traces != array->shape[0])
        return fail(error, EX_DATAERR,
                    "%s: says that it has %" PRIu64 " traces (bytes 3511-3518), and its size makes %" PRIu64
                    "; give a whole file, or its true number of traces",
                    input->name, segy->traces, array->shape[0]);
    return 0;
}

/* All headers before the first trace. */
static int file_headers_read(struct segy *segy, struct array *array, struct input *input,
                             const struct array_hints *hints, struct error *error)
{
    int result = array_pass(array, input, FIXED_BYTES, error);
    if (result)
        return result;
    const unsigned char *header = array->passed.bytes;
    result = order_find(segy, header, hints, input->name, error);
    if (result)
        return result;
    result = binary_read(segy, header, input->name, error);
    if (result)
        return result;
    result = extended_read(segy, array, input, error);
    return result ? result : gap_read(segy, array, input, error);
}

static int segy_read_header(struct array *array, struct input *input, const struct array_hints *hints,
                            struct error *error)
{
    struct segy segy = {.ns = 0};
    int result = file_headers_read(&segy, array, input, hints, error);
    if (result)
        return result;
    array->byte_order = segy.order;
    array->dtype = segy.code->dtype;
    array->header_bytes = array->passed.size_bytes;
    traces_label(array);
    array->trace_header_bytes = TRACE_HEADER_BYTES * (1 + segy.trace_headers);
    result = ns_find(&segy, array, input, error);
    if (result)
        return result;
    result = array_set_shape(array, 2, (uint64_t[]){1, segy.ns}, input->name, error);
    return result ? result : traces_count(&segy, array, input, error);
}

/* The code that stands for samples of a result; 0: none. */
static unsigned code_of(enum scand_dtype dtype)
{
    for (size_t i = 0; i < CODE_COUNT; i++)
        if (codes[i].dtype == dtype || dtype_in_order(codes[i].dtype, byte_order_of(dtype)) == dtype)
            return codes[i].number;
    return 0;
}

static int segy_write_header(const struct array *result, struct output *output, struct error *error)
{
    unsigned char *code = result->passed.bytes + CODE_AT;
    unsigned char number = (unsigned char)code_of(result->dtype);
    code[0] = result->byte_order == BYTE_ORDER_BIG ? 0 : number;
    code[1] = result->byte_order == BYTE_ORDER_BIG ? number : 0;
    return output_write(output, result->passed.bytes, result->passed.size_bytes, error);
}

/* All traces say what the first one does, or nothing. */
static int segy_check_traces(const struct array *array, const void *traces, uint64_t count, uint64_t first,
                             const char *name, struct error *error)
{
    return traces_check(array, traces, count, first, true, name, error);
}

static int segy_check_result(enum scand_dtype dtype, struct error *error)
{
    if (code_of(dtype))
        return 0;
    return fail(error, EX_USAGE,
                "--output-dtype is %s, which SEG-Y files cannot hold; it may be ibm32, i32be, i16, f32, f64, i8, i64, "
                "u32, u16, "
                "u64 or u8",
                scand_word(SCAND_LIST_DTYPE, dtype));
}

const struct form segy_form = {.read_header = segy_read_header,
                               .write_header = segy_write_header,
                               .check_traces = segy_check_traces,
                               .check_result = segy_check_result,
                               .is_likely = segy_is_likely,
                               .keeps_dtype = true};
