/*
 * A job that is being described, by names out of the list of operations (protocol/operations.h): its operands, and its
 * steps with their parameters. The tables that encode job.run say where each value goes, so that a new operation needs
 * nothing here.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/lib/field_values.h"
#include "client/lib/internal.h"
#include "protocol/describe.h"
#include "protocol/lengths.h"

#define TASK_TENSORS (3 + LIMIT_STEPS * LIMIT_OPERANDS) /* the job's own tensors, and the steps' */
#define JOB          UINT32_MAX                         /* stands in place of a step's number */

struct task_tensor {
    const struct field *field;
    uint32_t step;
    size_t offset; /* offset of its message in the params */
    bool is_written;
    struct scand_tensor tensor;
};

struct scand_task {
    struct error error;               /* the error of the first call that failed; later calls do nothing */
    struct msg_job_run_params params; /* without tensors */
    uint64_t given;                   /* bit i: field i was set */
    uint32_t tensor_count;
    struct task_tensor tensors[TASK_TENSORS];
};

int scand_task_create(struct scand_task **out)
{
    struct scand_task *task = calloc(1, sizeof *task);
    if (!task)
        return SCAND_NO_MEMORY;
    *out = task;
    return SCAND_OK;
}

void scand_task_destroy(struct scand_task *task)
{
    free(task);
}

const char *scand_task_message(const struct scand_task *task)
{
    return task->error.message;
}

/* The fields of a step, or of the whole job. */
struct fields {
    const struct map_type *type;
    uint32_t step;
    size_t first; /* first field that can be set: a step's operation cannot */
    void *values;
    uint64_t *given;
};

static struct fields fields_of_job(struct scand_task *task)
{
    return (struct fields){&msg_job_run_params_type, JOB, 0, &task->params, &task->given};
}

static void *given_of(const union msg_step *step)
{
    return (char *)(uintptr_t)step + step_types[step->operation]->given_offset;
}

static struct fields fields_of_step(struct scand_task *task, uint32_t step)
{
    union msg_step *values = &task->params.steps[step];
    return (struct fields){step_types[values->operation], step, 1, values, given_of(values)};
}

/* Returns what messages call a field. */
static const char *path_of(uint32_t step, const char *name, char out[LIMIT_NAME_BYTES])
{
    if (step == JOB)
        snprintf(out, LIMIT_NAME_BYTES, "%s", name);
    else
        snprintf(out, LIMIT_NAME_BYTES, "steps[%u].%s", (unsigned)step, name);
    return out;
}

static void note_given(const struct fields *fields, const struct field *field)
{
    *fields->given |= UINT64_C(1) << (field - fields->type->fields);
}

static int tensor_set(struct scand_task *task, const struct fields *fields, const struct field *field, bool is_written,
                      const struct scand_tensor *tensor)
{
    char path[LIMIT_NAME_BYTES];
    int code = tensor_check_form(path_of(fields->step, field->name, path), tensor, &task->error);
    if (code)
        return code;
    const size_t offset = (size_t)((char *)fields->values - (char *)&task->params) + field->offset;
    uint32_t i = 0;
    while (i < task->tensor_count && task->tensors[i].offset != offset)
        i++;
    assert(i < TASK_TENSORS);
    task->tensors[i] = (struct task_tensor){field, fields->step, offset, is_written, *tensor};
    task->tensor_count += i == task->tensor_count;
    note_given(fields, field);
    return 0;
}

static int job_tensor_set(struct scand_task *task, const char *name, bool is_written, const struct scand_tensor *tensor)
{
    const struct fields fields = fields_of_job(task);
    const struct field *field = field_find(fields.type, fields.first, name);
    if (!task->error.code)
        tensor_set(task, &fields, field, is_written, tensor);
    return (int)status_from_errno(task->error.code);
}

int scand_task_input(struct scand_task *task, const struct scand_tensor *tensor)
{
    return job_tensor_set(task, "input", false, tensor);
}

int scand_task_output(struct scand_task *task, const struct scand_tensor *tensor)
{
    return job_tensor_set(task, "output", true, tensor);
}

int scand_task_offsets(struct scand_task *task, const struct scand_tensor *tensor)
{
    return job_tensor_set(task, "offsets", false, tensor);
}

int scand_task_axis(struct scand_task *task, uint32_t axis)
{
    const struct fields fields = fields_of_job(task);
    const struct field *field = field_find(fields.type, fields.first, "axis");
    if (!task->error.code && field_set_number(field, fields.values, field->name, axis, &task->error) == 0) {
        note_given(&fields, field);
        task->params.axes_count = 0;
    }
    return (int)status_from_errno(task->error.code);
}

