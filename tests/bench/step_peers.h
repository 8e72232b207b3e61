/* A library that steps.py loads. Operands are dense rows, one right after the other. */
#ifndef TESTS_BENCH_STEP_PEERS_H
#define TESTS_BENCH_STEP_PEERS_H

#include <stdbool.h>
#include <stdint.h>

/* Computes the first case of step_cases.c of this name on the thread that calls; false: there is none. */
bool step_peers_ours(const char *name, uint64_t rows, uint64_t length, void *input, void *further, void *output);

/* Smooths by a triangle as Madagascar does (sf_triangle), in f32: the row is extended by `width` samples in a mirror,
 * at most `length`, and is summed there and back. `extended` has room for such a row. */
void step_peers_triangle(uint64_t rows, uint64_t length, uint64_t width, const float *input, float *extended,
                         float *output);

/* Multiplies and adds to ten vectors of 32 bytes, of f32 or f64, `count` times, all in registers: the most that a core
 * can do. Returns false where the processor has no such instruction. */
bool step_peers_fma(bool wide, uint64_t count);

#endif
