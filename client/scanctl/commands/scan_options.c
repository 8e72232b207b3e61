#include "client/scanctl/commands/scan_options.h"

#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/scanctl/formats/file.h"

// clang-format off
const struct option_row scan_options[] = {
    {"output", OPTION_OUTPUT, 'o', "OUT", VALUE_FILE, "the result's file; of several IN, or where it ends in /, a folder"},
    {"passes", OPTION_PASSES, 'p', "LIST", SCAND_LIST_PASS,
     "forward, backward, or two of them in order: forward,backward [forward]"},
    {"kind", OPTION_KIND, 'k', "KIND", SCAND_LIST_KIND, "inclusive | exclusive | half | trapezoid [inclusive]"},
    {"demean", OPTION_DEMEAN, 'd', NULL, VALUE_FREE, "first take each row's mean from its samples"},
    {"op", OPTION_OP, 0, "OPERATOR", SCAND_LIST_OPERATOR, "sum | prod | max | min | affine [sum]"},
    {"coefficient", OPTION_COEFFICIENT, 0, "A", VALUE_FREE, "of affine, y[i] = A y[i-1] + x[i]: a number, not 0"},
    {"coefficients", OPTION_COEFFICIENTS, 0, "FILE", VALUE_FILE,
     "of affine, one for each sample: a file of its own form, or raw samples of IN's type,\nin IN's shape"},
    {"scale", OPTION_SCALE, 0, "A", VALUE_FREE,
     "multiply the results by a number, or by what lies between two samples as IN says: dt"},
    {"accumulator", OPTION_ACCUMULATOR, 'a', "TYPE", SCAND_LIST_ACCUMULATOR,
     "what sums are kept in: f32 | f64 | f2 | exact [f64; integers: exact;\nwith --algorithm: f32]"},
    {"algorithm", OPTION_ALGORITHM, 0, "NAME", VALUE_FREE,
     "a scan of the tutorials, see scanctl kernels: inclusive sums of f32 along the last axis"},
    {"intermediate", OPTION_INTERMEDIATE, 'i', "TYPE", SCAND_LIST_INTERMEDIATE,
     "what values are rounded to between two passes: f64 | f32 [f64 samples: f64; else f32]"},
    {"output-dtype", OPTION_OUTPUT_DTYPE, 'T', "TYPE", SCAND_LIST_DTYPE,
     "the result's, as for --dtype [f32; f64 and integers: as IN; SEG-Y: as IN]"},
    {"output-format", OPTION_OUTPUT_FORMAT, 0, "FORM", VALUE_OUTPUT_FORMAT,
     "of SEG-Y: same | ieee, IEEE floats in place of IN's code [same]"},
    {"then", OPTION_THEN, 0, "STEP", VALUE_FREE,
     "scan the result again, in place, while it is on the device; up to 8 times. A step is made\n"
     "of words as above: --then forward,backward,demean --then backward,op=max,kind=exclusive,\n"
     "also accumulator=, intermediate=, coefficient= [forward]"},
    FILE_OPTIONS,
    COMMON_OPTIONS,
    {0},
};
// clang-format on

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

static int output_format_parse(struct scan_options *options, const char *argument, struct error *error)
{
    options->ieee = !strcmp(argument, "ieee");
    if (options->ieee || !strcmp(argument, "same"))
        return 0;
    return fail(error, EX_USAGE, "--output-format is \"%s\"; it may be same, ieee", argument);
}

static int scale_parse(struct scan_options *options, const char *text, struct error *error)
{
    char *end;
    options->scale_is_dt = !strcmp(text, "dt");
    if (options->scale_is_dt)
        return 0;
    options->scale = strtod(text, &end);
    if (end > text && !*end && isfinite(options->scale) && options->scale != 0)
        return 0;
    return fail(error, EX_USAGE, "--scale is \"%s\"; it may be any number but 0, as in --scale 0.004, or dt", text);
}

int scan_option_handle(void *context, int option, const char *argument, struct error *error)
{
    struct scan_options *options = context;
    struct scand_scan *scan = &options->scan;
    size_t length = argument ? strlen(argument) : 0;
    int word = 0, result;
    switch (option) {
    case OPTION_OUTPUT:
        options->batch.output_path = argument;
        return 0;
    case OPTION_PASSES:
        return passes_parse(scan, argument, error);
    case OPTION_ALGORITHM:
        if (!*argument)
            return fail(error, EX_USAGE, "--algorithm is \"\"; see scanctl kernels");
        scan->algorithm = argument;
        options->files.hints.native = true;
        return 0;
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
    case OPTION_SCALE:
        return scale_parse(options, argument, error);
    case OPTION_COEFFICIENT:
        return coefficient_parse("coefficient", &scan->coefficient, argument, error);
    case OPTION_COEFFICIENTS:
        options->coefficients = (struct operand_file){.name = "coefficients",
                                                      .path = (char *)argument,
                                                      .follows = "samples",
                                                      .dtypes = "input",
                                                      .may_be_raw = true,
                                                      .input = {.fd = -1}};
        options->files.operands = &options->coefficients;
        options->files.operand_count = 1;
        return 0;
    case OPTION_OUTPUT_FORMAT:
        return output_format_parse(options, argument, error);
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
        return file_option_parse(&options->files, option, argument, error);
    }
}

