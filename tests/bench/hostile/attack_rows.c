/* Jobs that compute for long on few bytes. */
#include "tests/bench/hostile/attack.h"

#define LONG_SAMPLES  (UINT64_C(1) << 26)
#define ROWS          6400
#define ROW_SAMPLES   10000
#define SHORT_ROWS    50
#define DEMEANED_ROWS 200

static struct msg_tensor tensor(uint64_t buffer, uint64_t rows, uint64_t samples)
{
    return (struct msg_tensor){.buffer = buffer,
                               .dtype = SCAND_DTYPE_F32,
                               .shape = {rows, samples},
                               .shape_count = 2,
                               .strides = {(int64_t)(samples * sizeof(float)), sizeof(float)},
                               .strides_count = 2};
}

bool long_rows_reduce_long(struct attacker *self, struct line *line, struct msg_job_submit_params *params)
{
    uint64_t buffer = attack_import_new(self, line, MIB(1), NULL);
    *params = (struct msg_job_submit_params){.axis = 1,
                                             .operation = SCAND_OPERATION_REDUCE,
                                             .reduction = SCAND_REDUCTION_SUM,
                                             .input = tensor(buffer, 1, LIMIT_ROW_SAMPLES),
                                             .output = tensor(buffer, 1, 1)};
    params->input.strides[0] = params->input.strides[1] = 0;
    params->output.offset = KIB(512);
    return buffer > 0;
}

/* Makes a chain of 18 passes: two of the job, and two of each of eight steps. */
static void chain(struct msg_job_submit_params *params, uint32_t op)
{
    params->axis = 1;
    params->passes[0] = SCAND_PASS_FORWARD;
    params->passes[1] = SCAND_PASS_BACKWARD;
    params->passes_count = 2;
    params->op = op;
    params->accumulator = SCAND_ACCUMULATOR_F2;
    params->coefficient = op == SCAND_OPERATOR_AFFINE ? 0.5 : 0;
    params->then_count = SCAND_STEPS_MAX;
    for (uint32_t i = 0; i < SCAND_STEPS_MAX; i++)
        params->then[i] = (struct msg_then_step){.passes = {SCAND_PASS_FORWARD, SCAND_PASS_BACKWARD},
                                                 .passes_count = 2,
                                                 .op = op,
                                                 .accumulator = SCAND_ACCUMULATOR_F2,
                                                 .coefficient = params->coefficient};
}

static bool chain_rows(struct attacker *self, struct line *line, struct msg_job_submit_params *params, uint32_t op,
                       uint64_t rows, uint64_t samples)
{
    uint64_t buffer = attack_import_new(self, line, rows * samples * sizeof(float), NULL);
    *params =
        (struct msg_job_submit_params){.input = tensor(buffer, rows, samples), .output = tensor(buffer, rows, samples)};
    chain(params, op);
    return buffer > 0;
}

bool long_rows_chain_long(struct attacker *self, struct line *line, struct msg_job_submit_params *params)
{
    return chain_rows(self, line, params, SCAND_OPERATOR_SUM, 1, LONG_SAMPLES);
}

bool long_rows_chain_affine(struct attacker *self, struct line *line, struct msg_job_submit_params *params)
{
    return chain_rows(self, line, params, SCAND_OPERATOR_AFFINE, ROWS, ROW_SAMPLES);
}

static struct msg_job_submit_params job;

static bool ask(struct attacker *self, struct line *line)
{
    (void)self;
    return line_ask(line, METHOD_job_submit, &msg_job_submit_params_type, &job, NULL, 0);
}

static bool set_up_reduce_long(struct attacker *self, struct line *line)
{
    return long_rows_reduce_long(self, line, &job);
}

static bool set_up_chain_long(struct attacker *self, struct line *line)
{
    return long_rows_chain_long(self, line, &job);
}

static bool set_up_chain_affine(struct attacker *self, struct line *line)
{
    return long_rows_chain_affine(self, line, &job);
}

/* Few rows, which are a small job by their bytes. */
static bool set_up_affine_short(struct attacker *self, struct line *line)
{
    const bool made = chain_rows(self, line, &job, SCAND_OPERATOR_AFFINE, SHORT_ROWS, 1);
    line->buffers[0] = job.input.buffer;
    return made;
}

static bool set_up_demean_short(struct attacker *self, struct line *line)
{
    const bool made = chain_rows(self, line, &job, SCAND_OPERATOR_SUM, DEMEANED_ROWS, 1);
    line->buffers[0] = job.input.buffer;
    job.demean = 1;
    for (uint32_t i = 0; i < job.then_count; i++)
        job.then[i].demean = 1;
    return made;
}

/* Each connection has memory of its own. */
static bool ask_short(struct attacker *self, struct line *line)
{
    job.input.buffer = job.output.buffer = line->buffers[0];
    return ask(self, line);
}

void attack_affine_short(struct attacker *self)
{
    flood_run(self, &(struct flood){.lines = 8, .window = 100, .set_up = set_up_affine_short, .ask = ask_short});
}

void attack_demean_short(struct attacker *self)
{
    flood_run(self, &(struct flood){.lines = 8, .window = 100, .set_up = set_up_demean_short, .ask = ask_short});
}

void attack_reduce_long(struct attacker *self)
{
    flood_run(self, &(struct flood){.lines = 1, .window = 4, .set_up = set_up_reduce_long, .ask = ask});
}

void attack_chain_long(struct attacker *self)
{
    flood_run(self, &(struct flood){.lines = 1, .window = 4, .set_up = set_up_chain_long, .ask = ask});
}

void attack_chain_affine(struct attacker *self)
{
    flood_run(self, &(struct flood){.lines = 1, .window = 4, .set_up = set_up_chain_affine, .ask = ask});
}
