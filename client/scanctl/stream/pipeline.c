#include "client/scanctl/stream/pipeline.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SPACES     " \t\n\r"
#define WORD_BYTES 4096 /* room for the longest word: a path */
#define ROWS_MAX   32   /* rows of an operation's parameters, at most */

/* The step that is being read. */
struct step {
    unsigned number; /* from 1 */
    const char *operation;
    struct scand_parameter_info rows[ROWS_MAX];
    size_t row_count, word_count;
    uint32_t seen; /* bit i: row i is set */
};

struct parser {
    const char *at;
    char word[WORD_BYTES], operation[WORD_BYTES];
    struct step step;
    struct scand_task *task;
    const struct scand_tensor *operands; /* for each file; NULL: files have no tensors yet */
    double dt;                           /* the number that stands for "dt" */
    struct pipeline found;
    struct error *error;
};

static bool is_step_over(struct parser *parser)
{
    parser->at += strspn(parser->at, SPACES);
    return *parser->at == '|' || *parser->at == '\0';
}

static int step_fail(const struct parser *parser, const char *word, const char *why)
{
    const struct step *step = &parser->step;
    if (step->row_count == 0) /* the step has no operation yet */
        return fail(parser->error, EX_USAGE, "step %u: %s; see scanctl operations", step->number, why);
    if (!word)
        return fail(parser->error, EX_USAGE, "step %u (%s): %s; see scanctl operations", step->number, step->operation,
                    why);
    return fail(parser->error, EX_USAGE, "step %u (%s), \"%.80s\": %s; see scanctl operations", step->number,
                step->operation, word, why);
}

/* Fails with the library's message, which calls this step by its number in the task, "steps[0]" for the first. */
static int task_fail(const struct parser *parser, const char *word)
{
    char prefix[24];
    const char *message = scand_task_message(parser->task);
    snprintf(prefix, sizeof(prefix), "steps[%u].", parser->step.number - 1);
    const size_t length = strlen(prefix);
    return step_fail(parser, word, strncmp(message, prefix, length) ? message : message + length);
}

/* Reads a word, in which spaces and | between two double quotes stand for themselves. */
static int word_read(struct parser *parser, char *word)
{
    const unsigned step = parser->step.number;
    size_t length = 0;
    bool quoted = false;
    for (; *parser->at && (quoted || !strchr(SPACES "|", *parser->at)); parser->at++)
        if (*parser->at == '"')
            quoted = !quoted;
        else if (++length < WORD_BYTES)
            word[length - 1] = *parser->at;
    if (quoted)
        return fail(parser->error, EX_USAGE, "step %u has a \" without a second one; put one behind the value", step);
    if (length >= WORD_BYTES)
        return fail(parser->error, EX_USAGE, "step %u has a word of %zu bytes; it may have %d", step, length,
                    WORD_BYTES - 1);
    word[length] = '\0';
    return 0;
}

/* The row of this name, where - stands for _ as well; row_count where there is none. */
static size_t row_find(const struct step *step, const char *name)
{
    char canonical[sizeof(step->rows[0].name)];
    if (strlen(name) >= sizeof(canonical))
        return step->row_count;
    strcpy(canonical, name);
    for (char *dash; (dash = strchr(canonical, '-'));)
        *dash = '_';
    size_t row = 0;
    while (row < step->row_count && strcmp(step->rows[row].name, canonical))
        row++;
    return row;
}

static int operand_parse(struct parser *parser, const char *word, const struct scand_parameter_info *row,
                         const char *path)
{
    static const struct scand_tensor nowhere = {.rank = 1};
    struct pipeline *found = &parser->found;
    if (found->file_count == OPERANDS_MAX)
        return step_fail(parser, word, "it is one file too many beside the input");
    if (!*path || !strcmp(path, "-"))
        return step_fail(parser, word, "give a file, as in NAME=FILE.npy");
    struct operand_file *file = &found->files[found->file_count];
    *file = (struct operand_file){.step = parser->step.number - 1,
                                  .path = strdup(path),
                                  .written = !strcmp(row->access, "write"),
                                  .input = {.fd = -1}};
    if (!file->path)
        return fail(parser->error, EX_TEMPFAIL, "out of memory for a path");
    memcpy(file->name, row->name, sizeof(file->name));
    memcpy(file->follows, row->follows, sizeof(file->follows));
    memcpy(file->dtypes, row->dtypes, sizeof(file->dtypes));
    const struct scand_tensor *tensor = parser->operands ? &parser->operands[found->file_count] : &nowhere;
    found->file_count++;
    return scand_task_operand(parser->task, row->name, tensor) ? task_fail(parser, word) : 0;
}

