/* The names of a request's method, fields and operands in messages. */
#include <stdio.h>
#include <string.h>

#include "request.h"

const char *request_method(bool submitted)
{
    return submitted ? "job.submit" : "job.run";
}

const char *request_field(const struct request *request, uint32_t step, const char *name, char out[FIELD_NAME_BYTES])
{
    if (request->submitted && step == 0)
        return name;
    if (request->submitted)
        snprintf(out, FIELD_NAME_BYTES, "then[%u].%s", (unsigned)step - 1, name);
    else
        snprintf(out, FIELD_NAME_BYTES, "steps[%u].%s", (unsigned)(step - request->added[step]),
                 request->scales >> step & 1 && strcmp(name, "by") == 0 ? "scale" : name);
    return out;
}

const char *request_operand_name(const struct request *request, uint32_t operand, char out[FIELD_NAME_BYTES])
{
    const struct request_operand *at = &request->operands[operand];
    return operand < OPERAND_FURTHER ? at->name : request_field(request, at->step, at->name, out);
}
