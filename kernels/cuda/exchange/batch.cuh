/*
 * Several small jobs of one kernel in one launch: their plans lie in the kernel's parameters, and each of them, a part,
 * has thread blocks of its own, one for each item. So none takes a second item, which it would count as beyond them
 * all. A job that has the launch to itself is one part, of any number of items.
 */
#ifndef KERNELS_CUDA_EXCHANGE_BATCH_CUH
#define KERNELS_CUDA_EXCHANGE_BATCH_CUH

#include <stdint.h>

#include "kernels/cuda/ptx.cuh"

/* 4 KiB, which every driver takes as a kernel's parameters, and quickly. */
template <class Plan> struct part_list {
    static const unsigned most = (4096 - sizeof(uint64_t)) / (sizeof(Plan) + sizeof(uint32_t));
    uint32_t ends[most]; /* thread blocks of the parts up to and with each */
    Plan plans[most];
};

/* This thread block's part, and how many thread blocks those before it have. */
template <class Plan> DEVICE int part_number(const struct part_list<Plan> &parts)
{
    int number = 0;
    while (blockIdx.x >= parts.ends[number])
        number++;
    return number;
}

template <class Plan> DEVICE unsigned part_begin(const struct part_list<Plan> &parts, int number)
{
    return number > 0 ? parts.ends[number - 1] : 0;
}

#endif
