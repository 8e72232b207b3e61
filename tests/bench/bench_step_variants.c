/* The tutorials' variants of operations in tiles, against a copy of as many bytes as they read and write. */
#include "kernels/steps/map/map.h"
#include "kernels/tutorial/steps/steps.h"
#include "tests/bench/step_cases.h"

#define X(SYMBOL, ...)                                                                                           \
    static int launch_##SYMBOL(const struct step_rows *rows, const void *params, const struct step_tiles *tiles, \
                               uint64_t begin, uint64_t end, void *stream)                                       \
    {                                                                                                            \
        return step_variant_launch(STEP_VARIANT_##SYMBOL, rows, params, tiles, begin, end, stream);              \
    }
STEP_VARIANTS(X)
#undef X
#define X(SYMBOL, ...) launch_##SYMBOL,
static step_launch *const launches[STEP_VARIANT_COUNT] = {STEP_VARIANTS(X)};
#undef X

/* What each kernel is measured with. */
static struct step_bench bench_of(const struct step_variant *variant)
{
    static const struct map add = {.op = MAP_ADD};
    struct step_bench bench = {.name = variant->name,
                               .kernel = variant->kernel,
                               .params = "",
                               .dtype = variant->dtype,
                               .made = variant->dtype,
                               .further = STEP_CASE_SAMPLES};
    if (variant->kernel == &map_kernel) {
        bench.params = &add;
        bench.params_bytes = sizeof add;
        bench.times = bench.parts = 1;
    }
    return bench;
}

int bench_step_variants(struct bench_table *table)
{
    struct step_bench benches[STEP_VARIANT_COUNT];
    for (unsigned i = 0; i < STEP_VARIANT_COUNT; i++)
        benches[i] = bench_of(&step_variant_list[i]);
    return step_benches_measure(benches, STEP_VARIANT_COUNT, launches, table);
}
