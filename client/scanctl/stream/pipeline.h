/*
 * The steps of `scanctl run`: steps with | between them, each the name of an operation and words NAME=VALUE. A word
 * without = is a flag, or, right after the operation, the value of its first parameter:
 *
 *     scan forward,backward accumulator=f64 demean | reduce sum
 *
 * Double quotes keep spaces and | in a word: map add other="my traces.npy".
 */
#ifndef SCANCTL_PIPELINE_H
#define SCANCTL_PIPELINE_H

#include <scand/scand.h>

#include "client/scanctl/stream/compute.h"
#include "client/scanctl/ui/error.h"
#include "client/scanctl/ui/text.h"

struct pipeline {
    const char *text;
    /* pipeline_check sets what follows. */
    struct operand_file files[OPERANDS_MAX]; /* files of operands that steps have beside their input, in order */
    uint32_t file_count, step_count;
    bool reduces;                   /* the last step makes one number of each row */
    bool apart;                     /* the only step may not work in place */
    enum scand_reduction reduction; /* reduction of the last step; NONE where that is no `reduce` */
    bool wants_dt;                  /* some number is "dt", the spacing of samples */
    /* The caller sets what follows, after pipeline_check. */
    const char *algorithm; /* a variant of the tutorials; NULL: none */
    enum scand_priority priority;
    uint32_t deadline_ms;
    double dt; /* the file's spacing, set for each file */
};

/* Checks what can be known without a daemon: the names and values are those of the library's list. EX_USAGE names the
 * step, counted from 1, the word, and what is allowed. Then pipeline_free, also after a failure. */
int pipeline_check(struct pipeline *pipeline, const char *text, struct error *error);
void pipeline_free(struct pipeline *pipeline);
/* Makes a task of the steps; `operands` go to the steps that take them, one for each file. NULL without memory. */
struct scand_task *pipeline_build(const struct pipeline *pipeline, const struct scand_tensor *operands);
/* Sets lengths[1] to lengths[step_count], the lengths behind each step of rows of lengths[0]. vectors[i]: the length of
 * what file i holds, of an operand that follows vectors or the job. */
int pipeline_lengths(const struct pipeline *pipeline, const uint64_t *vectors, uint64_t lengths[2 + SCAND_STEPS_MAX],
                     struct error *error);
/* The members of a report that say what is computed. */
void pipeline_report(const struct pipeline *pipeline, struct json *json);
/* The computation of a run. */
struct compute compute_steps(const struct pipeline *pipeline);

#endif