static int coefficients_check(const struct scan_options *options, struct error *error)
{
    const bool affine = options->scan.op == SCAND_OPERATOR_AFFINE, one = options->scan.coefficient != 0;
    const bool each = options->files.operand_count > 0;
    if (!affine && (one || each))
        return fail(error, EX_USAGE, "%s is for --op affine, but --op is %s; leave it out, or give --op affine",
                    one ? "--coefficient" : "--coefficients", scand_word(SCAND_LIST_OPERATOR, options->scan.op));
    if (affine && one && each)
        return fail(error, EX_USAGE, "--coefficient and --coefficients are both there; give one of them");
    if (affine && !one && !each)
        return fail(error, EX_USAGE,
                    "--op affine needs coefficients; give --coefficient NUMBER, or --coefficients FILE with one "
                    "for each sample");
    if (each && !strcmp(options->coefficients.path, "-") && !strcmp(options->batch.inputs[0], "-"))
        return fail(error, EX_USAGE, "input and --coefficients are both standard input; give a file for one");
    return 0;
}

int scan_files_check(const struct scan_options *options, struct error *error)
{
    if (options->files.axes)
        return fail(error, EX_USAGE, "--axis is \"%s\", but several axes are for reductions; name one",
                    options->files.axes);
    if (options->batch.count < 1)
        return fail(error, EX_USAGE, "no input; give files, or - for standard input");
    if (!options->batch.output_path)
        return fail(error, EX_USAGE, "no output; give -o FILE, or -o - for standard output");
    if (!*options->batch.output_path)
        return fail(error, EX_USAGE, "the output is \"\"; give a file, or - for standard output");
    if (!strcmp(options->batch.output_path, "-") && options->common.json)
        return fail(error, EX_USAGE, "--json and -o - would both write to standard output; give -o FILE");
    return batch_check(&options->batch, error);
}

void scan_options_init(struct scan_options *options)
{
    options->scan = (struct scand_scan){
        .pass_count = 1,
        .passes = {SCAND_PASS_FORWARD},
    };
    options->output_dtype = TYPE_LEFT_OUT;
    options->files = (struct file_options){.hints = {.format = FORMAT_COUNT}, .axis = -1};
}

int scan_options_parse(int argc, char **argv, struct scan_options *options, struct error *error)
{
    scan_options_init(options);
    const struct option_set set = {.table = scan_options, .handler = scan_option_handle, .context = options};
    int result = options_parse(argc, argv, &set, &options->common, error);
    if (result || options->common.help)
        return result;
    options->batch.inputs = argv + optind;
    options->batch.count = argc - optind;
    result = scan_files_check(options, error);
    return result ? result : coefficients_check(options, error);
}

/* The IEEE float that SEG-Y samples are written as. */
static int ieee_output(const struct scan_options *options, const struct array *array, enum scand_dtype *output,
                       struct error *error)
{
    enum scand_class class = scand_dtype_class(array->dtype);
    if (options->output_dtype != TYPE_LEFT_OUT)
        return fail(error, EX_USAGE, "--output-format ieee and --output-dtype are both there; give one of them");
    if (array->format != FORMAT_SEGY)
        return fail(error, EX_USAGE,
                    "--output-format is ieee, which is for SEG-Y; leave it out, or give --output-dtype f32");
    if (class != SCAND_CLASS_F32 && class != SCAND_CLASS_F64)
        return fail(
            error, EX_USAGE,
            "--output-format is ieee, but samples of type %s are scanned as integers of 64 bits, which is exact; "
            "leave it out",
            scand_word(SCAND_LIST_DTYPE, array->dtype));
    *output = dtype_in_order(array->dtype, byte_order_of(SCAND_DTYPE_F64)) == SCAND_DTYPE_F64 ? SCAND_DTYPE_F64
                                                                                              : SCAND_DTYPE_F32;
    return 0;
}

int scan_options_types(const struct scan_options *options, const struct array *array, enum format form,
                       struct scand_scan *scan, enum scand_dtype *output, struct error *error)
{
    *scan = options->scan;
    *output = options->output_dtype == TYPE_LEFT_OUT ? array_usual_result(array) : options->output_dtype;
    int result = options->ieee ? ieee_output(options, array, output, error) : 0;
    scan->accumulator = scand_accumulator_of(scan->accumulator, array->dtype, scan->algorithm);
    if (!result)
        result = form == array->format ? array_check_result(form, *output, error) : 0;
    if (!result && !options->files.hints.native)
        *output = array_stored(array, *output);
    return result;
}
