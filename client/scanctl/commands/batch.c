#include "client/scanctl/commands/batch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "client/scanctl/commands/options.h"
#include "client/scanctl/formats/file.h"

/* The bytes of a file's last name that its result in a folder begins with. */
static size_t stem_length(const struct batch *batch, const char *name)
{
    const char *dot = batch->extension && format_of_extension(name) >= 0 ? strrchr(name, '.') : NULL;
    return dot ? (size_t)(dot - name) : strlen(name);
}

static bool have_one_result(const struct batch *batch, const char *a, const char *b)
{
    const size_t length = stem_length(batch, path_name(a));
    return length == stem_length(batch, path_name(b)) && !strncmp(path_name(a), path_name(b), length);
}

int batch_check(const struct batch *batch, struct error *error)
{
    const char *path = batch->output_path;
    const bool folder = path && path_is_folder(path);
    if (batch->count > 1 && path && !folder)
        return fail(error, EX_USAGE,
                    "%d inputs, the first is \"%s\", and -o is \"%s\"; give a folder that exists, as in -o %s/",
                    batch->count, batch->inputs[0], path, strcmp(path, "-") ? path : "results");
    for (int i = 0; i < batch->count; i++) {
        const char *input = batch->inputs[i];
        if (!*input)
            return fail(error, EX_USAGE, "the input is \"\"; give a file, or - for standard input");
        if (folder && !strcmp(input, "-"))
            return fail(error, EX_USAGE, "-o is the folder \"%s\", and standard input has no name; give -o FILE", path);
        for (int j = 0; folder && j < i; j++)
            if (have_one_result(batch, input, batch->inputs[j]))
                return fail(error, EX_USAGE, "%s and %s would both be written to %s; give them to two commands",
                            batch->inputs[j], input, path);
    }
    return 0;
}

/* Sets *out to the path of an input's result in a folder, to be freed, if the output is one; else leaves *out. Fails
 * where both are the same file, which nobody has asked to replace. */
static int path_in_folder(const struct batch *batch, const char *path, char **out, struct error *error)
{
    const char *folder = batch->output_path, *name = path_name(path);
    char *inside = NULL;
    struct stat input, result;
    if (!folder || !path_is_folder(folder))
        return 0;
    if (asprintf(&inside, "%s%s%.*s%s", folder, folder[strlen(folder) - 1] == '/' ? "" : "/",
                 (int)stem_length(batch, name), name, batch->extension ? batch->extension : "") < 0)
        return fail(error, EX_TEMPFAIL, "%s: out of memory for the name of a file in it", folder);
    if (!stat(path, &input) && !stat(inside, &result) && input.st_dev == result.st_dev &&
        input.st_ino == result.st_ino) {
        free(inside);
        return fail(error, EX_USAGE,
                    "%s: would be replaced by its own result, since -o is the folder \"%s\"; give "
                    "another folder, or -o %s to replace it",
                    path, folder, path);
    }
    *out = inside;
    return 0;
}

static int run_file(const struct batch *batch, const char *path, batch_call *call, void *context, struct scand **daemon,
                    struct error *error)
{
    char *own_path = NULL;
    int result = path_in_folder(batch, path, &own_path, error);
    if (!result)
        result = call(context, path, own_path ? own_path : batch->output_path, daemon, error);
    free(own_path);
    return result;
}

/* True for a failure that all files after this one would meet, or by which somebody has stopped the command. */
static bool ends_batch(const struct scand *daemon, int exit_code)
{
    return exit_code == EX_UNAVAILABLE || (exit_code == EX_NOPERM && !daemon) || exit_code == EXIT_PIPE ||
           exit_code == scand_status_exit_code(SCAND_CANCELLED);
}

/* Says what became of several files of which some have failed, each with a line of its own. The exit code is that of
 * the first one. */
static int batch_error(const struct batch *batch, int begun, int failures, int exit_code, struct error *error)
{
    fail(error, exit_code, "%d of %d files failed, for the reasons above", failures, batch->count);
    if (begun > failures)
        fail_more(error, "the results of %d are %s", begun - failures, batch->output_path ? "written" : "printed");
    if (batch->count > begun)
        fail_more(error, "%d were not begun", batch->count - begun);
    return exit_code;
}

int batch_run(const struct batch *batch, batch_call *call, void *context, struct error *error)
{
    struct scand *daemon = NULL;
    int begun = 0, failures = 0, exit_code = 0, result = 0;
    while (begun < batch->count && !ends_batch(daemon, result)) {
        result = run_file(batch, batch->inputs[begun++], call, context, &daemon, error);
        if (!result || batch->count == 1)
            continue;
        fprintf(stderr, "scanctl: %s\n", error->text);
        failures++;
        exit_code = exit_code ? exit_code : result;
    }
    scand_disconnect(daemon);
    return failures ? batch_error(batch, begun, failures, exit_code, error) : result;
}
