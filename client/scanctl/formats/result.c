/*
 * The files of results.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "client/scanctl/formats/file.h"
#include "client/scanctl/formats/forms.h"
#include "client/scanctl/formats/input.h"

#define COPY_BYTES 65536

static int header_write(const struct array *result, struct output *output, struct error *error)
{
    const struct form *form = form_of(result->format);
    if (form->write_header)
        return form->write_header(result, output, error);
    return output_write(output, result->passed.bytes, result->passed.size_bytes, error);
}

/* True when samples go into a file of their own: as the input's do, or as $DATAPATH asks, but never into a pipe. */
static bool is_apart(const struct array *result, const char *path)
{
    struct stat status;
    const char *folder = getenv("DATAPATH");
    if (result->format != FORMAT_RSF || !strcmp(path, "-") || (!stat(path, &status) && !S_ISREG(status.st_mode)))
        return false;
    return result->apart || (folder && *folder);
}

/* The whole path of the file with the samples, as Madagascar calls it: "out.rsf@", in the folder that $DATAPATH names,
 * or beside the text. */
static char *samples_path_make(const char *path)
{
    struct stat status;
    const char *folder = getenv("DATAPATH"), *slash = strrchr(path, '/');
    char *whole = NULL, *made = NULL, *given = NULL;
    if (folder && *folder && !stat(folder, &status) && S_ISDIR(status.st_mode))
        whole = realpath(folder, NULL);
    else if (folder && *folder)
        return asprintf(&made, "%s%s@", folder, slash ? slash + 1 : path) < 0 ? NULL : made;
    else if ((given = slash ? strndup(path, (size_t)(slash + 1 - path)) : strdup(".")))
        whole = realpath(given, NULL);
    if (!whole || asprintf(&made, "%s%s%s@", whole, strcmp(whole, "/") ? "/" : "", slash ? slash + 1 : path) < 0)
        made = NULL;
    free(whole);
    free(given);
    return made;
}

static int apart_open(struct result_file *file, struct array *result, const char *path, struct error *error)
{
    file->samples_path = samples_path_make(path);
    if (!file->samples_path)
        return fail(error, EX_CANTCREAT,
                    "%s: has no folder for its samples; give a name in a folder that exists, and check $DATAPATH",
                    path);
    if (strchr(file->samples_path, '"') && strchr(file->samples_path, '\''))
        return fail(error, EX_CANTCREAT,
                    "%s: has quotation marks of both kinds, which no RSF file can quote; give another "
                    "name, or another $DATAPATH",
                    file->samples_path);
    int status = output_open(&file->samples, file->samples_path, error);
    if (!status)
        status = output_open(&file->text, path, error);
    result->samples_path = file->samples_path;
    return status ? status : header_write(result, &file->text, error);
}

int result_open(struct result_file *file, struct array *result, const char *path, struct error *error)
{
    *file = (struct result_file){.samples = {.fd = -1}, .text = {.fd = -1}};
    int status;
    if (is_apart(result, path))
        status = apart_open(file, result, path, error);
    else if (!(status = output_open(&file->samples, path, error)))
        status = header_write(result, &file->samples, error);
    if (status)
        result_discard(file);
    return status;
}

int result_copy_trailer(struct result_file *file, const struct array *array, struct input *input, struct error *error)
{
    unsigned char bytes[COPY_BYTES];
    int status = 0;
    for (uint64_t left = array->trailer_bytes; left && !status;) {
        uint64_t size = left < sizeof(bytes) ? left : sizeof(bytes);
        status = input_read(input, bytes, size, "what follows the traces", error);
        if (!status)
            status = output_write(&file->samples, bytes, size, error);
        left -= size;
    }
    return status;
}

/* The text last: it never names samples that are not there. */
int result_commit(struct result_file *file, struct error *error)
{
    file->samples_bytes = file->samples.written_bytes;
    int status = output_commit(&file->samples, error);
    if (!status && file->samples_path)
        status = output_commit(&file->text, error);
    if (status)
        result_discard(file);
    free(file->samples_path);
    file->samples_path = NULL;
    return status;
}

void result_discard(struct result_file *file)
{
    output_discard(&file->samples);
    output_discard(&file->text);
    free(file->samples_path);
    file->samples_path = NULL;
}
