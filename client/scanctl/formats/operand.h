/*
 * The files of operands that a step has beside its input: --coefficients, and operands that `scanctl run` names.
 */
#ifndef SCANCTL_OPERAND_H
#define SCANCTL_OPERAND_H

#include "client/scanctl/formats/array.h"
#include "client/scanctl/formats/file.h"
#include "client/scanctl/formats/input.h"

#define OPERANDS_MAX 8 /* operands that are files, of all steps */

/* The samples that operands go with. */
struct operand_samples {
    const struct array *array;
    const char *name;
    const struct array_hints *hints;
    uint32_t axis;
    bool ragged;
};

struct operand_file {
    /* The command sets what follows, as scand_parameters tells it. */
    char name[64];
    uint32_t step; /* counted from 0 */
    char *path;
    bool written;
    char follows[64], dtypes[64];
    bool may_be_raw; /* a file whose name tells no form is raw, like the samples */
    /* operand_file_open and operand_file_create set what follows. */
    bool shared;               /* a vector for all rows, */
    bool broadcast;            /* the vector has an element for each of the rows' samples */
    struct array array;        /* has the samples' axis, unless it is shared */
    struct input input;        /* for an operand that is read */
    struct result_file output; /* for an operand that is written */
};

/* Opens a file that is read, and reads what comes before its elements; of one that is written, checks the name.
 * EX_DATAERR or EX_USAGE where it does not fit beside the samples. End with operand_file_close, also after a failure.
 */
int operand_file_open(struct operand_file *file, const struct operand_samples *samples, struct error *error);
void operand_file_close(struct operand_file *file);
/* Elements along the axis of one that has been opened; 0 where steps say how many. */
uint64_t operand_file_length(const struct operand_file *file, const struct operand_samples *samples);
/* Checks a file that is read, whose step takes rows of `length`. */
int operand_file_check(const struct operand_file *file, const struct operand_samples *samples, uint64_t length,
                       struct error *error);
/* Begins a file that is written, whose step leaves rows of `length`, of results of the dtype. End with result_commit or
 * result_discard. */
int operand_file_create(struct operand_file *file, const struct operand_samples *samples, uint64_t length,
                        enum scand_dtype dtype, struct error *error);

#endif
