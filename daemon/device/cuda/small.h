/*
 * Chunks of small jobs on a CUDA device. Copying would take them longer than computing does: a kernel works on mapped
 * host memory itself. What waits is launched together, as a batch on a stream of its own, with one event behind it;
 * batches run beside each other and beside the copies of other chunks. The chunks of a batch share launches where their
 * rules allow it, else they are one kernel right after the other.
 */
#ifndef DAEMON_SMALL_H
#define DAEMON_SMALL_H

#include <cuda_runtime.h>

#include "daemon/device/device.h"
#include "kernels/cuda/scan_cuda.h"

/* Kernels on mapped host memory move 39 GB/s on an H200, the copy engines 50 each way. */
#define SMALL_BYTES KIB(256)

#define SMALL_BATCHES 8
#define SMALL_CHUNKS  SCAN_TOGETHER /* chunks of a batch */

struct small_batch {
    cudaStream_t stream;
    cudaEvent_t passed;
    struct chunk *chunks; /* by next; NULL: nothing is out */
    unsigned count;
    uint64_t launched_us;
};

struct cuda_small {
    struct small_batch batches[SMALL_BATCHES];
    struct chunk_queue waiting, done;
    unsigned out; /* chunks that cuda_small_pop has not given back */
};

/* The functions that run chunks. They return 0 or -errno. */
struct small_ops {
    /* Queues a chunk's kernel on the stream, or on another, and returns on which. */
    int (*run)(void *context, const struct chunk *chunk, cudaStream_t *stream);
    /* Queues one launch for several chunks of a scan_cuda_group on the stream. */
    int (*run_together)(void *context, const struct scan_part *parts, unsigned count, cudaStream_t stream);
};

/* Makes streams of this priority. */
cudaError_t cuda_small_init(struct cuda_small *small, int priority);
void cuda_small_add(struct cuda_small *small, struct chunk *chunk);
/* Launches what waits, as far as batches are free. Chunks whose launch fails are done. */
void cuda_small_launch(struct cuda_small *small, const struct small_ops *ops, void *context, uint64_t now_us);
/* Looks which batches have passed: cudaErrorNotReady when none has, and none before was left untaken. */
cudaError_t cuda_small_look(struct cuda_small *small, uint64_t now_us);
/* A chunk that is done, or NULL. */
struct chunk *cuda_small_pop(struct cuda_small *small);
/* Ends all chunks that are out, with this status. */
void cuda_small_fail(struct cuda_small *small, int status);

#endif
