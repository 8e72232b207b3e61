#include "tests/bench/stopwatch.h"

#include "tests/bench/bench.h"

#define RUNS    31
#define WARM_MS 30 /* a GPU that has waited for the host needs 0.22 ms at first where it needs 0.20 later */

int stopwatch_init(struct stopwatch *stopwatch)
{
    int error = cudaStreamCreate(&stopwatch->stream);
    if (!error)
        error = cudaEventCreate(&stopwatch->begin);
    if (!error)
        error = cudaEventCreate(&stopwatch->end);
    return error;
}

void stopwatch_finish(struct stopwatch *stopwatch)
{
    if (stopwatch->begin)
        cudaEventDestroy(stopwatch->begin);
    if (stopwatch->end)
        cudaEventDestroy(stopwatch->end);
    if (stopwatch->stream)
        cudaStreamDestroy(stopwatch->stream);
}

static int time_once(struct stopwatch *stopwatch, int (*start)(void *argument, cudaStream_t stream), void *argument,
                     double *milliseconds)
{
    float ms = 0;
    int error = cudaEventRecord(stopwatch->begin, stopwatch->stream);
    if (!error)
        error = start(argument, stopwatch->stream);
    if (!error)
        error = cudaEventRecord(stopwatch->end, stopwatch->stream);
    if (!error)
        error = cudaEventSynchronize(stopwatch->end);
    if (!error)
        error = cudaEventElapsedTime(&ms, stopwatch->begin, stopwatch->end);
    *milliseconds = (double)ms;
    return error;
}

int stopwatch_median(struct stopwatch *stopwatch, int (*start)(void *argument, cudaStream_t stream), void *argument,
                     double *milliseconds)
{
    double times[RUNS], once = 0;
    int error = 0;
    for (double warm = 0; warm < WARM_MS && !error; warm += once)
        error = time_once(stopwatch, start, argument, &once);
    for (int i = 0; i < RUNS && !error; i++)
        error = time_once(stopwatch, start, argument, &times[i]);
    *milliseconds = error ? 0 : bench_median(times, RUNS);
    return error;
}
