/* The tutorials' variants of operations in tiles, against a copy of as many bytes as they read and write. */
#include "kernels/steps/block_sum/block_sum.h"
#include "kernels/steps/convolve/convolve.h"
#include "kernels/steps/dot/dot.h"
#include "kernels/steps/map/map.h"
#include "kernels/steps/stack/stack.h"
#include "kernels/steps/upsample/upsample.h"
#include "tests/bench/step_cases.h"
#include "tests/step_launches.h"

#define TAPS 31
#define BINS 500

/* The parameters that each kernel is measured with, and the length of its results: times / parts of the rows. */
static const struct parameters {
    const struct step_kernel *kernel;
    const void *params;
    size_t bytes;
    uint64_t times, parts, further;
    bool is_shared;
    uint64_t bins;
} parameters[] = {
    {&dot_kernel, "", 0, 0, 0, STEP_CASE_SAMPLES, false, 0},
    {&map_kernel, &(const struct map){.op = MAP_ADD}, sizeof(struct map), 1, 1, STEP_CASE_SAMPLES, false, 0},
    {&upsample_kernel, &(const struct upsample){.factor = 2}, sizeof(struct upsample), 2, 1, 0, false, 0},
    {&block_sum_kernel, &(const struct block_sum){.factor = 2}, sizeof(struct block_sum), 1, 2, 0, false, 0},
    {&convolve_kernel, &(const struct convolve){.taps = TAPS, .first = TAPS / 2}, sizeof(struct convolve), 1, 1, TAPS,
     true, 0},
    {&stack_kernel, &(const struct stack){.bins = BINS, .alpha = 1}, sizeof(struct stack), 0, 0, STEP_CASE_SAMPLES,
     true, BINS},
};

static struct step_bench bench_of(const struct step_variant *variant)
{
    const struct parameters *with = parameters;
    while (with->kernel != variant->kernel)
        with++;
    return (struct step_bench){.name = variant->name,
                               .kernel = variant->kernel,
                               .params = with->params,
                               .params_bytes = with->bytes,
                               .dtype = variant->dtype,
                               .made = variant->dtype,
                               .times = with->times,
                               .parts = with->parts,
                               .further = with->further,
                               .is_shared = with->is_shared,
                               .bins = with->bins};
}

int bench_step_variants(struct bench_table *table)
{
    struct step_bench benches[STEP_VARIANT_COUNT];
    for (unsigned i = 0; i < STEP_VARIANT_COUNT; i++)
        benches[i] = bench_of(&step_variant_list[i]);
    return step_benches_measure(benches, STEP_VARIANT_COUNT, step_variant_launches, table);
}
