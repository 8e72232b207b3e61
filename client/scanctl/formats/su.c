/*
 * Seismic Unix: per trace a header of 240 bytes and ns IEEE floats. The byte order is marked nowhere: it is the one in
 * which ns makes sense of the file's size and is the same in all traces; of a pipe, in the first two.
 */
#include "client/scanctl/formats/forms.h"

#include <inttypes.h>

#include "client/scanctl/formats/input.h"

#define SAMPLE_BYTES 4
/* Traces that are looked at to tell byte orders apart; all are checked when they are read. */
#define DETECT_TRACES 4096

static uint64_t su_trace_bytes(uint64_t ns)
{
    return TRACE_HEADER_BYTES + ns * SAMPLE_BYTES;
}

static enum byte_order su_other_order(enum byte_order order)
{
    return order == BYTE_ORDER_BIG ? BYTE_ORDER_LITTLE : BYTE_ORDER_BIG;
}

static bool su_size_fits(const struct input *input, uint64_t ns)
{
    return ns && input->size_bytes % su_trace_bytes(ns) == 0;
}

/* True when the first traces all have the ns of the first header. */
static int su_traces_agree(const struct input *input, uint64_t ns, enum byte_order order, bool *agree,
                           struct error *error)
{
    uint64_t count = input->size_bytes / su_trace_bytes(ns);
    unsigned char header[TRACE_HEADER_BYTES];
    *agree = true;
    for (uint64_t i = 0; i < count && i < DETECT_TRACES && *agree; i++) {
        int result = input_peek(input, header, sizeof(header), i * su_trace_bytes(ns), error);
        if (result)
            return result;
        *agree = trace_ns(header, order) == ns;
    }
    return 0;
}

/* True when the file makes sense in a byte order. */
static int su_plausible(const struct input *input, const unsigned char *header, enum byte_order order, bool *plausible,
                        struct error *error)
{
    uint64_t ns = trace_ns(header, order);
    *plausible = su_size_fits(input, ns);
    return *plausible ? su_traces_agree(input, ns, order, plausible, error) : 0;
}

static int su_error_neither(const struct input *input, const unsigned char *header, struct error *error)
{
    uint64_t big = trace_ns(header, BYTE_ORDER_BIG), little = trace_ns(header, BYTE_ORDER_LITTLE);
    return fail(error, EX_DATAERR,
                "%s: is no SU file that can be read: its %" PRIu64
                " bytes are no whole number of traces with the same ns; bytes "
                "115-116 of the first header say ns = %" PRIu64 " (traces of %" PRIu64
                " bytes) in big-endian and %" PRIu64 " (%" PRIu64
                ") in little-endian order; if you know the order, give --byte-order to see where it fails",
                input->name, input->size_bytes, big, su_trace_bytes(big), little, su_trace_bytes(little));
}

static int su_detect(const struct input *input, const unsigned char *header, enum byte_order *order,
                     struct error *error)
{
    bool big, little;
    int result = su_plausible(input, header, BYTE_ORDER_BIG, &big, error);
    if (result)
        return result;
    result = su_plausible(input, header, BYTE_ORDER_LITTLE, &little, error);
    if (result)
        return result;
    if (!big && !little)
        return su_error_neither(input, header, error);
    if (big && little)
        return fail(
            error, EX_DATAERR,
            "%s: its byte order cannot be told: ns is %" PRIu64 " read as big-endian and %" PRIu64
            " as little-endian, and both fit its %" PRIu64 " bytes; give --byte-order big or --byte-order little",
            input->name, trace_ns(header, BYTE_ORDER_BIG), trace_ns(header, BYTE_ORDER_LITTLE), input->size_bytes);
    *order = big ? BYTE_ORDER_BIG : BYTE_ORDER_LITTLE;
    return 0;
}

static int error_no_samples(const struct input *input, enum byte_order order, struct error *error)
{
    return fail(error, EX_DATAERR, "%s: its first trace has 0 samples (ns, bytes 115-116, %s-endian); give an SU file",
                input->name, order == BYTE_ORDER_BIG ? "big" : "little");
}

static int error_short(const struct input *input, uint64_t size_bytes, struct error *error)
{
    return fail(error, EX_DATAERR,
                "%s: is %" PRIu64 " bytes, less than an SU trace of a %d-byte header and a sample; give an SU file",
                input->name, size_bytes, TRACE_HEADER_BYTES);
}

/* Checks the byte order that the user names. */
static int su_check_order(const struct input *input, const unsigned char *header, enum byte_order order,
                          struct error *error)
{
    const char *word = order == BYTE_ORDER_BIG ? "big" : "little";
    const char *other = order == BYTE_ORDER_BIG ? "little" : "big";
    uint64_t ns = trace_ns(header, order), rest = input->size_bytes % su_trace_bytes(ns);
    if (su_size_fits(input, ns))
        return 0;
    if (!ns)
        return error_no_samples(input, order, error);
    return fail(error, EX_DATAERR,
                "%s: its %" PRIu64 " bytes are no whole number of traces: with ns = %" PRIu64
                " (%s-endian) a trace has %" PRIu64 " bytes, which leaves %" PRIu64
                "; in %s-endian order ns would be %" PRIu64 "; give the right --byte-order or a whole file",
                input->name, input->size_bytes, ns, word, su_trace_bytes(ns), rest, other,
                trace_ns(header, su_other_order(order)));
}

