#include "client/scanctl/commands/options.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "client/scanctl/ui/text.h"
#include "protocol/status.h"

static const struct option scan_table[] = {
    {"passes", required_argument, NULL, OPTION_PASSES},
    {"algorithm", required_argument, NULL, OPTION_ALGORITHM},
    {"accumulator", required_argument, NULL, OPTION_ACCUMULATOR},
    {"kind", required_argument, NULL, OPTION_KIND},
    {"op", required_argument, NULL, OPTION_OP},
    {"demean", no_argument, NULL, OPTION_DEMEAN},
    {"coefficient", required_argument, NULL, OPTION_COEFFICIENT},
    {"coefficients", required_argument, NULL, OPTION_COEFFICIENTS},
    {"intermediate", required_argument, NULL, OPTION_INTERMEDIATE},
    {"output-dtype", required_argument, NULL, OPTION_OUTPUT_DTYPE},
    {"dtype", required_argument, NULL, OPTION_DTYPE},
    {"axis", required_argument, NULL, OPTION_AXIS},
    {"shape", required_argument, NULL, OPTION_SHAPE},
    {"format", required_argument, NULL, OPTION_FORMAT},
    {"byte-order", required_argument, NULL, OPTION_BYTE_ORDER},
    {"offsets", required_argument, NULL, OPTION_OFFSETS},
    {"priority", required_argument, NULL, OPTION_PRIORITY},
    {"deadline", required_argument, NULL, OPTION_DEADLINE},
    {"then", required_argument, NULL, OPTION_THEN},
    {"output", required_argument, NULL, 'o'},
    COMMON_OPTIONS,
    {0},
};

static int option_fault(char **argv, int found, struct fault *fault)
{
    const char *word = optind > 0 ? argv[optind - 1] : "";
    if (found == ':')
        return fault_set(fault, EX_USAGE, "%s needs a value after it; see %s --help", word, argv[0]);
    if (optopt > ' ' && optopt < OPTION_SOCKET)
        return fault_set(fault, EX_USAGE, "unknown option -%c; see %s --help", optopt, argv[0]);
    return fault_set(fault, EX_USAGE, "%s is unknown, short for several options, or takes no value; see %s --help",
                     word, argv[0]);
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
                  void *context, struct common_options *common, struct fault *fault)
{
    int option;
    optind = 0; /* glibc: begin again */
    opterr = 0;
    uint64_t seen = 0; /* a bit for each option of the table that is the command's own */
    while ((option = getopt_long(argc, argv, short_options, table, NULL)) != -1) {
        int result = 0;
        if (option == '?' || option == ':')
            result = option_fault(argv, option, fault);
        else if (option == OPTION_SOCKET)
            common->socket_path = optarg;
        else if (option == OPTION_JSON)
            common->json = true;
        else if (option == OPTION_HELP)
            common->help = true;
        else if (is_repeated(table, option, &seen))
            result = fault_set(fault, EX_USAGE, "--%s is given twice; give it once", option_find(table, option)->name);
        else
            result = handler(context, option, optarg, fault);
        if (result)
            return result;
    }
    return 0;
}

int options_parse_common(int argc, char **argv, struct common_options *common, struct fault *fault)
{
    static const struct option table[] = {COMMON_OPTIONS, {0}};
    int result = options_parse(argc, argv, ":", table, NULL, NULL, common, fault);
    if (!result && !common->help && optind < argc)
        return fault_set(fault, EX_USAGE, "\"%s\" is too much: %s takes options only; see %s --help", argv[optind],
                         argv[0], argv[0]);
    return result;
}

int take_word(const char *option, const struct words *words, const char *word, size_t length, int *out,
              struct fault *fault)
{
    char allowed[128];
    int found = words_find(words, word, length);
    if (found < 0)
        return fault_set(fault, EX_USAGE, "--%s is \"%.*s\"; it may be %s", option, (int)length, word,
                         words_join(words, allowed, sizeof(allowed)));
    *out = found;
    return 0;
}

int take_priority(enum scand_priority *priority, const char *word, struct fault *fault)
{
    int found = 0, result = take_word("priority", &priority_words, word, strlen(word), &found, fault);
    if (!result)
        *priority = (enum scand_priority)found;
    return result;
}

