/*
 * What all commands share of their command lines, and what `scanctl scan` and `scanctl reduce` do of theirs.
 */
#ifndef SCANCTL_OPTIONS_H
#define SCANCTL_OPTIONS_H

#include <getopt.h>

#include <scand/scand.h>

#include "client/scanctl/formats/array.h"

/* What stands before the command's name, or among its options. */
struct common_options {
    const char *socket_path; /* NULL: the library's default */
    bool json;
    bool help;
};

#define TYPE_LEFT_OUT SCAND_DTYPE_COUNT

/* Long options that every command takes; their values are over those of any character. */
enum { OPTION_SOCKET = 256, OPTION_JSON, OPTION_HELP, OPTION_OWN };
/* Those of scan and reduce. */
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
    OPTION_OUTPUT_DTYPE,
    OPTION_DTYPE,
    OPTION_AXIS,
    OPTION_SHAPE,
    OPTION_FORMAT,
    OPTION_BYTE_ORDER,
    OPTION_OFFSETS,
    OPTION_PRIORITY,
    OPTION_DEADLINE,
    OPTION_THEN,
};
// clang-format off
#define COMMON_OPTIONS                                  \
    {"socket", required_argument, NULL, OPTION_SOCKET}, \
    {"json", no_argument, NULL, OPTION_JSON},           \
    {"help", no_argument, NULL, OPTION_HELP}
// clang-format on

/* Handles one of a command's own options: its value as in its table, and its argument. */
typedef int option_handler(void *context, int option, const char *argument, struct error *error);

/* Goes through argv from its second word; argv[0] is the program, and command, for messages: "scanctl scan". optind is
 * then the first word that is no option. EX_USAGE for unknown ones. */
int options_parse(int argc, char **argv, const char *short_options, const struct option *table, option_handler *handler,
                  void *context, struct common_options *common, struct error *error);
/* For commands without options of their own, which take no words either. */
int options_parse_common(int argc, char **argv, struct common_options *common, struct error *error);

/* What both parse: a word out of a list of types.h, how urgent it is, a file of offsets, an axis, and what is said of a
 * file. */
int word_parse(const char *option, enum scand_list list, const char *word, size_t length, int *out,
               struct error *error);
int priority_parse(enum scand_priority *priority, const char *word, struct error *error);
int deadline_parse(uint32_t *deadline_ms, const char *text, struct error *error);
int offsets_parse(const char **path, const char *argument, struct error *error);
int axis_parse(int64_t *axis, const char *text, struct error *error);
int file_option_parse(struct array_hints *hints, int option, const char *argument, struct error *error);
/* `option` is what messages call it. */
int coefficient_parse(const char *option, double *coefficient, const char *text, struct error *error);
/* The format of the file at `path` where none was given. */
int format_guess(struct array_hints *hints, const char *path, struct error *error);
/* The axis counted from 0, once the rank of the array at `path` is known. */
int axis_resolve(int64_t axis, const char *path, uint32_t rank, uint32_t *out, struct error *error);

#endif
