#include "client/scanctl/commands/options.h"

#include <ctype.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "client/scanctl/formats/file.h"
#include "client/scanctl/ui/text.h"

#define TEXT_COLUMN 28 /* column at which the help of an option begins */
#define WORD_BYTES  32 /* room for the longest word of any list */

const struct option_row common_options[] = {COMMON_OPTIONS, {0}};
const struct option_row local_options[] = {
    {"local", OPTION_LOCAL, 0, NULL, VALUE_FREE, "what this process can do without a daemon"}, COMMON_OPTIONS, {0}};

/* A table as getopt wants it. */
struct getopt_table {
    struct option options[OPTIONS_MAX + 1];
    char letters[2 * OPTIONS_MAX + 3];
};

static void getopt_table_make(struct getopt_table *out, const struct option_set *set)
{
    const struct option_row *table = set->table;
    size_t length = (size_t)snprintf(out->letters, sizeof(out->letters), set->stops ? "+:" : ":");
    memset(out->options, 0, sizeof(out->options));
    for (size_t i = 0; table[i].name && i < OPTIONS_MAX; i++) {
        const struct option_row *row = &table[i];
        out->options[i] = (struct option){row->name, row->argument ? required_argument : no_argument, NULL, row->id};
        if (row->letter)
            length += (size_t)snprintf(out->letters + length, sizeof(out->letters) - length, "%c%s", row->letter,
                                       row->argument ? ":" : "");
    }
}

/* Fails for a word that getopt does not take: its option takes no value, it is short for several, or there is none. */
static int long_option_error(char **argv, const struct option_row *table, const char *word, struct error *error)
{
    const size_t length = strcspn(word, "=");
    char names[256] = "";
    unsigned count = 0;
    for (; table->name && length > 2; table++)
        if (!strncmp(table->name, word + 2, length - 2)) {
            const bool whole = table->name[length - 2] == '\0'; /* then it is no short form of others */
            const size_t used = whole ? 0 : strlen(names);
            snprintf(names + used, sizeof(names) - used, "%s--%s", used ? ", " : "", table->name);
            count = whole ? 1 : count + 1;
            if (whole)
                break;
        }
    if (count > 1)
        return fail(error, EX_USAGE, "%s is short for %s; write out one of them", word, names);
    if (count == 1)
        return fail(error, EX_USAGE, "%s has a value, and %s takes none; see %s --help", word, names, argv[0]);
    return fail(error, EX_USAGE, "unknown option %.*s; see %s --help", (int)length, word, argv[0]);
}

static int option_error(char **argv, const struct option_row *table, int found, struct error *error)
{
    const char *word = optind > 0 ? argv[optind - 1] : "";
    if (found == ':' && optopt > ' ' && optopt < OPTION_SOCKET)
        return fail(error, EX_USAGE, "-%c needs a value after it; see %s --help", optopt, argv[0]);
    if (found == ':')
        return fail(error, EX_USAGE, "%s needs a value after it; see %s --help", word, argv[0]);
    if (optopt > ' ' && optopt < OPTION_SOCKET)
        return fail(error, EX_USAGE, "unknown option -%c; see %s --help", optopt, argv[0]);
    return long_option_error(argv, table, word, error);
}

/* The row of what getopt returns: a letter, or an id. */
static const struct option_row *option_find(const struct option_row *table, int option)
{
    while (table->name && table->id != option && table->letter != option)
        table++;
    return table;
}

/* True when an option that takes a value is given again: only steps add up. */
static bool is_repeated(const struct option_row *table, const struct option_row *row, uint64_t *seen)
{
    const uint64_t bit = UINT64_C(1) << (row - table);
    const bool before = *seen & bit;
    *seen |= bit;
    return before && row->argument && row->id != OPTION_THEN;
}

