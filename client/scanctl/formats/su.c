/*
 * Seismic Unix: per trace a header of 240 bytes and ns IEEE floats. The byte order is marked nowhere: it is the one in
 * which ns makes sense of the file's size and is the same in all traces.
 */
#include "client/scanctl/formats/forms.h"

#include <inttypes.h>
#include <string.h>

#include "client/scanctl/formats/input.h"

#define NS_OFFSET     114  /* bytes 115 and 116, counted from 1 */
#define DETECT_TRACES 4096 /* looked at to tell byte orders apart; all are checked when they are read */

static uint64_t su_ns(const unsigned char *header, enum byte_order order)
{
    unsigned first = header[NS_OFFSET], second = header[NS_OFFSET + 1];
    return order == BYTE_ORDER_BIG ? first << 8 | second : second << 8 | first;
}

static uint64_t su_trace_bytes(uint64_t ns)
{
    return SU_HEADER_BYTES + ns * SU_SAMPLE_BYTES;
}

static enum byte_order su_other_order(enum byte_order order)
{
    return order == BYTE_ORDER_BIG ? BYTE_ORDER_LITTLE : BYTE_ORDER_BIG;
}

static bool su_size_fits(const struct input *input, uint64_t ns)
{
    return ns && input->size_bytes % su_trace_bytes(ns) == 0;
}

/* Whether the first traces all have the ns of the first header. */
static int su_traces_agree(const struct input *input, uint64_t ns, enum byte_order order, bool *agree,
                           struct error *error)
{
    uint64_t count = input->size_bytes / su_trace_bytes(ns);
    unsigned char header[NS_OFFSET + 2];
    *agree = true;
    for (uint64_t i = 0; i < count && i < DETECT_TRACES && *agree; i++) {
        int result = input_peek(input, header, sizeof(header), i * su_trace_bytes(ns), error);
        if (result)
            return result;
        *agree = su_ns(header, order) == ns;
    }
    return 0;
}

/* Whether the file makes sense in a byte order. */
static int su_plausible(const struct input *input, const unsigned char *header, enum byte_order order, bool *plausible,
                        struct error *error)
{
    uint64_t ns = su_ns(header, order);
    *plausible = su_size_fits(input, ns);
    return *plausible ? su_traces_agree(input, ns, order, plausible, error) : 0;
}

static int su_error_neither(const struct input *input, const unsigned char *header, struct error *error)
{
    uint64_t big = su_ns(header, BYTE_ORDER_BIG), little = su_ns(header, BYTE_ORDER_LITTLE);
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
    if (!result)
        result = su_plausible(input, header, BYTE_ORDER_LITTLE, &little, error);
    if (result)
        return result;
    if (!big && !little)
        return su_error_neither(input, header, error);
    if (big && little)
        return fail(error, EX_DATAERR,
                    "%s: its byte order cannot be told: ns is %" PRIu64 " read as big-endian and %" PRIu64
                    " as little-endian, and both fit its %" PRIu64
                    " bytes; give --byte-order big or --byte-order little",
                    input->name, su_ns(header, BYTE_ORDER_BIG), su_ns(header, BYTE_ORDER_LITTLE), input->size_bytes);
    *order = big ? BYTE_ORDER_BIG : BYTE_ORDER_LITTLE;
    return 0;
}

/* For a byte order that the user names. */
static int su_check_order(const struct input *input, const unsigned char *header, enum byte_order order,
                          struct error *error)
{
    const char *word = order == BYTE_ORDER_BIG ? "big" : "little";
    const char *other = order == BYTE_ORDER_BIG ? "little" : "big";
    uint64_t ns = su_ns(header, order), rest = input->size_bytes % su_trace_bytes(ns);
    if (su_size_fits(input, ns))
        return 0;
    if (!ns)
        return fail(error, EX_DATAERR,
                    "%s: its first trace has 0 samples (ns, bytes 115-116, %s-endian); give an SU file", input->name,
                    word);
    return fail(error, EX_DATAERR,
                "%s: its %" PRIu64 " bytes are no whole number of traces: with ns = %" PRIu64
                " (%s-endian) a trace has %" PRIu64 " bytes, which leaves %" PRIu64
                "; in %s-endian order ns would be %" PRIu64 "; give the right --byte-order or a whole file",
                input->name, input->size_bytes, ns, word, su_trace_bytes(ns), rest, other,
                su_ns(header, su_other_order(order)));
}

int su_read_header(struct array *array, struct input *input, const struct array_hints *hints, struct error *error)
{
    unsigned char header[SU_HEADER_BYTES];
    enum byte_order order = hints->byte_order;
    if (!input->sized)
        return fail(
            error, EX_USAGE,
            "%s: is no regular file from its beginning on, and only an SU file's size tells the number of its traces; "
            "give the file's name, or redirect it (<FILE)",
            input->name);
    if (hints->rank)
        return fail(error, EX_USAGE, "%s: an SU file has its own shape; leave out --shape", input->name);
    if (input->size_bytes < SU_HEADER_BYTES + SU_SAMPLE_BYTES)
        return fail(error, EX_DATAERR,
                    "%s: is %" PRIu64 " bytes, less than an SU trace of a %d-byte header and a sample; give "
                    "an SU file",
                    input->name, input->size_bytes, SU_HEADER_BYTES);
    int result = input_peek(input, header, sizeof(header), 0, error);
    if (!result && order == BYTE_ORDER_UNKNOWN)
        result = su_detect(input, header, &order, error);
    else if (!result)
        result = su_check_order(input, header, order, error);
    if (result)
        return result;
    enum byte_order native = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? BYTE_ORDER_LITTLE : BYTE_ORDER_BIG;
    uint64_t ns = su_ns(header, order);
    *array = (struct array){.format = FORMAT_SU, .swapped = order != native, .trace_header_bytes = SU_HEADER_BYTES};
    return array_set_shape(array, 2, (uint64_t[]){input->size_bytes / su_trace_bytes(ns), ns}, input->name, error);
}

int su_check_traces(const struct array *array, const void *traces, uint64_t count, uint64_t first, const char *name,
                    struct error *error)
{
    bool little = (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__) != array->swapped;
    uint64_t ns = array->shape[1];
    for (uint64_t i = 0; i < count; i++) {
        const unsigned char *header = (const unsigned char *)traces + i * su_trace_bytes(ns);
        uint64_t found = su_ns(header, little ? BYTE_ORDER_LITTLE : BYTE_ORDER_BIG);
        if (found != ns)
            return fail(error, EX_DATAERR,
                        "%s: trace %" PRIu64 " (counted from 1) has %" PRIu64 " samples, the first %" PRIu64
                        "; give a file whose traces are all of one length",
                        name, first + i + 1, found, ns);
    }
    return 0;
}
