/* The cases of `scand-bench steps`: operations in tiles, each on dense rows. */
#ifndef TESTS_BENCH_STEP_CASES_H
#define TESTS_BENCH_STEP_CASES_H

#include "kernels/steps/step.h"
#include "tests/bench/bench.h"

#define STEP_CASE_SAMPLES UINT64_MAX /* the length of the input */

struct step_bench {
    const char *name;
    const struct step_kernel *kernel;
    const void *params;
    size_t params_bytes;
    enum scand_dtype dtype, made; /* dtype of input and further operands; of the output */
    uint64_t times, parts;        /* the output is length * times / parts long; parts: 0: one number for each row */
    uint64_t further;             /* elements along rows of an operand beside the input, or 0 */
    bool is_shared;               /* the operand is one vector for all rows */
    double target;                /* target of the share on a GPU, or 0 */
    uint64_t bins;                /* not 0: the further operand is an index below it, the output has as many elements,
                                     and rows are columns: neighbours in memory */
};
extern const struct step_bench step_benches[];
extern const size_t step_bench_count;

/* Says on stderr which kernels have no case. */
void step_benches_complain(void);

/* Rows of a case, in memory where each operand begins at the address that it is given. */
struct step_rows step_bench_rows(const struct step_bench *bench, uint64_t rows, uint64_t length, void *input,
                                 void *further, void *output);
/* Bytes that are read and written at least. */
uint64_t step_bench_bytes(const struct step_bench *bench, uint64_t rows, uint64_t length);

/* Words of 4 bytes of operands that are no samples, but say where or how wide something is, for rows of `length`: 0 of
 * most cases. Fills them, on the host. */
uint64_t step_bench_words(const struct step_bench *bench, uint64_t length);
void step_bench_fill(const struct step_bench *bench, uint64_t length, uint32_t *words);

/* Returns the dtypes of a case, "f32", or "f32 to i32". */
const char *step_bench_dtypes(const struct step_bench *bench);

/* Measure steps on one thread, and on the current CUDA device. Return 0, or a message's error. */
int bench_steps_cpu(struct bench_table *table);
int bench_steps_cuda(struct bench_table *table);
/* Measures cases on the current CUDA device, each by its launch or, without launches, by its kernel's own. */
int step_benches_measure(const struct step_bench *benches, size_t count, step_launch *const *launches,
                         struct bench_table *table);
/* The variants of the tutorials. */
int bench_step_variants(struct bench_table *table);

#endif
