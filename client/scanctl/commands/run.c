/*
 * run: steps in a chain on the rows of files, by the names that the list of operations has. `scan` and `reduce` are
 * short forms of it: all three read, write and submit by the same functions.
 */
#include <getopt.h>

#include "client/scanctl/commands/reduce_options.h"
#include "client/scanctl/commands/scan_options.h"

// clang-format off
const struct option_row run_options[] = {
    {"output", OPTION_OUTPUT, 'o', "OUT", VALUE_FILE, "as of scan; as of reduce, where that is the last step"},
    {"output-dtype", OPTION_OUTPUT_DTYPE, 'T', "TYPE", SCAND_LIST_DTYPE, "the result's, likewise"},
    {"output-format", OPTION_OUTPUT_FORMAT, 0, "FORM", VALUE_OUTPUT_FORMAT,
     "of SEG-Y: same | ieee, IEEE floats in place of IN's code [same]"},
    {"algorithm", OPTION_ALGORITHM, 0, "NAME", VALUE_FREE,
     "a variant of the tutorials of the first step, see scanctl kernels"},
    FILE_OPTIONS,
    COMMON_OPTIONS,
    {0},
};
// clang-format on

/* Parses the command line, which is that of scan, except that its first word is the steps. */
static int run_options_parse(int argc, char **argv, struct scan_options *options, struct pipeline *pipeline,
                             struct error *error)
{
    scan_options_init(options);
    const struct option_set set = {.table = run_options, .handler = scan_option_handle, .context = options};
    int result = options_parse(argc, argv, &set, &options->common, error);
    if (result || options->common.help)
        return result;
    if (optind == argc)
        return fail(error, EX_USAGE,
                    "no steps; give them as one word, as in 'scan forward,backward | reduce rms'; see "
                    "scanctl operations");
    result = pipeline_check(pipeline, argv[optind], error);
    pipeline->algorithm = options->scan.algorithm;
    pipeline->priority = options->scan.priority;
    pipeline->deadline_ms = options->scan.deadline_ms;
    options->pipeline = pipeline;
    options->files.operands = pipeline->files;
    options->files.operand_count = pipeline->file_count;
    options->files.pipeline = pipeline;
    options->batch.inputs = argv + optind + 1;
    options->batch.count = argc - optind - 1;
    return result;
}

/* Refuses files that steps write for each of several inputs. */
static int written_check(const struct scan_options *options, struct error *error)
{
    for (uint32_t i = 0; options->batch.count > 1 && i < options->files.operand_count; i++)
        if (options->files.operands[i].written)
            return fail(error, EX_USAGE, "%s=%s would be written for each of %d inputs; give one input",
                        options->files.operands[i].name, options->files.operands[i].path, options->batch.count);
    return 0;
}

/* Runs steps that end in a reduction: each row becomes a number, which is printed or written as reduce does. */
static int run_reduce(const struct scan_options *from, struct error *error)
{
    struct reduce_options options = {
        .common = from->common,
        .files = from->files,
        .batch = from->batch,
        .reduce = {.reduction = from->pipeline->reduction},
        .pipeline = from->pipeline,
        .output_dtype = from->output_dtype,
    };
    options.files.converts = true;
    if (from->ieee)
        return fail(error, EX_USAGE, "--output-format is of SEG-Y, and the results are numbers; leave it out");
    int result = written_check(from, error);
    if (!result)
        result = reduce_options_check(&options, error);
    return result ? result : reduce_files(&options, error);
}

static int run_scan(struct scan_options *options, struct error *error)
{
    int result = scan_files_check(options, error);
    if (!result)
        result = written_check(options, error);
    return result ? result : scan_files(options, error);
}

int command_run(int argc, char **argv, struct common_options *common, struct error *error)
{
    struct scan_options options = {.common = *common};
    struct pipeline pipeline = {.file_count = 0};
    int result = run_options_parse(argc, argv, &options, &pipeline, error);
    *common = options.common;
    if (!result && !common->help)
        result = pipeline.reduces ? run_reduce(&options, error) : run_scan(&options, error);
    pipeline_free(&pipeline);
    return result;
}
