/*
 * How an array is scanned in pieces of bounded size. Whatever its rank and order, an array is records x length x inner:
 * the axes slower than the scanned one, that one, and the faster ones. Records are independent and lie one after the
 * other in the file, so a piece is some whole records.
 */
#ifndef SCANCTL_PLAN_H
#define SCANCTL_PLAN_H

#include <scand/scand.h>

#include "client/scanctl/formats/array.h"

/* Input, output and coefficients of a piece take this much together, or one record where that takes more. */
#define PIECE_BYTES (UINT64_C(64) << 20)

/* One side of a scan: the file's, the result's or the coefficients' bytes as they lie in the buffer. */
struct side {
    enum scand_dtype dtype;
    uint64_t length; /* positions on the scanned axis */
    uint64_t sample_bytes;
    uint64_t record_bytes;
    uint64_t offset;    /* of the first sample in a record */
    int64_t strides[3]; /* record, scanned axis, inner */
};

struct plan {
    uint64_t records, length, inner;
    bool in_place, has_coefficients;
    bool ragged;      /* rows differ in length: records are samples, and each piece has rows of its own */
    uint64_t least;   /* records that a piece must be able to hold */
    uint64_t results; /* records of the output that it must be able to hold; 0: as many as of the input */
    struct side input, output, coefficients;
};

/* The plan of a reduction: the output has one position on the axis. */
void plan_make_reduce(struct plan *plan, const struct array *array, uint32_t axis, enum scand_dtype output);
/* axis counts from 0. The array holds at least one sample; the output dtype is F32 for SU. */
void plan_make(struct plan *plan, const struct array *array, uint32_t axis, enum scand_dtype output);

/* The same for ragged rows, the longest of which has so many samples. */
void plan_make_ragged(struct plan *plan, const struct array *array, uint64_t longest, enum scand_dtype output);

/* And for their reduction, at most `rows` in a piece. The array may be without samples. */
void plan_make_ragged_reduce(struct plan *plan, const struct array *array, uint64_t longest, uint64_t rows,
                             enum scand_dtype output);

/* Adds coefficients, an array of the same shape and order. */
void plan_add_coefficients(struct plan *plan, const struct array *coefficients, uint32_t axis);

/* Records per piece, and the bytes of a buffer for so many. */
uint64_t plan_piece_records(const struct plan *plan);
uint64_t plan_buffer_bytes(const struct plan *plan, uint64_t records);
/* Where the result's records lie in that buffer, and the coefficients'. */
uint64_t plan_output_offset(const struct plan *plan, uint64_t records);
uint64_t plan_coefficients_offset(const struct plan *plan, uint64_t records);
/* Sets input, output, coefficients and axis of a scan over the first `count` records of a buffer made for `records`. */
void plan_tensors(const struct plan *plan, struct scand_buffer *buffer, uint64_t records, uint64_t count,
                  struct scand_scan *scan);

#endif
