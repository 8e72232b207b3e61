/*
 * What `scanctl run` computes: steps with | between them, each the name of an operation and words NAME=VALUE. A word
 * without = is a flag, or, right after the operation, the value of its first parameter:
 *
 *     scan forward,backward accumulator=f64 demean | reduce sum
 */
#ifndef SCANCTL_PIPELINE_H
#define SCANCTL_PIPELINE_H

#include <scand/scand.h>

#include "client/scanctl/stream/compute.h"
#include "client/scanctl/ui/error.h"

struct pipeline {
    const char *text;
    /* Set by pipeline_check. */
    char *operand_path;             /* of a tensor that a step takes beside its input; NULL: none does */
    enum scand_reduction reduction; /* of the last step, which makes a number of each row; else NONE */
    /* Set by the caller after it. */
    enum scand_priority priority;
    uint32_t deadline_ms;
};

/* Checks what can be known without a daemon: the names and values are those of the library's list. EX_USAGE names the
 * step, counted from 1, the word, and what is allowed. Then pipeline_free, also after a failure. */
int pipeline_check(struct pipeline *pipeline, const char *text, struct error *error);
void pipeline_free(struct pipeline *pipeline);
/* Makes a task of the steps; `operand` goes to the step that takes one (NULL: none does). NULL without memory. */
struct scand_task *pipeline_build(const struct pipeline *pipeline, const struct scand_tensor *operand);
/* What a run computes. */
struct compute compute_steps(const struct pipeline *pipeline);

#endif