int take_deadline(uint32_t *deadline_ms, const char *text, struct fault *fault)
{
    uint64_t number;
    if (!parse_unsigned(text, &number) || number == 0 || number > LIMIT_DEADLINE_MS)
        return fault_set(fault, EX_USAGE, "--deadline is \"%s\"; it may be 1 to %d milliseconds", text,
                         LIMIT_DEADLINE_MS);
    *deadline_ms = (uint32_t)number;
    return 0;
}

static int take_passes(struct scand_scan *scan, const char *list, struct fault *fault)
{
    scan->pass_count = 0;
    for (const char *at = list;; at++) {
        size_t length = strcspn(at, ",");
        int pass = 0, result = take_word("passes", &pass_words, at, length, &pass, fault);
        if (result)
            return result;
        if (scan->pass_count == SCAND_PASSES_MAX)
            return fault_set(fault, EX_USAGE, "--passes is \"%s\"; it may name one or %d passes", list,
                             SCAND_PASSES_MAX);
        scan->passes[scan->pass_count++] = (enum scand_pass)pass;
        at += length;
        if (!*at)
            return 0;
    }
}

static int take_shape(struct array_hints *hints, const char *list, struct fault *fault)
{
    char number[24];
    hints->rank = 0;
    for (const char *at = list;; at++) {
        size_t length = strcspn(at, ",");
        uint64_t size = 0;
        snprintf(number, sizeof(number), "%.*s", (int)length, at);
        if (hints->rank == SCAND_RANK_MAX || length >= sizeof(number) || !parse_unsigned(number, &size) || !size)
            return fault_set(fault, EX_USAGE,
                             "--shape is \"%s\"; it may be one to %d whole numbers from 1 on, as in --shape 60,1000",
                             list, SCAND_RANK_MAX);
        hints->shape[hints->rank++] = size;
        at += length;
        if (!*at)
            return 0;
    }
}

int take_axis(int64_t *axis, const char *text, struct fault *fault)
{
    uint64_t number;
    bool negative = text[0] == '-';
    if (!parse_unsigned(text + negative, &number) || number > SCAND_RANK_MAX)
        return fault_set(fault, EX_USAGE,
                         "--axis is \"%s\"; it may be 0 to %d, or -%d to -1 to count from the last axis", text,
                         SCAND_RANK_MAX - 1, SCAND_RANK_MAX);
    *axis = negative ? -(int64_t)number : (int64_t)number;
    return 0;
}

/* In the C locale: a program that sets no other has its decimal point. */
int take_coefficient(const char *option, double *coefficient, const char *text, struct fault *fault)
{
    char *end;
    double number = strtod(text, &end);
    if (end == text || *end || number == 0)
        return fault_set(fault, EX_USAGE, "--%s is \"%s\"; it may be any number but 0, as in --coefficient 0.99",
                         option, text);
    *coefficient = number;
    return 0;
}

int take_offsets(const char **path, const char *argument, struct fault *fault)
{
    if (!*argument || !strcmp(argument, "-"))
        return fault_set(fault, EX_USAGE, "--offsets is \"%s\"; give a file, .npy or raw integers of 64 bits",
                         argument);
    *path = argument;
    return 0;
}

int take_file_option(struct array_hints *hints, int option, const char *argument, struct fault *fault)
{
    int format, dtype = 0;
    if (option == OPTION_SHAPE)
        return take_shape(hints, argument, fault);
    if (option == OPTION_DTYPE) {
        int result = take_word("dtype", &dtype_words, argument, strlen(argument), &dtype, fault);
        hints->dtype = (enum scand_dtype)dtype;
        hints->has_dtype = true;
        return result;
    }
    if (option == OPTION_FORMAT) {
        format = format_of_word(argument);
        if (format < 0)
            return fault_set(fault, EX_USAGE, "--format is \"%s\"; it may be raw, npy, su", argument);
        hints->format = (enum format)format;
        return 0;
    }
    bool big = !strcmp(argument, "big");
    if (!big && strcmp(argument, "little"))
        return fault_set(fault, EX_USAGE, "--byte-order is \"%s\"; it may be little, big", argument);
    hints->byte_order = big ? BYTE_ORDER_BIG : BYTE_ORDER_LITTLE;
    return 0;
}

