/* Files as input of jobs: that shrink while they are read, and that never end. */
#include <stdlib.h>
#include <unistd.h>

#include "tests/bench/hostile/attack.h"

#define ROW_SAMPLES 10000
#define ROW_BYTES   (ROW_SAMPLES * sizeof(float))
#define ROWS        2000
#define FILE_BYTES  (ROWS * ROW_BYTES)
#define LONG_ROWS   512
#define LONG_BYTES  MIB(128) /* size of each file, nearly all of it holes */

static int file = -1; /* file of an attack's process */

static uint64_t import_file(struct attacker *self, struct line *line, uint64_t size_bytes)
{
    const struct msg_buffer_import_file_params import = {.size = size_bytes, .fds = 1};
    struct msg_buffer_id made;
    if (file < 0)
        file = attack_memfd(size_bytes);
    if (ftruncate(file, (off_t)size_bytes))
        return 0;
    bool done = line_ask(line, METHOD_buffer_import_file, &msg_buffer_import_file_params_type, &import, &file, 1) &&
                line_answer(self, line, &msg_buffer_id_type, &made);
    return done ? made.buffer : 0;
}

/* Returns a job of the maxima of rows of the file, which take little room. */
static struct msg_job_submit_params maxima(const struct line *line, uint64_t rows, uint64_t row_bytes)
{
    const struct msg_tensor input = {.buffer = line->buffers[0],
                                     .shape = {rows, row_bytes / sizeof(float)},
                                     .shape_count = 2,
                                     .strides = {(int64_t)row_bytes, sizeof(float)},
                                     .strides_count = 2};
    struct msg_tensor output = input;
    output.buffer = line->buffers[1];
    output.shape[1] = 1;
    output.strides[0] = sizeof(float);
    return (struct msg_job_submit_params){.input = input,
                                          .output = output,
                                          .axis = 1,
                                          .operation = SCAND_OPERATION_REDUCE,
                                          .reduction = SCAND_REDUCTION_NONE + 1 + SCAND_REDUCTION_MAX};
}

static bool ask(struct line *line, uint64_t rows, uint64_t row_bytes)
{
    const struct msg_job_submit_params job = maxima(line, rows, row_bytes);
    return line_ask(line, METHOD_job_submit, &msg_job_submit_params_type, &job, NULL, 0);
}

static bool set_up_shrinking(struct attacker *self, struct line *line)
{
    line->buffers[0] = import_file(self, line, FILE_BYTES);
    line->buffers[1] = attack_import_new(self, line, ROWS * sizeof(float), NULL);
    return line->buffers[0] > 0 && line->buffers[1] > 0;
}

/* The file is cut while earlier jobs read it, and is as long as before when this one comes. */
static bool ask_shrinking(struct attacker *self, struct line *line)
{
    (void)self;
    if (ftruncate(file, rand() % (int)FILE_BYTES) || ftruncate(file, (off_t)FILE_BYTES))
        return false;
    return ask(line, ROWS, ROW_BYTES);
}

void attack_files_shrinking(struct attacker *self)
{
    flood_run(self, &(struct flood){.lines = 4, .window = 8, .set_up = set_up_shrinking, .ask = ask_shrinking});
}

static bool set_up_endless(struct attacker *self, struct line *line)
{
    line->buffers[0] = import_file(self, line, LONG_ROWS * LONG_BYTES);
    line->buffers[1] = attack_import_new(self, line, LONG_ROWS * sizeof(float), NULL);
    return line->buffers[0] > 0 && line->buffers[1] > 0;
}

static bool ask_endless(struct attacker *self, struct line *line)
{
    (void)self;
    return ask(line, LONG_ROWS, LONG_BYTES);
}

void attack_files_endless(struct attacker *self)
{
    flood_run(self, &(struct flood){.lines = 8, .window = 4, .set_up = set_up_endless, .ask = ask_endless});
}

static bool ask_file(struct attacker *self, struct line *line)
{
    const struct msg_buffer_import_file_params import = {.size = 1, .fds = 1};
    (void)self;
    if (file < 0)
        file = attack_memfd(1);
    return line_ask(line, METHOD_buffer_import_file, &msg_buffer_import_file_params_type, &import, &file, 1);
}

void attack_files_many(struct attacker *self)
{
    flood_run(self, &(struct flood){.lines = 32, .window = 8, .ask = ask_file});
}