static int axes_check(struct scand_task *task, const uint32_t *axes, uint32_t count)
{
    uint32_t seen = 0;
    if (count < 1 || count > SCAND_RANK_MAX)
        return error_set(&task->error, -EINVAL, "axes has %u items; allowed: 1 to %d", (unsigned)count, SCAND_RANK_MAX);
    for (uint32_t i = 0; i < count; i++) {
        if (axes[i] >= SCAND_RANK_MAX)
            return error_set(&task->error, -EINVAL, "axes[%u] is %u; allowed: 0 to %d", (unsigned)i, (unsigned)axes[i],
                             SCAND_RANK_MAX - 1);
        if (seen >> axes[i] & 1)
            return error_set(&task->error, -EINVAL, "axes has %u twice; give each dimension once", (unsigned)axes[i]);
        seen |= UINT32_C(1) << axes[i];
    }
    return 0;
}

int scand_task_axes(struct scand_task *task, const uint32_t *axes, uint32_t count)
{
    if (task->error.code || axes_check(task, axes, count) || scand_task_axis(task, axes[0]))
        return (int)status_from_errno(task->error.code);
    task->params.axes_count = count > 1 ? count : 0;
    for (uint32_t i = 0; i < task->params.axes_count; i++)
        task->params.axes[i] = axes[i];
    return SCAND_OK;
}

/* Fields of job.run that are options; others have functions of their own. */
static const char *const option_names[] = {"algorithm", "priority", "deadline_ms", "after_failure", "group"};
static const struct words options = {"option", option_names, sizeof option_names / sizeof option_names[0]};

static const struct field *option_find(const char *name)
{
    const struct field *field = field_find(&msg_job_run_params_type, 0, name);
    return field && words_find(&options, field->name, strlen(field->name)) >= 0 ? field : NULL;
}

int scand_task_option(struct scand_task *task, const char *name, const char *value)
{
    char list[160];
    const struct field *field = option_find(name);
    if (!task->error.code && !field)
        error_set(&task->error, -EINVAL, "there is no option \"%s\"; there are: %s", name,
                  words_join(&options, list, sizeof list));
    else if (!task->error.code)
        field_set_text(field, &task->params, field->name, value, &task->error);
    return (int)status_from_errno(task->error.code);
}

int scand_task_step(struct scand_task *task, const char *operation)
{
    char list[160];
    const int word = words_find(&step_words, operation, strlen(operation));
    if (task->error.code)
        return (int)status_from_errno(task->error.code);
    if (word < 0)
        error_set(&task->error, -EINVAL, "steps[%u].operation is \"%s\"; there are: %s",
                  (unsigned)task->params.steps_count, operation, words_join(&step_words, list, sizeof list));
    else if (task->params.steps_count == LIMIT_STEPS)
        error_set(&task->error, -EINVAL,
                  "steps has %d items, and \"%s\" is one more; allowed: 1 to %d; what remains makes another job",
                  LIMIT_STEPS, operation, LIMIT_STEPS);
    else {
        union msg_step *step = &task->params.steps[task->params.steps_count++];
        step->operation = (uint32_t)word;
        *(uint64_t *)given_of(step) = 1; /* the first field, the operation, is given */
    }
    return (int)status_from_errno(task->error.code);
}

/* The field of the latest step; NULL and the task's error where there is none. `shown`: its value, for messages. */
static const struct field *step_field(struct scand_task *task, const char *name, const char *shown,
                                      struct fields *fields)
{
    char names[200];
    if (task->error.code)
        return NULL;
    if (task->params.steps_count == 0) {
        error_set(&task->error, -EINVAL, "\"%s\" is of a step, and there is none: begin one with scand_task_step",
                  name);
        return NULL;
    }
    *fields = fields_of_step(task, task->params.steps_count - 1);
    const struct field *field = field_find(fields->type, fields->first, name);
    if (!field)
        error_set(&task->error, -EINVAL,
                  "steps[%u].%.40s is %.40s, but operation \"%s\" has no such parameter; it takes: %s",
                  (unsigned)fields->step, name, shown, step_words.words[*(uint32_t *)fields->values],
                  fields_join(fields->type, fields->first, names, sizeof names));
    return field;
}

/* Finds the field of a parameter, with the same results. */
static const struct field *parameter_field(struct scand_task *task, const char *name, const char *shown,
                                           struct fields *fields)
{
    const struct field *field = step_field(task, name, shown, fields);
    if (!field || field->kind != FIELD_MAP)
        return field;
    error_set(&task->error, -EINVAL, "steps[%u].%s is %.40s; allowed: a tensor, given with scand_task_operand",
              (unsigned)fields->step, field->name, shown);
    return NULL;
}

