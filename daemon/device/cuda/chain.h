/*
 * A chunk of several steps on a CUDA device. Its steps scan the output in place, unless that is in host memory that the
 * kernels work on: then values lie densely in device memory between the first step, which reads the input, and the last
 * one, which writes the output, so that they do not cross PCIe.
 */
#ifndef DAEMON_CHAIN_H
#define DAEMON_CHAIN_H

#include "copy.h"

/* The side between the steps of a chunk whose output is `output`, as that would be copied; of others than those of the
 * above a side that nothing is copied of. */
struct side side_between(const struct chunk *chunk, const struct side *output);
/* `rows` with the place of that side, which is at `memory`, as their output. Ragged ones begin with the chunk's. */
struct scan_rows chain_between(const struct scan_rows *rows, const struct side *between, unsigned char *memory);
/* Makes of ragged rows a chunk's as they lie in its slot: what was moved there begins with its first row, and offsets
 * are device_offsets. Results of a reduction lie there as those of other rows do. */
void chain_shift(struct scan_rows *rows, const struct chunk *chunk, const struct sides *sides,
                 const uint64_t *device_offsets);
/* The rows of step i, 0 being the chunk's own scan. Values are between steps in the output of `between`; that is `rows`
 * where they stay in its output. */
struct scan_rows chain_step(const struct chunk *chunk, const struct scan_rows *rows, const struct scan_rows *between,
                            uint32_t i);

#endif
