/*
 * Batches of bounded size, in which an array is scanned. Whatever its rank and order, an array is records x length x
 * inner: the axes slower than the scanned one, that one, and the faster ones. Records are independent and lie one after
 * the other in the file, so a batch is some whole records.
 */
#ifndef SCANCTL_PARTITION_H
#define SCANCTL_PARTITION_H

#include <scand/scand.h>

#include "client/scanctl/formats/array.h"
#include "client/scanctl/stream/compute.h"

/* The size that input, output and further operands of a batch take together, or one record where that is larger. Data
 * of a pipe stays in the processor's cache. */
#define BATCH_BYTES      (UINT64_C(64) << 20)
#define PIPE_BATCH_BYTES (UINT64_C(4) << 20)

/* One side of a job: the file's, the result's or another operand's bytes as they lie in the buffer. */
struct side {
    enum scand_dtype dtype;
    uint64_t length; /* positions on the scanned axis */
    uint64_t sample_bytes;
    uint64_t record_bytes;
    uint64_t offset;    /* offset of the first sample in a record */
    int64_t strides[3]; /* record, scanned axis, inner */
};

struct partition {
    uint64_t records, length, inner; /* records: UINT64_MAX of an open-ended array */
    bool in_place;
    bool ragged;      /* rows differ in length: records are samples, and each batch has rows of its own */
    uint64_t least;   /* records that a batch's buffer must hold at least */
    uint64_t results; /* records of the output that it must hold; 0: as many as of the input */
    struct side input, output;
    uint32_t further_count;
    struct further {
        struct side side;
        bool shared;    /* one vector for all records, */
        bool broadcast; /* described by strides of 0: it has an element for each sample */
    } further[OPERANDS_MAX];
};

/* The partition of a reduction: the output has one position on the axis. */
void partition_make_reduce(struct partition *partition, const struct array *array, uint32_t axis,
                           enum scand_dtype output);
/* Makes the partition; axis counts from 0. The array holds at least one sample, or is open-ended and axis is not 0. */
void partition_make(struct partition *partition, const struct array *array, uint32_t axis, enum scand_dtype output);

/* Sets the output, an array whose length along the axis may differ from the input's, and which may lack its headers. */
void partition_set_output(struct partition *partition, const struct array *result, uint32_t axis);

/* Makes the partition for ragged rows, the longest of which has so many samples. */
void partition_make_ragged(struct partition *partition, const struct array *array, uint64_t longest,
                           enum scand_dtype output);

/* Makes the partition for a reduction of ragged rows, at most `rows` in a batch. The array may be without samples. */
void partition_make_ragged_reduce(struct partition *partition, const struct array *array, uint64_t longest,
                                  uint64_t rows, enum scand_dtype output);

/* Adds an operand: an array of the same shape, but for the axis, and the same order; or a vector for all rows, which
 * may have an element for each of their samples (broadcast). */
void partition_add(struct partition *partition, const struct array *array, uint32_t axis, bool shared, bool broadcast);

/* Records per batch, and the bytes of a buffer for so many. */
uint64_t partition_batch_records(const struct partition *partition);
uint64_t partition_buffer_bytes(const struct partition *partition, uint64_t records);
/* Return the offsets of the result's and a further operand's records in the buffer. */
uint64_t partition_output_offset(const struct partition *partition, uint64_t records);
uint64_t partition_further_offset(const struct partition *partition, uint64_t records, uint32_t further);
/* Sets all operands but offsets, and the axis, of a job on the first `count` records of a buffer made for `records`. */
void partition_tensors(const struct partition *partition, struct scand_buffer *buffer, uint64_t records, uint64_t count,
                       struct operands *operands);

#endif
