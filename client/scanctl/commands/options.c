#include "client/scanctl/commands/options.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "client/scanctl/formats/file.h"
#include "client/scanctl/ui/text.h"

#define WORD_BYTES 32 /* of the longest word of any list, at least */

static int option_error(char **argv, int found, struct error *error)
{
    const char *word = optind > 0 ? argv[optind - 1] : "";
    if (found == ':')
        return fail(error, EX_USAGE, "%s needs a value after it; see %s --help", word, argv[0]);
    if (optopt > ' ' && optopt < OPTION_SOCKET)
        return fail(error, EX_USAGE, "unknown option -%c; see %s --help", optopt, argv[0]);
    return fail(error, EX_USAGE, "%s is unknown, short for several options, or takes no value; see %s --help", word,
                argv[0]);
}

static const struct option *option_find(const struct option *table, int option)
{
    while (table->name && table->val != option)
        table++;
    return table;
}

/* An option that takes a value, and has had one: only steps add up. */
static bool is_repeated(const struct option *table, int option, uint64_t *seen)
{
    const struct option *row = option_find(table, option);
    const uint64_t bit = UINT64_C(1) << (row - table);
    const bool before = *seen & bit;
    *seen |= bit;
    return before && row->has_arg == required_argument && option != OPTION_THEN;
}

int options_parse(int argc, char **argv, const char *short_options, const struct option *table, option_handler *handler,
                  void *context, struct common_options *common, struct error *error)
{
    int option;
    optind = 0; /* glibc: begin again */
    opterr = 0;
    uint64_t seen = 0; /* a bit for each option of the table that is the command's own */
    while ((option = getopt_long(argc, argv, short_options, table, NULL)) != -1) {
        int result = 0;
        if (option == '?' || option == ':')
            result = option_error(argv, option, error);
        else if (option == OPTION_SOCKET)
            common->socket_path = optarg;
        else if (option == OPTION_JSON)
            common->json = true;
        else if (option == OPTION_HELP)
            common->help = true;
        else if (is_repeated(table, option, &seen))
            result = fail(error, EX_USAGE, "--%s is given twice; give it once", option_find(table, option)->name);
        else
            result = handler(context, option, optarg, error);
        if (result)
            return result;
    }
    return 0;
}

int options_parse_common(int argc, char **argv, struct common_options *common, struct error *error)
{
    static const struct option table[] = {COMMON_OPTIONS, {0}};
    int result = options_parse(argc, argv, ":", table, NULL, NULL, common, error);
    if (!result && !common->help && optind < argc)
        return fail(error, EX_USAGE, "\"%s\" is too much: %s takes options only; see %s --help", argv[optind], argv[0],
                    argv[0]);
    return result;
}

/* The first word that may be given: "none" of a reduction is for scans. */
static int first_of(enum scand_list list)
{
    return list == SCAND_LIST_REDUCTION ? SCAND_REDUCTION_NONE + 1 : 0;
}

