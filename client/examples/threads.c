/*
 * Several threads with one connection: each has its rows of an array, submits its jobs and waits for them. Messages are
 * each thread's own.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <scand/scand.h>

enum { THREADS = 4, JOBS = 50, ROWS = 20, SAMPLES = 500 };

static struct scand *daemon_of_all;

struct work {
    pthread_t thread;
    struct scand_buffer *buffer;
    size_t number;
};

/* Ends the program where something has failed; `daemon` is NULL before there is a connection. */
static void check(struct scand *daemon, int status)
{
    if (status == SCAND_OK)
        return;
    fprintf(stderr, "threads: %s\n", daemon ? scand_message(daemon) : scand_connect_message());
    exit(scand_status_exit_code(status));
}

/* The largest sample so far along each row, again and again: the second time nothing changes any more. */
static void *run(void *argument)
{
    const struct work *work = argument;
    struct scand_tensor rows = {.buffer = work->buffer,
                                .offset = work->number * ROWS * SAMPLES * sizeof(float),
                                .dtype = SCAND_DTYPE_F32,
                                .rank = 2,
                                .shape = {ROWS, SAMPLES}};
    scand_tensor_pack(&rows);
    struct scand_scan scan = {.input = rows,
                              .output = rows,
                              .axis = 1,
                              .pass_count = 1,
                              .passes = {SCAND_PASS_FORWARD},
                              .op = SCAND_OPERATOR_MAX};
    for (int i = 0; i < JOBS; i++) {
        struct scand_job *job;
        check(daemon_of_all, scand_submit(daemon_of_all, &scan, &job));
        check(daemon_of_all, scand_wait(job, -1, NULL));
        scand_job_release(job);
    }
    return NULL;
}

int main(void)
{
    struct work work[THREADS];
    struct scand_buffer *buffer;
    const size_t samples = (size_t)THREADS * ROWS * SAMPLES;

    check(NULL, scand_connect(NULL, "threads", &daemon_of_all));
    check(daemon_of_all, scand_buffer_create(daemon_of_all, SCAND_PLACE_HOST, samples * sizeof(float), &buffer));
    float *x = scand_buffer_data(buffer);
    for (size_t i = 0; i < samples; i++)
        x[i] = i % SAMPLES == SAMPLES / 2 ? 2 : 1;

    for (size_t i = 0; i < THREADS; i++) {
        work[i] = (struct work){.buffer = buffer, .number = i};
        if (pthread_create(&work[i].thread, NULL, run, &work[i]) != 0) {
            fprintf(stderr, "threads: no thread can be made\n");
            return 70;
        }
    }
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(work[i].thread, NULL);

    size_t wrong = 0;
    for (size_t i = 0; i < samples; i++)
        wrong += x[i] != (i % SAMPLES < SAMPLES / 2 ? 1 : 2);
    printf("%d threads with %d jobs each, %zu samples are wrong\n", THREADS, JOBS, wrong);
    scand_disconnect(daemon_of_all);
    return wrong != 0;
}
