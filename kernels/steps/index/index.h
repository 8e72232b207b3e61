/*
 * Values of an index: whole numbers from one to below another, of which a job makes sure before it writes anything. Its
 * kernels leave out others all the same, because a client may change the memory at any time.
 */
#ifndef KERNELS_STEPS_INDEX_H
#define KERNELS_STEPS_INDEX_H

#include "kernels/steps/step.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The values that are in range: from <= value < below. */
struct index_range {
    uint64_t from, below;
};

/* A value below 0 is larger than any bound. */
CODEC_INLINE bool index_has(struct index_range range, uint64_t value)
{
    return value - range.from < range.below - range.from;
}

/* The first value that is out of range, row after row. */
struct index_fault {
    bool found;
    uint64_t row, element;
    int64_t value;
};

/* Looks at the input's rows first <= r < first + count; on the calling thread. */
struct index_fault index_check(const struct step_rows *rows, uint64_t first, uint64_t count, struct index_range range);

/* Checks the rows on the current CUDA device: queues the check on a stream. In the end `verdict`, two words that the
 * device reaches, has what index_verdict reads. Returns a cudaError_t. */
int index_launch(const struct step_rows *rows, uint64_t first, uint64_t count, struct index_range range,
                 uint64_t verdict[2], void *stream);

/* A verdict: which element that is, counted through the rows, or UINT64_MAX for none; and its value. */
static inline struct index_fault index_verdict(const struct step_rows *rows, uint64_t first, const uint64_t verdict[2])
{
    struct index_fault fault = {.found = verdict[0] != UINT64_MAX};
    if (fault.found) {
        fault.row = first + verdict[0] / rows->input.length;
        fault.element = verdict[0] % rows->input.length;
        fault.value = (int64_t)verdict[1];
    }
    return fault;
}

#ifdef __cplusplus
}
#endif

#endif