/* "a, b, c"; cut to size. Returns out. */
static const char *words_join(enum scand_list list, char *out, size_t size)
{
    size_t used = 0;
    for (int i = first_of(list); scand_word(list, i) && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%s", used ? ", " : "", scand_word(list, i));
    return out;
}

int word_parse(const char *option, enum scand_list list, const char *word, size_t length, int *out, struct error *error)
{
    char allowed[128], text[WORD_BYTES];
    snprintf(text, sizeof(text), "%.*s", (int)length, word);
    int found = length < sizeof(text) ? scand_word_find(list, text) : -1;
    if (found < first_of(list))
        return fail(error, EX_USAGE, "--%s is \"%.*s\"; it may be %s", option, (int)length, word,
                    words_join(list, allowed, sizeof(allowed)));
    *out = found;
    return 0;
}

int priority_parse(enum scand_priority *priority, const char *word, struct error *error)
{
    int found = 0, result = word_parse("priority", SCAND_LIST_PRIORITY, word, strlen(word), &found, error);
    if (!result)
        *priority = (enum scand_priority)found;
    return result;
}

int deadline_parse(uint32_t *deadline_ms, const char *text, struct error *error)
{
    uint64_t number;
    if (!parse_unsigned(text, &number) || number == 0 || number > SCAND_DEADLINE_MS_MAX)
        return fail(error, EX_USAGE, "--deadline is \"%s\"; it may be 1 to %d milliseconds", text,
                    SCAND_DEADLINE_MS_MAX);
    *deadline_ms = (uint32_t)number;
    return 0;
}

static int shape_parse(struct array_hints *hints, const char *list, struct error *error)
{
    char number[24];
    hints->rank = 0;
    for (const char *at = list;; at++) {
        size_t length = strcspn(at, ",");
        uint64_t size = 0;
        snprintf(number, sizeof(number), "%.*s", (int)length, at);
        if (hints->rank == SCAND_RANK_MAX || length >= sizeof(number) || !parse_unsigned(number, &size) || !size)
            return fail(error, EX_USAGE,
                        "--shape is \"%s\"; it may be one to %d whole numbers from 1 on, as in --shape 60,1000", list,
                        SCAND_RANK_MAX);
        hints->shape[hints->rank++] = size;
        at += length;
        if (!*at)
            return 0;
    }
}

int axis_parse(int64_t *axis, const char *text, struct error *error)
{
    uint64_t number;
    bool negative = text[0] == '-';
    if (!parse_unsigned(text + negative, &number) || number > SCAND_RANK_MAX)
        return fail(error, EX_USAGE, "--axis is \"%s\"; it may be 0 to %d, or -%d to -1 to count from the last axis",
                    text, SCAND_RANK_MAX - 1, SCAND_RANK_MAX);
    *axis = negative ? -(int64_t)number : (int64_t)number;
    return 0;
}

/* In the C locale: a program that sets no other has its decimal point. */
int coefficient_parse(const char *option, double *coefficient, const char *text, struct error *error)
{
    char *end;
    double number = strtod(text, &end);
    if (end == text || *end || number == 0)
        return fail(error, EX_USAGE, "--%s is \"%s\"; it may be any number but 0, as in --coefficient 0.99", option,
                    text);
    *coefficient = number;
    return 0;
}

int offsets_parse(const char **path, const char *argument, struct error *error)
{
    if (!*argument || !strcmp(argument, "-"))
        return fail(error, EX_USAGE, "--offsets is \"%s\"; give a file, .npy or raw integers of 64 bits", argument);
    *path = argument;
    return 0;
}

int file_option_parse(struct array_hints *hints, int option, const char *argument, struct error *error)
{
    int format, dtype = 0;
    if (option == OPTION_SHAPE)
        return shape_parse(hints, argument, error);
    if (option == OPTION_DTYPE) {
        int result = word_parse("dtype", SCAND_LIST_DTYPE, argument, strlen(argument), &dtype, error);
        hints->dtype = (enum scand_dtype)dtype;
        hints->has_dtype = true;
        return result;
    }
    if (option == OPTION_FORMAT) {
        format = format_of_word(argument);
        if (format < 0)
            return fail(error, EX_USAGE, "--format is \"%s\"; it may be raw, npy, su", argument);
        hints->format = (enum format)format;
        return 0;
    }
    bool big = !strcmp(argument, "big");
    if (!big && strcmp(argument, "little"))
        return fail(error, EX_USAGE, "--byte-order is \"%s\"; it may be little, big", argument);
    hints->byte_order = big ? BYTE_ORDER_BIG : BYTE_ORDER_LITTLE;
    return 0;
}

/* Files of a known form are not taken for raw samples: sums of those are nonsense. */
int format_guess(struct array_hints *hints, const char *path, struct error *error)
{
    static const char *const others[] = {".sgy", ".segy", ".rsf", ".npz"};
    const char *dot = strrchr(path, '.');
    if (hints->format != FORMAT_COUNT)
        return 0;
    for (size_t i = 0; dot && i < sizeof(others) / sizeof(others[0]); i++)
        if (!strcasecmp(dot, others[i]))
            return fail(
                error, EX_USAGE,
                "%s: %s files cannot be scanned; convert it to .npy or SU, or give --format raw, npy or su if it "
                "is one of those",
                path, others[i]);
    int format = format_of_extension(path);
    hints->format = format < 0 ? FORMAT_RAW : (enum format)format;
    return 0;
}

int axis_resolve(int64_t axis, const char *path, uint32_t rank, uint32_t *out, struct error *error)
{
    int64_t counted = axis < 0 ? axis + rank : axis;
    if (counted < 0 || counted >= (int64_t)rank)
        return fail(error, EX_USAGE, "--axis is %" PRId64 ", but %s has rank %" PRIu32 "; it may be %d to %" PRIu32,
                    axis, path, rank, -(int)rank, rank - 1);
    *out = (uint32_t)counted;
    return 0;
}