int options_parse(int argc, char **argv, const struct option_set *set, struct common_options *common,
                  struct error *error)
{
    int option, result = 0;
    struct getopt_table getopt_table;
    getopt_table_make(&getopt_table, set);
    optind = 0; /* glibc: begin again */
    opterr = 0;
    uint64_t seen = 0; /* a bit for each row */
    while (!result && (option = getopt_long(argc, argv, getopt_table.letters, getopt_table.options, NULL)) != -1) {
        if (option == '?' || option == ':')
            return option_error(argv, set->table, option, error);
        const struct option_row *row = option_find(set->table, option);
        if (row->id == OPTION_SOCKET)
            common->socket_path = optarg;
        else if (row->id == OPTION_JSON)
            common->json = true;
        else if (row->id == OPTION_LOCAL)
            common->local = true;
        else if (row->id == OPTION_HELP)
            common->help = true;
        else if (is_repeated(set->table, row, &seen))
            result = fail(error, EX_USAGE, "--%s is given twice; give it once", row->name);
        else
            result = set->handler(set->context, row->id, optarg, error);
    }
    return result;
}

int options_parse_all(int argc, char **argv, const struct option_set *set, struct common_options *common,
                      struct error *error)
{
    int result = options_parse(argc, argv, set, common, error);
    if (!result && !common->help && optind < argc)
        return fail(error, EX_USAGE, "\"%s\" is too much: %s takes options only; see %s --help", argv[optind], argv[0],
                    argv[0]);
    return result;
}

bool options_have_local(const struct option_row *table)
{
    while (table->name && table->id != OPTION_LOCAL)
        table++;
    return table->name != NULL;
}

void options_print(const struct option_row *table, FILE *file)
{
    for (; table->name; table++) {
        int used = table->letter ? fprintf(file, "  -%c, --%s", table->letter, table->name)
                                 : fprintf(file, "      --%s", table->name);
        if (table->argument)
            used += fprintf(file, " %s", table->argument);
        for (const char *line = table->text; *line; used = 0) {
            size_t length = strcspn(line, "\n");
            fprintf(file, "%*s %.*s\n", used < TEXT_COLUMN ? TEXT_COLUMN - used : 0, "", (int)length, line);
            line += length + (line[length] == '\n');
        }
    }
}

/* Returns the first word that may be given: "none" of a reduction is for scans. */
static int first_of(enum scand_list list)
{
    return list == SCAND_LIST_REDUCTION ? SCAND_REDUCTION_NONE + 1 : 0;
}

