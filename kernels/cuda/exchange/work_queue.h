/*
 * Counters in device memory by which thread blocks or warps share out a launch's work (work_queue.cuh). All zero before
 * and after a launch: the last to finish sees to that.
 */
#ifndef KERNELS_CUDA_EXCHANGE_WORK_QUEUE_H
#define KERNELS_CUDA_EXCHANGE_WORK_QUEUE_H

#define WORK_QUEUE_COUNTERS 8 /* each has every eighth item, and every eighth thread block; thread blocks use one */

/* Aligned to lines of their own. */
struct alignas(64) work_queue_counter {
    unsigned long long taken; /* items beyond those that warps, or thread blocks, begin with */
    unsigned int finished;    /* warps, or thread blocks */
};

struct work_queue {
    struct work_queue_counter counters[WORK_QUEUE_COUNTERS];
};

#endif
