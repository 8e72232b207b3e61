/*
 * Batched scans and reductions along one axis: what to compute, where the rows lie, and the functions that compute it.
 *
 * All implementations return the same bits: order 1, the association that order.h states and reference.c spells out.
 * NaN results are written as the one quiet NaN 0x7fc00000 (f32) or 0x7ff8000000000000 (f64), whatever NaN came in. With
 * f2 accumulation an infinity, given or from overflow, is NaN in every sum or product of two samples or more that it
 * takes part in; so is a sample of class f64 beyond the range of f32, whose double-word is (infinity, -infinity): alone
 * it is an infinity as f32, NaN as f64. What an f2 has below 2^-149, the last place of the smallest f32, is lost.
 *
 * max(l, r) is r if r > l or r is NaN, else l, where l is what the scan meets first; min likewise. So a NaN stays, and
 * of equal values the first. They change no value, whatever the accumulator. Where an exclusive scan has met nothing
 * yet, its value is the operator's identity: 0, 1 (prod), -infinity (max), +infinity (min); for integers
 * the smallest (max) and largest (min) number of the input's type. A value of kind HALF is the inclusive sum, less half
 * of the sample, both in the accumulator (f2: one more DWPlusFP, or AccurateDWPlusDW with a wide sample). TRAPEZOID is
 * HALF of a row whose first sample, as the pass meets it, is halved in the accumulator (f2: both words), and whose
 * first value is 0, whatever that sample is.
 *
 * affine(a, x): y[i] = a[i] y[i-1] + x[i], backward y[i] = a[i] y[i+1] + x[i]. A sample is the map y -> a y + x, and
 * two maps, the one met first being l, are joined to y -> (r.a l.a) y + (r.a l.x + r.x): product and sum are rounded
 * each, nothing is contracted. Leaves' totals, prefixes and carries are such maps; a value is a[i] times the one before
 * it (at a leaf's start: the carry's term) plus x[i], and x[i] itself where nothing comes before. An exclusive row
 * begins with 0. In f2 samples and coefficients are double-words, whatever they were read from, products DWTimesDW3 and
 * sums AccurateDWPlusDW. A single coefficient for all samples is rounded to the accumulator; for integers it is a whole
 * number. A NaN or infinite coefficient acts as IEEE arithmetic says, on values and, through the joined maps, on all
 * that follow. Both passes have the same coefficients.
 *
 * The mean that `demean` takes away is the row's total in order 1, forward and in f64, divided by its length; the
 * difference is computed in f64 and rounded to the sample's type, f32 or f64.
 *
 * A reduction writes one result for each row: reduce.h says what it is.
 */
#ifndef KERNELS_SCAN_H
#define KERNELS_SCAN_H

#include <stdbool.h>

#include <scand/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SCAN_OUTER_MAX (SCAND_RANK_MAX - 1)

/*
 * The rule of a scan: what to compute. Between two passes the value of a float is rounded to the intermediate type;
 * integers are left alone. What is allowed goes by the class of the input (types.h, dtypes.h):
 *
 * - f32: accumulator F32, F64 or F2; intermediate F32 or F64; output of class f32 or F64.
 * - f64: accumulator F64 or F2, the rest likewise; with F2 a sample enters as a double-word (f2_from_f64).
 * - Integers: accumulator EXACT, 64 bits that wrap; output any integer at least as wide, which gets the low bits; max
 *   and min go by the signedness of the input, and their identity is the input type's end.
 *
 * Coefficients of affine are of the input's class.
 */
struct scan_rule {
    enum scand_operation operation;
    enum scand_reduction reduction;           /* NONE for a scan; else the rest is as reduce_rule makes it */
    enum scand_pass passes[SCAND_PASSES_MAX]; /* run in order */
    uint32_t pass_count;                      /* 1 or 2 */
    enum scand_kind kind;                     /* kind of every pass; HALF and TRAPEZOID with sums of floats only */
    enum scand_operator op;                   /* operator of every pass */
    enum scand_accumulator accumulator;
    enum scand_dtype intermediate; /* F32 or F64 */
    enum scand_dtype input, output;
    bool demean;                   /* floats only: before the first pass, each row's mean is taken from its samples */
    enum scand_dtype coefficients; /* affine: where the rows have one for each sample */
    double coefficient;            /* affine: else that of all; with integers a whole number of at most 2^53 */
    /* 0: order 1. Else 1 + an enum variant_id, or, of a reduction, 1 + an enum reduction_id: rows for variant_scan_from
     * and variant_run, or for reduce_rows_from and reduction_run, not for scan_*. */
    uint32_t algorithm;
};

