#include "client/scanctl/ui/printer.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_BYTES 32

bool printer_can_print(enum scand_dtype dtype)
{
    return dtype == SCAND_DTYPE_F32 || dtype == SCAND_DTYPE_F64 || dtype == SCAND_DTYPE_I32 ||
           dtype == SCAND_DTYPE_I64 || dtype == SCAND_DTYPE_U32 || dtype == SCAND_DTYPE_U64;
}

static void single_text(float number, char *out)
{
    int digits = 6;
    do
        snprintf(out, NUMBER_BYTES, "%.*g", digits, (double)number);
    while (strtof(out, NULL) != number && ++digits <= 9);
}

static void double_text(double number, char *out)
{
    int digits = 15;
    do
        snprintf(out, NUMBER_BYTES, "%.*g", digits, number);
    while (strtod(out, NULL) != number && ++digits <= 17);
}

/* The number at `from`; false where it is not finite. */
static bool number_text(enum scand_dtype dtype, const void *from, char *out)
{
    union {
        float f32;
        double f64;
        int32_t i32;
        int64_t i64;
        uint32_t u32;
        uint64_t u64;
    } number;
    memcpy(&number, from, dtype == SCAND_DTYPE_F32 || dtype == SCAND_DTYPE_I32 || dtype == SCAND_DTYPE_U32 ? 4 : 8);
    if (dtype == SCAND_DTYPE_F32)
        single_text(number.f32, out);
    else if (dtype == SCAND_DTYPE_F64)
        double_text(number.f64, out);
    else if (dtype == SCAND_DTYPE_I32)
        snprintf(out, NUMBER_BYTES, "%" PRId32, number.i32);
    else if (dtype == SCAND_DTYPE_I64)
        snprintf(out, NUMBER_BYTES, "%" PRId64, number.i64);
    else if (dtype == SCAND_DTYPE_U32)
        snprintf(out, NUMBER_BYTES, "%" PRIu32, number.u32);
    else
        snprintf(out, NUMBER_BYTES, "%" PRIu64, number.u64);
    return dtype == SCAND_DTYPE_F32 ? isfinite(number.f32) : dtype == SCAND_DTYPE_F64 ? isfinite(number.f64) : true;
}

void printer_put(struct printer *printer, enum scand_dtype dtype, const void *numbers, uint64_t count)
{
    const char *from = numbers;
    uint64_t bytes = dtype == SCAND_DTYPE_F32 || dtype == SCAND_DTYPE_I32 || dtype == SCAND_DTYPE_U32 ? 4 : 8;
    char text[NUMBER_BYTES];
    for (uint64_t i = 0; i < count; i++) {
        bool finite = number_text(dtype, from + i * bytes, text);
        if (printer->json)
            json_number(printer->json, NULL, finite ? text : "null");
        else
            printf("%s%s%s\n", text, printer->name ? " " : "", printer->name ? printer->name : "");
    }
}
