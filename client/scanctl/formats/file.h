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
/* "raw, npy, ...". Returns out. */
#define FORMATS_TEXT_BYTES 64
const char *formats_text(char *out);
/* The format of a file that the command line says nothing of: as its name says, else as its first bytes say, else raw.
 * EX_USAGE for forms that are known and cannot be read. */
int format_find(struct input *input, const struct array_hints *hints, enum format *format, struct error *error);

/* Reads what comes before the samples, and checks a sized input's size. The position is then that of the first sample
 * or trace. EX_USAGE where a hint is missing or wrong, EX_DATAERR where the file is. Then array_free. */
int array_read_header(struct array *array, struct input *input, const struct array_hints *hints, struct error *error);
/* Writes what comes before the samples of a result, whose dtype its format can hold. */
int array_write_header(const struct array *result, struct output *output, struct error *error);
/* Copies what comes after the samples. */
int array_copy_trailer(const struct array *array, struct input *input, struct output *output, struct error *error);
/* EX_USAGE where a result of this dtype cannot be written in the format. */
int array_check_result(enum format format, enum scand_dtype dtype, struct error *error);

#endif
