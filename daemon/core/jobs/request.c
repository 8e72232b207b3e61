#include "request.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "axes.h"
#include "protocol/describe.h"

/* Returns a step's number in the message. */
static uint32_t sent_step(const struct request *request, uint32_t step)
{
    return step - request->added[step];
}

/* Returns what an operand follows; a single vector belongs to all rows. */
static enum follows follows_of(const struct operand_row *row, const struct msg_tensor *tensor)
{
    return row->follows == FOLLOWS_VECTORS && tensor->shape_count == 1 ? FOLLOWS_JOB : row->follows;
}

static int add_step(struct request *request, uint32_t step, struct error *error)
{
    const union msg_step *message = &request->params->steps[step];
    char field[FIELD_NAME_BYTES];
    for (const struct operand_row *row = operand_rows[message->operation]; row->name; row++) {
        const struct msg_tensor *tensor = (const void *)((const char *)message + row->offset);
        if (tensor->shape_count == 0)
            continue;
        if (request->operand_count == LIMIT_JOB_OPERANDS)
            return error_set(error, -EINVAL,
                             "\"%s\" is one operand too many; allowed: %d tensors of all steps together; submit the "
                             "other steps as a further job",
                             request_field(request, step, row->name, field), LIMIT_JOB_OPERANDS - OPERAND_FURTHER);
        request->operands[request->operand_count++] = (struct request_operand){.tensor = tensor,
                                                                               .name = row->name,
                                                                               .step = step,
                                                                               .access = row->access,
                                                                               .follows = follows_of(row, tensor),
                                                                               .class = row->class};
    }
    return 0;
}

static int init(struct request *request, const struct msg_job_run_params *params, bool submitted, struct error *error)
{
    const bool ragged = params->offsets.shape_count > 0;
    int r = 0;
    request->params = params;
    request->submitted = submitted;
    request->operands[OPERAND_INPUT] = (struct request_operand){
        .tensor = &params->input, .name = "input", .access = ACCESS_READ, .follows = FOLLOWS_SAMPLES};
    request->operands[OPERAND_OUTPUT] = (struct request_operand){
        .tensor = &params->output, .name = "output", .access = ACCESS_WRITE, .follows = FOLLOWS_SAMPLES};
    request->operands[OPERAND_OFFSETS] = (struct request_operand){
        .tensor = ragged ? &params->offsets : NULL, .name = "offsets", .access = ACCESS_READ, .follows = FOLLOWS_JOB};
    request->operand_count = OPERAND_FURTHER;
    for (uint32_t step = 0; step < params->steps_count && !r; step++)
        r = add_step(request, step, error);
    return r;
}

/*
 * Steps that stand for several: repeated ones, and a scan with a scale, which is a scan and a multiplication.
 */

static bool is_scaled(const union msg_step *step)
{
    return step->operation == OPERATION_scan && STEP_GIVES(&step->scan, scan, scale);
}

/* Returns how many steps a step of the message stands for. */
static uint64_t steps_of(const union msg_step *step)
{
    switch ((enum operation_id)step->operation) {
#define X(NAME)            \
    case OPERATION_##NAME: \
        return STEP_GIVES(&step->NAME, NAME, repeat) ? step->NAME.repeat : 1;
        REPEATED_OPERATIONS(X)
#undef X
    default:
        return is_scaled(step) ? 2 : 1;
    }
}

static int refuse_steps(const union msg_step *step, uint32_t number, uint64_t steps, uint64_t most, struct error *error)
{
    if (is_scaled(step))
        return error_set(error, -EINVAL,
                         "\"steps[%u].scale\" is a step too many; allowed: %d steps, repeated ones and "
                         "multiplications by a scale counted; submit others as a further job",
                         (unsigned)number, LIMIT_STEPS);
    return error_set(error, -EINVAL,
                     "\"steps[%u].repeat\" is %" PRIu64 "; allowed here: 1 to %" PRIu64
                     ", since a job has at most %d steps, repeated ones counted; submit others as a further job",
                     (unsigned)number, steps, most, LIMIT_STEPS);
}

/* Fills request->added and request->scales. Returns how many steps there are in all, or -EINVAL. */
static int count_steps(struct request *request, const struct msg_job_run_params *params, struct error *error)
{
    uint64_t count = 0;
    request->scales = 0;
    for (uint32_t i = 0; i < params->steps_count; i++) {
        const union msg_step *step = &params->steps[i];
        const uint64_t steps = steps_of(step), most = LIMIT_STEPS - (params->steps_count - 1 - i);
        if (steps == 0 || steps > most - count)
            return refuse_steps(step, i, steps, most - count, error);
        for (uint64_t end = count + steps; count < end; count++)
            request->added[count] = (uint8_t)(count - i);
        if (is_scaled(step))
            request->scales |= UINT32_C(1) << (count - 1);
    }
    return (int)count;
}

static bool is_scale(const struct request *request, uint32_t step)
{
    return (request->scales >> step & 1) != 0;
}