/* Joins a list's words to "a, b, c", cut to size. Returns out. */
static const char *words_join(enum scand_list list, char *out, size_t size)
{
    size_t used = 0;
    for (int i = first_of(list); scand_word(list, i) && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%s", used ? ", " : "", scand_word(list, i));
    return out;
}

int word_parse(const char *option, enum scand_list list, const char *word, size_t length, int *out, struct error *error)
{
    char allowed[192], text[WORD_BYTES];
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
    if (!number_parse(text, 1, SCAND_DEADLINE_MS_MAX, &number))
        return fail(error, EX_USAGE, "--deadline is \"%s\"; it may be 1 to %d milliseconds", text,
                    SCAND_DEADLINE_MS_MAX);
    *deadline_ms = (uint32_t)number;
    return 0;
}

/* Parses one dimension; the first one may be -1, for as many as there are. */
static bool dimension_parse(struct array_hints *hints, const char *text, size_t length)
{
    char number[24];
    uint64_t size = 0;
    snprintf(number, sizeof(number), "%.*s", (int)length, text);
    if (hints->rank == 0 && !strcmp(number, "-1"))
        hints->open_ended = true;
    else if (length >= sizeof(number) || !number_parse(number, 1, UINT64_MAX, &size))
        return false;
    hints->shape[hints->rank++] = size;
    return true;
}

static int shape_parse(struct array_hints *hints, const char *list, struct error *error)
{
    hints->rank = 0;
    for (const char *at = list;; at++) {
        size_t length = strcspn(at, ",");
        if (hints->rank == SCAND_RANK_MAX || !dimension_parse(hints, at, length))
            return fail(
                error, EX_USAGE,
                "--shape is \"%s\"; it may be one to %d whole numbers from 1 on, as in --shape 60,1000, the first of "
                "them -1 for as many as there are",
                list, SCAND_RANK_MAX);
        at += length;
        if (!*at)
            return 0;
    }
}

static int axis_parse(struct file_options *options, const char *text, struct error *error)
{
    uint64_t number;
    bool negative = text[0] == '-';
    if (strchr(text, ',') || !strcmp(text, "all")) {
        options->axes = text;
        return 0;
    }
    if (isalpha((unsigned char)text[0])) {
        options->axis_name = text;
        return 0;
    }
    if (!number_parse(text + negative, 0, SCAND_RANK_MAX, &number))
        return fail(
            error, EX_USAGE,
            "--axis is \"%s\"; it may be 0 to %d, -%d to -1 to count from the last axis, or the name that an axis has "
            "in its file; for reductions also several, as in 0,1, or all",
            text, SCAND_RANK_MAX - 1, SCAND_RANK_MAX);
    options->axis = negative ? -(int64_t)number : (int64_t)number;
    return 0;
}

/* Parses a coefficient in the C locale's form: a program that sets no locale has its decimal point. */
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

static int offsets_parse(const char **path, const char *argument, struct error *error)
{
    if (!*argument || !strcmp(argument, "-"))
        return fail(error, EX_USAGE, "--offsets is \"%s\"; give a file, .npy or raw integers of 64 bits", argument);
    *path = argument;
    return 0;
}

static int format_parse(struct array_hints *hints, const char *argument, struct error *error)
{
    char words[FORMATS_TEXT_BYTES];
    int format = format_of_word(argument);
    if (format < 0)
        return fail(error, EX_USAGE, "--format is \"%s\"; it may be %s", argument, formats_text(words));
    hints->format = (enum format)format;
    return 0;
}

static int byte_order_parse(struct array_hints *hints, const char *argument, struct error *error)
{
    bool big = !strcmp(argument, "big");
    if (!big && strcmp(argument, "little"))
        return fail(error, EX_USAGE, "--byte-order is \"%s\"; it may be little, big", argument);
    hints->byte_order = big ? BYTE_ORDER_BIG : BYTE_ORDER_LITTLE;
    return 0;
}

/* Bytes that a raw file has beside its samples. */
static int place_parse(struct array_hints *hints, const char *option, uint64_t *bytes, uint64_t most,
                       const char *argument, struct error *error)
{
    hints->has_places = true;
    if (number_parse(argument, 0, most, bytes))
        return 0;
    return fail(error, EX_USAGE, "--%s is \"%s\"; it may be 0 to %" PRIu64 " bytes", option, argument, most);
}

int file_option_parse(struct file_options *options, int option, const char *argument, struct error *error)
{
    struct array_hints *hints = &options->hints;
    int dtype = 0, result;
    switch (option) {
    case OPTION_AXIS:
        return axis_parse(options, argument, error);
    case OPTION_PROGRESS:
        options->progress = true;
        return 0;
    case OPTION_OFFSETS:
        return offsets_parse(&options->offsets_path, argument, error);
    case OPTION_SHAPE:
        return shape_parse(hints, argument, error);
    case OPTION_FORMAT:
        return format_parse(hints, argument, error);
    case OPTION_BYTE_ORDER:
        return byte_order_parse(hints, argument, error);
    case OPTION_OFFSET:
        return place_parse(hints, "offset", &hints->skip_bytes, INT64_MAX / 2, argument, error);
    case OPTION_HEADER_BYTES:
        return place_parse(hints, "header-bytes", &hints->header_bytes, PASSED_BYTES_MAX, argument, error);
    case OPTION_TRACE_HEADER_BYTES:
        return place_parse(hints, "trace-header-bytes", &hints->trace_header_bytes, TRACE_HEADER_BYTES_MAX, argument,
                           error);
    default:
        result = word_parse("dtype", SCAND_LIST_DTYPE, argument, strlen(argument), &dtype, error);
        hints->dtype = (enum scand_dtype)dtype;
        hints->has_dtype = true;
        return result;
    }
}

bool path_is_folder(const char *path)
{
    struct stat status;
    size_t length = strlen(path);
    if (!strcmp(path, "-"))
        return false;
    return (length && path[length - 1] == '/') || (!stat(path, &status) && S_ISDIR(status.st_mode));
}

const char *path_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* The names of axes that have no name of their own, from the last axis on; messages use the first name of an axis. */
static const char *const axis_words[SCAND_RANK_MAX][4] = {
    {"sample", "time"}, {"trace", "offset", "receiver"}, {"gather", "shot", "cmp"}, {"line"}};

/* True when the array's axis goes by this name: its label, which SU and SEG-Y have among these words, or another word
 * for its place. */
static bool axis_is_called(const struct array *array, uint32_t axis, const char *name)
{
    const char *const *words = axis_words[array->rank - 1 - axis];
    if (!strcasecmp(array->labels[axis], name))
        return true;
    if (*array->labels[axis] && array->format == FORMAT_RSF)
        return false;
    for (size_t i = 0; i < 4 && words[i]; i++)
        if (!strcasecmp(words[i], name))
            return true;
    return false;
}

static int axis_find(const char *axis_name, const char *path, const struct array *array, uint32_t *out,
                     struct error *error)
{
    char names[SCAND_RANK_MAX * (LABEL_BYTES + 4)] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < array->rank; i++) {
        const char *label = *array->labels[i] ? array->labels[i] : axis_words[array->rank - 1 - i][0];
        if (axis_is_called(array, i, axis_name)) {
            *out = i;
            return 0;
        }
        used += (size_t)snprintf(names + used, sizeof(names) - used, "%s, ", label);
    }
    return fail(error, EX_USAGE, "--axis is \"%s\", but %s has no axis of that name; it may be %s%d to %" PRIu32,
                axis_name, path, names, -(int)array->rank, array->rank - 1);
}