int scand_task_set(struct scand_task *task, const char *name, const char *value)
{
    struct fields fields;
    char path[LIMIT_NAME_BYTES], shown[LIMIT_NAME_BYTES];
    snprintf(shown, sizeof shown, "\"%.32s\"", value);
    const struct field *field = parameter_field(task, name, shown, &fields);
    if (field &&
        field_set_text(field, fields.values, path_of(fields.step, field->name, path), value, &task->error) == 0)
        note_given(&fields, field);
    return (int)status_from_errno(task->error.code);
}

int scand_task_set_number(struct scand_task *task, const char *name, double value)
{
    struct fields fields;
    char path[LIMIT_NAME_BYTES], shown[LIMIT_NAME_BYTES];
    snprintf(shown, sizeof shown, "%.17g", value);
    const struct field *field = parameter_field(task, name, shown, &fields);
    if (field &&
        field_set_number(field, fields.values, path_of(fields.step, field->name, path), value, &task->error) == 0)
        note_given(&fields, field);
    return (int)status_from_errno(task->error.code);
}

static bool operand_is_written(enum operation_id operation, const struct field *field)
{
    const struct operand_row *row = operand_rows[operation];
    while (row->offset != field->offset)
        row++;
    return row->access == ACCESS_WRITE;
}

int scand_task_operand(struct scand_task *task, const char *name, const struct scand_tensor *tensor)
{
    struct fields fields;
    const struct field *field = step_field(task, name, "a tensor", &fields);
    if (field && field->kind != FIELD_MAP)
        error_set(&task->error, -EINVAL, "steps[%u].%s is a tensor; allowed: a parameter, given with scand_task_set",
                  (unsigned)fields.step, field->name);
    else if (field)
        tensor_set(task, &fields, field, operand_is_written(*(uint32_t *)fields.values, field), tensor);
    return (int)status_from_errno(task->error.code);
}

/* Checks that everything required was given: a field of zeros may be a value. */
static int required_check(const struct map_type *type, uint32_t step, uint64_t given, struct error *error)
{
    char path[LIMIT_NAME_BYTES];
    for (size_t i = 0; i < type->field_count; i++) {
        const struct field *field = &type->fields[i];
        if (!field->required || given >> i & 1 || field->kind == FIELD_STEPS)
            continue;
        const char *setter = step == JOB ? field->name : field->kind == FIELD_MAP ? "operand" : "set";
        return error_set(error, -EINVAL, "%s is missing: give it with scand_task_%s", path_of(step, field->name, path),
                         setter);
    }
    return 0;
}

static int steps_check(const struct scand_task *task, uint32_t steps, struct error *error)
{
    int code = 0;
    for (uint32_t i = 0; code == 0 && i < steps; i++) {
        const union msg_step *step = &task->params.steps[i];
        code = required_check(step_types[step->operation], i, *(const uint64_t *)given_of(step), error);
    }
    return code;
}

static int task_check(const struct scand_task *task, struct error *error)
{
    if (task->error.code)
        return error_set(error, task->error.code, "%s", task->error.message);
    int code = required_check(&msg_job_run_params_type, JOB, task->given, error);
    if (code == 0 && task->params.steps_count == 0)
        code = error_set(error, -EINVAL, "steps has no items: begin one with scand_task_step");
    return code ? code : steps_check(task, task->params.steps_count, error);
}

/*
 * The shapes of results.
 */

/* The tensor that was given for a field of the params; NULL: none was. */
static const struct scand_tensor *tensor_find(const struct scand_task *task, const void *place)
{
    for (uint32_t i = 0; i < task->tensor_count; i++)
        if (task->tensors[i].offset == (size_t)((const char *)place - (const char *)&task->params))
            return &task->tensors[i].tensor;
    return NULL;
}

/* Returns a step with the shapes of its operands, which may decide how long its result's rows are. */
static union msg_step step_with_shapes(const struct scand_task *task, uint32_t step)
{
    union msg_step whole = task->params.steps[step];
    for (const struct operand_row *row = operand_rows[whole.operation]; row->name; row++) {
        const struct scand_tensor *given = tensor_find(task, (const char *)&task->params.steps[step] + row->offset);
        struct msg_tensor *tensor = (struct msg_tensor *)((char *)&whole + row->offset);
        tensor->shape_count = given ? given->rank : 0;
        if (given)
            memcpy(tensor->shape, given->shape, sizeof tensor->shape);
    }
    return whole;
}

