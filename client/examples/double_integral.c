/*
 * The double integral of traces, a cumulative sum forward and then backward, on the machine's GPU or without one.
 *
 *     cc double_integral.c $(pkg-config --cflags --libs scand) -o double_integral && ./double_integral
 */
#include <stdio.h>
#include <stdlib.h>

#include <scand/scand.h>

enum { TRACES = 1000, SAMPLES = 2000 };

/* Ends the program where something has failed; `daemon` is NULL before there is a connection. */
static void check(struct scand *daemon, int status)
{
    if (status == SCAND_OK)
        return;
    fprintf(stderr, "double_integral: %s\n", daemon ? scand_message(daemon) : scand_connect_message());
    exit(scand_status_exit_code(status));
}

/* One pulse per trace, at the sample that has the trace's number. */
static void fill(float *x)
{
    for (size_t trace = 0; trace < TRACES; trace++)
        for (size_t i = 0; i < SAMPLES; i++)
            x[trace * SAMPLES + i] = i == trace;
}

static void scan(struct scand *daemon, struct scand_buffer *buffer)
{
    struct scand_tensor traces = {.buffer = buffer, .dtype = SCAND_DTYPE_F32, .rank = 2, .shape = {TRACES, SAMPLES}};
    struct scand_job *job;
    struct scand_times times;

    scand_tensor_pack(&traces);
    struct scand_scan scan = {.input = traces, .output = traces, .axis = 1}; /* in place */
    scan.passes[scan.pass_count++] = SCAND_PASS_FORWARD;
    scan.passes[scan.pass_count++] = SCAND_PASS_BACKWARD;
    check(daemon, scand_submit(daemon, &scan, &job));
    check(daemon, scand_wait(job, -1, &times));
    scand_job_release(job);
    printf("%d traces of %d samples: %llu us\n", TRACES, SAMPLES, (unsigned long long)times.total_us);
}

/* The integral of a pulse at sample p is 1 from p on; the sum of that from the end is a ramp behind a plateau. */
static int wrong_samples(const float *x)
{
    int wrong = 0;
    for (size_t trace = 0; trace < TRACES; trace++)
        for (size_t i = 0; i < SAMPLES; i++)
            wrong += x[trace * SAMPLES + i] != (float)(SAMPLES - (i > trace ? i : trace));
    return wrong;
}

int main(void)
{
    struct scand *daemon;
    struct scand_buffer *buffer;

    check(NULL, scand_connect(NULL, "double_integral", &daemon));
    check(daemon, scand_buffer_create(daemon, SCAND_PLACE_HOST, TRACES * SAMPLES * sizeof(float), &buffer));

    fill(scand_buffer_data(buffer));
    scan(daemon, buffer);
    const int wrong = wrong_samples(scand_buffer_data(buffer));
    printf("%d samples are wrong\n", wrong);

    scand_disconnect(daemon); /* and with it the buffer */
    return wrong != 0;
}
