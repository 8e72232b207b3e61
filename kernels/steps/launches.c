#include "kernels/steps/step.h"

#define X(NAME) step_launch NAME##_launch;
STEP_KERNELS(X)
#undef X

step_launch *const step_launches[] = {
#define X(NAME) NAME##_launch,
    STEP_KERNELS(X)
#undef X
};
