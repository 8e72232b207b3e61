/*
 * The headers of traces, which SU and SEG-Y have in common.
 */
#include <inttypes.h>
#include <string.h>

#include "client/scanctl/formats/forms.h"

#define NS_OFFSET 114 /* bytes 115 and 116, counted from 1 */

uint16_t number16(const unsigned char *bytes, enum byte_order order)
{
    return (uint16_t)(order == BYTE_ORDER_BIG ? bytes[0] << 8 | bytes[1] : bytes[1] << 8 | bytes[0]);
}

uint32_t number32(const unsigned char *bytes, enum byte_order order)
{
    uint32_t first = number16(bytes, order), second = number16(bytes + 2, order);
    return order == BYTE_ORDER_BIG ? first << 16 | second : second << 16 | first;
}

uint64_t number64(const unsigned char *bytes, enum byte_order order)
{
    uint64_t first = number32(bytes, order), second = number32(bytes + 4, order);
    return order == BYTE_ORDER_BIG ? first << 32 | second : second << 32 | first;
}

void traces_label(struct array *array)
{
    strcpy(array->labels[0], "trace");
    strcpy(array->labels[1], "sample");
}

uint64_t trace_ns(const unsigned char *header, enum byte_order order)
{
    return number16(header + NS_OFFSET, order);
}

double trace_dt(const unsigned char *dt, enum byte_order order)
{
    return number16(dt, order) / 1e6;
}

int traces_check(const struct array *array, const unsigned char *traces, uint64_t count, uint64_t first,
                 bool allow_zero, const char *name, struct error *error)
{
    uint64_t trace_bytes = array_unit_bytes(array, array_sample_bytes(array));
    for (uint64_t i = 0; i < count; i++) {
        const unsigned char *header = traces + i * trace_bytes;
        uint64_t found = trace_ns(header, array->byte_order);
        double dt = array->uses_spacing ? trace_dt(header + TRACE_DT_OFFSET, array->byte_order) : 0;
        if (found != array->told_ns && (found || !allow_zero))
            return fail(error, EX_DATAERR,
                        "%s: trace %" PRIu64 " (counted from 1) has %" PRIu64 " samples, the first %" PRIu64
                        "; give a file whose traces are all of one length",
                        name, first + i + 1, found, array->told_ns);
        if (dt && dt != array->spacing[1])
            return fail(error, EX_DATAERR,
                        "%s: trace %" PRIu64
                        " (counted from 1) says that %g s lie between two samples, and those before "
                        "it %g; give a number in place of dt, or a file whose traces agree",
                        name, first + i + 1, dt, array->spacing[1]);
    }
    return 0;
}
