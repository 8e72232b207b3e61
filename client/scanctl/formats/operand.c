#include "client/scanctl/formats/operand.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool follows(const struct operand_file *file, const char *what)
{
    return !strcmp(file->follows, what);
}

/*
 * Headers.
 */

/* Raw elements lie as the samples do, without headers between them. */
static int raw_header(struct operand_file *file, const struct array *samples, struct error *error)
{
    struct array *array = &file->array;
    *array = (struct array){.format = FORMAT_RAW, .dtype = samples->dtype, .fortran = samples->fortran};
    memcpy(array->shape, samples->shape, sizeof(array->shape));
    array->rank = samples->rank;
    if (samples->format == FORMAT_RAW)
        array->byte_order = samples->byte_order;
    else if (samples->trace_header_bytes)
        array->dtype = plain_dtype(samples->dtype);
    return array_check_size(array, &file->input, error);
}

static int header_read(struct operand_file *file, const struct operand_samples *samples, struct error *error)
{
    const int form = format_of_extension(file->input.name);
    struct array_hints own = {.format = form < 0 ? FORMAT_RAW : (enum format)form, .native = samples->hints->native};
    if (own.format == FORMAT_SU)
        own.byte_order = samples->hints->byte_order;
    if (own.format == FORMAT_RAW && file->may_be_raw)
        return raw_header(file, samples->array, error);
    if (own.format == FORMAT_RAW)
        return fail(error, EX_USAGE, "%s=%s: give a file that says what it holds, as in %s=FILE.npy", file->name,
                    file->path, file->name);
    return array_read_header(&file->array, &file->input, &own, error);
}

/* Numbers of rows lack the axis in their file, also where scanctl has written it. */
static void axis_insert(struct array *array, const struct operand_samples *samples)
{
    const uint32_t rank = samples->array->rank;
    if (array->rank + 1 != rank)
        return;
    memmove(&array->shape[samples->axis + 1], &array->shape[samples->axis],
            (array->rank - samples->axis) * sizeof(array->shape[0]));
    array->shape[samples->axis] = 1;
    array->rank = rank;
}

static int pipe_check(const struct operand_file *file, const struct operand_samples *samples, struct error *error)
{
    if (!samples->array->open_ended || file->shared)
        return 0;
    return fail(error, EX_USAGE,
                "%s: does not say how many rows it brings, so %s cannot be of its shape; give a file in place "
                "of a pipe",
                samples->name, file->may_be_raw ? "--coefficients" : file->name);
}

static int ragged_check(const struct operand_file *file, const struct operand_samples *samples, struct error *error)
{
    if (!samples->ragged || file->shared || follows(file, "samples"))
        return 0;
    return fail(error, EX_USAGE, "%s=%s: has elements for each row, which are not taken with --offsets; leave one out",
                file->name, file->path);
}

static int written_check(const struct operand_file *file, struct error *error)
{
    if (format_of_extension(file->path) != FORMAT_NPY)
        return fail(error, EX_USAGE, "%s=%s: it is written; give a name that ends in .npy", file->name, file->path);
    if (follows(file, "samples") || follows(file, "rows"))
        return 0;
    return fail(error, EX_USAGE, "%s=%s: nobody says how long this is; leave it out", file->name, file->path);
}

int operand_file_open(struct operand_file *file, const struct operand_samples *samples, struct error *error)
{
    int result = file->written ? written_check(file, error) : input_open(&file->input, file->path, error);
    if (result)
        return result;
    result = pipe_check(file, samples, error);
    if (result)
        return result;
    result = file->written ? 0 : header_read(file, samples, error);
    if (result)
        return result;
    file->broadcast = follows(file, "samples") && file->array.rank == 1 && samples->array->rank > 1;
    file->shared = follows(file, "job") || (follows(file, "vectors") && file->array.rank == 1) || file->broadcast;
    if (follows(file, "rows"))
        axis_insert(&file->array, samples);
    return ragged_check(file, samples, error);
}

void operand_file_close(struct operand_file *file)
{
    input_close(&file->input);
    array_free(&file->array);
}

/*
 * Shapes.
 */

uint64_t operand_file_length(const struct operand_file *file, const struct operand_samples *samples)
{
    if (file->shared && !file->broadcast)
        return file->array.shape[0];
    return follows(file, "vectors") && samples->axis < file->array.rank ? file->array.shape[samples->axis] : 0;
}

