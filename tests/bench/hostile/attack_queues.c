/* Many jobs that wait: what is looked at whenever something happens, and what the end of one of them ends. */
#include "tests/bench/hostile/attack.h"

#define WAITING     240 /* jobs of a connection */
#define LINES       8
#define SAMPLES     16
#define SLOT_BYTES  (SAMPLES * sizeof(float))
#define FILE_BYTES  MIB(16)
#define DEADLINE_MS 300

static bool submit(struct line *line, const struct msg_job_submit_params *job)
{
    return line_ask(line, METHOD_job_submit, &msg_job_submit_params_type, job, NULL, 0);
}

/* A place in the buffer, of which each job has one. */
static uint64_t slot(unsigned number)
{
    return KIB(4) + number * SLOT_BYTES;
}

/* A row that takes long. */
static bool ask_long(struct line *line, uint64_t to)
{
    const struct msg_job_submit_params job = {.input = attack_row(line->buffers[0], 0, LIMIT_ROW_SAMPLES, 0),
                                              .output = attack_row(line->buffers[0], to, 1, 4),
                                              .axis = 1,
                                              .operation = SCAND_OPERATION_REDUCE,
                                              .reduction = SCAND_REDUCTION_SUM};
    return submit(line, &job);
}

static struct msg_job_submit_params small_job(const struct line *line, uint64_t from, uint64_t to)
{
    return (struct msg_job_submit_params){.input = attack_row(line->buffers[0], from, SAMPLES, 4),
                                          .output = attack_row(line->buffers[0], to, SAMPLES, 4),
                                          .axis = 1,
                                          .passes = {SCAND_PASS_FORWARD},
                                          .passes_count = 1};
}

static bool set_up(struct attacker *self, struct line *line)
{
    line->buffers[0] = attack_import_new(self, line, MIB(1), NULL);
    return line->buffers[0] > 0;
}

static bool ask_many_long(struct attacker *self, struct line *line)
{
    (void)self;
    return ask_long(line, slot(line->msgid % WAITING));
}

void attack_queue_long(struct attacker *self)
{
    flood_run(self, &(struct flood){.lines = LINES, .window = WAITING, .set_up = set_up, .ask = ask_many_long});
}

/* Those who are told that their queue is full ask again. */
void attack_queue_users(struct attacker *self)
{
    flood_run(self,
              &(struct flood){
                  .lines = 4 * 9, .users = 4, .window = LIMIT_CLIENT_JOBS, .set_up = set_up, .ask = ask_many_long});
}

static bool set_up_file(struct attacker *self, struct line *line)
{
    const struct msg_buffer_import_file_params import = {.size = FILE_BYTES, .fds = 1};
    struct msg_buffer_id made;
    int file = attack_memfd(FILE_BYTES);
    if (!set_up(self, line) || file < 0 ||
        !line_ask(line, METHOD_buffer_import_file, &msg_buffer_import_file_params_type, &import, &file, 1) ||
        !line_answer(self, line, &msg_buffer_id_type, &made))
        return false;
    line->buffers[1] = made.buffer;
    return true;
}

/* Each reads all of a file. */
static bool ask_file(struct attacker *self, struct line *line)
{
    const struct msg_job_submit_params job = {.input = attack_row(line->buffers[1], 0, FILE_BYTES / 4, 4),
                                              .output = attack_row(line->buffers[0], slot(line->msgid % WAITING), 1, 4),
                                              .axis = 1,
                                              .operation = SCAND_OPERATION_REDUCE,
                                              .reduction = SCAND_REDUCTION_SUM};
    (void)self;
    return submit(line, &job);
}

void attack_queue_files(struct attacker *self)
{
    flood_run(self, &(struct flood){.lines = LINES, .window = WAITING, .set_up = set_up_file, .ask = ask_file});
}

/* Jobs that wait for a long one, and whose time is over one after the other. */
static bool ask_deadline(struct attacker *self, struct line *line)
{
    (void)self;
    if (line->buffers[1]++ == 0)
        return ask_long(line, slot(0));
    struct msg_job_submit_params job = small_job(line, slot(0), slot(1 + line->msgid % WAITING));
    job.after_failure = 1;
    job.deadline_ms = DEADLINE_MS + line->msgid % 64;
    return submit(line, &job);
}

void attack_queue_deadlines(struct attacker *self)
{
    flood_run(self, &(struct flood){.lines = LINES, .window = WAITING, .set_up = set_up, .ask = ask_deadline});
}

/* Each job reads what the one before it writes; the end of the first ends all. */
static bool ask_links(struct attacker *self, struct line *line)
{
    const unsigned at = line->waiting;
    (void)self;
    if (at == 0) {
        line->buffers[1] = line->msgid + 1;
        return ask_long(line, slot(0));
    }
    if (at == WAITING - 1) {
        const struct msg_job_id first = {.job = line->buffers[1]};
        return line_ask(line, METHOD_job_cancel, &msg_job_id_type, &first, NULL, 0);
    }
    const struct msg_job_submit_params job = small_job(line, slot(at - 1), slot(at));
    return submit(line, &job);
}

void attack_queue_links(struct attacker *self)
{
    flood_run(self, &(struct flood){.lines = LINES, .window = WAITING, .set_up = set_up, .ask = ask_links});
}
