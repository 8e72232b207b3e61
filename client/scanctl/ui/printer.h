/*
 * The results of a reduction as people and programs read them: one number per line, or the items of a JSON list. A
 * number has as few digits as tell it from all others of its type.
 */
#ifndef SCANCTL_PRINTER_H
#define SCANCTL_PRINTER_H

#include <scand/scand.h>

#include "client/scanctl/ui/text.h"

struct printer {
    struct json *json; /* an open list; NULL: lines on standard output */
    const char *name;  /* what lines say behind each number; NULL: nothing */
};

/* True when numbers of this dtype can be printed: f32, f64 and integers in this machine's byte order. */
bool printer_can_print(enum scand_dtype dtype);
/* Prints `count` numbers. Not finite ones are null in JSON. */
void printer_put(struct printer *printer, enum scand_dtype dtype, const void *numbers, uint64_t count);

#endif
