#include "client/scanctl/commands/scan_options.h"

#include <string.h>

#include "client/scanctl/formats/file.h"

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

static int passes_parse(struct scand_scan *scan, const char *list, struct error *error)
{
    scan->pass_count = 0;
    for (const char *at = list;; at++) {
        size_t length = strcspn(at, ",");
        int pass = 0, result = word_parse("passes", SCAND_LIST_PASS, at, length, &pass, error);
        if (result)
            return result;
        if (scan->pass_count == SCAND_PASSES_MAX)
            return fail(error, EX_USAGE, "--passes is \"%s\"; it may name one or %d passes", list, SCAND_PASSES_MAX);
        scan->passes[scan->pass_count++] = (enum scand_pass)pass;
        at += length;
        if (!*at)
            return 0;
    }
}

static int option_handle(void *context, int option, const char *argument, struct error *error)
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
        return passes_parse(scan, argument, error);
    case OPTION_ALGORITHM:
        if (!*argument)
            return fail(error, EX_USAGE, "--algorithm is \"\"; see scanctl kernels for those that exist");
        scan->algorithm = argument;
        return 0;
    case OPTION_AXIS:
        return axis_parse(&options->axis, argument, error);
    case OPTION_ACCUMULATOR:
        result = word_parse("accumulator", SCAND_LIST_ACCUMULATOR, argument, length, &word, error);
        scan->accumulator = (enum scand_accumulator)word;
        return result;
    case OPTION_KIND:
        result = word_parse("kind", SCAND_LIST_KIND, argument, length, &word, error);
        scan->kind = (enum scand_kind)word;
        return result;
    case OPTION_DEMEAN:
        scan->demean = 1;
        return 0;
    case OPTION_COEFFICIENT:
        return coefficient_parse("coefficient", &scan->coefficient, argument, error);
    case OPTION_COEFFICIENTS:
        options->coefficients_path = argument;
        return 0;
    case OPTION_OFFSETS:
        return offsets_parse(&options->offsets_path, argument, error);
    case OPTION_PRIORITY:
        return priority_parse(&scan->priority, argument, error);
    case OPTION_DEADLINE:
        return deadline_parse(&scan->deadline_ms, argument, error);
    case OPTION_THEN:
        return then_parse(options, argument, error);
    case OPTION_OP:
        result = word_parse("op", SCAND_LIST_OPERATOR, argument, length, &word, error);
        scan->op = (enum scand_operator)word;
        return result;
    case OPTION_INTERMEDIATE:
        result = word_parse("intermediate", SCAND_LIST_INTERMEDIATE, argument, length, &word, error);
        scan->intermediate = (enum scand_intermediate)word;
        return result;
    case OPTION_OUTPUT_DTYPE:
        result = word_parse("output-dtype", SCAND_LIST_DTYPE, argument, length, &word, error);
        options->output_dtype = (enum scand_dtype)word;
        return result;
    default:
        return file_option_parse(&options->hints, option, argument, error);
    }
}

/* A name that promises another form than the result has: nothing is converted. */
static int output_name_check(const struct scan_options *options, struct error *error)
{
    int form = (int)options->hints.format, promised = format_of_extension(options->output_path);
    if (promised < 0 || promised == form || promised == format_of_extension(options->input_path))
        return 0;
    return fail(error, EX_USAGE,
                "-o is \"%s\", but the result has the form of its input, which is %s; give a name that ends in "
                ".%s, or convert the input first",
                options->output_path, format_word(options->hints.format), format_word(options->hints.format));
}

static int coefficients_check(const struct scan_options *options, struct error *error)
{
    bool affine = options->scan.op == SCAND_OPERATOR_AFFINE, one = options->scan.coefficient != 0;
    if (!affine && (one || options->coefficients_path))
        return fail(error, EX_USAGE, "%s is for --op affine, but --op is %s; leave it out, or give --op affine",
                    one ? "--coefficient" : "--coefficients", scand_word(SCAND_LIST_OPERATOR, options->scan.op));
    if (affine && one && options->coefficients_path)
        return fail(error, EX_USAGE, "--coefficient and --coefficients are both there; give one of them");
    if (affine && !one && !options->coefficients_path)
        return fail(error, EX_USAGE,
                    "--op affine needs coefficients; give --coefficient NUMBER, or --coefficients FILE with one "
                    "for each sample");
    if (options->coefficients_path && !strcmp(options->coefficients_path, "-") && !strcmp(options->input_path, "-"))
        return fail(error, EX_USAGE, "input and --coefficients are both standard input; give a file for one");
    return 0;
}

/* What can be said of the words before any file is opened. */
static int scan_options_check(struct scan_options *options, int words, struct error *error)
{
    if (words < 1)
        return fail(error, EX_USAGE, "no input; give one file, or - for standard input");
    if (words > 1)
        return fail(error, EX_USAGE, "%d inputs; give one file, or - for standard input", words);
    if (!options->output_path)
        return fail(error, EX_USAGE, "no output; give -o FILE, or -o - for standard output");
    if (!*options->input_path || !*options->output_path)
        return fail(error, EX_USAGE, "the %s is \"\"; give a file, or - for standard %s",
                    *options->input_path ? "output" : "input", *options->input_path ? "output" : "input");
    if (!strcmp(options->output_path, "-") && options->common.json)
        return fail(error, EX_USAGE, "--json and -o - would both write to standard output; give -o FILE");
    int result = format_guess(&options->hints, options->input_path, error);
    if (!result)
        result = output_name_check(options, error);
    if (!result)
        result = coefficients_check(options, error);
    if (result)
        return result;
    if (options->hints.has_dtype && options->hints.format != FORMAT_RAW)
        return fail(error, EX_USAGE, "--dtype is for raw samples; %s says its own type: leave it out",
                    options->input_path);
    if (options->hints.format == FORMAT_SU && options->output_dtype != TYPE_LEFT_OUT)
        return array_check_result(&(struct array){.format = FORMAT_SU}, options->output_dtype, error);
    return 0;
}

int scan_options_parse(int argc, char **argv, struct scan_options *options, struct error *error)
{
    options->scan = (struct scand_scan){
        .pass_count = 1,
        .passes = {SCAND_PASS_FORWARD},
    };
    options->output_dtype = TYPE_LEFT_OUT;
    options->hints = (struct array_hints){.format = FORMAT_COUNT};
    options->axis = -1;
    int result = options_parse(argc, argv, ":o:", scan_table, option_handle, options, &options->common, error);
    if (result || options->common.help)
        return result;
    options->input_path = optind < argc ? argv[optind] : NULL;
    return scan_options_check(options, argc - optind, error);
}

int scan_options_types(struct scan_options *options, const struct array *array, struct error *error)
{
    enum scand_class class = scand_dtype_class(array->dtype);
    struct scand_scan *scan = &options->scan;
    if (options->output_dtype == TYPE_LEFT_OUT)
        options->output_dtype = class == SCAND_CLASS_F32   ? SCAND_DTYPE_F32
                                : class == SCAND_CLASS_F64 ? SCAND_DTYPE_F64
                                                           : array->dtype;
    scan->accumulator = scand_accumulator_of(scan->accumulator, array->dtype, scan->algorithm);
    return array_check_result(array, options->output_dtype, error);
}
