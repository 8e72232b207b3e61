/* Ragged jobs: with a short message, the daemon has to read a million offsets, or keep them. */

#include "tests/bench/hostile/attack.h"

#define OFFSETS      (LIMIT_RAGGED_ROWS + 1)
#define OFFSET_BYTES (OFFSETS * sizeof(uint32_t))
#define SAMPLE_BYTES (LIMIT_RAGGED_ROWS * sizeof(float)) /* after the offsets */
#define MANY_LINES   60

static bool import_memory(struct attacker *self, struct line *line, uint32_t **offsets)
{
    void *memory;
    line->buffers[0] = attack_import_new(self, line, OFFSET_BYTES + SAMPLE_BYTES, &memory);
    *offsets = memory;
    return line->buffers[0] > 0;
}

/* All of them are 0: rows without samples, and no fault. */
static bool set_up_empty(struct attacker *self, struct line *line)
{
    uint32_t *offsets;
    return import_memory(self, line, &offsets);
}

/* The fault is found last. */
static bool set_up_refused(struct attacker *self, struct line *line)
{
    uint32_t *offsets;
    if (!import_memory(self, line, &offsets))
        return false;
    offsets[LIMIT_RAGGED_ROWS] = UINT32_MAX;
    return true;
}

static bool set_up_rows(struct attacker *self, struct line *line)
{
    uint32_t *offsets;
    if (!import_memory(self, line, &offsets))
        return false;
    for (uint32_t i = 0; i < OFFSETS; i++)
        offsets[i] = i;
    return true;
}

static struct msg_job_submit_params ragged_job(uint64_t buffer, int64_t offset_stride)
{
    const struct msg_tensor samples = {.buffer = buffer,
                                       .offset = OFFSET_BYTES,
                                       .dtype = SCAND_DTYPE_F32,
                                       .shape = {LIMIT_RAGGED_ROWS},
                                       .shape_count = 1,
                                       .strides = {sizeof(float)},
                                       .strides_count = 1};
    const struct msg_tensor offsets = {.buffer = buffer,
                                       .dtype = SCAND_DTYPE_U32,
                                       .shape = {OFFSETS},
                                       .shape_count = 1,
                                       .strides = {offset_stride},
                                       .strides_count = 1};
    return (struct msg_job_submit_params){
        .input = samples, .output = samples, .passes = {SCAND_PASS_FORWARD}, .passes_count = 1, .offsets = offsets};
}

static bool ask_batch(struct line *line, int64_t offset_stride)
{
    static struct msg_job_batch_params batch;
    batch.jobs_count = LIMIT_BATCH_JOBS;
    for (uint32_t i = 0; i < LIMIT_BATCH_JOBS; i++)
        batch.jobs[i].submit = ragged_job(line->buffers[0], offset_stride);
    return line_ask(line, METHOD_job_batch, &msg_job_batch_params_type, &batch, NULL, 0);
}

static bool ask_empty(struct attacker *self, struct line *line)
{
    (void)self;
    return ask_batch(line, 0);
}

static bool ask_refused(struct attacker *self, struct line *line)
{
    (void)self;
    return ask_batch(line, sizeof(uint32_t));
}

static bool ask_rows(struct attacker *self, struct line *line)
{
    const struct msg_job_submit_params job = ragged_job(line->buffers[0], sizeof(uint32_t));
    (void)self;
    return line_ask(line, METHOD_job_submit, &msg_job_submit_params_type, &job, NULL, 0);
}

/* Errors of a batch's jobs are in its result. */
static void answered_batch(struct attacker *self, struct line *line, const struct message *message)
{
    static struct msg_job_batch_result result;
    struct error error;
    (void)line;
    if (message->failed || message_read(message, &msg_job_batch_result_type, &result, &error))
        return;
    for (uint32_t i = 0; i < result.jobs_count; i++)
        if (result.jobs[i].error.code)
            tally_failure(self->tally, result.jobs[i].error.code, result.jobs[i].error.message);
}

static void run_batches(struct attacker *self, unsigned lines, bool (*set_up)(struct attacker *, struct line *),
                        bool (*ask)(struct attacker *, struct line *))
{
    flood_run(self, &(struct flood){.lines = lines, .window = 2, .set_up = set_up, .ask = ask, answered_batch});
}

void attack_ragged_empty(struct attacker *self)
{
    run_batches(self, 1, set_up_empty, ask_empty);
}

void attack_ragged_empty_60(struct attacker *self)
{
    run_batches(self, MANY_LINES, set_up_empty, ask_empty);
}

void attack_ragged_refused(struct attacker *self)
{
    run_batches(self, 1, set_up_refused, ask_refused);
}

void attack_ragged_refused_60(struct attacker *self)
{
    run_batches(self, MANY_LINES, set_up_refused, ask_refused);
}

void attack_ragged_queued(struct attacker *self)
{
    flood_run(self, &(struct flood){.lines = 16, .window = 16, .set_up = set_up_rows, .ask = ask_rows});
}

/* Few rows, which are a small job by their bytes. */
static bool ask_short(struct attacker *self, struct line *line)
{
    static struct msg_job_submit_params job;
    (void)self;
    job = ragged_job(line->buffers[0], sizeof(uint32_t));
    job.input.shape[0] = job.output.shape[0] = LIMIT_SMALL_RAGGED_ROWS;
    job.offsets.shape[0] = LIMIT_SMALL_RAGGED_ROWS + 1;
    job.accumulator = SCAND_ACCUMULATOR_F2;
    job.passes[1] = SCAND_PASS_BACKWARD;
    job.passes_count = 2;
    job.then_count = SCAND_STEPS_MAX;
    for (uint32_t i = 0; i < SCAND_STEPS_MAX; i++)
        job.then[i] = (struct msg_then_step){.passes = {SCAND_PASS_FORWARD, SCAND_PASS_BACKWARD},
                                             .passes_count = 2,
                                             .accumulator = SCAND_ACCUMULATOR_F2};
    return line_ask(line, METHOD_job_submit, &msg_job_submit_params_type, &job, NULL, 0);
}

void attack_ragged_short(struct attacker *self)
{
    flood_run(self, &(struct flood){.lines = 8, .window = 100, .set_up = set_up_rows, .ask = ask_short});
}
