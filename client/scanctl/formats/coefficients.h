/*
 * The file of --coefficients: an array of the samples' shape, order and class, in a form of its own.
 */
#ifndef SCANCTL_COEFFICIENTS_H
#define SCANCTL_COEFFICIENTS_H

#include "client/scanctl/formats/array.h"

/* Reads what comes before the coefficients for `samples`, the array in the file `samples_name`, read with `hints`. A
 * file without a form that its name tells is raw, of the samples' type. EX_DATAERR where the file does not fit. */
int coefficients_read_header(struct array *array, struct input *input, const struct array *samples,
                             const struct array_hints *hints, const char *samples_name, struct error *error);

#endif
