/*
 * Elements that are neighbours in memory, for operations that compute each element of the output alike, from samples at
 * its place or near it. A tile is computed in lines of neighbours, along rows or across them.
 */
#ifndef KERNELS_STEPS_ELEMENTS_H
#define KERNELS_STEPS_ELEMENTS_H

#include "kernels/steps/step.h"

/* True when neighbours in memory are rather elements of neighbouring rows than of one row. */
CODEC_INLINE bool elements_cross_rows(const struct step_rows *rows)
{
    const int64_t along = rows->output.stride, across = rows->output.outer_strides[0];
    return !rows->offsets && rows->outer_rank == 1 && rows->row_count > 1 &&
           (across < 0 ? -across : across) < (along < 0 ? -along : along);
}

/* Tiles of some 16,384 elements, in lines that are long enough; whatever the parameters are. */
static inline struct step_tiling elements_tiling(const struct step_rows *rows, const void *params)
{
    const uint64_t elements = UINT64_C(1) << 14;
    (void)params;
    if (elements_cross_rows(rows))
        return (struct step_tiling){.rows = 1024, .elements = elements / 1024};
    return tiling_along(rows, elements);
}

#endif
