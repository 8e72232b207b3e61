/*
 * Functions that all launchers use: a device, and how kernels are loaded and launched on it. They return a cudaError_t,
 * and clear it where CUDA keeps it, so that the next call does not find it.
 */
#ifndef KERNELS_CUDA_LAUNCH_H
#define KERNELS_CUDA_LAUNCH_H

#include <cuda_runtime.h>
#include <stdint.h>

#include "kernels/cuda/scan_cuda.h"
#include "kernels/cuda/select/instance.h"
#include "kernels/cuda/select/select.h"
#include "kernels/cuda/streams.h"
#include "kernels/order1/dtypes.h"

#define SCAN_GRID_MAX 65535 /* thread blocks of a launch that has no reason for more */

/* The answer of a launcher where the device holds none of its thread blocks, or not all that have to be resident.
 * Nothing of the output has been written then. */
#define SCAN_NO_ROOM cudaErrorCooperativeLaunchTooLarge
static_assert(SCAN_NO_ROOM == SELECT_NO_ROOM, "the same number");

struct work_queue;

#define SCAN_DEVICES_MAX 64

/* The current device as scan_device_find has found it, and the streams of its launches. */
struct scan_device : select_device {
    int id;
    struct work_queue *queues; /* in its memory */
    void *encode;              /* of code of 9.0 or later: the driver's function that makes tensor maps */
    struct streams streams;
};

cudaError_t scan_device_find(struct scan_device *device);

/* Instances of a kernel for sums, by accumulator and kind; and which of them a rule takes. */
#define SCAN_SUMS 6
int scan_sum_number(const struct scan_rule *rule);

/* Finds the counter from which thread blocks of so many warps take the items of a stream's next launch; NULL where that
 * is not worth its atomic operations. */
cudaError_t scan_progress_of(struct scan_device *device, int warps, cudaStream_t stream,
                             struct work_queue_counter **progress);

/* Finds how many thread blocks a plan's items get, of so many warps, where `resident` of them, which is not 0, are
 * resident at once; and sets plan->progress. Thread blocks of a range leave soon, so that those of streams that go
 * first need not wait for its end. */
cudaError_t scan_grid_of(struct scan_device *device, struct scan_plan *plan, uint64_t resident, int warps,
                         cudaStream_t stream, uint64_t *grid);

/* Finds the queue by which the warps of a stream's next launch share out its work (cuda/exchange/work_queue.cuh). */
cudaError_t scan_work_queue_of(struct scan_device *device, cudaStream_t stream, struct work_queue **queue);

/* Finds how many thread blocks an SM holds; 0 where it has too little shared memory. */
cudaError_t scan_kernel_resident(const void *kernel, int threads, size_t shared_bytes, int *resident);

/* Load a kernel: any; one that always has so many threads and bytes of dynamic shared memory, and find how many of its
 * thread blocks an SM holds; one whose thread blocks may have all shared memory that there is. */
cudaError_t scan_kernel_load(const void *kernel);
cudaError_t scan_kernel_load_resident(const void *kernel, int threads, size_t shared_bytes, int *resident);
cudaError_t scan_kernel_load_most(const struct scan_device *device, const void *kernel);

/* Sets the most shared memory of a kernel whose shared memory varies. */
cudaError_t scan_kernel_share(const void *kernel, size_t shared_bytes);

cudaError_t scan_kernel_launch(const void *kernel, uint64_t grid, int threads, void **arguments, size_t shared_bytes,
                               cudaStream_t stream);

/* Launches thread blocks of `warps` warps, each of which takes `at_once` rows at a time; an SM holds `resident` of
 * these thread blocks. */
cudaError_t scan_rows_launch(const struct scan_device *device, const void *kernel, void *plan, uint64_t rows, int warps,
                             int at_once, int resident, size_t shared_bytes, cudaStream_t stream);

/* A kernel whose thread blocks are alike in all launches, and how many of them an SM holds, of each device. */
struct scan_resident_kernel {
    const void *kernel; /* NULL: there is none */
    int warps;
    size_t shared_bytes;
    int leaves; /* that a warp has room for, where it takes several rows */
    int resident[SCAN_DEVICES_MAX];
};
cudaError_t scan_resident_load(const struct scan_device *device, struct scan_resident_kernel *kernels, int count);

/* Launches such a kernel, whose warps take `at_once` rows at a time from a work queue; *queue, of the plan, is set. */
cudaError_t scan_resident_launch(struct scan_device *device, const struct scan_resident_kernel *kernel, void *plan,
                                 struct work_queue **queue, uint64_t rows, int at_once, cudaStream_t stream);

/* How many clusters of a kernel can be resident together, as asked last. */
struct scan_cluster_room {
    struct instance_cluster shape;
    size_t shared_bytes;
    int clusters;
};

/* Find how many clusters can be resident together; launch `clusters` of them, with `together` cooperatively. */
cudaError_t scan_clusters_resident(const void *kernel, struct instance_cluster shape, size_t shared_bytes,
                                   struct scan_cluster_room *room);
cudaError_t scan_clusters_launch(const void *kernel, struct instance_cluster shape, size_t shared_bytes,
                                 uint64_t clusters, bool together, void *plan, cudaStream_t stream);

/* Clears the latched error of a call that a file makes itself. */
static inline cudaError_t scan_cleared(cudaError_t error)
{
    if (error)
        cudaGetLastError();
    return error;
}

/* Clears the latched error of a launch that a file makes itself: a thread block that asks for more than an SM has is
 * one for which there is no room. */
static inline cudaError_t scan_launched(cudaError_t error)
{
    return scan_cleared(error) == cudaErrorLaunchOutOfResources ? SCAN_NO_ROOM : error;
}

/* Kernels of floats are in the order f32, f64, f2 of their accumulators. */
static inline int scan_float_number(enum scand_accumulator accumulator)
{
    switch (accumulator) {
    case SCAND_ACCUMULATOR_F32:
        return 0;
    case SCAND_ACCUMULATOR_F64:
        return 1;
    case SCAND_ACCUMULATOR_F2:
        return 2;
    case SCAND_ACCUMULATOR_AUTO: /* no rule of rows has it */
    case SCAND_ACCUMULATOR_EXACT:
    case SCAND_ACCUMULATOR_COUNT:
        break;
    }
    return 0;
}

static inline uint64_t scan_least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

#endif
