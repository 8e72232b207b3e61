#include "operation.h"

#include <errno.h>

const struct operation *const operations[OPERATION_COUNT] = {
#define X(NAME, ...) &operation_##NAME,
    OPERATIONS(X)
#undef X
};

/* A step that leaves an element for each row leaves nothing that has samples. */
static int check_taken(const struct asked *asked, struct error *error)
{
    const union msg_step *steps = asked->request->params->steps;
    if (asked->in.follows == FOLLOWS_SAMPLES)
        return 0;
    return error_set(error, -EINVAL,
                     "\"steps[%u].operation\" is \"%s\", which takes rows of samples, but \"%s\" before it leaves one "
                     "element for each row; allowed: nothing after it; submit this step as a job of its own",
                     (unsigned)asked->step, step_words.words[steps[asked->step].operation],
                     step_words.words[steps[asked->step - 1].operation]);
}

int steps_check(struct request *request, struct step steps[LIMIT_STEPS], struct error *error)
{
    const struct msg_job_run_params *params = request->params;
    const enum scand_dtype output = params->output.dtype;
    struct asked asked = {.request = request, .in = {params->input.dtype, FOLLOWS_SAMPLES}};
    int r = 0;
    for (uint32_t k = 0; k < params->steps_count && !r; k++) {
        asked.step = k;
        steps[k].operation = params->steps[k].operation;
        const struct operation *operation = operations[steps[k].operation];
        if ((r = check_taken(&asked, error)) || (r = operation->check(&asked, output, &steps[k].rule, error)))
            return r;
        asked.in = (struct value){output, operation->leaves};
    }
    request->operands[OPERAND_OUTPUT].follows = asked.in.follows;
    return 0;
}
