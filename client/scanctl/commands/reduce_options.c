#include "client/scanctl/commands/reduce_options.h"

#include <getopt.h>
#include <string.h>
#include <strings.h>

#include "client/scanctl/formats/file.h"
#include "client/scanctl/ui/printer.h"

// clang-format off
const struct option_row reduce_options[] = {
    {"op", OPTION_OP, 0, "OP", SCAND_LIST_REDUCTION, "sum | min | max | mean | rms | norm; sums are kept in f64"},
    {"output", OPTION_OUTPUT, 'o', "OUT", VALUE_FILE, "the results' file, or - for standard output"},
    {"algorithm", OPTION_ALGORITHM, 0, "NAME", VALUE_FREE,
     "a reduction of the tutorials, see scanctl kernels: f32 along the last axis"},
    {"output-dtype", OPTION_OUTPUT_DTYPE, 'T', "TYPE", SCAND_LIST_DTYPE,
     "the results' [f64; integers: sums in 64 bits, min and max as IN]"},
    FILE_OPTIONS,
    COMMON_OPTIONS,
    {0},
};
// clang-format on

static int reduction_parse(enum scand_reduction *reduction, const char *argument, struct error *error)
{
    int word = 0, result = word_parse("op", SCAND_LIST_REDUCTION, argument, strlen(argument), &word, error);
    if (!result)
        *reduction = (enum scand_reduction)word;
    return result;
}

static int option_handle(void *context, int option, const char *argument, struct error *error)
{
    struct reduce_options *options = context;
    int word = 0, result;
    switch (option) {
    case OPTION_OUTPUT:
        options->batch.output_path = argument;
        return 0;
    case OPTION_OP:
        return reduction_parse(&options->reduce.reduction, argument, error);
    case OPTION_ALGORITHM:
        if (!*argument)
            return fail(error, EX_USAGE, "--algorithm is \"\"; see scanctl kernels");
        options->reduce.algorithm = argument;
        options->files.hints.native = true;
        return 0;
    case OPTION_PRIORITY:
        return priority_parse(&options->reduce.priority, argument, error);
    case OPTION_DEADLINE:
        return deadline_parse(&options->reduce.deadline_ms, argument, error);
    case OPTION_OUTPUT_DTYPE:
        result = word_parse("output-dtype", SCAND_LIST_DTYPE, argument, strlen(argument), &word, error);
        options->output_dtype = (enum scand_dtype)word;
        return result;
    default:
        return file_option_parse(&options->files, option, argument, error);
    }
}

static bool is_name_of_text(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot && (!strcasecmp(dot, ".txt") || !strcasecmp(dot, ".csv"));
}

/* Results have no traces: they are .npy, or raw where the name says so. */
static int output_check(struct reduce_options *options, struct error *error)
{
    const char *path = options->batch.output_path;
    const bool named = path && !path_is_folder(path);
    if (named && is_name_of_text(path))
        return fail(error, EX_USAGE,
                    "-o is \"%s\", but files of results are no text; give a name that ends in .npy or .raw, or leave "
                    "out -o: numbers are printed then, one in a line",
                    path);
    const int promised = named ? format_of_extension(path) : -1;
    options->output_format = promised < 0 ? FORMAT_NPY : (enum format)promised;
    if (options->output_format != FORMAT_NPY && options->output_format != FORMAT_RAW)
        return fail(
            error, EX_USAGE,
            "-o is \"%s\", but the results are numbers without headers of traces; give a name that ends in .npy or "
            ".raw",
            path);
    if (path && !strcmp(path, "-") && options->common.json)
        return fail(error, EX_USAGE,
                    "--json and -o - would both write to standard output; give -o FILE, or leave out -o");
    return 0;
}

int reduce_options_check(struct reduce_options *options, struct error *error)
{
    if (options->batch.count < 1)
        return fail(error, EX_USAGE, "no input; give files, or - for standard input");
    if (options->reduce.reduction == SCAND_REDUCTION_NONE && !options->pipeline)
        return fail(error, EX_USAGE, "no --op; give --op sum, min, max, mean, rms or norm");
    if (options->batch.output_path && !*options->batch.output_path)
        return fail(error, EX_USAGE, "the output is \"\"; give a file, or - for standard output");
    options->batch.extension = ".npy";
    int result = batch_check(&options->batch, error);
    return result ? result : output_check(options, error);
}

int reduce_options_parse(int argc, char **argv, struct reduce_options *options, struct error *error)
{
    options->output_dtype = TYPE_LEFT_OUT;
    options->files = (struct file_options){.hints = {.format = FORMAT_COUNT}, .axis = -1, .converts = true};
    const struct option_set set = {.table = reduce_options, .handler = option_handle, .context = options};
    int result = options_parse(argc, argv, &set, &options->common, error);
    if (result || options->common.help)
        return result;
    options->batch.inputs = argv + optind;
    options->batch.count = argc - optind;
    return reduce_options_check(options, error);
}

/* Returns the usual dtype of results: f64 for floats, 64 bits for sums of integers, and the integers' own dtype for one
 * of them. */
static enum scand_dtype usual_output(const struct array *array, enum scand_reduction reduction)
{
    enum scand_class class = scand_dtype_class(array->dtype);
    if (class == SCAND_CLASS_F32 || class == SCAND_CLASS_F64)
        return SCAND_DTYPE_F64;
    if (reduction == SCAND_REDUCTION_MIN || reduction == SCAND_REDUCTION_MAX)
        return array->dtype;
    return class == SCAND_CLASS_SIGNED ? SCAND_DTYPE_I64 : SCAND_DTYPE_U64;
}

int reduce_options_type(const struct reduce_options *options, const struct array *array, enum scand_dtype *out,
                        struct error *error)
{
    const bool is_named = options->output_dtype != TYPE_LEFT_OUT;
    *out = is_named ? options->output_dtype : usual_output(array, options->reduce.reduction);
    if (options->batch.output_path)
        return array_check_result(options->output_format, *out, error);
    if (printer_can_print(*out))
        return 0;
    return fail(error, EX_USAGE,
                "--output-dtype is %s, which is not printed; give -o FILE, or one of f32, f64, i32, i64, u32, u64",
                scand_word(SCAND_LIST_DTYPE, *out));
}
