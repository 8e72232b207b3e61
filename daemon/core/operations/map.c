/* map: which numbers and operands each op takes, and dtypes between which it converts. */
#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "daemon/core/operations/operation.h"
#include "kernels/steps/map/map.h"

/* The argument that an op needs beside a sample. */
enum argument { NOTHING, NUMBER, BOUNDS };

static enum argument argument_of(enum map_op op)
{
    switch (op) {
    case MAP_ADD:
    case MAP_SUB:
    case MAP_MUL:
    case MAP_DIV:
    case MAP_MIN:
    case MAP_MAX:
        return NUMBER;
    case MAP_CLIP:
        return BOUNDS;
    case MAP_ABS:
    case MAP_NEG:
    case MAP_SQRT:
    case MAP_EXP:
    case MAP_LOG:
    case MAP_CAST:
        break;
    }
    return NOTHING;
}

static bool has_integers(enum map_op op)
{
    return op != MAP_DIV && op != MAP_SQRT && op != MAP_EXP && op != MAP_LOG;
}

static const struct msg_map *map_of(const struct asked *asked)
{
    return &asked->request->params->steps[asked->step].map;
}

static const char *field_of(const struct asked *asked, const char *name, char field[FIELD_NAME_BYTES])
{
    return request_field(asked->request, asked->step, name, field);
}

/*
 * Numbers.
 */

static int check_unused(const struct asked *asked, const char *name, bool is_given, struct error *error)
{
    char field[FIELD_NAME_BYTES];
    if (!is_given)
        return 0;
    return error_set(error, -EINVAL, "\"%s\" is given, which \"op\" \"%s\" has no use for; leave it out",
                     field_of(asked, name, field), map_op_words.words[map_of(asked)->op]);
}

/* Checks a number that is used among integers. */
static int check_whole(const struct asked *asked, const char *name, double number, struct error *error)
{
    const bool is_signed = dtype_class(asked->in.dtype) == SCAND_CLASS_SIGNED;
    const double exact = 0x1p53;
    char field[FIELD_NAME_BYTES];
    if (number >= (is_signed ? -exact : 0) && number <= exact && number == (double)(int64_t)number)
        return 0;
    return error_set(error, -EINVAL, "\"%s\" is %g; allowed with \"%s\" \"%s\": whole numbers from %s to 2^53",
                     field_of(asked, name, field), number, asked_samples(asked), dtype_word(asked->in.dtype),
                     is_signed ? "-2^53" : "0");
}

/* Infinities are numbers to compare with; what only rounding to f32 makes one of is a mistake. */
static int check_number(const struct asked *asked, const char *name, double number, struct error *error)
{
    char field[FIELD_NAME_BYTES];
    if (dtype_is_integer(asked->in.dtype))
        return check_whole(asked, name, number, error);
    if (isnan(number))
        return error_set(error, -EINVAL, "\"%s\" is nan; allowed: numbers", field_of(asked, name, field));
    if (dtype_class(asked->in.dtype) == SCAND_CLASS_F32 && isfinite(number) && isinf((float)number))
        return error_set(error, -EINVAL, "\"%s\" is %g; allowed with \"%s\" \"%s\": what f32 holds, up to 3.40282e+38",
                         field_of(asked, name, field), number, asked_samples(asked), dtype_word(asked->in.dtype));
    return 0;
}

/* Checks that one of "by" and "other" is given. */
static int check_by(const struct asked *asked, struct error *error)
{
    const struct msg_map *message = map_of(asked);
    const bool is_given = STEP_GIVES(message, map, by), has_other = message->other.shape_count > 0;
    char field[FIELD_NAME_BYTES];
    if (is_given && has_other)
        return error_set(error, -EINVAL, "\"%s\" is %g, but \"other\" is given, too; allowed: one of them",
                         field_of(asked, "by", field), message->by);
    if (!is_given && !has_other)
        return error_set(error, -EINVAL,
                         "\"%s\" is missing, and so is \"other\"; allowed with \"op\" \"%s\": a number, or a tensor as "
                         "\"other\"",
                         field_of(asked, "by", field), map_op_words.words[message->op]);
    return check_number(asked, "by", message->by, error);
}

