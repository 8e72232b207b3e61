/* Jobs whose memory takes long to compare: buffers of many descriptors, of which all have one in common. */
#include <stdlib.h>
#include <unistd.h>

#include "tests/bench/hostile/attack.h"

#define FILES      128
#define FILE_BYTES 4096
#define OPERANDS   6 /* buffers of a job */
#define STALE      200
#define WAITING    240 /* jobs of a connection */
#define SAMPLES    64

struct buffers {
    uint64_t own; /* has the result that jobs wait for */
    uint64_t alike[STALE];
};

/* Imports descriptors of its own, and the common one. */
static uint64_t import_alike(struct attacker *self, struct line *line, int common)
{
    int fds[FILES];
    for (int i = 0; i < FILES - 1; i++)
        fds[i] = attack_memfd(FILE_BYTES);
    fds[FILES - 1] = common;
    const uint64_t buffer = attack_import(self, line, fds, FILES, FILE_BYTES);
    for (int i = 0; i < FILES - 1; i++)
        close(fds[i]);
    return buffer;
}

static bool set_up(struct attacker *self, struct line *line, unsigned count)
{
    struct buffers *buffers = line->memory ? (struct buffers *)line->memory : malloc(sizeof *buffers);
    int common = attack_memfd(FILE_BYTES);
    if (!buffers)
        abort();
    line->memory = buffers;
    buffers->own = attack_import_new(self, line, FILE_BYTES, NULL);
    for (unsigned i = 0; i < count; i++)
        buffers->alike[i] = import_alike(self, line, common);
    close(common);
    return buffers->own > 0 && buffers->alike[count - 1] > 0;
}

static bool set_up_waiting(struct attacker *self, struct line *line)
{
    return set_up(self, line, 2 * OPERANDS);
}

static bool set_up_stale(struct attacker *self, struct line *line)
{
    return set_up(self, line, STALE);
}

/* Samples in nearly all files of a buffer. */
static struct msg_tensor spread_of(uint64_t buffer)
{
    return attack_row(buffer, FILE_BYTES / 2, SAMPLES, (FILES - 1) * FILE_BYTES / SAMPLES / 4 * 4);
}

/* A row that takes long, and whose result all others want. */
static bool ask_long(struct line *line, const struct buffers *buffers)
{
    const struct msg_job_submit_params job = {.input = attack_row(buffers->own, 0, LIMIT_ROW_SAMPLES, 0),
                                              .output = attack_row(buffers->own, FILE_BYTES / 2, 1, 4),
                                              .axis = 1,
                                              .operation = SCAND_OPERATION_REDUCE,
                                              .reduction = SCAND_REDUCTION_SUM,
                                              .priority = SCAND_PRIORITY_LOW};
    return line_ask(line, METHOD_job_submit, &msg_job_submit_params_type, &job, NULL, 0);
}

static bool ask_sum(struct line *line, struct msg_tensor input, const uint64_t *alike, enum scand_priority priority)
{
    struct msg_job_run_params job = {
        .input = input, .output = spread_of(alike[0]), .axis = 1, .steps_count = OPERANDS - 1, .priority = priority};
    for (int i = 1; i < OPERANDS; i++)
        job.steps[i - 1] =
            (union msg_step){.map = {.operation = OPERATION_map, .op = MAP_ADD, .other = spread_of(alike[i])}};
    return line_ask(line, METHOD_job_run, &msg_job_run_params_type, &job, NULL, 0);
}

/* The first is long; the last is more urgent than those between, all of which it has to be compared with. */
static bool ask_waiting(struct attacker *self, struct line *line)
{
    const struct buffers *buffers = line->memory;
    (void)self;
    if (line->waiting == 0)
        return ask_long(line, buffers);
    const bool last = line->waiting == WAITING - 1;
    return ask_sum(line, attack_row(buffers->own, FILE_BYTES / 2, SAMPLES, 4), buffers->alike + (last ? OPERANDS : 0),
                   last ? SCAND_PRIORITY_HIGH : SCAND_PRIORITY_NORMAL);
}

void attack_jobs_compared(struct attacker *self)
{
    flood_run(self, &(struct flood){.lines = 8, .window = WAITING, .set_up = set_up_waiting, .ask = ask_waiting});
}

/* A job that is refused leaves its output stale, until its client knows of it. */
static bool ask_refused(struct line *line, const struct buffers *buffers, unsigned at)
{
    const struct msg_job_submit_params job = {.input = attack_row(buffers->own, 0, SAMPLES, 4),
                                              .output = spread_of(buffers->alike[at]),
                                              .axis = 1,
                                              .passes = {SCAND_PASS_FORWARD},
                                              .passes_count = 1,
                                              .accumulator = SCAND_ACCUMULATOR_EXACT};
    return line_ask(line, METHOD_job_submit, &msg_job_submit_params_type, &job, NULL, 0);
}

static bool ask_stale(struct attacker *self, struct line *line)
{
    const struct buffers *buffers = line->memory;
    (void)self;
    return line->msgid % 2 ? ask_refused(line, buffers, OPERANDS + line->msgid / 2 % (STALE - OPERANDS))
                           : ask_sum(line, spread_of(buffers->alike[1]), buffers->alike, SCAND_PRIORITY_NORMAL);
}

void attack_jobs_stale(struct attacker *self)
{
    flood_run(self, &(struct flood){.lines = 1, .window = 400, .set_up = set_up_stale, .ask = ask_stale});
}
