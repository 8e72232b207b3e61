/*
 * The bounds of what the demonstration's scan, forward and backward with f64 accumulation, may return, whatever the
 * order of its sums: a client does not contain the order that the daemon keeps. For a sum of n numbers, any order errs
 * by at most n u (|x[0]| + ... + |x[n - 1]|), u = 2^-53 (Higham, Accuracy and Stability of Numerical Algorithms,
 * section 4.2). Rounding to f32 is monotonic, so such an interval of sums becomes an interval of f32 values, which is a
 * single value for nearly every sample.
 */
#ifndef SCANCTL_BOUNDS_H
#define SCANCTL_BOUNDS_H

#include "client/scanctl/commands/demo_run.h"

/* Returns 0, or 1 with *error naming the first sample that no order of sums could have given. */
int bounds_check(const struct demo *demo, struct error *error);

/* Sets low and high, `samples` f32 each, for one trace. They may not overlap it. */
void bounds_make(const float *trace, uint64_t samples, float *low, float *high);

#endif