int axis_resolve(const struct file_options *options, const char *path, const struct array *array, uint32_t *out,
                 struct error *error)
{
    uint32_t rank = array->rank;
    int64_t axis = options->axis, counted = axis < 0 ? axis + rank : axis;
    if (options->axis_name)
        return axis_find(options->axis_name, path, array, out, error);
    if (counted < 0 || counted >= (int64_t)rank)
        return fail(error, EX_USAGE, "--axis is %" PRId64 ", but %s has rank %" PRIu32 "; it may be %d to %" PRIu32,
                    axis, path, rank, -(int)rank, rank - 1);
    *out = (uint32_t)counted;
    return 0;
}

/* Resolves one axis of a list, `length` characters long. */
static int axis_of_list(const struct file_options *options, const char *text, size_t length, const char *path,
                        const struct array *array, uint32_t *axes, struct error *error)
{
    char word[LABEL_BYTES];
    struct file_options own = *options;
    uint32_t axis;
    snprintf(word, sizeof(word), "%.*s", (int)(length < sizeof(word) ? length : sizeof(word) - 1), text);
    own.axes = own.axis_name = NULL;
    int result = axis_parse(&own, word, error);
    if (!result)
        result = axis_resolve(&own, path, array, &axis, error);
    if (result)
        return result;
    if (*axes >> axis & 1)
        return fail(error, EX_USAGE, "--axis is \"%s\", which names axis %" PRIu32 " of %s twice", options->axes, axis,
                    path);
    *axes |= UINT32_C(1) << axis;
    return 0;
}

int axes_resolve(const struct file_options *options, const char *path, const struct array *array, uint32_t *axes,
                 uint32_t *out, struct error *error)
{
    int result = 0;
    *axes = 0;
    if (!options->axes) {
        result = axis_resolve(options, path, array, out, error);
        *axes = result ? 0 : UINT32_C(1) << *out;
        return result;
    }
    const char *at = options->axes;
    if (!strcmp(at, "all")) {
        *axes = (UINT32_C(1) << array->rank) - 1;
        at += strlen(at);
    }
    while (*at && !result) {
        const size_t length = strcspn(at, ",");
        result = axis_of_list(options, at, length, path, array, axes, error);
        at += length;
        if (*at == ',' && !*++at && !result)
            result = fail(error, EX_USAGE, "--axis is \"%s\"; give an axis after each comma", options->axes);
    }
    *out = result ? 0 : (uint32_t)__builtin_ctz(*axes);
    return result;
}