static int value_parse(struct parser *parser, const char *word, const char *name, const char *value)
{
    struct step *step = &parser->step;
    const size_t row = row_find(step, name);
    if (row == step->row_count) {
        scand_task_set(parser->task, name, value);
        return task_fail(parser, word);
    }
    if (step->seen >> row & 1)
        return step_fail(parser, word, "it is there twice; give it once");
    step->seen |= UINT32_C(1) << row;
    if (!strcmp(step->rows[row].kind, "tensor"))
        return operand_parse(parser, word, &step->rows[row], value);
    char dt[32];
    if (!strcmp(step->rows[row].kind, "number") && !strcmp(value, "dt")) {
        parser->found.wants_dt = true;
        snprintf(dt, sizeof(dt), "%.17g", parser->dt);
        value = dt;
    }
    if (scand_task_set(parser->task, name, value))
        return task_fail(parser, word);
    if (!strcmp(step->rows[row].name, "reduction"))
        parser->found.reduction = (enum scand_reduction)scand_word_find(SCAND_LIST_REDUCTION, value);
    return 0;
}

static int word_apply(struct parser *parser)
{
    struct step *step = &parser->step;
    char shown[WORD_BYTES], *equals = strchr(parser->word, '=');
    const bool is_first = step->word_count++ == 0;
    strcpy(shown, parser->word);
    if (equals) {
        *equals = '\0';
        return value_parse(parser, shown, parser->word, equals + 1);
    }
    const size_t row = row_find(step, parser->word);
    if (row < step->row_count && !strcmp(step->rows[row].kind, "flag"))
        return value_parse(parser, shown, parser->word, "1");
    if (is_first && step->row_count)
        return value_parse(parser, shown, step->rows[0].name, parser->word);
    return step_fail(
        parser, shown,
        "it is no flag of this operation; give NAME=VALUE (NAME=\"VALUE\" where it has spaces), or, right after the "
        "operation, the value of its first parameter");
}

static int required_check(const struct parser *parser)
{
    const struct step *step = &parser->step;
    char why[sizeof(step->rows[0].words) + 128];
    for (size_t i = 0; i < step->row_count; i++) {
        if (!step->rows[i].required || step->seen >> i & 1)
            continue;
        snprintf(why, sizeof(why), "%s is missing; give %s=%s%s%s", step->rows[i].name, step->rows[i].name,
                 strcmp(step->rows[i].kind, "tensor") ? "VALUE" : "FILE.npy", *step->rows[i].words ? ", of " : "",
                 step->rows[i].words);
        return step_fail(parser, NULL, why);
    }
    return 0;
}

static int step_parse(struct parser *parser)
{
    struct step *step = &parser->step;
    *step = (struct step){.number = step->number + 1, .operation = parser->operation};
    parser->found.reduction = SCAND_REDUCTION_NONE;
    if (is_step_over(parser))
        return step_fail(parser, NULL, "it is empty; give an operation, with | between two");
    int result = word_read(parser, parser->operation);
    if (result)
        return result;
    if (scand_task_step(parser->task, parser->operation) ||
        scand_parameters(NULL, parser->operation, step->rows, sizeof(*step->rows), ROWS_MAX, &step->row_count))
        return task_fail(parser, NULL);
    while (!result && !is_step_over(parser)) {
        result = word_read(parser, parser->word);
        if (!result)
            result = word_apply(parser);
    }
    return result ? result : required_check(parser);
}

static int steps_parse(struct parser *parser)
{
    int result;
    do
        result = step_parse(parser);
    while (!result && *parser->at++ == '|');
    return result;
}

