/*
 * Files of any form: which form one has, and what comes before its samples.
 */
#ifndef SCANCTL_FILE_H
#define SCANCTL_FILE_H

#include "client/scanctl/formats/array.h"

struct output;

/* The format that a name's extension stands for, or -1. */
int format_of_extension(const char *path);
/* The format that a word stands for, or -1. */
int format_of_word(const char *word);
const char *format_word(enum format format);

/* Reads what comes before the samples, and checks a sized input's size. The position is then that of the first sample
 * or trace. EX_USAGE where a hint is missing or wrong, EX_DATAERR where the file is. */
int array_read_header(struct array *array, struct input *input, const struct array_hints *hints, struct error *error);
/* Writes what comes before the samples of a result, whose dtype its format can hold. */
int array_write_header(const struct array *array, enum scand_dtype dtype, struct output *output, struct error *error);
/* EX_USAGE where a result of this dtype cannot be written in the array's format. */
int array_check_result(const struct array *array, enum scand_dtype dtype, struct error *error);

#endif
