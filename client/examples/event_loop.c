/*
 * Several jobs in flight beside a loop that has other things to do: poll() watches scand's descriptor as it does
 * others, and nothing in the loop waits for the daemon, not even while its worker is restarted.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include <scand/scand.h>

enum { JOBS = 16, ROWS = 200, SAMPLES = 1000 };

/* Ends the program where something has failed; `daemon` is NULL before there is a connection. */
static void check(struct scand *daemon, int status)
{
    if (status == SCAND_OK)
        return;
    fprintf(stderr, "event_loop: %s\n", daemon ? scand_message(daemon) : scand_connect_message());
    exit(scand_status_exit_code(status));
}

static struct scand *connect_without_waiting(void)
{
    struct scand_options *options;
    struct scand *daemon;
    check(NULL, scand_options_create(&options));
    check(NULL, scand_options_set(options, "reconnect_ms", 0));
    check(NULL, scand_connect_with(options, NULL, "event_loop", &daemon));
    scand_options_destroy(options);
    return daemon;
}

/* The sums along each row of one of the arrays that lie in the buffer one after the other. */
static struct scand_job *submit(struct scand *daemon, struct scand_buffer *buffer, size_t number)
{
    struct scand_tensor array = {.buffer = buffer,
                                 .offset = number * ROWS * SAMPLES * sizeof(float),
                                 .dtype = SCAND_DTYPE_F32,
                                 .rank = 2,
                                 .shape = {ROWS, SAMPLES}};
    struct scand_job *job;
    scand_tensor_pack(&array);
    struct scand_scan scan = {
        .input = array, .output = array, .axis = 1, .pass_count = 1, .passes = {SCAND_PASS_FORWARD}};
    check(daemon, scand_submit(daemon, &scan, &job));
    return job;
}

/* Takes the jobs that have ended off the list; returns how many are left. */
static size_t collect(struct scand *daemon, struct scand_job **jobs, size_t count)
{
    size_t left = 0;
    for (size_t i = 0; i < count; i++) {
        if (!scand_job_done(jobs[i])) {
            jobs[left++] = jobs[i];
            continue;
        }
        check(daemon, scand_wait(jobs[i], 0, NULL));
        scand_job_release(jobs[i]);
    }
    return left;
}

int main(void)
{
    struct scand *daemon = connect_without_waiting();
    struct scand_buffer *buffer;
    struct scand_job *jobs[JOBS];
    size_t left = JOBS, turns = 0;
    const size_t samples = (size_t)JOBS * ROWS * SAMPLES;

    check(daemon, scand_buffer_create(daemon, SCAND_PLACE_HOST, samples * sizeof(float), &buffer));
    float *x = scand_buffer_data(buffer);
    for (size_t i = 0; i < samples; i++)
        x[i] = 1;
    for (size_t i = 0; i < JOBS; i++)
        jobs[i] = submit(daemon, buffer, i);

    struct pollfd loop[] = {{.fd = scand_fd(daemon), .events = POLLIN}}; /* and whatever else the program watches */
    while ((left = collect(daemon, jobs, left)) > 0) {
        if (poll(loop, 1, -1) == 1)
            check(daemon, scand_dispatch(daemon));
        turns++;
    }

    size_t wrong = 0;
    for (size_t i = 0; i < samples; i++)
        wrong += x[i] != (float)(i % SAMPLES + 1);
    printf("%d jobs in %zu turns of the loop, %zu samples are wrong\n", JOBS, turns, wrong);
    scand_disconnect(daemon);
    return wrong != 0;
}
