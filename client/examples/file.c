/*
 * The largest sample of each row of a file, which the daemon reads: the program sees none of it, and the file may be
 * larger than memory. A program would open one that there is; this one makes a file, to know what has to come out.
 */
#include <stdio.h>
#include <stdlib.h>

#include <scand/scand.h>

enum { ROWS = 2000, SAMPLES = 1000 };

/* Ends the program where something has failed; `daemon` is NULL before there is a connection. */
static void check(struct scand *daemon, int status)
{
    if (status == SCAND_OK)
        return;
    fprintf(stderr, "file: %s\n", daemon ? scand_message(daemon) : scand_connect_message());
    exit(scand_status_exit_code(status));
}

/* Row r has the samples r, r + 1, and so on. */
static FILE *make_file(void)
{
    FILE *file = tmpfile();
    for (int r = 0; file && r < ROWS; r++)
        for (int i = 0; i < SAMPLES; i++) {
            const float sample = (float)(r + i);
            fwrite(&sample, sizeof sample, 1, file);
        }
    if (!file || fflush(file)) {
        perror("file");
        exit(74);
    }
    return file;
}

int main(void)
{
    struct scand *daemon;
    struct scand_buffer *input, *output;
    struct scand_job *job;
    FILE *file = make_file();

    check(NULL, scand_connect(NULL, "file", &daemon));
    check(daemon, scand_buffer_import_file(daemon, fileno(file), 0, &input)); /* 0: all of it */
    fclose(file);
    check(daemon, scand_buffer_create(daemon, SCAND_PLACE_HOST, ROWS * sizeof(float), &output));

    struct scand_tensor rows = {.buffer = input, .dtype = SCAND_DTYPE_F32, .rank = 2, .shape = {ROWS, SAMPLES}};
    struct scand_tensor results = {.buffer = output, .dtype = SCAND_DTYPE_F32, .rank = 2, .shape = {ROWS, 1}};
    scand_tensor_pack(&rows);
    scand_tensor_pack(&results);
    struct scand_reduce reduce = {.input = rows, .output = results, .axis = 1, .reduction = SCAND_REDUCTION_MAX};
    check(daemon, scand_submit_reduce(daemon, &reduce, NULL, NULL, &job));
    check(daemon, scand_wait(job, -1, NULL)); /* SCAND_DESCRIPTOR: the file has become shorter, or cannot be read */

    int wrong = 0;
    const float *largest = scand_buffer_data(output);
    for (int r = 0; r < ROWS; r++)
        wrong += largest[r] != (float)(r + SAMPLES - 1);
    printf("%d rows of %d samples in a file, %d results are wrong\n", ROWS, SAMPLES, wrong);
    scand_disconnect(daemon);
    return wrong > 0;
}
