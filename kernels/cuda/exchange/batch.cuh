/*
 * A batch: several small jobs of one kernel in one launch. Their plans lie in the kernel's parameters, and each job has
 * thread blocks of its own, one for each item. So no thread block takes a second item, which it would count as beyond
 * all of them. A job that has the launch to itself is a batch of one, of any number of items.
 */
#ifndef KERNELS_CUDA_EXCHANGE_BATCH_CUH
#define KERNELS_CUDA_EXCHANGE_BATCH_CUH

#include <stdint.h>

#include "kernels/cuda/launch.h"
#include "kernels/cuda/ptx.cuh"
#include "kernels/cuda/select/plan.h"

/* 4 KiB, which every driver takes as a kernel's parameters, and quickly. */
template <class Plan> struct batch {
    static const unsigned most = (4096 - sizeof(uint64_t)) / (sizeof(Plan) + sizeof(uint32_t));
    uint32_t ends[most]; /* thread blocks of the jobs up to and with each */
    Plan plans[most];
};

/* Return this thread block's job, and how many thread blocks the jobs before it have. */
template <class Plan> DEVICE int batch_job(const struct batch<Plan> &batch)
{
    int number = 0;
    while (blockIdx.x >= batch.ends[number])
        number++;
    return number;
}

template <class Plan> DEVICE unsigned batch_begin(const struct batch<Plan> &batch, int number)
{
    return number > 0 ? batch.ends[number - 1] : 0;
}

/* The thread blocks of a job, their warps, and the vectors of shared memory of each warp. */
struct batch_part {
    uint64_t blocks;
    int warps, smem;
};

/* The parts of a scan_cuda_together that take one kernel, as many in a launch as there is room for. plan_make(part,
 * &plan) makes the plan of a part. */
template <class Plan, class Make>
cudaError_t batches_launch(const void *kernel, const struct scan_part *parts, unsigned count, cudaStream_t stream,
                           Make plan_make)
{
    cudaError_t error = cudaSuccess;
    for (unsigned taken = 0; taken < count && !error;) {
        struct batch<Plan> batch;
        uint32_t blocks = 0;
        int warps = 1, smem = 0;
        for (unsigned i = 0; i < batch.most && taken < count; i++, taken++) {
            batch.plans[i] = {};
            const struct batch_part part = plan_make(parts[taken], &batch.plans[i]);
            batch.ends[i] = blocks += (uint32_t)part.blocks;
            warps = part.warps > warps ? part.warps : warps;
            smem = part.smem > smem ? part.smem : smem;
        }
        void *arguments[] = {&batch};
        error = scan_kernel_launch(kernel, blocks, warps * WARP, arguments, (size_t)warps * smem * VEC16_BYTES, stream);
    }
    return error;
}

/* A job alone, whose thread blocks, of which an SM holds `resident`, take the items of `scan`, a part of its plan. A
 * kernel that does not fetch ahead takes a batch. */
template <class Plan>
cudaError_t batch_launch_alone(struct scan_device *device, const void *kernel, int resident, Plan *plan,
                               struct scan_plan *scan, cudaStream_t stream)
{
    const int warps = scan_warps(scan->length);
    uint64_t grid;
    cudaError_t error = scan_grid_of(device, scan, (uint64_t)device->processors * resident, warps, stream, &grid);
    if (error)
        return error;
    struct batch<Plan> batch;
    void *arguments[] = {scan->ahead ? (void *)plan : &batch};
    if (!scan->ahead) {
        batch.ends[0] = (uint32_t)grid;
        batch.plans[0] = *plan;
    }
    return scan_kernel_launch(kernel, grid, warps * WARP, arguments, (size_t)warps * scan->smem * VEC16_BYTES, stream);
}

#endif