static int take_option(void *context, int option, const char *argument, struct fault *fault)
{
    struct scan_options *options = context;
    struct scand_scan *scan = &options->scan;
    size_t length = argument ? strlen(argument) : 0;
    int word = 0, result;
    switch (option) {
    case 'o':
        options->output_path = argument;
        return 0;
    case OPTION_PASSES:
        return take_passes(scan, argument, fault);
    case OPTION_ALGORITHM:
        if (!*argument)
            return fault_set(fault, EX_USAGE, "--algorithm is \"\"; see scanctl kernels for those that exist");
        scan->algorithm = argument;
        return 0;
    case OPTION_AXIS:
        return take_axis(&options->axis, argument, fault);
    case OPTION_ACCUMULATOR:
        result = take_word("accumulator", &accumulator_words, argument, length, &word, fault);
        scan->accumulator = (enum scand_accumulator)word;
        return result;
    case OPTION_KIND:
        result = take_word("kind", &kind_words, argument, length, &word, fault);
        scan->kind = (enum scand_kind)word;
        return result;
    case OPTION_DEMEAN:
        scan->demean = 1;
        return 0;
    case OPTION_COEFFICIENT:
        return take_coefficient("coefficient", &scan->coefficient, argument, fault);
    case OPTION_COEFFICIENTS:
        options->coefficients_path = argument;
        return 0;
    case OPTION_OFFSETS:
        return take_offsets(&options->offsets_path, argument, fault);
    case OPTION_PRIORITY:
        return take_priority(&scan->priority, argument, fault);
    case OPTION_DEADLINE:
        return take_deadline(&scan->deadline_ms, argument, fault);
    case OPTION_THEN:
        return take_then(options, argument, fault);
    case OPTION_OP:
        result = take_word("op", &operator_words, argument, length, &word, fault);
        scan->op = (enum scand_operator)word;
        return result;
    case OPTION_INTERMEDIATE:
        result = take_word("intermediate", &intermediate_words, argument, length, &word, fault);
        scan->intermediate = (enum scand_intermediate)word;
        return result;
    case OPTION_OUTPUT_DTYPE:
        result = take_word("output-dtype", &dtype_words, argument, length, &word, fault);
        options->output_dtype = (enum scand_dtype)word;
        return result;
    default:
        return take_file_option(&options->hints, option, argument, fault);
    }
}

/* Files of a known form are not taken for raw samples: sums of those are nonsense. */
int format_guess(struct array_hints *hints, const char *path, struct fault *fault)
{
    static const char *const others[] = {".sgy", ".segy", ".rsf", ".npz"};
    const char *dot = strrchr(path, '.');
    if (hints->format != FORMAT_COUNT)
        return 0;
    for (size_t i = 0; dot && i < sizeof(others) / sizeof(others[0]); i++)
        if (!strcasecmp(dot, others[i]))
            return fault_set(
                fault, EX_USAGE,
                "%s: %s files cannot be scanned; convert it to .npy or SU, or give --format raw, npy or su if it "
                "is one of those",
                path, others[i]);
    int format = format_of_extension(path);
    hints->format = format < 0 ? FORMAT_RAW : (enum format)format;
    return 0;
}

/* A name that promises another form than the result has: nothing is converted. */
static int output_name_check(const struct scan_options *options, struct fault *fault)
{
    int form = (int)options->hints.format, promised = format_of_extension(options->output_path);
    if (promised < 0 || promised == form || promised == format_of_extension(options->input_path))
        return 0;
    return fault_set(fault, EX_USAGE,
                     "-o is \"%s\", but the result has the form of its input, which is %s; give a name that ends in "
                     ".%s, or convert the input first",
                     options->output_path, format_word(options->hints.format), format_word(options->hints.format));
}