/* The dimensions along which rows lie. */
static uint32_t axis_count(const struct scand_task *task)
{
    return task->params.axes_count > 0 ? task->params.axes_count : 1;
}

static unsigned axis_at(const struct scand_task *task, uint32_t i)
{
    return (unsigned)(task->params.axes_count > 0 ? task->params.axes[i] : task->params.axis);
}

/* Samples of a row; more than 2^63 are so many. */
static uint64_t row_length(const struct scand_task *task, const struct scand_tensor *input)
{
    uint64_t length = 1;
    for (uint32_t i = 0; i < axis_count(task); i++)
        if (__builtin_mul_overflow(length, input->shape[axis_at(task, i)], &length))
            return INT64_MAX;
    return length;
}

static int shape_check(const struct scand_task *task, const struct scand_tensor *input, uint32_t steps,
                       struct error *error)
{
    const struct field *axis = field_find(&msg_job_run_params_type, 0, "axis");
    if (!input || !(task->given >> (axis - msg_job_run_params_type.fields) & 1))
        return error_set(error, -EINVAL, "%s is missing: give it with scand_task_%s", input ? "axis" : "input",
                         input ? "axis" : "input");
    for (uint32_t i = 0; i < axis_count(task); i++)
        if (axis_at(task, i) >= input->rank)
            return error_set(error, -EINVAL, "axis is %u; a tensor of %u dimensions has 0 to %u", axis_at(task, i),
                             (unsigned)input->rank, (unsigned)input->rank - 1);
    if (steps > task->params.steps_count)
        return error_set(error, -EINVAL, "there are %u steps, not %u", (unsigned)task->params.steps_count,
                         (unsigned)steps);
    return steps_check(task, steps, error);
}

/* Returns how many results lie along the axis: one for each ragged row, or 1. */
static uint64_t rows_along(const struct scand_task *task)
{
    const struct scand_tensor *offsets = tensor_find(task, &task->params.offsets);
    return !offsets ? 1 : offsets->shape[0] > 0 ? offsets->shape[0] - 1 : 0;
}

int scand_task_shape(struct scand_task *task, uint32_t steps, struct scand_tensor *out)
{
    const struct scand_tensor *input = tensor_find(task, &task->params.input);
    const uint64_t axis = task->params.axis;
    if (task->error.code || shape_check(task, input, steps, &task->error))
        return (int)status_from_errno(task->error.code);
    const uint64_t given = row_length(task, input);
    uint64_t length = given;
    for (uint32_t i = 0; i < steps; i++) {
        const union msg_step step = step_with_shapes(task, i);
        length = operation_leaves_rows(step.operation) ? rows_along(task) : length_after(&step, axis, length);
    }
    if (axis_count(task) > 1 && length != given && length != 1) {
        error_set(
            &task->error, -EINVAL,
            "axes has %u items, and the steps make rows of %llu samples as long as %llu; allowed then: steps that "
            "leave rows as long as they are or, last, a number of each",
            (unsigned)axis_count(task), (unsigned long long)given, (unsigned long long)length);
        return (int)status_from_errno(task->error.code);
    }
    out->rank = input->rank;
    memcpy(out->shape, input->shape, sizeof out->shape);
    for (uint32_t i = 0; i < axis_count(task) && length != given; i++)
        out->shape[axis_at(task, i)] = i == 0 ? length : 1;
    return SCAND_OK;
}

int scand_task_leaves_rows(const struct scand_task *task)
{
    const uint32_t steps = task->params.steps_count;
    return steps > 0 && operation_leaves_rows(task->params.steps[steps - 1].operation);
}

uint32_t task_operand_count(const struct scand_task *task)
{
    return task->tensor_count;
}

int task_prepare(struct scand *daemon, const struct scand_task *task, struct scand_job *job)
{
    char path[LIMIT_NAME_BYTES];
    struct error error;
    int code = task_check(task, &error);
    if (code)
        return session_fail(daemon, code, "%s", error.message);
    code = group_check(daemon, task->params.group);
    job->method = METHOD_job_run;
    job->params.run = task->params;
    for (uint32_t i = 0; code == 0 && i < task->tensor_count; i++) {
        const struct task_tensor *tensor = &task->tensors[i];
        const char *name = tensor->field->name;
        path_of(tensor->step, name, path);
        code = tensor_check(path, &tensor->tensor, &error);
        code =
            code ? session_fail(daemon, code, "%s", error.message) : tensor_check_buffer(daemon, path, &tensor->tensor);
        if (code == 0)
            operand_add(job, name, &tensor->tensor, tensor->is_written,
                        (struct msg_tensor *)((char *)&job->params.run + tensor->offset));
    }
    return code;
}
