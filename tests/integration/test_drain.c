/*
 * Daemons that follow each other at one socket, as at upgrades, and programs that take no notice. $SCAND names the
 * daemon's program.
 */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

#include <scand/scand.h>

#include "tests/check.h"
#include "tests/integration/session.h"
#include "tests/server.h"

#define DAEMONS  6
#define PROGRAMS 4
#define MOST     16 /* jobs of a program at once */

static const char *const arguments[] = {"--device", "cpu", "--pool", "64M", NULL};
static struct server server;
static atomic_bool is_over;

/* A program that submits jobs in place, so many at a time. Each turns (1, n) into (1, 1 + n) in all rows: a job that
 * was lost, or done twice, is in the numbers. */
struct program {
    uint64_t rows;
    unsigned at_once;
    int batches;
    _Atomic uint64_t count;
    struct scand *session;
    pthread_t thread;
};

static void scan_prepare(struct scand_scan *scan, struct scand_buffer *buffer, uint64_t rows)
{
    struct scand_tensor pairs = {.buffer = buffer, .dtype = SCAND_DTYPE_F64, .rank = 2, .shape = {rows, 2}};
    scand_tensor_pack(&pairs);
    *scan = (struct scand_scan){.input = pairs, .output = pairs, .axis = 1, .pass_count = 1};
}

static void round_run(struct program *program, const struct scand_scan *scan)
{
    struct scand *session = program->session;
    struct scand_job *jobs[MOST];
    struct scand_scan scans[MOST];
    const unsigned count = program->at_once;
    for (unsigned i = 0; i < MOST; i++)
        scans[i] = *scan;
    if (program->batches)
        CHECK_EQ(scand_submit_many(session, scans, count, jobs), SCAND_OK);
    for (unsigned i = 0; i < count && !program->batches; i++)
        CHECK_EQ(scand_submit(session, scan, &jobs[i]), SCAND_OK);
    for (unsigned i = 0; i < count; i++) {
        int status = scand_wait(jobs[i], 60000, NULL);
        if (status)
            fprintf(stderr, "%s\n", scand_message(session));
        CHECK_EQ(status, SCAND_OK);
        scand_job_release(jobs[i]);
    }
    program->count += count;
}

static void *program_run(void *context)
{
    struct program *program = context;
    struct scand_scan scan;
    struct scand_buffer *buffer = session_buffer(program->session, program->rows * 2 * sizeof(double));
    double *pairs = scand_buffer_data(buffer);
    uint64_t wrong = 0;
    for (uint64_t i = 0; i < program->rows; i++) {
        pairs[2 * i] = 1;
        pairs[2 * i + 1] = 0;
    }
    scan_prepare(&scan, buffer, program->rows);
    while (!is_over)
        round_run(program, &scan);
    for (uint64_t i = 0; i < program->rows; i++)
        wrong += pairs[2 * i] != 1 || pairs[2 * i + 1] != (double)program->count;
    CHECK_EQ(wrong, 0);
    scand_disconnect(program->session);
    return NULL;
}

/* Waits until each program has had results of this daemon. */
static void programs_get_on(const struct program *programs)
{
    for (size_t i = 0; i < PROGRAMS; i++) {
        const uint64_t before = programs[i].count;
        while (programs[i].count < before + 2 * programs[i].at_once)
            poll(NULL, 0, 1);
    }
}

/* Small jobs one by one, many of them by rings, batches, and large jobs that daemons have to finish. */
static void test_programs_take_no_notice(void)
{
    struct program programs[PROGRAMS] = {{.rows = 100, .at_once = 1},
                                         {.rows = 100, .at_once = MOST},
                                         {.rows = 100, .at_once = MOST, .batches = 1},
                                         {.rows = 1000000, .at_once = 1}};
    CHECK_EQ(server_start(&server, session_daemon(), arguments), 0);
    is_over = false;
    for (size_t i = 0; i < PROGRAMS; i++) {
        programs[i].session = session_open(server.socket, SCAND_LOCAL_NEVER);
        CHECK_EQ(pthread_create(&programs[i].thread, NULL, program_run, &programs[i]), 0);
    }
    for (int i = 0; i < DAEMONS; i++) {
        programs_get_on(programs);
        server_drain(&server);
        CHECK_EQ(server_start_again(&server, session_daemon(), arguments), 0);
    }
    programs_get_on(programs);
    is_over = true;
    for (size_t i = 0; i < PROGRAMS; i++)
        pthread_join(programs[i].thread, NULL);
    server_stop(&server);
}

static const struct test tests[] = {TEST(test_programs_take_no_notice), TEST_END};

int main(int argc, char **argv)
{
    return test_main(argc, argv, tests);
}
