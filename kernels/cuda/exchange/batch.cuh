/*
 * A batch: several small jobs of one kernel in one launch. Their plans lie in the kernel's parameters, and each job has
 * thread blocks of its own, one for each item. So no thread block takes a second item, which it would count as beyond
 * all of them. A job that has the launch to itself is a batch of one, of any number of items.
 */
#ifndef KERNELS_CUDA_EXCHANGE_BATCH_CUH
#define KERNELS_CUDA_EXCHANGE_BATCH_CUH

#include <stdint.h>

#include "kernels/cuda/ptx.cuh"

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

#endif
