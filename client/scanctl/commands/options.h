/*
 * Command lines: options that all commands share, and those of `scanctl scan` and `scanctl reduce`.
 */
#ifndef SCANCTL_OPTIONS_H
#define SCANCTL_OPTIONS_H

#include <stdio.h>

#include <scand/scand.h>

#include "client/scanctl/formats/operand.h"

/* Options that stand before the command's name, or among its own. */
struct common_options {
    const char *socket_path; /* NULL: the library's default */
    bool local;              /* compute in this process, without a daemon */
    bool json;
    bool help;
};

#define TYPE_LEFT_OUT SCAND_DTYPE_COUNT

/* Numbers of options, above every character: a character is a short option. */
enum { OPTION_SOCKET = 256, OPTION_JSON, OPTION_HELP, OPTION_LOCAL, OPTION_OWN };
/* Options of commands that work on files. */
enum {
    OPTION_PASSES = OPTION_OWN,
    OPTION_ALGORITHM,
    OPTION_ACCUMULATOR,
    OPTION_KIND,
    OPTION_OP,
    OPTION_DEMEAN,
    OPTION_COEFFICIENT,
    OPTION_COEFFICIENTS,
    OPTION_INTERMEDIATE,
    OPTION_OUTPUT,
    OPTION_OUTPUT_DTYPE,
    OPTION_OUTPUT_FORMAT,
    OPTION_DTYPE,
    OPTION_AXIS,
    OPTION_SHAPE,
    OPTION_FORMAT,
    OPTION_BYTE_ORDER,
    OPTION_OFFSET,
    OPTION_HEADER_BYTES,
    OPTION_TRACE_HEADER_BYTES,
    OPTION_OFFSETS,
    OPTION_PRIORITY,
    OPTION_DEADLINE,
    OPTION_THEN,
    OPTION_PROGRESS,
    OPTION_SCALE,
};

/* The value of an option, for completion: one of these, or the number of a list, enum scand_list. */
enum { VALUE_FREE = -1, VALUE_FILE = -2, VALUE_FORMAT = -3, VALUE_BYTE_ORDER = -4, VALUE_OUTPUT_FORMAT = -5 };

/* An option, as getopt, the help and completion know it. A table of them ends with a row of zeros. */
struct option_row {
    const char *name;     /* --NAME */
    int id;               /* the number that the handler gets */
    char letter;          /* -L; 0: none */
    const char *argument; /* name of the value in the help; NULL: no value */
    int values;
    const char *text; /* the help's text; its lines are broken */
};
#define OPTIONS_MAX 48 /* rows of a table */

// clang-format off
/* Options of commands that print nothing; all others have these, too. */
#define QUIET_OPTIONS                                                                                                \
    {"socket", OPTION_SOCKET, 0, "PATH", VALUE_FILE, "the daemon's socket"},                                         \
    {"help", OPTION_HELP, 'h', NULL, VALUE_FREE, "print this"}
#define COMMON_OPTIONS {"json", OPTION_JSON, 'j', NULL, VALUE_FREE, "print JSON"}, QUIET_OPTIONS
/* An option of commands that compute. */
#define LOCAL_OPTION                                                                                                 \
    {"local", OPTION_LOCAL, 0, NULL, VALUE_FREE, "compute in this process, without a daemon"}