/* Reads the text into a task, and what scanctl has to know of it into *found. */
static int text_parse(const char *text, double dt, const struct scand_tensor *operands, struct scand_task **task,
                      struct pipeline *found, struct error *error)
{
    struct parser *parser = calloc(1, sizeof(*parser));
    if (!parser || scand_task_create(task)) {
        free(parser);
        return fail(error, EX_TEMPFAIL, "out of memory for the steps");
    }
    parser->at = text;
    parser->task = *task;
    parser->operands = operands;
    parser->dt = dt;
    parser->error = error;
    int result = steps_parse(parser);
    *found = parser->found;
    found->text = text;
    found->step_count = parser->step.number;
    found->reduces = scand_task_leaves_rows(*task);
    found->apart = found->step_count == 1 && strcmp(parser->operation, "scan");
    free(parser);
    if (result)
        scand_task_destroy(*task);
    return result;
}

int pipeline_check(struct pipeline *pipeline, const char *text, struct error *error)
{
    struct scand_task *task;
    int result = text_parse(text, 1, NULL, &task, pipeline, error);
    if (!result)
        scand_task_destroy(task);
    return result;
}

void pipeline_free(struct pipeline *pipeline)
{
    for (uint32_t i = 0; i < pipeline->file_count; i++)
        free(pipeline->files[i].path);
    pipeline->file_count = 0;
}

struct scand_task *pipeline_build(const struct pipeline *pipeline, const struct scand_tensor *operands)
{
    struct pipeline found = {.file_count = 0};
    struct scand_task *task;
    struct error error;
    int result = text_parse(pipeline->text, pipeline->dt ? pipeline->dt : 1, operands, &task, &found, &error);
    pipeline_free(&found);
    return result ? NULL : task;
}

/* Lengths do not depend on the number of rows, so the library is asked about a single row. */
int pipeline_lengths(const struct pipeline *pipeline, const uint64_t *vectors, uint64_t lengths[2 + SCAND_STEPS_MAX],
                     struct error *error)
{
    struct scand_tensor operands[OPERANDS_MAX], line = {.rank = 1, .shape = {lengths[0]}};
    int status = 0;
    for (uint32_t i = 0; i < pipeline->file_count; i++)
        operands[i] = (struct scand_tensor){.rank = 1, .shape = {vectors[i]}};
    struct scand_task *task = pipeline_build(pipeline, operands);
    if (!task)
        return fail(error, EX_TEMPFAIL, "out of memory for the steps");
    scand_task_input(task, &line);
    scand_task_axis(task, 0);
    for (uint32_t i = 1; i <= pipeline->step_count && !status; i++) {
        status = scand_task_shape(task, i, &line);
        lengths[i] = line.shape[0];
    }
    if (status)
        fail(error, EX_USAGE, "%s", scand_task_message(task));
    scand_task_destroy(task);
    return status ? EX_USAGE : 0;
}

/* Values that a setter refuses are reported by the submission, so setters are not checked here. */
static int steps_submit(const void *context, const struct operands *operands, struct scand *daemon,
                        scand_progress *progress, void *progress_context, struct scand_job **out)
{
    const struct pipeline *pipeline = context;
    char deadline_ms[24], group[12];
    struct scand_task *task = pipeline_build(pipeline, operands->further);
    if (!task)
        return SCAND_NO_MEMORY;
    snprintf(deadline_ms, sizeof(deadline_ms), "%" PRIu32, pipeline->deadline_ms);
    scand_task_input(task, &operands->input);
    scand_task_output(task, &operands->output);
    scand_task_axis(task, operands->axis);
    if (operands->offsets.buffer)
        scand_task_offsets(task, &operands->offsets);
    if (pipeline->algorithm)
        scand_task_option(task, "algorithm", pipeline->algorithm);
    scand_task_option(task, "priority", scand_word(SCAND_LIST_PRIORITY, pipeline->priority));
    scand_task_option(task, "deadline_ms", deadline_ms);
    snprintf(group, sizeof(group), "%" PRIu32, operands->group);
    scand_task_option(task, "group", group);
    int status = scand_task_submit(daemon, task, progress, progress_context, out);
    scand_task_destroy(task);
    return status;
}

void pipeline_report(const struct pipeline *pipeline, struct json *json)
{
    json_text(json, "steps", pipeline->text);
    json_text(json, "algorithm", pipeline->algorithm ? pipeline->algorithm : "");
}

struct compute compute_steps(const struct pipeline *pipeline)
{
    return (struct compute){.word = "the run",
                            .reduces = pipeline->reduces,
                            .apart = pipeline->apart,
                            .submit = steps_submit,
                            .context = pipeline};
}
