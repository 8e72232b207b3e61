/*
 * What is particular to each form of files. Readers read what comes before the samples, as array_read_header does.
 */
#ifndef SCANCTL_FORMS_H
#define SCANCTL_FORMS_H

#include "client/scanctl/formats/array.h"

int raw_read_header(struct array *array, struct input *input, const struct array_hints *hints, struct error *error);
int npy_read_header(struct array *array, struct input *input, const struct array_hints *hints, struct error *error);
int su_read_header(struct array *array, struct input *input, const struct array_hints *hints, struct error *error);

/* How .npy calls the type, without byte order, "f4"; NULL where it cannot hold it. */
const char *npy_type(enum scand_dtype dtype);
/* An .npy header into `out`, of at least NPY_WRITTEN_MAX bytes; returns its length. */
#define NPY_WRITTEN_MAX 256
size_t npy_format_header(const struct array *array, enum scand_dtype dtype, char *out);

/* EX_DATAERR where one of `count` SU traces, the first being number `first`, has another number of samples. */
int su_check_traces(const struct array *array, const void *traces, uint64_t count, uint64_t first, const char *name,
                    struct error *error);

#endif