/* Options of commands that work on files. */
#define FILE_OPTIONS                                                                                                 \
    {"axis", OPTION_AXIS, 'x', "AXIS", VALUE_FREE,                                                                   \
     "the axis of the rows: from 0; negative ones count from the last; or its name [-1];\n"                            \
     "of reductions also several, such as 0,1, or all"},                         \
    {"offsets", OPTION_OFFSETS, 0, "FILE", VALUE_FILE,                                                               \
     "rows of differing lengths along an IN of one dimension: row r is the samples from the\n"                       \
     "r-th offset up to the next one; .npy of integers, or raw ones of 64 bits"},                                    \
    {"format", OPTION_FORMAT, 'f', "FORM", VALUE_FORMAT, "the form of IN [by its name, else by its first bytes]"},   \
    {"shape", OPTION_SHAPE, 's', "A,B,...", VALUE_FREE,                                                              \
     "of raw samples, the last axis dense; -1 for A: as many as there are"},                                         \
    {"dtype", OPTION_DTYPE, 't', "TYPE", SCAND_LIST_DTYPE, "of raw samples [f32]"},                                  \
    {"byte-order", OPTION_BYTE_ORDER, 0, "ORDER", VALUE_BYTE_ORDER,                                                  \
     "of raw and SU samples: little | big [raw: this machine's; SU: found out]"},                                    \
    {"offset", OPTION_OFFSET, 0, "N", VALUE_FREE, "bytes of a raw file that are skipped [0]"},                       \
    {"header-bytes", OPTION_HEADER_BYTES, 0, "N", VALUE_FREE,                                                        \
     "bytes after these that are passed on untouched [0]"},                                                          \
    {"trace-header-bytes", OPTION_TRACE_HEADER_BYTES, 0, "N", VALUE_FREE,                                            \
     "bytes before each row of a raw file, passed on likewise [0]"},                                                 \
    LOCAL_OPTION,                                                                                                    \
    {"progress", OPTION_PROGRESS, 'v', NULL, VALUE_FREE,                                                             \
     "say which job of the daemon this is, and what it took, on standard error"},                                 \
    {"priority", OPTION_PRIORITY, 0, "CLASS", SCAND_LIST_PRIORITY, "which of your own jobs go first [normal]"},      \
    {"deadline", OPTION_DEADLINE, 0, "MS", VALUE_FREE,                                                               \
     "give up, with exit code 75, when a job could not start within so many milliseconds"}
// clang-format on

/* The command line's options on files. */
struct file_options {
    struct array_hints hints;
    struct operand_file *operands; /* files of the steps' operands, operand_count of them; the command's */
    uint32_t operand_count;
    const struct pipeline *pipeline; /* the steps, where they may change how long rows are; else NULL */
    const char *offsets_path;        /* NULL: rows of one length */
    int64_t axis;                    /* a negative axis counts from the end */
    const char *axis_name;           /* the axis by its name; NULL: by its number */
    const char *axes;                /* several axes, by number or name, with commas, or "all"; NULL: one axis */
    bool progress;                   /* show progress on standard error */
    bool converts;                   /* the result has a form of its own, not its input's */
};

/* Handles one of a command's own options: its id, and its argument. */
typedef int option_handler(void *context, int option, const char *argument, struct error *error);

/* What a command line may have: options, and what handles those that are no common ones. */
struct option_set {
    const struct option_row *table;
    option_handler *handler; /* NULL: all are common ones */
    void *context;           /* the handler's */
    bool stops;              /* options end with the first word that is none; else such words are put last */
};

/* Goes through argv from its second word; argv[0] is the program, and command, for messages: "scanctl scan". optind is
 * then the first word that is no option. EX_USAGE for unknown options. */
int options_parse(int argc, char **argv, const struct option_set *set, struct common_options *common,
                  struct error *error);
/* The same for a command that takes no words but options. */
int options_parse_all(int argc, char **argv, const struct option_set *set, struct common_options *common,
                      struct error *error);

/* True when --local is among a command's options: then it may do without a daemon. */
bool options_have_local(const struct option_row *table);
/* Prints what the options of a table do, a line or more for each. */
void options_print(const struct option_row *table, FILE *file);

/* Parsers that several commands need: a word out of a list of types.h, how urgent it is, and the options on files. */
int word_parse(const char *option, enum scand_list list, const char *word, size_t length, int *out,
               struct error *error);
int priority_parse(enum scand_priority *priority, const char *word, struct error *error);
int deadline_parse(uint32_t *deadline_ms, const char *text, struct error *error);
int file_option_parse(struct file_options *options, int option, const char *argument, struct error *error);
/* Parses a coefficient; `option` is what messages call it. */
int coefficient_parse(const char *option, double *coefficient, const char *text, struct error *error);
/* True when a path is that of a folder, or is meant to be; and the path's part after the last slash. */
bool path_is_folder(const char *path);
const char *path_name(const char *path);
/* Resolves all axes that the command line names, also a single one: bit i stands for axis i. *out is the first of them.
 */
int axes_resolve(const struct file_options *options, const char *path, const struct array *array, uint32_t *axes,
                 uint32_t *out, struct error *error);
/* The axis counted from 0, once the array at `path` is known. */
int axis_resolve(const struct file_options *options, const char *path, const struct array *array, uint32_t *out,
                 struct error *error);

#endif
