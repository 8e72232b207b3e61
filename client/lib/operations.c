/* The operations and their parameters, as the daemon has them or as this library knows them. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "client/lib/internal.h"
#include "protocol/describe.h"

/* Reads the operation in this place: 1, 0 behind the last one, or -errno. Without a daemon they are the library's. */
static int operation_at(struct scand *daemon, uint32_t index, struct msg_operation *out)
{
    if (daemon)
        return hello_operation(daemon, index, out);
    if (index >= OPERATION_COUNT)
        return 0;
    operation_describe((enum operation_id)index, out);
    return 1;
}

/* Checks a list's rows, and connects if need be, so that all operations are of one daemon until the call returns. */
static int list_check(struct scand *daemon, const struct rows *rows)
{
    if (!daemon)
        return rows->row_bytes ? 0 : -EINVAL;
    int code = rows_check(daemon, rows);
    return code ? code : session_ready(daemon);
}

static int operations_fill(struct scand *daemon, struct rows *rows)
{
    struct msg_operation from;
    int code = list_check(daemon, rows);
    for (uint32_t i = 0; code == 0 && !rows_are_full(rows) && (code = operation_at(daemon, i, &from)) == 1; i++) {
        struct scand_operation_info operation = {.name = ""};
        memcpy(operation.name, from.name, sizeof operation.name);
        memcpy(operation.line, from.line, sizeof operation.line);
        rows_add(rows, &operation, sizeof operation);
        code = 0;
    }
    return code;
}

int scand_operations(struct scand *daemon, struct scand_operation_info *operations, size_t row_bytes, size_t capacity,
                     size_t *count)
{
    SESSION_GUARD(daemon);
    struct rows rows = {operations, row_bytes, capacity, 0};
    int code = operations_fill(daemon, &rows);
    if (code == 0)
        *count = rows.count;
    return (int)status_from_errno(code);
}

static struct scand_parameter_info parameter_info(const struct msg_parameter *from)
{
    struct scand_parameter_info parameter = {.required = from->required != 0, .most = from->most};
    size_t used = 0;
    memcpy(parameter.name, from->name, sizeof parameter.name);
    memcpy(parameter.kind, from->kind, sizeof parameter.kind);
    memcpy(parameter.line, from->line, sizeof parameter.line);
    for (uint32_t i = 0; i < from->words_count && used < sizeof parameter.words; i++)
        used += (size_t)snprintf(parameter.words + used, sizeof parameter.words - used, "%s%s", i ? "," : "",
                                 from->words[i]);
    return parameter;
}

static struct scand_parameter_info operand_info(const struct msg_operand *from)
{
    struct scand_parameter_info operand = {.kind = "tensor", .required = from->required != 0};
    memcpy(operand.name, from->name, sizeof operand.name);
    memcpy(operand.line, from->line, sizeof operand.line);
    memcpy(operand.access, from->access, sizeof operand.access);
    memcpy(operand.follows, from->follows, sizeof operand.follows);
    memcpy(operand.dtypes, from->class, sizeof operand.dtypes);
    return operand;
}

/* Finds an operation by name: 0, -ENOENT or another -errno. */
static int operation_find(struct scand *daemon, const char *name, struct msg_operation *out)
{
    for (uint32_t i = 0;; i++) {
        int code = operation_at(daemon, i, out);
        if (code < 0)
            return code;
        if (code == 0 && daemon)
            return session_fail(daemon, -ENOENT, "the daemon (%s) has no operation \"%.40s\"; see scand_operations",
                                daemon->server, name);
        if (code == 0)
            return -ENOENT;
        if (strcmp(out->name, name) == 0)
            return 0;
    }
}

int scand_parameters(struct scand *daemon, const char *operation, struct scand_parameter_info *parameters,
                     size_t row_bytes, size_t capacity, size_t *count)
{
    SESSION_GUARD(daemon);
    struct rows rows = {parameters, row_bytes, capacity, 0};
    struct msg_operation from;
    int code = list_check(daemon, &rows);
    if (code == 0)
        code = operation_find(daemon, operation, &from);
    if (code)
        return (int)status_from_errno(code);
    for (uint32_t i = 0; i < from.parameters_count + from.operands_count && !rows_are_full(&rows); i++) {
        const struct scand_parameter_info row = i < from.parameters_count
                                                    ? parameter_info(&from.parameters[i])
                                                    : operand_info(&from.operands[i - from.parameters_count]);
        rows_add(&rows, &row, sizeof row);
    }
    *count = rows.count;
    return SCAND_OK;
}
