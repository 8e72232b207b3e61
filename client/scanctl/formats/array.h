/*
 * The arrays that files hold, in three forms: raw samples, NumPy's .npy, and Seismic Unix, whose samples are f32. A
 * scan's result is written in the form, order and byte order of its input.
 */
#ifndef SCANCTL_ARRAY_H
#define SCANCTL_ARRAY_H

#include <stdbool.h>

#include <scand/scand.h>

#include "client/scanctl/ui/error.h"

struct input;

/* The second column is the word on the command line and the file name's extension. */
#define FORMATS(X) \
    X(RAW, "raw")  \
    X(NPY, "npy")  \
    X(SU, "su")

#define X(NAME, WORD) FORMAT_##NAME,
enum format { FORMATS(X) FORMAT_COUNT };
#undef X

enum byte_order { BYTE_ORDER_UNKNOWN, BYTE_ORDER_LITTLE, BYTE_ORDER_BIG };

#define SU_HEADER_BYTES  240
#define NPY_HEADER_MAX   65536 /* longer ones are refused; NumPy itself refuses more than 10,000 */
#define SU_SAMPLE_BYTES  4
#define SAMPLE_BYTES_MAX 8

struct array {
    enum format format;
    enum scand_dtype dtype;
    uint32_t rank; /* 1 to SCAND_RANK_MAX */
    uint64_t shape[SCAND_RANK_MAX];
    bool fortran;                /* the first axis is the dense one, not the last */
    bool swapped;                /* the byte order is the one that this machine does not use; big-endian dtypes have
                                    their own */
    uint64_t header_bytes;       /* before everything else */
    uint64_t trace_header_bytes; /* before each row: SU_HEADER_BYTES in SU, else 0 */
};

/* What the command line says about a file. */
struct array_hints {
    enum format format;
    enum byte_order byte_order;
    enum scand_dtype dtype; /* of raw samples */
    bool has_dtype;         /* it was given */
    uint32_t rank;          /* 0: no shape was given */
    uint64_t shape[SCAND_RANK_MAX];
};

/* Sets rank and shape. EX_DATAERR, naming `name`, where the array is too large to be addressed. */
int array_set_shape(struct array *array, uint32_t rank, const uint64_t *shape, const char *name, struct error *error);
uint64_t array_sample_count(const struct array *array);
uint64_t array_sample_bytes(const struct array *array); /* of one */
/* dtypes whose samples are big-endian on every machine. */
bool is_big_endian(enum scand_dtype dtype);
/* Bytes that may be moved and swapped by themselves: an SU trace, or one sample. */
uint64_t array_unit_bytes(const struct array *array, uint64_t sample_bytes);
/* Checks the input's size against the array's, where it is known. */
int array_check_size(const struct array *array, const struct input *input, struct error *error);
/* Swaps whole units of a dtype in place, between the file's byte order and that of the dtype; trace headers stay. */
void array_swap(const struct array *array, void *units, uint64_t size_bytes, enum scand_dtype dtype);

/* "60 x 1,000", for messages. Returns out. */
const char *shape_text(uint32_t rank, const uint64_t *shape, char *out, size_t size);

#endif
