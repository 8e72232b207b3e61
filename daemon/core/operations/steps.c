/* The table of operations, and the check of a chain step by step: steps_check of operation.h. */
#include "operation.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "protocol/describe.h"
#include "protocol/lengths.h"

const struct operation *const operations[OPERATION_COUNT] = {
#define X(NAME, ...) &operation_##NAME,
    OPERATIONS(X)
#undef X
};

static uint32_t operation_of(const struct asked *asked, uint32_t step)
{
    return asked->request->params->steps[step].operation;
}

/*
 * The input of a step.
 */

/* Checks that a step's input has samples: a step that leaves an element for each row leaves none. */
static int check_input(const struct asked *asked, struct error *error)
{
    if (asked->in.follows == FOLLOWS_SAMPLES)
        return 0;
    return error_set(error, -EINVAL,
                     "\"steps[%u].operation\" is \"%s\", which takes rows of samples, but \"%s\" before it leaves one "
                     "element for each row; allowed: nothing after it; submit this step as a job of its own",
                     (unsigned)asked->step, step_words.words[operation_of(asked, asked->step)],
                     step_words.words[operation_of(asked, asked->step - 1)]);
}

/* Offsets say where ragged rows begin, and say so of each value between steps. */
static int check_ragged(const struct asked *asked, struct error *error)
{
    const struct msg_job_run_params *params = asked->request->params;
    const uint32_t operation = operation_of(asked, asked->step);
    if (!request_is_ragged(asked->request) || step_keeps_length(&params->steps[asked->step], params->axis) ||
        operation_leaves_rows(operation))
        return 0;
    return error_set(
        error, -EINVAL,
        "\"steps[%u].operation\" is \"%s\", which changes the length of rows, but \"offsets\" makes rows of "
        "lengths of their own; allowed: steps that leave rows as long as they are, or a number of each",
        (unsigned)asked->step, step_words.words[operation]);
}

int step_check_row(enum operation_id operation, uint32_t step, uint64_t samples, struct error *error)
{
    const uint64_t most = operations[operation]->most_samples;
    if (most == 0 || samples <= most)
        return 0;
    return error_set(error, -EINVAL,
                     "\"steps[%u].operation\" is \"%s\", and a row that it takes has %" PRIu64
                     " samples; allowed: up to %" PRIu64 "; take parts of the rows in jobs of their own",
                     (unsigned)step, step_words.words[operation], samples, most);
}

/* Checks the length of rows; that of ragged rows is known once their offsets are. Variants of the tutorials do not
 * divide rows. */
static int check_row(const struct asked *asked, struct error *error)
{
    const bool named = asked->request->params->algorithm[0] != '\0';
    if (request_is_ragged(asked->request) || (operations[operation_of(asked, asked->step)]->divides && !named))
        return 0;
    return step_check_row(operation_of(asked, asked->step), asked->step, asked->in.length, error);
}

/*
 * Further operands.
 */

static bool class_has(enum operand_class class, enum scand_dtype input, enum scand_dtype dtype)
{
    if (class == CLASS_INPUT)
        return dtype_class(dtype) == dtype_class(input);
    if (class == CLASS_INDEX)
        return dtype == SCAND_DTYPE_I32 || dtype == SCAND_DTYPE_I64;
    return !dtype_is_integer(dtype);
}

static int check_class(const struct asked *asked, uint32_t number, struct error *error)
{
    const struct request_operand *operand = &asked->request->operands[number];
    struct word_list allowed = {.length = 0};
    char name[FIELD_NAME_BYTES], with[FIELD_NAME_BYTES] = "";
    if (class_has(operand->class, asked->in.dtype, operand->tensor->dtype))
        return 0;
    for (uint32_t dtype = 0; dtype < SCAND_DTYPE_COUNT; dtype++)
        if (class_has(operand->class, asked->in.dtype, dtype))
            word_list_add(&allowed, dtype_word(dtype));
    if (operand->class == CLASS_INPUT)
        snprintf(with, sizeof with, " with \"%s\" \"%s\"", asked_samples(asked), dtype_word(asked->in.dtype));
    return error_set(error, -EINVAL, "\"%s.dtype\" is \"%s\"; allowed%s: %s",
                     request_operand_name(asked->request, number, name), dtype_word(operand->tensor->dtype), with,
                     allowed.text);
}

