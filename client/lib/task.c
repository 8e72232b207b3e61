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

#define TASK_TENSORS (3 + LIMIT_STEPS * LIMIT_OPERANDS) /* the job's own, and those of steps */
#define JOB          UINT32_MAX                         /* in place of a step's number */

struct task_tensor {
    const struct field *field;
    uint32_t step;
    size_t offset; /* of its message, in the params */
    bool is_written;
    struct scand_tensor tensor;
};

struct scand_task {
    struct error error;               /* of the first call that failed, after which no other one does anything */
    struct msg_job_run_params params; /* but for tensors */
    uint64_t given, given_steps[LIMIT_STEPS]; /* bit i: field i was set */
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

/* Where the fields of a step are, or of the whole job. */
struct fields {
    const struct map_type *type;
    uint32_t step;
    size_t first; /* that can be set: a step's operation cannot */
    void *values;
    uint64_t *given;
};

static struct fields fields_of_job(struct scand_task *task)
{
    return (struct fields){&msg_job_run_params_type, JOB, 0, &task->params, &task->given};
}

static struct fields fields_of_step(struct scand_task *task, uint32_t step)
{
    union msg_step *values = &task->params.steps[step];
    return (struct fields){step_types[values->operation], step, 1, values, &task->given_steps[step]};
}

/* What messages call a field. */
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
    int code = tensor_check(path_of(fields->step, field->name, path), tensor, &task->error);
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
    if (!task->error.code && field_set_number(field, fields.values, field->name, axis, &task->error) == 0)
        note_given(&fields, field);
    return (int)status_from_errno(task->error.code);
}

/* Fields of job.run that are options; others have functions of their own. */
static const char *const option_names[] = {"algorithm", "priority", "deadline_ms", "after_failure"};
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
                  "steps has %d items, and \"%s\" is one more; allowed: 1 to %d: make a task of what remains",
                  LIMIT_STEPS, operation, LIMIT_STEPS);
    else {
        task->given_steps[task->params.steps_count] = 1; /* which operation it is */
        task->params.steps[task->params.steps_count++].operation = (uint32_t)word;
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

/* Likewise, of a parameter. */
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

/* What is required must have been given: a field of zeros may be a value. */
static int required_check(struct scand *daemon, const struct map_type *type, uint32_t step, uint64_t given)
{
    char path[LIMIT_NAME_BYTES];
    for (size_t i = 0; i < type->field_count; i++) {
        const struct field *field = &type->fields[i];
        if (!field->required || given >> i & 1 || field->kind == FIELD_STEPS)
            continue;
        const char *setter = step == JOB ? field->name : field->kind == FIELD_MAP ? "operand" : "set";
        return session_fail(daemon, -EINVAL, "%s is missing: give it with scand_task_%s",
                            path_of(step, field->name, path), setter);
    }
    return 0;
}

static int task_check(struct scand *daemon, const struct scand_task *task)
{
    if (task->error.code)
        return session_fail(daemon, task->error.code, "%s", task->error.message);
    int code = required_check(daemon, &msg_job_run_params_type, JOB, task->given);
    if (code == 0 && task->params.steps_count == 0)
        code = session_fail(daemon, -EINVAL, "steps has no items: begin one with scand_task_step");
    for (uint32_t i = 0; code == 0 && i < task->params.steps_count; i++)
        code = required_check(daemon, step_types[task->params.steps[i].operation], i, task->given_steps[i]);
    return code;
}

uint32_t task_operand_count(const struct scand_task *task)
{
    return task->tensor_count;
}

int task_prepare(struct scand *daemon, const struct scand_task *task, struct scand_job *job)
{
    char path[LIMIT_NAME_BYTES];
    int code = task_check(daemon, task);
    job->method = METHOD_job_run;
    job->params.run = task->params;
    for (uint32_t i = 0; code == 0 && i < task->tensor_count; i++) {
        const struct task_tensor *tensor = &task->tensors[i];
        const char *name = tensor->field->name;
        code = tensor_check_buffer(daemon, path_of(tensor->step, name, path), &tensor->tensor);
        if (code == 0)
            operand_add(job, name, &tensor->tensor, tensor->is_written,
                        (struct msg_tensor *)((char *)&job->params.run + tensor->offset));
    }
    return code;
}
