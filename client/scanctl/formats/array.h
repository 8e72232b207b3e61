/*
 * The arrays that files hold, whatever their form. A scan's result is written in the form, order and byte order of its
 * input, with the headers of its input.
 */
#ifndef SCANCTL_ARRAY_H
#define SCANCTL_ARRAY_H

#include <stdbool.h>

#include <scand/scand.h>

#include "client/scanctl/ui/error.h"

struct input;

/* The second column is the word on the command line and the file name's extension, the third another extension. A row
 * stands for a file NAME.c with NAME_form, see forms.h. Of rows that take a file for theirs the first one has it: SU,
 * which has nothing but one number that makes sense, comes last. */
#define FORMATS(X)       \
    X(RAW, raw, "raw")   \
    X(NPY, npy, "npy")   \
    X(SEGY, segy, "sgy") \
    X(RSF, rsf, "rsf")   \
    X(SU, su, "su")

#define X(NAME, WORD, OTHER) FORMAT_##NAME,
enum format { FORMATS(X) FORMAT_COUNT };
#undef X

#define LABEL_BYTES 32 /* room for an axis' name, which is cut to it */

enum byte_order { BYTE_ORDER_UNKNOWN, BYTE_ORDER_LITTLE, BYTE_ORDER_BIG };

#define NPY_HEADER_MAX         65536 /* longer headers are refused; NumPy itself refuses more than 10,000 */
#define SAMPLE_BYTES_MAX       8
#define TRACE_HEADER_BYTES_MAX 65536
#define PASSED_BYTES_MAX       (UINT64_C(64) << 20) /* the longest header that is passed on, which is kept in memory */

struct array {
    enum format format;
    enum scand_dtype dtype;
    uint32_t rank; /* 1 to SCAND_RANK_MAX */
    uint64_t shape[SCAND_RANK_MAX];
    char labels[SCAND_RANK_MAX][LABEL_BYTES]; /* names of the axes; "" for none */
    double spacing[SCAND_RANK_MAX]; /* between two samples along an axis, as the file says: in seconds, or its own
                                       unit; 0: it says nothing */
    bool uses_spacing;              /* what lies between two samples counts: no trace's header may say another number */
    bool open_ended;            /* a pipe that does not say how many rows it brings: shape[0] is 0 until it has ended */
    bool fortran;               /* the first axis is the dense one, not the last */
    enum byte_order byte_order; /* byte order of the samples in the file; unknown: each dtype has its own */
    uint64_t header_bytes;      /* bytes of the file before its samples or traces */
    uint64_t trace_header_bytes; /* bytes before each row; not 0: the rank is 2 */
    uint64_t trailer_bytes;      /* bytes after the last row */
    uint64_t told_ns;            /* for SU and SEG-Y: the number of samples that the header of each trace says */
    bool apart;                  /* for RSF: the samples have a file of their own */
    const char *samples_path;    /* for a result of RSF: the path of its samples' file, if it has one */
    struct passed {              /* bytes that stand before the samples, here and in the result; freed by array_free */
        unsigned char *bytes;
        uint64_t size_bytes;
    } passed;
};

/* The command line's words about a file. */
struct array_hints {
    enum format format; /* FORMAT_COUNT: no format was given */
    enum byte_order byte_order;
    enum scand_dtype dtype; /* dtype of raw samples */
    bool has_dtype;         /* dtype was given */
    bool native;   /* f32 samples are to be in this machine's byte order, as kernels of the tutorials need them */
    uint32_t rank; /* 0: no shape was given */
    uint64_t shape[SCAND_RANK_MAX];
    bool open_ended; /* shape[0] is what the file's size, or a pipe's end, makes it */
    bool has_places; /* one of the next three was given, for raw samples */
    uint64_t skip_bytes, header_bytes, trace_header_bytes;
};

/* Sets rank and shape. EX_DATAERR, naming `name`, where the array is too large to be addressed. */
int array_set_shape(struct array *array, uint32_t rank, const uint64_t *shape, const char *name, struct error *error);
/* Makes a single axis of the axes whose bits are set in `axes`, in the place of the first, where their samples lie one
 * after another in C order. EX_USAGE, naming `name`, where they do not. */
int array_merge_axes(struct array *array, uint32_t axes, const char *name, struct error *error);
uint64_t array_sample_count(const struct array *array);
uint64_t array_sample_bytes(const struct array *array); /* bytes of one sample */
/* The array of a scan's result, with the input's shape, form and headers, which stay the input's. */
struct array array_result(const struct array *array, enum scand_dtype dtype);
void array_free(struct array *array);
/* Reads that many bytes, which come after what was passed on before, to be passed on as well. */
int array_pass(struct array *array, struct input *input, uint64_t size_bytes, struct error *error);
/* Returns the dtype of samples while they are scanned, in place of one of files. */
enum scand_dtype plain_dtype(enum scand_dtype dtype);
/* dtypes whose samples have the same byte order on every machine. */
bool has_byte_order(enum scand_dtype dtype);
enum byte_order byte_order_of(enum scand_dtype dtype);
/* Returns the dtype of the same numbers in a byte order, unknown: any order. Where there is none, it is the same dtype,
 * and scanctl swaps. */
enum scand_dtype dtype_in_order(enum scand_dtype dtype, enum byte_order order);
/* The dtype that the daemon is asked for where results of one go into a file beside or in place of an array. */
enum scand_dtype array_stored(const struct array *array, enum scand_dtype dtype);
/* True when samples of the dtype lie in the file in another byte order than the dtype's. */
bool array_is_swapped(const struct array *array, enum scand_dtype dtype);
/* Returns how many bytes may be moved and swapped by themselves: a trace, or one sample. */
uint64_t array_unit_bytes(const struct array *array, uint64_t sample_bytes);
/* Checks the input's size against the array's, where it is known. */
int array_check_size(const struct array *array, const struct input *input, struct error *error);
/* Swaps whole units of a dtype in place, between the file's byte order and that of the dtype; headers of traces stay.
 */
void array_swap(const struct array *array, void *units, uint64_t size_bytes, enum scand_dtype dtype);

/* Writes a shape as "60 x 1,000", for messages. Returns out. */
const char *shape_text(uint32_t rank, const uint64_t *shape, char *out, size_t size);

#endif