/*
 * Rows of `length` samples. Row r, 0 <= r < row_count, has the coordinates of r unravelled over outer_shape, last axis
 * fastest. Addresses are base + sum of coordinate x stride; strides are in bytes, of any sign and alignment. The input
 * and output either do not overlap or are the same elements (in place: dtypes of one size). Coefficients do not overlap
 * the output; strides of 0 give several samples the same one.
 *
 * Ragged rows differ in length and lie on one line: row r is its samples offsets[r] <= i < offsets[r + 1]. Offsets do
 * not decrease; rows may be empty, and samples before the first and from the last offset on belong to none. outer_rank
 * is 0, `length` at least that of the longest row, and sample 0 is that of the line. A row's bits are those that it has
 * on its own.
 *
 * A reduction has one output element per row, is not in place, and does not use output_stride. Of ragged rows its
 * outer_rank is 1: along that one lie the results, and input_outer_strides are 0.
 */
struct scan_rows {
    struct scan_rule rule;
    uint64_t length;                /* samples per row; 0 is allowed */
    uint64_t row_count;             /* product of outer_shape */
    const uint64_t *offsets;        /* row_count + 1 of ragged rows, else NULL */
    const uint64_t *device_offsets; /* for scan_cuda: the same numbers, where the device can reach them */
    uint32_t outer_rank;
    uint64_t outer_shape[SCAN_OUTER_MAX];
    int64_t input_outer_strides[SCAN_OUTER_MAX];
    int64_t output_outer_strides[SCAN_OUTER_MAX];
    int64_t input_stride; /* from sample to sample */
    int64_t output_stride;
    int64_t coefficient_outer_strides[SCAN_OUTER_MAX];
    int64_t coefficient_stride;
    const void *input; /* sample 0 of row 0 */
    void *output;
    const void *coefficients; /* affine only; NULL: all are rule.coefficient */
};

/* Bytes from sample 0 of row 0 to sample 0 of row `row`. */
int64_t scan_row_offset(const struct scan_rows *rows, const int64_t outer_strides[SCAN_OUTER_MAX], uint64_t row);

/* Ragged rows first <= r < first + count as a single one, of all their samples. */
struct scan_rows scan_rows_joined(const struct scan_rows *rows, uint64_t first, uint64_t count);

/* Scans rows first <= r < first + count: the definition, one thread, plain C. Returns 0 or -ENOMEM. */
int scan_reference(const struct scan_rows *rows, uint64_t first, uint64_t count);

/*
 * The CPU path: SIMD chosen at run time, rows (or, of a few long ones, their blocks) shared out among the threads of a
 * pool, ragged ones by their samples. cpu_pool_create takes the number of threads that work, the caller of scan_cpu
 * included, or 0 for one per available core; it returns NULL and sets errno on failure. cpu_pool_create_idle makes as
 * many besides the caller, which then only waits, and has them run while no other program wants the processor
 * (SCHED_IDLE). One scan_cpu at a time per pool. scan_cpu returns 0, or -ENOMEM before anything is written; only rows
 * longer than ORDER_BLOCK, without their mean, or reduced allocate.
 */
struct cpu_pool;
struct cpu_pool *cpu_pool_create(unsigned threads);
struct cpu_pool *cpu_pool_create_idle(unsigned threads);
void cpu_pool_destroy(struct cpu_pool *pool);
unsigned cpu_pool_threads(const struct cpu_pool *pool);
/* Between these two, of which the latter returns it, the longest time is noted for which a thread of the pool has slept
 * at memory (protocol/slept.h): not the caller's alone, as scan_cpu need not use the pool. */
void cpu_pool_watch(struct cpu_pool *pool);
uint64_t cpu_pool_end_watch(struct cpu_pool *pool);
int scan_cpu(struct cpu_pool *pool, const struct scan_rows *rows, uint64_t first, uint64_t count);

/*
 * Scans in turns, with the bits of scan_cpu. cpu_task_create copies *rows (what it points to stays the caller's, and
 * must stay) and returns NULL without memory. cpu_task_run goes on with the task and returns 0 when it is done, or 1
 * when `over`, which threads ask from time to time, is true. Each turn gets on, however soon it is over. A row of
 * several order blocks that is given alone is left off between blocks, others between some 2^16 samples or rows. Tasks
 * of one pool take turns; each is destroyed, done or not.
 */
struct cpu_task;
typedef bool cpu_over(void *context);
struct cpu_task *cpu_task_create(struct cpu_pool *pool, const struct scan_rows *rows, uint64_t first, uint64_t count);
int cpu_task_run(struct cpu_task *task, cpu_over *over, void *context);
void cpu_task_destroy(struct cpu_task *task);

/* The SIMD builds of the CPU path, best first; each scans on the calling thread. For tests and benchmarks. */
struct scan_cpu_build {
    const char *name; /* "avx512", "avx2", "portable" */
    int (*available)(void);
    int (*run)(const struct scan_rows *rows, uint64_t first, uint64_t count); /* 0 or -ENOMEM */
};
extern const struct scan_cpu_build scan_cpu_builds[];
extern const size_t scan_cpu_build_count;

#ifdef __cplusplus
}
#endif

#endif
