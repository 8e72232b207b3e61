/*
 * The tutorials' variants of operations, each as a launch of its own, which is what a kernel in tiles has.
 */
#ifndef TESTS_STEP_LAUNCHES_H
#define TESTS_STEP_LAUNCHES_H

#include "kernels/tutorial/steps/steps.h"

#define X(SYMBOL, ...)                                                                                           \
    static int launch_##SYMBOL(const struct step_rows *rows, const void *params, const struct step_tiles *tiles, \
                               uint64_t begin, uint64_t end, void *stream)                                       \
    {                                                                                                            \
        return step_variant_launch(STEP_VARIANT_##SYMBOL, rows, params, tiles, begin, end, stream);              \
    }
STEP_VARIANTS(X)
#undef X
#define X(SYMBOL, ...) launch_##SYMBOL,
static step_launch *const step_variant_launches[STEP_VARIANT_COUNT] = {STEP_VARIANTS(X)};
#undef X

#endif
