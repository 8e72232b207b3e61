/*
 * The functions of each form of files: a row of FORMATS is a struct form in a file of its own.
 */
#ifndef SCANCTL_FORMS_H
#define SCANCTL_FORMS_H

#include "client/scanctl/formats/array.h"

struct output;

struct form {
    /* Reads what comes before the samples, as array_read_header does. */
    int (*read_header)(struct array *array, struct input *input, const struct array_hints *hints, struct error *error);
    /* Writes what comes before the samples of a result. NULL: what was passed on, as it is. */
    int (*write_header)(const struct array *result, struct output *output, struct error *error);
    /* Checks that each of `count` traces, the first being number `first` from 0, has the array's number of samples;
     * else EX_DATAERR. NULL: rows say nothing of themselves. */
    int (*check_traces)(const struct array *array, const void *traces, uint64_t count, uint64_t first, const char *name,
                        struct error *error);
    /* Checks that a file of this form can hold results of the dtype; else EX_USAGE. NULL: any dtype. */
    int (*check_result)(enum scand_dtype dtype, struct error *error);
    /* True when a file that begins with these bytes is likely of this form. LIKELY_BYTES are looked at, or a shorter
     * file. NULL: no file is. */
    bool (*is_likely)(const unsigned char *bytes, uint64_t size_bytes);
    bool keeps_dtype; /* results have the dtype of the samples where no other is asked for */
};

#define X(NAME, WORD, OTHER) extern const struct form WORD##_form;
FORMATS(X)
#undef X

const struct form *form_of(enum format format);

/* Returns the name of a type in .npy, without byte order, "f4"; NULL where .npy cannot hold the type. */
const char *npy_type(enum scand_dtype dtype);

/* The headers of traces, which SU has of SEG-Y: bytes 115 and 116, counted from 1, are ns, the number of samples. */
#define TRACE_HEADER_BYTES 240
#define TRACE_NS_MAX       65535
/* Names the axes. */
void traces_label(struct array *array);
uint64_t trace_ns(const unsigned char *header, enum byte_order order);
/* Returns the spacing of samples from a number of microseconds, in seconds; 0: not given. */
double trace_dt(const unsigned char *dt, enum byte_order order);
#define TRACE_DT_OFFSET 116 /* offset of the sample interval in a trace's header: bytes 117 and 118 */
/* Checks that each trace's ns is array->told_ns or, with allow_zero, 0, and that its dt is the array's or 0 where
 * array->uses_spacing; else EX_DATAERR. */
int traces_check(const struct array *array, const unsigned char *traces, uint64_t count, uint64_t first,
                 bool allow_zero, const char *name, struct error *error);
/* Read numbers in headers. */
uint16_t number16(const unsigned char *bytes, enum byte_order order);
uint32_t number32(const unsigned char *bytes, enum byte_order order);
uint64_t number64(const unsigned char *bytes, enum byte_order order);

#define LIKELY_BYTES (2 * TRACE_HEADER_BYTES + (uint64_t)TRACE_NS_MAX * sizeof(float))

#endif
