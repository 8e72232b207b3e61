/*
 * The computation of a batch: the way from its tensors to a job.
 */
#ifndef SCANCTL_COMPUTE_H
#define SCANCTL_COMPUTE_H

#include <stdbool.h>

#include <scand/scand.h>

#include "client/scanctl/formats/operand.h"

/* The tensors of a job on one batch. */
struct operands {
    struct scand_tensor input, output;
    struct scand_tensor offsets; /* buffer NULL: none */
    struct scand_tensor further[OPERANDS_MAX];
    uint32_t further_count, axis;
    uint32_t group; /* the library's group that the job belongs to; 0: none */
};

struct compute {
    const char *word; /* for messages: "the scan" */
    bool reduces;     /* a row becomes one result */
    bool apart;       /* the output is not where the input is */
    /* Submits a job, as scand_submit_progress does. */
    int (*submit)(const void *context, const struct operands *operands, struct scand *daemon, scand_progress *progress,
                  void *progress_context, struct scand_job **out);
    const void *context; /* context of submit, the caller's */
};

/* A scan, whose further operand are its coefficients, or a reduction, of which everything is set but tensors and axis.
 */
struct compute compute_scan(const struct scand_scan *scan);
/* A scan whose results are multiplied by a number. */
struct scaled_scan {
    struct scand_scan scan;
    double scale;
};
struct compute compute_scaled_scan(const struct scaled_scan *scaled);
struct compute compute_reduce(const struct scand_reduce *reduce);

#endif
