/*
 * One array, two processes: the parent makes it and fills it, a child scans it through a connection of its own, and the
 * parent reads the result where it lies. Nothing is copied.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <scand/scand.h>

enum { ROWS = 100, SAMPLES = 3000 };

static const size_t size_bytes = ROWS * SAMPLES * sizeof(int64_t);

/* Ends the program where something has failed; `daemon` is NULL before there is a connection. */
static void check(struct scand *daemon, int status)
{
    if (status == SCAND_OK)
        return;
    fprintf(stderr, "shared_memory: %s\n", daemon ? scand_message(daemon) : scand_connect_message());
    exit(scand_status_exit_code(status));
}

/* A child connects anew: its parent's connection is not its own. */
static int scan_in_child(int memory)
{
    struct scand *daemon;
    struct scand_buffer *buffer;
    struct scand_job *job;

    scand_forget();
    check(NULL, scand_connect(NULL, "shared_memory (child)", &daemon));
    check(daemon, scand_buffer_import(daemon, memory, size_bytes, &buffer));
    struct scand_tensor rows = {.buffer = buffer, .dtype = SCAND_DTYPE_I64, .rank = 2, .shape = {ROWS, SAMPLES}};
    scand_tensor_pack(&rows);
    struct scand_scan scan = {
        .input = rows, .output = rows, .axis = 1, .pass_count = 1, .passes = {SCAND_PASS_FORWARD}};
    check(daemon, scand_submit(daemon, &scan, &job));
    check(daemon, scand_wait(job, -1, NULL));
    scand_disconnect(daemon);
    return 0;
}

int main(void)
{
    struct scand *daemon;
    struct scand_buffer *buffer;
    int memory, ended;

    check(NULL, scand_connect(NULL, "shared_memory", &daemon));
    check(daemon, scand_buffer_create_own(daemon, size_bytes, &buffer));
    check(daemon, scand_buffer_fd(buffer, &memory));
    int64_t *x = scand_buffer_data(buffer);
    for (size_t i = 0; i < ROWS * SAMPLES; i++)
        x[i] = 1;

    const pid_t child = fork();
    if (child == 0)
        exit(scan_in_child(memory));
    if (child < 0 || waitpid(child, &ended, 0) != child || ended != 0) {
        fprintf(stderr, "shared_memory: the child has failed\n");
        return 70;
    }

    int wrong = 0;
    for (size_t i = 0; i < ROWS * SAMPLES; i++)
        wrong += x[i] != (int64_t)(i % SAMPLES + 1);
    printf("%d rows of %d whole numbers, %d are wrong\n", ROWS, SAMPLES, wrong);
    close(memory);
    scand_disconnect(daemon);
    return wrong != 0;
}