/* Sets the shape that an operand must have: the samples' shape except along the axis. */
static void expected_shape(const struct operand_file *file, const struct operand_samples *samples, uint64_t length,
                           uint64_t shape[SCAND_RANK_MAX])
{
    memcpy(shape, samples->array->shape, SCAND_RANK_MAX * sizeof(shape[0]));
    if (follows(file, "samples"))
        shape[samples->axis] = length;
    else if (follows(file, "rows"))
        shape[samples->axis] = 1;
    else if (samples->axis < file->array.rank)
        shape[samples->axis] = file->array.shape[samples->axis];
}

static int order_check(const struct operand_file *file, const struct operand_samples *samples, struct error *error)
{
    const struct array *array = &file->array, *beside = samples->array;
    if (array->rank < 2 || array->fortran == beside->fortran)
        return 0;
    return fail(error, EX_DATAERR, "%s: is in %s order, but %s is in %s order; save one like the other",
                file->input.name, array->fortran ? "Fortran" : "C", samples->name, beside->fortran ? "Fortran" : "C");
}

/* Checks the class of an operand of the first step; operands of later steps take values of the results' type. */
static int class_check(const struct operand_file *file, const struct operand_samples *samples, struct error *error)
{
    const enum scand_dtype own = file->array.dtype, theirs = samples->array->dtype;
    if (file->step > 0 || strcmp(file->dtypes, "input") || scand_dtype_class(own) == scand_dtype_class(theirs))
        return 0;
    return fail(error, EX_DATAERR, "%s: holds %s of type %s, but %s holds samples of type %s; convert them to %s",
                file->input.name, file->name, scand_word(SCAND_LIST_DTYPE, own), samples->name,
                scand_word(SCAND_LIST_DTYPE, theirs), scand_word(SCAND_LIST_DTYPE, theirs));
}

static int shape_check(const struct operand_file *file, const struct operand_samples *samples, uint64_t length,
                       struct error *error)
{
    char held[128], expected[128], vector[64] = "";
    const struct array *array = &file->array, *beside = samples->array;
    uint64_t shape[SCAND_RANK_MAX];
    expected_shape(file, samples, length, shape);
    if (file->broadcast ? array->shape[0] == length
                        : array->rank == beside->rank && !memcmp(array->shape, shape, array->rank * sizeof(shape[0])))
        return 0;
    shape_text(array->rank, array->shape, held, sizeof(held));
    if (follows(file, "samples") && beside->rank > 1)
        snprintf(vector, sizeof(vector), ", or a vector of %" PRIu64 " for all rows", length);
    if (follows(file, "samples") && length == beside->shape[samples->axis])
        return fail(error, EX_DATAERR, "%s: holds %s numbers for \"%s\", but %s holds %s samples; give one for each%s",
                    file->input.name, held, file->name, samples->name,
                    shape_text(beside->rank, beside->shape, expected, sizeof(expected)), vector);
    return fail(error, EX_DATAERR, "%s: holds %s numbers for \"%s\", but step %u takes %s beside %s; give as many%s",
                file->input.name, held, file->name, (unsigned)file->step + 1,
                shape_text(beside->rank, shape, expected, sizeof(expected)), samples->name, vector);
}

int operand_file_check(const struct operand_file *file, const struct operand_samples *samples, uint64_t length,
                       struct error *error)
{
    if (file->shared && file->array.rank != 1)
        return fail(error, EX_DATAERR, "%s: has %u dimensions; step %u takes a vector as its %s", file->input.name,
                    (unsigned)file->array.rank, (unsigned)file->step + 1, file->name);
    int result = file->shared && !file->broadcast ? 0 : shape_check(file, samples, length, error);
    if (result)
        return result;
    result = order_check(file, samples, error);
    return result ? result : class_check(file, samples, error);
}

static enum scand_dtype written_dtype(const struct operand_file *file, enum scand_dtype results)
{
    if (!strcmp(file->dtypes, "index"))
        return SCAND_DTYPE_I64;
    if (!strcmp(file->dtypes, "float"))
        return scand_dtype_class(results) == SCAND_CLASS_F32 ? SCAND_DTYPE_F32 : SCAND_DTYPE_F64;
    return plain_dtype(results);
}

int operand_file_create(struct operand_file *file, const struct operand_samples *samples, uint64_t length,
                        enum scand_dtype dtype, struct error *error)
{
    file->array = (struct array){.format = FORMAT_NPY,
                                 .dtype = written_dtype(file, dtype),
                                 .rank = samples->array->rank,
                                 .fortran = samples->array->fortran};
    expected_shape(file, samples, length, file->array.shape);
    struct array told = file->array;
    if (follows(file, "rows") && told.rank > 1) {
        memmove(&told.shape[samples->axis], &told.shape[samples->axis + 1],
                (told.rank - samples->axis - 1) * sizeof(told.shape[0]));
        told.rank--;
    }
    return result_open(&file->output, &told, file->path, error);
}
