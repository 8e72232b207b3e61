/* The time of a row of 1,000 samples in a C program, from submitting the job to its answer: a line for each try, in
 * microseconds. The figures of python.py stand beside these. */
#include <scand/scand.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define SAMPLES 1000
#define TRIES   3000

static double now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static void check(int status, const struct scand *daemon)
{
    if (status == SCAND_OK)
        return;
    fprintf(stderr, "small_job: %s\n", daemon ? scand_message(daemon) : scand_connect_message());
    exit(scand_status_exit_code(status));
}

int main(void)
{
    struct scand *daemon = NULL;
    struct scand_buffer *buffer;
    check(scand_connect(NULL, NULL, &daemon), NULL);
    check(scand_buffer_create(daemon, SCAND_PLACE_HOST, 2 * SAMPLES * sizeof(float), &buffer), daemon);

    struct scand_tensor input = {.buffer = buffer, .dtype = SCAND_DTYPE_F32, .rank = 1, .shape = {SAMPLES}};
    scand_tensor_pack(&input);
    struct scand_tensor output = input;
    output.offset = SAMPLES * sizeof(float);
    struct scand_scan scan = {.input = input, .output = output, .passes = {SCAND_PASS_FORWARD}, .pass_count = 1};
    for (int i = 0; i < TRIES; i++) {
        struct scand_job *job;
        double begin_us = now_us();
        check(scand_submit(daemon, &scan, &job), daemon);
        check(scand_wait(job, -1, NULL), daemon);
        printf("%.3f\n", now_us() - begin_us);
        scand_job_release(job);
    }
    scand_disconnect(daemon);
    return 0;
}