/* A bound that is left out is not a bound of 0. */
static int check_bounds_are_given(const struct asked *asked, struct error *error)
{
    const struct msg_map *message = map_of(asked);
    const bool has_low = STEP_GIVES(message, map, low), has_high = STEP_GIVES(message, map, high);
    char field[FIELD_NAME_BYTES];
    if (has_low && has_high)
        return 0;
    return error_set(
        error, -EINVAL,
        "\"%s\" is missing; allowed with \"op\" \"clip\": a number, beside \"%s\"; where there is one bound, "
        "take \"op\" \"max\" or \"min\" with \"by\"",
        field_of(asked, has_low ? "high" : "low", field), has_low ? "low" : "high");
}

static int check_bounds(const struct asked *asked, struct error *error)
{
    const struct msg_map *message = map_of(asked);
    char field[FIELD_NAME_BYTES];
    int r = check_bounds_are_given(asked, error);
    if (r)
        return r;
    if ((r = check_number(asked, "low", message->low, error)) ||
        (r = check_number(asked, "high", message->high, error)))
        return r;
    if (message->low < message->high)
        return 0;
    return error_set(error, -EINVAL,
                     "\"%s\" is %g, and \"high\" is %g; allowed with \"op\" \"clip\": less than \"high\"",
                     field_of(asked, "low", field), message->low, message->high);
}

static int check_numbers(const struct asked *asked, struct error *error)
{
    const struct msg_map *message = map_of(asked);
    const enum argument argument = argument_of((enum map_op)message->op);
    int r;
    if (argument != NUMBER && ((r = check_unused(asked, "by", STEP_GIVES(message, map, by), error)) ||
                               (r = check_unused(asked, "other", message->other.shape_count > 0, error))))
        return r;
    if (argument != BOUNDS && ((r = check_unused(asked, "low", STEP_GIVES(message, map, low), error)) ||
                               (r = check_unused(asked, "high", STEP_GIVES(message, map, high), error))))
        return r;
    if (argument == NUMBER)
        return check_by(asked, error);
    return argument == BOUNDS ? check_bounds(asked, error) : 0;
}

/*
 * The operation.
 */

static int check_integers(const struct asked *asked, struct error *error)
{
    const enum map_op op = (enum map_op)map_of(asked)->op;
    struct word_list allowed = {.length = 0};
    char field[FIELD_NAME_BYTES];
    if (has_integers(op) || !dtype_is_integer(asked->in.dtype))
        return 0;
    for (size_t i = 0; i < map_op_words.count; i++)
        if (has_integers((enum map_op)i))
            word_list_add(&allowed, map_op_words.words[i]);
    return error_set(error, -EINVAL, "\"%s\" is \"%s\"; allowed with \"%s\" \"%s\": %s", field_of(asked, "op", field),
                     map_op_words.words[op], asked_samples(asked), dtype_word(asked->in.dtype), allowed.text);
}

static int map_check(const struct asked *asked, struct step *step, struct error *error)
{
    const struct msg_map *message = map_of(asked);
    const struct map parameters = {.op = (enum map_op)message->op,
                                   .by = message->op == MAP_CLIP ? message->low : message->by,
                                   .high = message->high};
    int r;
    if ((r = check_integers(asked, error)) || (r = check_numbers(asked, error)))
        return r;
    step_set_parameters(step, &parameters, sizeof parameters);
    return message->op == MAP_CAST ? 0 : check_output_dtype(asked->in.dtype, asked->output, error);
}

/* exp and log are series of some ten terms. */
static uint64_t map_work(const struct step *step)
{
    const enum map_op op = ((const struct map *)(const void *)step->parameters)->op;
    return op == MAP_EXP || op == MAP_LOG ? 4 : 1;
}

static void map_describe(const struct step *step, char *out, size_t size)
{
    const struct map *map = (const void *)step->parameters;
    snprintf(out, size, "%s", map_op_words.words[map->op]);
}

const struct operation operation_map = {
    .kernel = &map_kernel,
    .check = map_check,
    .work = map_work,
    .describe = map_describe,
};
