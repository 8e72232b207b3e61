/* Chains of steps whose work does not show in their bytes: what rows take however short they are, and what is between
 * steps. */
#include "tests/bench/hostile/attack.h"

#define SHORT_ROWS   (UINT64_C(1) << 20)
#define STACKED_ROWS (UINT64_C(1) << 16)
#define FEW_ROWS     16 /* jobs of one sample, before one of many */
#define MANY_ROWS    (UINT64_C(1) << 12)

/* Rows of samples side by side; the input's are all the same where rows share them. */
static struct msg_tensor rows_of(uint64_t buffer, uint64_t offset, uint64_t rows, uint64_t samples, bool shared)
{
    return (struct msg_tensor){.buffer = buffer,
                               .offset = offset,
                               .dtype = SCAND_DTYPE_F32,
                               .shape = {rows, samples},
                               .shape_count = 2,
                               .strides = {shared ? 0 : (int64_t)(samples * sizeof(float)), sizeof(float)},
                               .strides_count = 2};
}

static union msg_step triangle(void)
{
    return (union msg_step){.triangle = {.operation = OPERATION_triangle, .half_width = LIMIT_HALF_WIDTH, .repeat = 1}};
}

static union msg_step sum(void)
{
    return (union msg_step){.reduce = {.operation = OPERATION_reduce, .reduction = SCAND_REDUCTION_SUM}};
}

static bool run(struct line *line, const struct msg_job_run_params *job)
{
    return line_ask(line, METHOD_job_run, &msg_job_run_params_type, job, NULL, 0);
}

static bool set_up(struct attacker *self, struct line *line)
{
    line->buffers[0] = attack_import_new(self, line, 2 * MIB(16), NULL);
    return line->buffers[0] > 0;
}

/* A row of one sample is a sum over three segments, nine times. */
static bool ask_triangles(struct attacker *self, struct line *line)
{
    struct msg_job_run_params job = {.input = rows_of(line->buffers[0], 0, SHORT_ROWS, 1, false),
                                     .output = rows_of(line->buffers[0], MIB(16), SHORT_ROWS, 1, false),
                                     .axis = 1,
                                     .steps_count = LIMIT_STEPS};
    (void)self;
    for (uint32_t i = 0; i < LIMIT_STEPS; i++)
        job.steps[i] = triangle();
    return run(line, &job);
}

/* A row of one sample is stacked into bins that nothing keeps. */
static bool ask_bins(struct attacker *self, struct line *line)
{
    const struct msg_tensor index = {.buffer = line->buffers[0],
                                     .dtype = SCAND_DTYPE_I32,
                                     .shape = {1},
                                     .shape_count = 1,
                                     .strides = {4},
                                     .strides_count = 1};
    struct msg_job_run_params job = {.input = rows_of(line->buffers[0], 0, STACKED_ROWS, 1, true),
                                     .output = rows_of(line->buffers[0], MIB(16), STACKED_ROWS, 1, false),
                                     .axis = 1,
                                     .steps_count = 2};
    (void)self;
    job.steps[0] = (union msg_step){.stack = {.operation = OPERATION_stack, .bins = 1 << 16, .index = index}};
    job.steps[1] = sum();
    return run(line, &job);
}

/* Jobs of one sample, which take long for their bytes, and then one of many bytes. */
static bool ask_few_then_many(struct attacker *self, struct line *line)
{
    const bool few = line->msgid % (FEW_ROWS + 1) < FEW_ROWS;
    const uint64_t rows = few ? 1 : MANY_ROWS, samples = few ? 1 : MIB(16) / sizeof(float) / MANY_ROWS;
    struct msg_job_run_params job = {.input = rows_of(line->buffers[0], 0, rows, samples, false),
                                     .output = rows_of(line->buffers[0], MIB(16), rows, samples, false),
                                     .axis = 1,
                                     .steps_count = 2};
    (void)self;
    job.steps[0] = job.steps[1] = triangle();
    return run(line, &job);
}

void attack_steps_triangles(struct attacker *self)
{
    flood_run(self, &(struct flood){.lines = 1, .window = 4, .set_up = set_up, .ask = ask_triangles});
}

void attack_steps_bins(struct attacker *self)
{
    flood_run(self, &(struct flood){.lines = 1, .window = 4, .set_up = set_up, .ask = ask_bins});
}

void attack_steps_few_then_many(struct attacker *self)
{
    flood_run(self, &(struct flood){.lines = 4, .window = 8, .set_up = set_up, .ask = ask_few_then_many});
}
