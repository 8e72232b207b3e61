/*
 * upsample: y[i] = x[i / factor], each element `factor` times: the nearest sample on a finer grid. The output is
 * `factor` times as long as the input. Its adjoint is the block sum.
 */
#ifndef KERNELS_STEPS_UPSAMPLE_H
#define KERNELS_STEPS_UPSAMPLE_H

#include "kernels/steps/step.h"

struct upsample {
    uint64_t factor; /* at least 1 */
};

extern const struct step_kernel upsample_kernel;

#endif
