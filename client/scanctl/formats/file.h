/*
 * Files of any form: which form one has, and what comes before its samples.
 */
#ifndef SCANCTL_FILE_H
#define SCANCTL_FILE_H

#include "client/scanctl/formats/array.h"
#include "client/scanctl/formats/output.h"

/* The format that a name's extension stands for, or -1. */
int format_of_extension(const char *path);
/* The format that a word stands for, or -1. */
int format_of_word(const char *word);
const char *format_word(enum format format);
/* Lists the formats: "raw, npy, ...". Returns out. */
#define FORMATS_TEXT_BYTES 64
const char *formats_text(char *out);
/* Finds the format of a file of which the command line says nothing: by its name, else by its first bytes, else raw.
 * EX_USAGE for forms that are known and cannot be read. */
int format_find(struct input *input, const struct array_hints *hints, enum format *format, struct error *error);

/* Reads what comes before the samples, and checks a sized input's size. The position is then that of the first sample
 * or trace. EX_USAGE where a hint is missing or wrong, EX_DATAERR where the file is. Then array_free. */
int array_read_header(struct array *array, struct input *input, const struct array_hints *hints, struct error *error);

/* The file of a result, or the two of RSF: one with the samples, one with the text. */
struct result_file {
    struct output samples, text;
    char *samples_path;     /* for RSF: the path of the samples' file, named by `text`, if they have one */
    uint64_t samples_bytes; /* bytes that were written to that file, once it has its name */
};

/* Opens the file and writes what comes before the samples of `result`, whose dtype its format can hold. Samples are
 * then written to file->samples. End with result_commit or result_discard. */
int result_open(struct result_file *file, struct array *result, const char *path, struct error *error);
/* Copies what comes after the samples of the input. */
int result_copy_trailer(struct result_file *file, const struct array *array, struct input *input, struct error *error);
/* Gives the files their names. On failure they are discarded. */
int result_commit(struct result_file *file, struct error *error);
void result_discard(struct result_file *file);

/* Returns the usual dtype of results: SEG-Y keeps its format code, and big-endian floats of files with headers stay as
 * they are; other samples become the dtype that they are scanned in. */
enum scand_dtype array_usual_result(const struct array *array);
/* Checks that a result of this dtype can be written in the format; else EX_USAGE. */
int array_check_result(enum format format, enum scand_dtype dtype, struct error *error);

#endif
