/*
 * Steps in tiles on a CUDA device, for step_case.c. In builds without CUDA there is none.
 */
#ifndef TESTS_KERNELS_STEP_CUDA_H
#define TESTS_KERNELS_STEP_CUDA_H

#include <stdbool.h>

#include "kernels/steps/index/index.h"
#include "kernels/steps/step.h"

/* A region that is copied to where the device reaches it and back; the operand whose elements lie in it, or NULL. */
struct step_cuda_memory {
    void *region;
    size_t bytes;
    struct step_operand *operand;
};

#ifdef SCAND_HAVE_CUDA
bool step_cuda_is_available(void);
/* Runs all rows in two launches, by `launch` or, if that is NULL, the kernel's own; the output is the operand `shared`
 * where that is not NULL. Returns an error's text, or NULL. */
const char *step_cuda_run(const struct step_kernel *kernel, step_launch *launch, const void *params,
                          struct step_rows *rows, const struct step_operand *shared, struct step_cuda_memory *memory,
                          unsigned count, bool mapped);
/* Checks values, as index_launch does, of which two words come back. */
const char *step_cuda_check(struct step_rows *rows, struct step_cuda_memory *memory, uint64_t first, uint64_t count,
                            struct index_range range, uint64_t verdict[2]);
#else
static inline bool step_cuda_is_available(void)
{
    return false;
}

static inline const char *step_cuda_run(const struct step_kernel *kernel, step_launch *launch, const void *params,
                                        struct step_rows *rows, const struct step_operand *shared,
                                        struct step_cuda_memory *memory, unsigned count, bool mapped)
{
    (void)kernel, (void)launch, (void)params, (void)rows, (void)shared, (void)memory, (void)count, (void)mapped;
    return "built without CUDA";
}

static inline const char *step_cuda_check(struct step_rows *rows, struct step_cuda_memory *memory, uint64_t first,
                                          uint64_t count, struct index_range range, uint64_t verdict[2])
{
    (void)rows, (void)memory, (void)first, (void)count, (void)range, (void)verdict;
    return "built without CUDA";
}
#endif

#endif