/* Ragged rows have no dimension along which there could be a vector for each. */
static int check_vectors(const struct asked *asked, uint32_t number, struct error *error)
{
    char name[FIELD_NAME_BYTES];
    if (asked->request->operands[number].follows != FOLLOWS_VECTORS || !request_is_ragged(asked->request))
        return 0;
    return error_set(error, -EINVAL,
                     "\"%s\" has %u dimensions, a vector for each row, but \"offsets\" makes ragged rows; allowed: one "
                     "dimension, a vector for all rows",
                     request_operand_name(asked->request, number, name),
                     asked->request->operands[number].tensor->shape_count);
}

static int check_operands(const struct asked *asked, struct error *error)
{
    int r = 0;
    for (uint32_t i = OPERAND_FURTHER; i < asked->request->operand_count && !r; i++)
        if (asked->request->operands[i].step == asked->step && !(r = check_class(asked, i, error)))
            r = check_vectors(asked, i, error);
    return r;
}

/* Elements along the axis that an operand must have, or has. */
static uint64_t operand_length(const struct request *request, const struct request_operand *operand,
                               const struct value *in, const struct value *out)
{
    switch (operand->follows) {
    case FOLLOWS_SAMPLES:
        return operand->access == ACCESS_WRITE ? out->length : in->length;
    case FOLLOWS_ROWS:
        return 1;
    default:
        return vector_length(operand->tensor, request->params->axis);
    }
}

/* Notes the job's numbers of a step's operands, in the order of the operation's list. */
static void note_operands(struct request *request, const struct asked *asked, const struct value *out,
                          struct step *step)
{
    const struct operand_row *rows = operand_rows[step->operation];
    step->algorithm = 0;
    memset(step->further, 0, sizeof step->further);
    for (uint32_t i = OPERAND_FURTHER; i < request->operand_count; i++) {
        struct request_operand *operand = &request->operands[i];
        if (operand->step != asked->step)
            continue;
        operand->length = operand_length(request, operand, &asked->in, out);
        for (uint32_t k = 0; rows[k].name; k++)
            if (rows[k].name == operand->name)
                step->further[k] = (uint8_t)i;
    }
}

/*
 * The output of a step.
 */

/* Checks the length of the output's rows; the input's length is for other checks. */
static int check_length(const struct asked *asked, uint64_t length, struct error *error)
{
    if (length <= LIMIT_ROW_SAMPLES || length == asked->in.length)
        return 0;
    return error_set(error, -EINVAL,
                     "\"steps[%u].operation\" is \"%s\", which would leave rows of more than %" PRIu64
                     " elements each, as it takes rows of %" PRIu64 "; take shorter rows, or other parameters",
                     (unsigned)asked->step, step_words.words[operation_of(asked, asked->step)], LIMIT_ROW_SAMPLES,
                     asked->in.length);
}

static int step_check(struct request *request, struct asked *asked, struct step *step, struct error *error)
{
    const union msg_step *message = &request->params->steps[asked->step];
    const struct operation *operation = operations[message->operation];
    int r;
    step->operation = message->operation;
    step->kernel = operation->kernel;
    if ((r = check_input(asked, error)) || (r = check_ragged(asked, error)) || (r = check_row(asked, error)) ||
        (r = operation->check(asked, step, error)) || (r = check_operands(asked, error)))
        return r;
    const struct value out = {
        .dtype = asked->output,
        .follows = operation_leaves_rows(step->operation) ? FOLLOWS_ROWS : FOLLOWS_SAMPLES,
        .length = length_after(message, request->params->axis, asked->in.length),
    };
    if (out.follows == FOLLOWS_SAMPLES && (r = check_length(asked, out.length, error)))
        return r;
    step->length = out.length;
    note_operands(request, asked, &out, step);
    asked->in = out;
    return 0;
}

int steps_check(struct request *request, struct step steps[LIMIT_STEPS], struct error *error)
{
    const struct msg_job_run_params *params = request->params;
    struct request_operand *input = &request->operands[OPERAND_INPUT], *output = &request->operands[OPERAND_OUTPUT];
    input->length = params->input.shape[params->axis];
    struct asked asked = {.request = request,
                          .in = {params->input.dtype, FOLLOWS_SAMPLES, input->length},
                          .output = params->output.dtype};
    int r = 0;
    for (; asked.step < params->steps_count && !r; asked.step++)
        r = step_check(request, &asked, &steps[asked.step], error);
    output->follows = asked.in.follows;
    output->length = asked.in.length;
    return r;
}