static int coefficients_check(const struct scan_options *options, struct fault *fault)
{
    bool affine = options->scan.op == SCAND_OPERATOR_AFFINE, one = options->scan.coefficient != 0;
    if (!affine && (one || options->coefficients_path))
        return fault_set(fault, EX_USAGE, "%s is for --op affine, but --op is %s; leave it out, or give --op affine",
                         one ? "--coefficient" : "--coefficients", operator_words.words[options->scan.op]);
    if (affine && one && options->coefficients_path)
        return fault_set(fault, EX_USAGE, "--coefficient and --coefficients are both there; give one of them");
    if (affine && !one && !options->coefficients_path)
        return fault_set(fault, EX_USAGE,
                         "--op affine needs coefficients; give --coefficient NUMBER, or --coefficients FILE with one "
                         "for each sample");
    if (options->coefficients_path && !strcmp(options->coefficients_path, "-") && !strcmp(options->input_path, "-"))
        return fault_set(fault, EX_USAGE, "input and --coefficients are both standard input; give a file for one");
    return 0;
}

/* What can be said of the words before any file is opened. */
static int scan_options_check(struct scan_options *options, int words, struct fault *fault)
{
    if (words < 1)
        return fault_set(fault, EX_USAGE, "no input; give one file, or - for standard input");
    if (words > 1)
        return fault_set(fault, EX_USAGE, "%d inputs; give one file, or - for standard input", words);
    if (!options->output_path)
        return fault_set(fault, EX_USAGE, "no output; give -o FILE, or -o - for standard output");
    if (!*options->input_path || !*options->output_path)
        return fault_set(fault, EX_USAGE, "the %s is \"\"; give a file, or - for standard %s",
                         *options->input_path ? "output" : "input", *options->input_path ? "output" : "input");
    if (!strcmp(options->output_path, "-") && options->common.json)
        return fault_set(fault, EX_USAGE, "--json and -o - would both write to standard output; give -o FILE");
    int result = format_guess(&options->hints, options->input_path, fault);
    if (!result)
        result = output_name_check(options, fault);
    if (!result)
        result = coefficients_check(options, fault);
    if (result)
        return result;
    if (options->hints.has_dtype && options->hints.format != FORMAT_RAW)
        return fault_set(fault, EX_USAGE, "--dtype is for raw samples; %s says its own type: leave it out",
                         options->input_path);
    if (options->hints.format == FORMAT_SU && options->output_dtype != TYPE_LEFT_OUT)
        return array_check_result(&(struct array){.format = FORMAT_SU}, options->output_dtype, fault);
    return 0;
}

int scan_options_parse(int argc, char **argv, struct scan_options *options, struct fault *fault)
{
    options->scan = (struct scand_scan){
        .pass_count = 1,
        .passes = {SCAND_PASS_FORWARD},
    };
    options->output_dtype = TYPE_LEFT_OUT;
    options->hints = (struct array_hints){.format = FORMAT_COUNT};
    options->axis = -1;
    int result = options_parse(argc, argv, ":o:", scan_table, take_option, options, &options->common, fault);
    if (result || options->common.help)
        return result;
    options->input_path = optind < argc ? argv[optind] : NULL;
    return scan_options_check(options, argc - optind, fault);
}

int scan_options_types(struct scan_options *options, const struct array *array, struct fault *fault)
{
    enum scand_class class = dtype_class(array->dtype);
    struct scand_scan *scan = &options->scan;
    if (options->output_dtype == TYPE_LEFT_OUT)
        options->output_dtype = class == SCAND_CLASS_F32   ? SCAND_DTYPE_F32
                                : class == SCAND_CLASS_F64 ? SCAND_DTYPE_F64
                                                           : array->dtype;
    scan->accumulator = accumulator_of(scan->accumulator, array->dtype, scan->algorithm != NULL);
    return array_check_result(array, options->output_dtype, fault);
}

int axis_resolve(int64_t axis, const char *path, uint32_t rank, uint32_t *out, struct fault *fault)
{
    int64_t counted = axis < 0 ? axis + rank : axis;
    if (counted < 0 || counted >= (int64_t)rank)
        return fault_set(fault, EX_USAGE,
                         "--axis is %" PRId64 ", but %s has rank %" PRIu32 "; it may be %d to %" PRIu32, axis, path,
                         rank, -(int)rank, rank - 1);
    *out = (uint32_t)counted;
    return 0;
}
