/* A check of every implementation that this machine and build can run, as one test for the CPU's and one for CUDA's. */
#ifndef TESTS_KERNELS_EVERY_H
#define TESTS_KERNELS_EVERY_H

#include "tests/check.h"
#include "tests/kernels/implementation.h"

typedef void (*implementation_check)(const struct implementation *implementation);

static inline void every_of(const struct implementation *list, size_t count, implementation_check check)
{
    bool any = false;
    for (size_t i = 0; i < count; i++)
        if (list[i].available()) {
            any = true;
            check(&list[i]);
        }
    if (!any)
        SKIP("this machine or build cannot run it");
}

static inline void every_cuda(implementation_check check)
{
#ifdef SCAND_HAVE_CUDA
    every_of(cuda_implementations, cuda_implementation_count, check);
#else
    every_of(NULL, 0, check);
#endif
}

/* Define the tests cpu_NAME and cuda_NAME of a function NAME. */
#define EVERY_CPU(NAME)                                                \
    static void cpu_##NAME(void)                                       \
    {                                                                  \
        every_of(cpu_implementations, cpu_implementation_count, NAME); \
    }
#define EVERY_CUDA(NAME)          \
    static void cuda_##NAME(void) \
    {                             \
        every_cuda(NAME);         \
    }

#endif