/* True when the first two traces of a pipe make sense in a byte order. */
static bool su_pipe_plausible(const unsigned char *bytes, uint64_t size_bytes, enum byte_order order)
{
    if (size_bytes < TRACE_HEADER_BYTES + SAMPLE_BYTES)
        return false;
    uint64_t ns = trace_ns(bytes, order), next = su_trace_bytes(ns);
    if (!ns || size_bytes == next) /* ns 0, or a pipe with one trace */
        return ns;
    return size_bytes >= next + TRACE_HEADER_BYTES && trace_ns(bytes + next, order) == ns;
}

static bool su_is_likely(const unsigned char *bytes, uint64_t size_bytes)
{
    return su_pipe_plausible(bytes, size_bytes, BYTE_ORDER_BIG) ||
           su_pipe_plausible(bytes, size_bytes, BYTE_ORDER_LITTLE);
}

static int su_pipe_detect(const struct input *input, const unsigned char *bytes, uint64_t size_bytes,
                          enum byte_order *order, struct error *error)
{
    bool big = su_pipe_plausible(bytes, size_bytes, BYTE_ORDER_BIG);
    bool little = su_pipe_plausible(bytes, size_bytes, BYTE_ORDER_LITTLE);
    if (big == little)
        return fail(
            error, EX_DATAERR,
            "%s: %s: ns of its first trace is %" PRIu64 " read as big-endian and %" PRIu64
            " as little-endian, and the second trace agrees with %s; give --byte-order big or little, or another "
            "--format",
            input->name, big ? "its byte order cannot be told" : "is no SU that can be read",
            trace_ns(bytes, BYTE_ORDER_BIG), trace_ns(bytes, BYTE_ORDER_LITTLE), big ? "both" : "neither");
    *order = big ? BYTE_ORDER_BIG : BYTE_ORDER_LITTLE;
    return 0;
}

/* The fields of the first trace's header. */
struct first_trace {
    uint64_t ns;
    double dt;
};

static struct first_trace first_trace_of(const unsigned char *header, enum byte_order order)
{
    return (struct first_trace){trace_ns(header, order), trace_dt(header + TRACE_DT_OFFSET, order)};
}

/* The order, if it is not given, and the first trace of a pipe. */
static int su_read_pipe(struct input *input, enum byte_order *order, struct first_trace *first, struct error *error)
{
    const unsigned char *bytes;
    uint64_t size_bytes;
    int result = input_look(input, LIKELY_BYTES, &bytes, &size_bytes, error);
    if (result)
        return result;
    if (size_bytes < TRACE_HEADER_BYTES + SAMPLE_BYTES)
        return error_short(input, size_bytes, error);
    if (*order == BYTE_ORDER_UNKNOWN)
        result = su_pipe_detect(input, bytes, size_bytes, order, error);
    if (result)
        return result;
    *first = first_trace_of(bytes, *order);
    return first->ns ? 0 : error_no_samples(input, *order, error);
}

static int su_read_file(struct input *input, enum byte_order *order, struct first_trace *first, struct error *error)
{
    unsigned char header[TRACE_HEADER_BYTES];
    if (input->size_bytes < TRACE_HEADER_BYTES + SAMPLE_BYTES)
        return error_short(input, input->size_bytes, error);
    int result = input_peek(input, header, sizeof(header), 0, error);
    if (result)
        return result;
    result = *order == BYTE_ORDER_UNKNOWN ? su_detect(input, header, order, error)
                                          : su_check_order(input, header, *order, error);
    if (result)
        return result;
    *first = first_trace_of(header, *order);
    return 0;
}

static int su_read_header(struct array *array, struct input *input, const struct array_hints *hints,
                          struct error *error)
{
    enum byte_order order = hints->byte_order;
    struct first_trace first = {0};
    int result = input->sized ? su_read_file(input, &order, &first, error) : su_read_pipe(input, &order, &first, error);
    if (result)
        return result;
    array->byte_order = order;
    traces_label(array);
    array->trace_header_bytes = TRACE_HEADER_BYTES;
    array->told_ns = first.ns;
    array->spacing[1] = first.dt;
    array->dtype = SCAND_DTYPE_F32;
    array->open_ended = !input->sized;
    uint64_t traces = input->sized ? input->size_bytes / su_trace_bytes(first.ns) : 0;
    return array_set_shape(array, 2, (uint64_t[]){traces, first.ns}, input->name, error);
}

static int su_check_traces(const struct array *array, const void *traces, uint64_t count, uint64_t first,
                           const char *name, struct error *error)
{
    return traces_check(array, traces, count, first, false, name, error);
}

static int su_check_result(enum scand_dtype dtype, struct error *error)
{
    if (dtype_in_order(dtype, byte_order_of(SCAND_DTYPE_F32)) == SCAND_DTYPE_F32)
        return 0;
    return fail(error, EX_USAGE,
                "--output-dtype is %s, but SU files hold f32; leave it out, or give -o a name that ends in .npy",
                scand_word(SCAND_LIST_DTYPE, dtype));
}

const struct form su_form = {.read_header = su_read_header,
                             .check_traces = su_check_traces,
                             .check_result = su_check_result,
                             .is_likely = su_is_likely,
                             .keeps_dtype = true};