/* Returns the step of the message, or the step that is to be done besides. */
static union msg_step expanded_step(const struct request *request, const struct msg_job_run_params *params,
                                    uint32_t step)
{
    const union msg_step *sent = &params->steps[sent_step(request, step)];
    if (!is_scale(request, step))
        return *sent;
    return (union msg_step){
        .map = {
            .given = UINT64_C(1) << map_field_by, .operation = OPERATION_map, .op = MAP_MUL, .by = sent->scan.scale}};
}

int request_init(struct request *request, const struct msg_job_run_params *params, struct msg_job_run_params *expanded,
                 struct error *error)
{
    const int count = count_steps(request, params, error);
    if (count < 0)
        return count;
    if ((uint32_t)count == params->steps_count && params->axes_count == 0)
        return init(request, params, false, error);
    *expanded = *params;
    expanded->steps_count = (uint32_t)count;
    for (int i = 0; i < count; i++)
        expanded->steps[i] = expanded_step(request, params, (uint32_t)i);
    request->submitted = false;
    const int r = params->axes_count > 0 ? axes_merge(request, expanded, error) : 0;
    return r ? r : init(request, expanded, false, error);
}

/*
 * Translation from job.submit, where the fields of all operations stand side by side, and `then` has those of further
 * scans.
 */

static struct msg_scan scan_of_then(const struct msg_then_step *then)
{
    struct msg_scan scan = {.operation = OPERATION_scan,
                            .passes_count = then->passes_count,
                            .kind = then->kind,
                            .op = then->op,
                            .accumulator = then->accumulator,
                            .intermediate = then->intermediate,
                            .demean = then->demean,
                            .coefficient = then->coefficient};
    memcpy(scan.passes, then->passes, sizeof scan.passes);
    return scan;
}

static struct msg_scan scan_of_submit(const struct msg_job_submit_params *params)
{
    struct msg_scan scan = {.operation = OPERATION_scan,
                            .passes_count = params->passes_count,
                            .kind = params->kind,
                            .op = params->op,
                            .accumulator = params->accumulator,
                            .intermediate = params->intermediate,
                            .demean = params->demean,
                            .coefficient = params->coefficient,
                            .coefficients = params->coefficients};
    memcpy(scan.passes, params->passes, sizeof scan.passes);
    return scan;
}

static int copy_scans(const struct msg_job_submit_params *params, struct msg_job_run_params *run, struct error *error)
{
    if (params->reduction != SCAND_REDUCTION_NONE)
        return error_set(error, -EINVAL,
                         "\"reduction\" is \"%s\", which is for \"operation\" \"reduce\", but \"operation\" is "
                         "\"scan\"; leave it out, or give \"operation\" \"reduce\"",
                         reduction_words.words[params->reduction]);
    if (params->passes_count == 0)
        return error_set(error, -EINVAL, "field \"passes\" is missing; give a list of one or two of forward, backward");
    run->steps[0].scan = scan_of_submit(params);
    for (uint32_t i = 0; i < params->then_count; i++)
        run->steps[1 + i].scan = scan_of_then(&params->then[i]);
    run->steps_count = 1 + params->then_count;
    return 0;
}

/* Fields that say how a scan is done; what is left out is zero. */
static int refuse_scan_fields(const struct msg_job_submit_params *params, struct error *error)
{
    const struct {
        const char *name;
        bool given;
    } fields[] = {
        {"passes", params->passes_count > 0},
        {"kind", params->kind},
        {"op", params->op},
        {"accumulator", params->accumulator},
        {"intermediate", params->intermediate},
        {"demean", params->demean},
        {"coefficient", params->coefficient != 0},
        {"coefficients", params->coefficients.shape_count > 0},
        {"then", params->then_count > 0},
    };
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        if (fields[i].given)
            return error_set(error, -EINVAL,
                             "\"%s\" is for \"operation\" \"scan\", but \"operation\" is \"reduce\"; leave it out",
                             fields[i].name);
    return 0;
}

static int copy_reduction(const struct msg_job_submit_params *params, struct msg_job_run_params *run,
                          struct error *error)
{
    char allowed[FIELD_NAME_BYTES];
    int r = refuse_scan_fields(params, error);
    if (r)
        return r;
    if (params->reduction == SCAND_REDUCTION_NONE)
        return error_set(error, -EINVAL, "\"operation\" is \"reduce\", but there is no \"reduction\"; give one of %s",
                         words_join(&row_reduction_words, allowed, sizeof allowed));
    run->steps[0].reduce =
        (struct msg_reduce){.operation = OPERATION_reduce, .reduction = params->reduction - SCAND_REDUCTION_NONE - 1};
    run->steps_count = 1;
    return 0;
}

int request_init_submit(struct request *request, const struct msg_job_submit_params *params,
                        struct msg_job_run_params *run, struct error *error)
{
    run->input = params->input;
    run->output = params->output;
    run->axis = params->axis;
    run->offsets = params->offsets;
    memcpy(run->algorithm, params->algorithm, sizeof run->algorithm);
    run->priority = params->priority;
    run->deadline_ms = params->deadline_ms;
    run->progress = params->progress;
    run->ending = params->ending;
    run->after_failure = params->after_failure;
    run->group = params->group;
    int r = (params->operation == SCAND_OPERATION_REDUCE ? copy_reduction : copy_scans)(params, run, error);
    return r ? r : init(request, run, true, error);
}
