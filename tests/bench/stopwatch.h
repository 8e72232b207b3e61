/* Times on the GPU, from event to event. Functions return a cudaError_t. */
#ifndef TESTS_BENCH_STOPWATCH_H
#define TESTS_BENCH_STOPWATCH_H

#include <cuda_runtime.h>

struct stopwatch {
    cudaStream_t stream;
    cudaEvent_t begin, end;
};

int stopwatch_init(struct stopwatch *stopwatch);
void stopwatch_finish(struct stopwatch *stopwatch);

/* The median of 31 runs of what `start` queues, after 30 ms of them that do not count. */
int stopwatch_median(struct stopwatch *stopwatch, int (*start)(void *argument, cudaStream_t stream), void *argument,
                     double *milliseconds);

#endif
