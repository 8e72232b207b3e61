/*
 * An MPI program whose ranks share the machine's daemon: each makes the double integral of its part of a survey, and
 * the sum of all is compared with what it has to be. No rank starts CUDA, and all use one GPU in turns.
 *
 *     mpicc mpi_traces.c $(pkg-config --cflags --libs scand) -o mpi_traces && mpiexec -n 4 ./mpi_traces
 */
#include <mpi.h>
#include <stdio.h>

#include <scand/scand.h>

enum { TRACES = 300, SAMPLES = 1000 }; /* traces and samples of each rank */

/* Ends the program, on all ranks, where something has failed; `daemon` is NULL before there is a connection. */
static void check(struct scand *daemon, int status)
{
    if (status == SCAND_OK)
        return;
    fprintf(stderr, "mpi_traces: %s\n", daemon ? scand_message(daemon) : scand_connect_message());
    MPI_Abort(MPI_COMM_WORLD, scand_status_exit_code(status));
}

/* Each trace has the number of the trace in the survey, from 1 on, in all its samples. */
static void fill(float *x, int rank)
{
    for (size_t trace = 0; trace < TRACES; trace++)
        for (size_t i = 0; i < SAMPLES; i++)
            x[trace * SAMPLES + i] = (float)(rank * TRACES + (int)trace + 1);
}

/* Integrates traces in place. The daemon runs the ranks' jobs in turns. */
static void integrate(struct scand *daemon, struct scand_buffer *buffer)
{
    struct scand_tensor traces = {.buffer = buffer, .dtype = SCAND_DTYPE_F32, .rank = 2, .shape = {TRACES, SAMPLES}};
    struct scand_job *job;

    scand_tensor_pack(&traces);
    struct scand_scan scan = {.input = traces, .output = traces, .axis = 1};
    scan.passes[scan.pass_count++] = SCAND_PASS_FORWARD;
    scan.passes[scan.pass_count++] = SCAND_PASS_BACKWARD;
    check(daemon, scand_submit(daemon, &scan, &job));
    check(daemon, scand_wait(job, -1, NULL));
    scand_job_release(job);
}

int main(int argc, char **argv)
{
    struct scand *daemon;
    struct scand_buffer *buffer;
    int rank, ranks;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    check(NULL, scand_connect(NULL, "mpi_traces", &daemon));
    check(daemon, scand_buffer_create(daemon, SCAND_PLACE_HOST, TRACES * SAMPLES * sizeof(float), &buffer));

    float *x = scand_buffer_data(buffer);
    fill(x, rank);
    integrate(daemon, buffer);

    /* The first sample of a constant trace's double integral is its value times 1 + 2 + ... + SAMPLES. */
    double own = 0, all = 0;
    for (size_t trace = 0; trace < TRACES; trace++)
        own += x[trace * SAMPLES];
    MPI_Allreduce(&own, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    const double count = (double)ranks * TRACES;
    const double expected = count * (count + 1) / 2 * SAMPLES * (SAMPLES + 1) / 2;
    if (rank == 0)
        printf("%d ranks, %.0f traces of %d samples: the sum is %.9e, expected %.9e\n", ranks, count, SAMPLES, all,
               expected);

    scand_disconnect(daemon);
    MPI_Finalize();
    return all < expected * (1 - 1e-6) || all > expected * (1 + 1e-6); /* samples are rounded to f32 */
}
