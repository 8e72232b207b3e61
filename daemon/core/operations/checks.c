/* What checks of several operations have in common (operation.h): dtypes, names of variants, layouts that variants
 * need. */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "operation.h"
#include "protocol/text.h"

void step_set_parameters(struct step *step, const void *parameters, size_t size_bytes)
{
    assert(size_bytes <= sizeof step->parameters);
    memset(step->parameters, 0, sizeof step->parameters);
    memcpy(step->parameters, parameters, size_bytes);
}

/*
 * Dtypes.
 */

const char *asked_samples(const struct asked *asked)
{
    return asked->step == 0 ? "input.dtype" : "output.dtype";
}

const char *dtype_word(uint32_t dtype)
{
    return dtype_words.words[dtype];
}

bool dtype_is_integer(uint32_t dtype)
{
    return dtype_class(dtype) == SCAND_CLASS_SIGNED || dtype_class(dtype) == SCAND_CLASS_UNSIGNED;
}

int check_floats(const struct asked *asked, struct error *error)
{
    struct word_list allowed = {.length = 0};
    if (!dtype_is_integer(asked->in.dtype))
        return 0;
    for (uint32_t dtype = 0; dtype < SCAND_DTYPE_COUNT; dtype++)
        if (!dtype_is_integer(dtype))
            word_list_add(&allowed, dtype_word(dtype));
    return error_set(error, -EINVAL,
                     "\"%s\" is \"%s\"; allowed with \"steps[%u].operation\" \"%s\": %s; or give f32 or f64 as "
                     "\"output.dtype\", and " STEP_THAT_CASTS,
                     asked_samples(asked), dtype_word(asked->in.dtype), (unsigned)asked->step,
                     step_words.words[asked->request->params->steps[asked->step].operation], allowed.text);
}

static bool may_become(uint32_t input, uint32_t output)
{
    if (dtype_is_integer(input) != dtype_is_integer(output))
        return false;
    return !dtype_is_integer(input) || dtype_size_bytes(output) >= dtype_size_bytes(input);
}

int check_output_dtype(enum scand_dtype input, enum scand_dtype output, struct error *error)
{
    if (may_become(input, output))
        return 0;
    struct word_list allowed = {.length = 0};
    for (uint32_t dtype = 0; dtype < SCAND_DTYPE_COUNT; dtype++)
        if (may_become(input, dtype))
            word_list_add(&allowed, dtype_word(dtype));
    return error_set(
        error, -EINVAL,
        "\"output.dtype\" is \"%s\"; allowed with \"input.dtype\" \"%s\": %s; for others take " STEP_THAT_CASTS,
        dtype_word(output), dtype_word(input), allowed.text);
}

void word_list_add(struct word_list *list, const char *word)
{
    size_t room = sizeof list->text - list->length;
    int n = snprintf(list->text + list->length, room, "%s%s", list->length ? ", " : "", word);
    list->length += (size_t)n < room ? (size_t)n : room - 1;
}

/*
 * The names of `algorithm`.
 */

int refuse_algorithm_name(const char *name, const struct word_list *names, struct error *error)
{
    char shown[LIMIT_NAME_BYTES];
    return error_set(error, -EINVAL, "\"algorithm\" is \"%s\"; there are: %s",
                     text_show(shown, sizeof shown, name, strlen(name)), names->text);
}

int refuse_with_algorithm(const char *algorithm, const char *field, const char *value, const char *allowed,
                          struct error *error)
{
    return error_set(error, -EINVAL, "\"%s\" is \"%s\"; allowed with \"algorithm\" \"%s\": %s", field, value, algorithm,
                     allowed);
}

int check_algorithm_rank(const char *algorithm, const struct scan_rows *rows, struct error *error)
{
    if (rows->outer_rank <= 1)
        return 0;
    return error_set(error, -EINVAL,
                     "beside the axis there are %u dimensions whose strides do not make them one; "
                     "allowed with \"algorithm\" \"%s\": rows that all lie one stride apart; submit the others in "
                     "jobs of their own",
                     rows->outer_rank, algorithm);
}

int check_algorithm_stride(const char *algorithm, const char *what, const struct scan_rows *rows, int64_t stride,
                           struct error *error)
{
    if (rows->length <= 1 || stride == sizeof(float))
        return 0;
    return error_set(error, -EINVAL,
                     "the stride of \"%s\" along the axis is %" PRId64 "; allowed with \"algorithm\" \"%s\": 4", what,
                     stride, algorithm);
}

int check_algorithm_place(const char *algorithm, const char *what, const struct msg_tensor *tensor, int64_t pitch,
                          int64_t bytes, struct error *error)
{
    if ((int64_t)(tensor->offset % (uint64_t)bytes) == 0 && pitch % bytes == 0)
        return 0;
    return error_set(error, -EINVAL,
                     "\"%s\" has the offset %" PRIu64 " and a row every %" PRId64
                     " bytes; allowed with \"algorithm\" \"%s\": multiples of %" PRId64,
                     what, tensor->offset, pitch, algorithm, bytes);
}
